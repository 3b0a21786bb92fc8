"""Read: typing, the shown numbers, what-ifs and undo, all by keyboard; a view handed on."""

import math

import numpy as np
import pytest

from studio_client import studio

TEXT = "the time traveller spoke of rhyme"


@pytest.fixture
def reader(open_page, finished, tools):
    """The view Read with a text in it."""
    page = open_page(finished, view="read")
    page.fill("#text", TEXT)
    tools.wait(page, f"state.reading?.text === {TEXT!r}")
    return page


def shown(page):
    """Return what the page holds of its reading."""
    return page.evaluate(
        "import('/state.js').then(({ state: { reading: r } }) => ({ pieces: r.pieces, surprise: [...r.surprise].slice(1), text: r.text, update: r.version.update }))"
    )


def test_shown_numbers_are_those_of_the_api(reader, finished, tools):
    answer = finished.post("/api/read", text=TEXT)
    surprise = answer["surprise"][1:]
    np.testing.assert_array_equal(np.float32(shown(reader)["surprise"]), surprise)
    assert f"{answer['nats']:.2f} nats" in reader.inner_text(".text .note")
    reader.get_by_role("button", name="Table: Text, coloured by surprise").click()
    cells = reader.locator(".text .twin tbody tr td:nth-of-type(2)").all_inner_texts()
    assert cells[1:] == [f"{each:.3f}" for each in surprise]
    reader.keyboard.press("Escape")
    reader.locator(".next").scroll_into_view_if_needed()
    step = tools.state(reader, "t")["t"]
    tools.wait(reader, f"state.here?.t === {step} && state.here.text === state.reading.text")
    reader.get_by_role("button", name="Table: What comes next").click()
    at = finished.post("/api/at", reading=finished.post("/api/read", text=TEXT)["reading"], t=step)
    best = np.sort(at["next"])[::-1]
    rows = reader.locator(".next .twin tbody td").all_inner_texts()
    assert rows == [f"{each:.6f}" for each in best[: len(rows)]]


def test_typing_moves_the_cursor_and_no_stale_answer_stays(reader, tools):
    reader.focus("#text")
    reader.keyboard.press("Control+End")
    for letter in " and space and time":
        reader.keyboard.type(letter)
    text = TEXT + " and space and time"
    tools.wait(reader, f"state.reading?.text === {text!r}")
    tools.wait(reader, f"state.t === {len(text) - 1}")
    assert reader.locator(".mirror").inner_text().strip("\n") == text
    assert reader.locator(".mirror s").count() == len(text)


def test_what_ifs_change_what_follows(reader, open_page, tools):
    before = shown(reader)["surprise"]
    reader.focus("#text")
    reader.keyboard.press("Control+Home")
    for _ in range(5):
        reader.keyboard.press("ArrowRight")
    tools.wait(reader, "state.t === 4")
    reader.fill("#what-letter", "q")
    reader.press("#what-letter", "Enter")
    tools.wait(reader, "state.reading?.text[4] === 'q' && state.base !== null")
    after = shown(reader)["surprise"]
    assert after[:3] == before[:3] and after[3] != before[3]
    reader.fill("#what-weight", "2.5")
    reader.press("#what-weight", "Enter")
    tools.wait(reader, "state.edits.length === 2 && state.reading.version.edits === 1")
    weighted = shown(reader)["surprise"]
    assert (
        weighted[0] == after[0] and weighted[4:] != after[4:]
    )  # h(0) is 0, so W counts from the second step on
    reader.fill("#what-unit", "layer0.h99")
    with tools.quiet(open_page):
        reader.press("#what-unit", "Enter")
        tools.wait(reader, "state.problem.includes('h99')")
        reader.wait_for_timeout(200)


def test_undo_is_exact(reader, tools):
    before = shown(reader)["surprise"]
    reader.fill("#what-unit", "layer0.h3")
    reader.press("#what-unit", "Enter")
    tools.wait(reader, "state.reading.version.edits === 1 && state.base !== null")
    after = shown(reader)["surprise"]
    tools.wait(reader, "document.querySelector('.effect').textContent.includes('nats')")
    assert after != before
    reader.click("#undo")
    tools.wait(reader, "state.reading.version.edits === 0")
    assert shown(reader)["surprise"] == before


def test_keys_move_both_cursors(reader, tools):
    reader.evaluate("document.activeElement.blur()")
    reader.keyboard.press("Home")
    reader.keyboard.press("Shift+ArrowRight")
    tools.wait(reader, "state.t === 10")
    reader.keyboard.press("{")
    tools.wait(reader, "state.u === 59 && state.reading.version.update === 59")
    reader.keyboard.press("}")
    tools.wait(reader, "state.u === null && state.reading.version.update === 60")
    reader.keyboard.press("?")
    reader.wait_for_selector("dialog[open] kbd")


def test_everything_is_reached_by_tab(reader):
    seen = set()
    reader.evaluate("document.activeElement.blur()")
    for _ in range(70):
        reader.keyboard.press("Tab")
        seen.add(
            reader.evaluate(
                "document.activeElement.id || document.activeElement.className || document.activeElement.textContent"
            )
        )
    expected = {
        "run-button",
        "slow",
        "updates",
        "fork",
        "share",
        "language",
        "theme",
        "keys",
        "tour",
        "text",
        "time",
        "heat",
        "what-letter",
        "what-unit",
        "what-matrix",
        "what-weight",
    }
    assert expected <= seen, expected - seen


def test_a_view_handed_on_opens_in_another_studio(reader, open_page, tools, tmp_path):
    reader.evaluate("document.activeElement.blur()")
    reader.keyboard.press("Home")
    reader.keyboard.press("Shift+ArrowRight")
    reader.keyboard.press("{")
    tools.wait(reader, "state.u === 59 && state.reading.version.update === 59")
    words = reader.evaluate("import('/link.js').then(({ fragment }) => fragment(true))")
    surprise = shown(reader)["surprise"]
    assert "token" not in words.split("&run.")[0]
    with studio(tmp_path) as other:
        other.new(start=False, steps=3)
        other.wait("paused")
        page = open_page(other)
        page.click("#share")
        page.get_by_role("button", name="Open a view").click()
        page.fill("dialog textarea", "nonsense")
        page.click("dialog .main")
        page.wait_for_selector("dialog .bad:has-text('view=read')")
        page.fill("dialog textarea", words)
        page.click("dialog .main")
        other.wait("ended", step=60)
        tools.wait(page, "state.u === 59 && state.reading?.version.update === 59 && state.t === 10")
        assert shown(page)["surprise"] == surprise and shown(page)["text"] == TEXT
        assert all(math.isfinite(each) for each in surprise)
