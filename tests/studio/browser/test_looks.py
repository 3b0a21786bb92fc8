"""Every view paints in both languages and themes, at 360 to 2,560 px, without errors; axe finds nothing serious at 1,280 px."""

import gzip
import re

import pytest

from unspool.studio.static import PAGE

VIEWS = ["learn", "read", "units", "back", "unfold"]
LOOKS = [
    ("light", "en-GB", 1280), ("dark", "zh-CN", 1280), ("light", "zh-CN", 1280), ("dark", "en-GB", 1280),
    ("light", "zh-CN", 360), ("dark", "en-GB", 360), ("light", "en-GB", 2560),
]  # fmt: skip


READY = {
    "learn": "state.runs[0]?.scores", "read": "state.reading && state.here", "units": "state['units.one'] && state['units.all']",
    "back": "state['back.flow'] && state['back.lags'] && state['back.truncations']", "unfold": "document.querySelector('.graph svg')",
}  # fmt: skip


def shown_completely(page, tools, view):
    """Wait until a view has its numbers and has painted them."""
    tools.wait(page, READY[view])
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


@pytest.mark.parametrize(("theme", "lang", "width"), LOOKS)
def test_views_paint_and_axe_finds_nothing_serious(open_page, finished, tools, theme, lang, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe() if width == 1280 else None
    page = open_page(finished, view="learn", theme=theme, lang=lang, width=width)
    for number, view in enumerate(VIEWS, 1):
        page.keyboard.press(str(number))
        page.wait_for_selector(f"main.view-{view}")
        shown_completely(page, tools, view)
        wide, shown = page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert wide <= shown, (view, wide)
        assert page.evaluate("document.documentElement.lang") == ("en" if lang == "en-GB" else "zh-Hans")
        found = axe.run(page).response["violations"] if axe else []
        serious = [
            (each["id"], [node["html"][:160] for node in each["nodes"]])
            for each in found
            if each["impact"] in ("serious", "critical")
        ]
        assert not serious, (view, serious)


@pytest.mark.parametrize("width", [360, 1280])
def test_forced_colours_leave_everything_to_be_seen(open_page, finished, tools, width):
    page = open_page(finished, width=width, forced_colors="active")
    for number, view in enumerate(VIEWS, 1):
        page.keyboard.press(str(number))
        shown_completely(page, tools, view)
        hidden = page.evaluate(UNSEEN)
        assert not hidden, (view, hidden)


UNSEEN = """
[...document.querySelectorAll('main *, .strip *, .bar *')].filter((node) => {
  const style = getComputedStyle(node), own = [...node.childNodes].some((each) => each instanceof Text && each.data.trim());
  if (!own || !node.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || node.closest('.unseen, textarea, svg')) return false;
  let behind = node;
  while (behind && getComputedStyle(behind).backgroundColor === 'rgba(0, 0, 0, 0)') behind = behind.parentElement;
  return style.color === (behind ? getComputedStyle(behind).backgroundColor : 'rgb(255, 255, 255)');
}).map((node) => node.outerHTML.slice(0, 160))
"""


def test_nothing_moves_by_itself_where_less_motion_is_asked_for(open_page, finished, tools):
    still = open_page(finished, view="read")
    for number, view in enumerate(VIEWS, 1):
        still.keyboard.press(str(number))
        shown_completely(still, tools, view)
        assert not tools.state(still, "playing")["playing"]
        assert still.evaluate("document.getAnimations().length") == 0, view
    moves = open_page(finished, view="read", reduced_motion="no-preference")
    tools.wait(moves, "state.playing && state.t > 3")
    moves.keyboard.press(" ")
    tools.wait(moves, "!state.playing")


def test_the_dictionaries_have_equal_keys_and_values(open_page, finished):
    page = open_page(finished)
    found = page.evaluate("import('/words.js').then(({ dictionaries }) => dictionaries)")
    assert set(VIEWS) < set(found)
    for name, words in found.items():
        assert list(words["en"]) == list(words["zh"]), name
        for key, text in words["en"].items():
            fields = [sorted(set(_fields(each))) for each in (text, words["zh"][key])]
            assert fields[0] == fields[1], (name, key)


def test_no_word_is_given_twice():
    for path in sorted((PAGE / "words").glob("*.js")):
        for part in path.read_text().split("zh: {"):
            keys = re.findall(r"(?:^|[,{] ?|\n\s*)(\w+): [\"`]", part)
            assert len(keys) == len(set(keys)), (
                path.name,
                sorted({key for key in keys if keys.count(key) > 1}),
            )


def _fields(text):
    return [part.split("}")[0] for part in text.split("{")[1:]]


def test_language_and_theme_are_remembered(open_page, finished, tools):
    page = open_page(finished)
    page.keyboard.press("l")
    page.keyboard.press("d")
    tools.wait(
        page,
        "document.documentElement.lang === 'zh-Hans' && document.documentElement.dataset.theme === 'dark'",
    )
    page.reload()
    tools.wait(
        page,
        "document.documentElement.lang === 'zh-Hans' && document.documentElement.dataset.theme === 'dark'",
    )


def test_the_page_is_small():
    assert sum(len(gzip.compress(each.read_bytes())) for each in PAGE.rglob("*") if each.is_file()) <= 130_000
