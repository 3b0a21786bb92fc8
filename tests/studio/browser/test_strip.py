"""The strip: start, stop, one update, fork, rewind, a new text; many tabs; a server that has gone."""

import pytest

from studio_client import studio


@pytest.fixture
def paused(tmp_path):
    """A studio with a run that waits."""
    with studio(tmp_path) as client:
        client.new(start=False, steps=400)
        client.wait("paused")
        yield client


def test_start_stop_one_update_and_fork(open_page, paused, tools):
    page = open_page(paused)
    page.click("#one")
    paused.wait("paused", step=1)
    tools.wait(page, "state.runs[0].step === 1")
    assert page.inner_text(".now .at dd").startswith("1 /")
    page.click("#go")
    paused.wait("training", step=12)
    tools.wait(page, "document.querySelector('#go').textContent === 'Stop'")
    page.click("#go")
    run = paused.wait("paused")
    page.focus("#updates")
    page.keyboard.press("Home")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    tools.wait(page, "state.u === 5")
    page.click("#fork")
    page.fill("dialog input >> nth=0", "0.001")
    page.click("dialog button[type=submit]")
    tools.wait(page, "state.runs.length === 2 && state.current === state.runs[1].id")
    forked = paused.run()
    assert forked["parent"] == {"run": run["id"], "update": 5} and forked["learning_rate"] == 0.001
    paused.post("/api/train", action="stop")


def test_a_pasted_text_becomes_a_run(open_page, paused, tools):
    page = open_page(paused)
    page.click("#run-button")
    page.get_by_role("button", name="Open a text").click()
    page.fill("#pasted", "  ")
    page.click("dialog button[type=submit]")
    page.wait_for_selector("dialog .bad:has-text('empty')")
    page.fill("#pasted", "<script>alert(1)</script> \u202e abc 😀 and so on, over and over. " * 40)
    page.fill("#pasted-name", "<b>strange</b>.txt")
    page.click("dialog button[type=submit]")
    page.get_by_role("button", name="Train", exact=True).click()
    tools.wait(page, "state.runs.length === 2 && state.texts.length === 3")
    run = paused.wait("training", "evaluating", "ended", step=2)
    assert run["id"] == "r2"
    assert page.locator("script").count() == 1 and page.locator("b >> text=strange").count() == 0
    paused.post("/api/train", action="stop")


def test_eight_tabs_all_update(open_page, paused, tools):
    first = open_page(paused)
    tabs = [first, *(open_page(paused, context=first.context) for _ in range(7))]
    paused.post("/api/train", action="one")
    paused.wait("paused", step=1)
    for tab in tabs:
        tab.bring_to_front()
        tools.wait(tab, "state.runs[0]?.step === 1")


def test_the_page_says_that_the_server_has_gone(open_page, tmp_path, tools):
    with studio(tmp_path) as client:
        client.new(start=False, steps=40)
        client.post("/api/train", action="one")
        client.wait("paused", step=1)
        page = open_page(client)
        tools.wait(page, "state.runs[0]?.step === 1")
        with tools.quiet(open_page):
            client.studio.server.should_exit = True
            page.wait_for_selector(".wrong:not([hidden])", timeout=20_000)
            assert "unspool resume" in page.inner_text(".wrong")
            assert page.is_disabled("#go")
            page.context.close()
