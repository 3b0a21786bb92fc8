"""The first minute with words and with bytes: start a run in the page, type, and look at every view."""

from itertools import pairwise

import pytest

from studio_client import SMALL, TEXT, studio

TYPED = "the time traveller spoke of Zürich 😀 and the"
VIEWS = {
    "units": "state['units.one'] && state['units.all']",
    "back": "state['back.flow'] && state['back.lags'] && state['back.truncations']",
    "unfold": "document.querySelector('.graph svg')",
    "learn": "document.querySelector('.view-learn svg')",
}


@pytest.mark.parametrize("kind", ["word", "byte"])
def test_a_run_of_words_or_bytes_is_begun_read_and_looked_at(open_page, tools, tmp_path, kind):
    with studio(tmp_path) as client:
        client.post("/api/texts", name="story.txt", content=TEXT)
        page = open_page(client)
        page.click("#run-button")
        page.get_by_role("button", name="New run").click()
        page.get_by_label("Text", exact=True).select_option(label="story.txt")
        page.click("dialog summary")
        page.get_by_label("Tokens", exact=True).select_option(kind)
        page.get_by_label("Hidden units").fill(str(SMALL["hidden"]))
        page.get_by_label("Updates", exact=True).fill("40")
        page.get_by_role("button", name="Train", exact=True).click()
        tools.wait(page, "state.runs.length === 1 && state.runs[0].status === 'ended'", 30)
        page.keyboard.press("2")
        page.fill("#text", "")
        page.keyboard.type(TYPED)
        tools.wait(
            page,
            f"state.reading?.text === {TYPED!r} && state.t === state.reading.T - 1 && state.here?.reading === state.reading.id",
        )
        spans = tools.state(page, "reading")["reading"]["spans"]
        assert spans[0][0] == 0 and spans[-1][1] == len(TYPED.encode("utf-16-le")) // 2
        assert all(one[1] <= other[1] for one, other in pairwise(spans))
        assert page.inner_text(".mirror").rstrip("\n") == TYPED
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("Home")
        tools.wait(page, "state.t === 0 && state.here.t === 0")
        for number, view in ((3, "units"), (4, "back"), (5, "unfold"), (1, "learn")):
            page.keyboard.press(str(number))
            tools.wait(page, f"state.view === '{view}' && {VIEWS[view]}")
        page.context.close()
