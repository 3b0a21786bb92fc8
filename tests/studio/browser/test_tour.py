"""The tour by keyboard alone, in both languages; a saved view opens from disk with the same numbers."""

import pytest


@pytest.mark.parametrize("lang", ["en-GB", "zh-CN"])
def test_the_tour_by_keyboard_alone(open_page, finished, tools, lang):
    page = open_page(finished, lang=lang)
    page.focus("#tour")
    page.keyboard.press("Enter")
    titles = set()
    for _ in range(10):
        titles.add(page.inner_text(".tour h2"))
        assert page.inner_text(".tour .math") and page.evaluate(
            "document.activeElement.closest('.tour') !== null"
        )
        while page.evaluate("document.activeElement.id") != "tour-next":
            page.keyboard.press("Tab")
        page.keyboard.press("Space")
        page.wait_for_timeout(60)
    assert len(titles) == 10
    assert page.is_hidden(".tour") and page.evaluate("document.activeElement.id") == "tour"


def test_the_tour_drives_the_real_controls(open_page, finished, tools):
    page = open_page(finished)
    page.click("#tour")
    for _ in range(5):
        page.click("#tour-next")
    tools.wait(page, "state.view === 'read' && state.reading !== null")
    page.click("#tour-show")
    tools.wait(page, "state.reading.text[4] === 'q' && state.edits.length === 1")
    page.keyboard.press("Escape")
    page.keyboard.press("z")
    tools.wait(page, "state.reading.text[4] !== 'q' && state.edits.length === 0")


def test_a_saved_view_opens_from_disk(open_page, finished, tools, tmp_path):
    page = open_page(finished, view="read", more="&t=9")
    tools.wait(page, "state.reading !== null && state.here?.t === 8")
    page.click("#share")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save this view").click()
    saved.value.save_as(tmp_path / "view.html")
    other = page.context.new_page()
    wrong = []
    other.on("console", lambda line: wrong.append(line.text))
    other.on("pageerror", lambda error: wrong.append(str(error)))
    other.goto((tmp_path / "view.html").as_uri())
    other.wait_for_selector(".mirror s.on")
    other.wait_for_selector(".bars .tag:not(:empty)")
    for part in (".say p", ".text .note", ".next .bars", ".now"):
        assert other.inner_text(part) == page.inner_text(part)
    assert not wrong and other.is_disabled("#go")
