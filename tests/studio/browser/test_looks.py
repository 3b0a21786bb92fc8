"""Every view paints in both languages and themes, at 360 and 1280 px, without errors; axe finds nothing serious at 1280 px."""

import gzip

import pytest

from unspool.studio.static import PAGE

VIEWS = ["learn", "read", "units", "back", "unfold"]
LOOKS = [("light", "en-GB", 1280), ("dark", "zh-CN", 1280), ("light", "zh-CN", 360), ("dark", "en-GB", 360)]


@pytest.mark.parametrize(("theme", "lang", "width"), LOOKS)
def test_views_paint_and_axe_finds_nothing_serious(open_page, finished, tools, theme, lang, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe() if width == 1280 else None
    page = open_page(finished, view="learn", theme=theme, lang=lang, width=width)
    for number, view in enumerate(VIEWS, 1):
        page.keyboard.press(str(number))
        page.wait_for_selector(f"main.view-{view}")
        if view in ("read", "units"):
            tools.wait(page, "state.reading !== null")
        page.wait_for_timeout(150)
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


def test_the_dictionaries_have_equal_keys_and_values(open_page, finished):
    page = open_page(finished)
    found = page.evaluate("import('/words.js').then(({ dictionaries }) => dictionaries)")
    assert set(VIEWS) < set(found)
    for name, words in found.items():
        assert list(words["en"]) == list(words["zh"]), name
        for key, text in words["en"].items():
            fields = [sorted(set(_fields(each))) for each in (text, words["zh"][key])]
            assert fields[0] == fields[1], (name, key)


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
    assert sum(len(gzip.compress(each.read_bytes())) for each in PAGE.rglob("*") if each.is_file()) <= 120_000
