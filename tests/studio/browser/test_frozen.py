"""The page that `unspool inspect` writes, opened from disk: it paints, asks for nothing, and shows the library's numbers."""

import math

import numpy as np
import pytest

import unspool
from inspect_cases import made
from unspool.inspect.report import inspect
from unspool.inspect.steps import predictions_by_step
from unspool.studio.inspection import text_page

HOSTILE = (
    '</script><script>alert(1)</script><img src=x onerror=alert(2)> \u202eabc\u202c "quoted" 😀 & <b>\nGo home, TOM!\n'
    * 2
)
TEXT = 'He said: "Go home, TOM!" and went (it was 7 o\'clock).\n  Then she, laughing, answered: "No."\n' * 3
VIEWS = {
    "read": ".mirror s.on",
    "units": ".tint s.on",
    "back": ".flow-figure .grad",
    "unfold": ".graph .chosen",
}
LOOKS = [("light", "en-GB", 1280), ("dark", "zh-CN", 1280), ("light", "zh-CN", 360)]


@pytest.fixture(scope="module")
def report():
    return inspect(made("lstm", steps=30), TEXT, run="run", name="story.txt")


@pytest.fixture
def open_file(chromium, tmp_path):
    """Open pages from disk; at the end, nothing may have gone wrong or been asked for."""
    contexts, wrong = [], []

    def opened(page, lang="en-GB", theme="light", width=1280):
        path = tmp_path / f"page{len(contexts)}.html"
        page.save(path)
        context = chromium.new_context(
            viewport={"width": width, "height": 800}, locale=lang, color_scheme=theme, reduced_motion="reduce",
            accept_downloads=True,
        )  # fmt: skip
        context.set_default_timeout(10_000)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda line: wrong.append(line.text))
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        tab.on(
            "request",
            lambda asked: asked.url.startswith(("data:", "blob:", path.as_uri())) or wrong.append(asked.url),
        )
        tab.goto(path.as_uri())
        tab.wait_for_selector(".view-read .mirror s.on, .view-steps .bars", state="attached")
        return tab

    yield opened
    for each in contexts:
        each.close()
    assert not wrong, wrong


@pytest.mark.parametrize(("theme", "lang", "width"), LOOKS)
def test_every_view_paints_by_keyboard_and_fits(open_file, report, theme, lang, width):
    page = open_file(text_page(report, TEXT), lang, theme, width)
    for number, (view, sign) in enumerate(VIEWS.items(), 1):
        page.keyboard.press(str(number))
        page.wait_for_selector(f"main.view-{view} {sign}")
        wide, shown = page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert wide <= shown, (view, wide)
        assert not serious(page, width), view
    assert page.locator("#tour, #share, #go:visible, textarea:not([readonly]), .what").count() == 0
    page.keyboard.press("l")
    page.wait_for_selector(f"html[lang={'en' if lang == 'zh-CN' else 'zh-Hans'}]")


def serious(page, width):
    """What axe finds in a wide page."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe() if width == 1280 else None
    found = axe.run(page).response["violations"] if axe else []
    return [each["id"] for each in found if each["impact"] in ("serious", "critical")]


def test_the_tables_hold_the_library_s_numbers(open_file, report):
    page = open_file(text_page(report, TEXT))
    reading = report.reading
    table(page, "text")
    page.keyboard.press("Home")
    rows = page.locator(".panel.text tbody tr").all()
    for t in (1, 5, 20):
        cells = rows[t].locator("td").all_inner_texts()
        assert cells[1] == f"{reading.surprise[t]:.3f}"
        assert cells[2] == f"{math.exp(-reading.surprise[t]):.4f}"
    page.keyboard.press("3")
    page.wait_for_selector(".memory .curve-main")
    said = page.inner_text(".memory > .note")
    steps = [report.back.advice[bias] for bias in (0.1, 0.05, 0.01)]
    assert all(str(each) in said for each in (*report.back.horizons, *steps) if each is not None)
    table(page, "memory")
    first = page.locator(".panel.memory tbody tr").nth(2).locator("td").all_inner_texts()
    assert float(first[0]) == pytest.approx(report.back.trained[0].norm[2], rel=0.01)
    page.keyboard.press("2")
    page.wait_for_selector(".tint s.on")
    table(page, "choose")
    assert page.locator(".panel.choose tbody tr").count() == len(report.units)


def table(page, panel):
    page.click(f".panel.{panel} .twins button[aria-pressed]")


def test_csv_is_made_in_the_page(open_file, report, tmp_path):
    page = open_file(text_page(report, TEXT))
    with page.expect_download() as saved:
        page.click(".panel.text .twins button:last-child")
    saved.value.save_as(tmp_path / "text.csv")
    lines = (tmp_path / "text.csv").read_text(encoding="utf-8").splitlines()
    assert (
        len(lines) == 1 + len(report.reading.ids)
        and lines[2].split(",")[2] == f"{report.reading.surprise[1]:.3f}"
    )


@pytest.mark.parametrize("text", [HOSTILE, "ab", "\n\n\n", "😀😀😀"])
def test_strange_texts_are_shown_and_never_run(open_file, text):
    source = made("gru")
    page = open_file(text_page(inspect(source, text, run="<b>run", name="<img>"), text))
    assert page.input_value("#text") == text
    for number in range(1, page.locator(".views a").count() + 1):
        page.keyboard.press(str(number))
        page.wait_for_timeout(60)
    assert page.locator("b img, img, .say script").count() == 0


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(open_file, chromium, report, tmp_path):
    shown = text_page(report, TEXT)
    (tmp_path / "notebook.html").write_text(
        f"<!doctype html><p>notebook</p>{shown._repr_html_()}", encoding="utf-8"
    )
    page = chromium.new_page()
    wrong = []
    page.on("console", lambda line: wrong.append(line.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto((tmp_path / "notebook.html").as_uri())
    frame = page.frame_locator("iframe")
    frame.locator(".mirror s.on").wait_for()
    frame.locator("#theme").click()
    frame.locator("html[data-theme=dark]").wait_for()
    page.close()
    assert not wrong, wrong


WORDS = ["abba", "baab", "ab", "b", "aab</script>"] * 8
MODELS = {
    "classes": (
        unspool.SequenceClassifier(hidden=6, epochs=2, seed=1, model="network"),
        WORDS,
        [row[0] + "<b>" for row in WORDS],
    ),
    "pixels": (
        unspool.SequenceClassifier(hidden=4, epochs=1),
        np.random.default_rng(0).random((6, 64)),
        [0, 1] * 3,
    ),
    "numbers": (
        unspool.SequenceRegressor(hidden=4, epochs=1),
        np.random.default_rng(0).random((6, 5, 3)),
        np.arange(6.0),
    ),
    "tags": (unspool.SequenceTagger(hidden=4, epochs=1), WORDS, [list(row) for row in WORDS]),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_steps_of_a_sequence_model_are_shown(open_file, name):
    model, X, y = MODELS[name]
    page = open_file(model.fit(X, y).inspect(X[:3], y[:3]), width=360 if name == "pixels" else 1280)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    if name == "classes":
        p = predictions_by_step(model, X[:3]).sequences[1].predictions[-1]
        page.wait_for_selector(f'.say b:text-is("{len(X[1])}")')
        page.wait_for_selector(f'.say p:has-text("{100 * p.max():.0f}")')
        table(page, "by")
        cells = page.locator(".panel.by tbody tr").last.locator("td").all_inner_texts()
        assert cells == [f"{each:.4f}" for each in p]
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.keyboard.press("l")
    page.wait_for_selector("html[lang=zh-Hans] .view-steps .bars")
