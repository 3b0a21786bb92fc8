"""Write docs/pictures/studio-*.png: every view of the studio, painted by Chromium.

    python docs/make_screenshots.py              all pictures
    python docs/make_screenshots.py read unfold  these pictures

Starts a studio, trains a small run on the built-in text, opens each view and saves it, 1,280 pixels wide. Needs Chromium and
the extra `dev` (`make browser`). The run is the same every time; its speed, and letters drawn by another font, are not.
"""

import io
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote_plus

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from unspool.cli.default_out import default_run
from unspool.cli.follow import repeat
from unspool.studio.server import Studio, serving
from unspool.studio.session import BUILTIN, Place, Session

PICTURES = Path(__file__).parent / "pictures"
RECIPE = {"cell": "lstm", "hidden": 64, "steps": 1500, "seed": 0}
TEXT = (
    "Return the number of items in the list. If the list is empty, the function returns None, the default value. "
    "Each item is read once, from the first to the last: a file that is open for writing cannot be read, and an error is raised. "
    "The second argument names the encoding; without it, the encoding of the system is used."
)
READING = f"&text={quote_plus(TEXT)}&t=103"
WIDTH, LIMIT = 1280, 200_000
"""Pixels; bytes of a picture."""
READY = {
    "learn": "state.curve.count >= 1500 && state.points.length",
    "read": "state.reading && state.here",
    "units": "state['units.one'] && state['units.all']",
    "back": "state['back.flow'] && state['back.lags'] && state['back.truncations']",
    "unfold": "state['unfold.graph'] && state['unfold.weight']",
}
"""What a view waits for, in JavaScript."""


class Shot(NamedTuple):
    """One picture: a view, its part of the address, language and theme."""

    view: str
    more: str = ""
    lang: str = "en-GB"
    theme: Literal["light", "dark"] = "light"


SHOTS = {
    "learn": Shot("learn"),
    "read": Shot("read", READING),
    "units": Shot("units", READING, theme="dark"),
    "back": Shot("back", f"&text={quote_plus(TEXT)}"),
    "unfold": Shot("unfold"),
    "zh": Shot("read", READING, lang="zh-CN"),
}


def trained(session: Session) -> None:
    """Train the run of the pictures to its end."""
    text = next(each for each in session.texts.values() if each.name == BUILTIN)
    run = session.new_run(text, RECIPE)
    session.trainer.call(lambda: session.trainer.start_run(run))
    while run.status != "ended":
        if run.status == "failed":
            sys.exit(run.message)
        time.sleep(0.1)


def picture(browser: Browser, studio: Studio, shot: Shot) -> bytes:
    """Return a view as a PNG of at most 256 colours."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": 800},
        locale=shot.lang,
        color_scheme=shot.theme,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(f"{studio.address}&view={shot.view}{shot.more}")
    _wait(page, READY[shot.view])
    page.evaluate("document.documentElement.style.scrollbarGutter = 'auto'")
    page.wait_for_timeout(1500)
    image = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
    context.close()
    made = io.BytesIO()
    image.quantize(256, kmeans=2, dither=Image.Dither.NONE).save(made, "PNG", optimize=True)
    return made.getvalue()


def _wait(page: Page, condition: str) -> None:
    """Wait until a condition on the page's `state` holds; the page's policy forbids playwright's own way."""
    end = time.monotonic() + 60
    while not page.evaluate(f"import('/state.js').then(({{ state }}) => Boolean({condition}))"):
        if time.monotonic() > end:
            sys.exit(f"{condition}: not reached; the page shows: {page.inner_text('body')[:500]}")
        page.wait_for_timeout(50)


def main() -> None:
    """Write the pictures."""
    program: Any = shutil.which("chromium") or sys.exit("no Chromium: make browser installs it")
    names = sys.argv[1:] or list(SHOTS)
    if unknown := set(names) - set(SHOTS):
        sys.exit(f"{', '.join(sorted(unknown))}: expected some of {', '.join(SHOTS)}")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        os.chdir(folder)
        session = Session(Place(lambda name: default_run([name], "studio"), repeat))
        with serving(session) as studio:
            trained(session)
            browser = play.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
            for name in names:
                made = picture(browser, studio, SHOTS[name])
                if len(made) > LIMIT:
                    sys.exit(f"{name}: {len(made):,} bytes; expected at most {LIMIT:,}")
                (PICTURES / f"studio-{name}.png").write_bytes(made)
                print(f"studio-{name}.png: {len(made):,} bytes", flush=True)
            browser.close()


if __name__ == "__main__":
    main()
