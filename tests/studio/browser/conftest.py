"""A browser, a studio with a finished run for the tests that only look, and pages that report whatever goes wrong."""

import shutil
import time
from contextlib import contextmanager

import pytest

from studio_client import studio

ARGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
STEPS = 60


@pytest.fixture(scope="session")
def launched():
    """Return a function that starts a browser with more arguments."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        pytest.skip(
            "no browser: install one with make browser (Debian: apt install chromium; pip install playwright)"
        )
    with sync_playwright() as play:
        yield lambda *more: play.chromium.launch(executable_path=program, args=[*ARGS, *more])


@pytest.fixture(scope="session")
def chromium(launched):
    """One browser for all tests."""
    found = launched()
    yield found
    found.close()


@pytest.fixture
def rebound(launched):
    """A page of a browser for which a foreign name is this machine, and the name."""
    found = launched("--host-resolver-rules=MAP evil.example 127.0.0.1")
    yield found.new_page(), "evil.example"
    found.close()


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A studio with a run that has ended."""
    with studio(tmp_path_factory.mktemp("browser")) as client:
        client.new(steps=STEPS)
        client.wait("ended")
        yield client


@pytest.fixture
def open_page(chromium):
    """Open pages of a studio; at the end, nothing may have gone wrong in any of them."""
    contexts, wrong = [], []

    def follow(page, origin):
        page.on("console", lambda line: line.type in ("error", "warning") and wrong.append(line.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda asked: asked.url.startswith((origin, "blob:", "data:")) or wrong.append(asked.url),
        )

    def opened(client, view="learn", width=1280, lang="en-GB", theme="light", more="", context=None, **looks):
        if context is None:
            context = chromium.new_context(
                viewport={"width": width, "height": 800}, locale=lang, color_scheme=theme, accept_downloads=True,
                **{"reduced_motion": "reduce"} | looks,
            )  # fmt: skip
            context.set_default_timeout(10_000)
            contexts.append(context)
        page = context.new_page()
        follow(page, f"http://127.0.0.1:{client.studio.port}/")
        page.goto(f"{client.studio.address}&view={view}{more}")
        wait_for(page, "document.querySelector('.run b')?.textContent.includes('run')")
        return page

    opened.wrong = wrong
    yield opened
    for each in contexts:
        each.close()
    assert not wrong, wrong


def state_of(page, *names):
    """Return parts of the page's state."""
    return page.evaluate(
        "names => import('/state.js').then(({ state }) => Object.fromEntries(names.map(name => [name, state[name]])))",
        names,
    )


def wait_for(page, condition, seconds=10.0):
    """Wait until a condition in JavaScript holds, with the page's `state`; the page's own CSP forbids wait_for_function."""
    end = time.monotonic() + seconds
    while not page.evaluate(f"import('/state.js').then(({{ state }}) => Boolean({condition}))"):
        assert time.monotonic() < end, (condition, page.inner_text("body")[:600])
        page.wait_for_timeout(20)


@contextmanager
def quiet(open_page):
    """Errors that are expected inside are forgotten."""
    before = len(open_page.wrong)
    yield
    del open_page.wrong[before:]


@pytest.fixture
def tools():
    """Helpers that look into a page."""

    class Tools:
        state, wait, quiet = staticmethod(state_of), staticmethod(wait_for), staticmethod(quiet)

    return Tools
