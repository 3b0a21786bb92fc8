"""Training, typing and reading at once, in a browser: the same bits as without it, and nothing stale on the page."""

import random
import signal

from command_line import must
from studio_client import SMALL, SMALL_FLAGS, TEXT, launch, require_same_run, studio

LETTERS = "etaoin shrdlu\n"


def words_of(page):
    return page.inner_text("#go .word")


def press(page, tools, word):
    """Press the button of the training when it has this name."""
    tools.wait(
        page,
        f"!document.querySelector('#go').disabled && document.querySelector('#go .word').textContent === '{word}'",
    )
    page.click("#go")


def step_of(page, tools):
    return tools.state(page, "runs")["runs"][0]["step"]


def test_two_hundred_updates_in_the_page_are_those_of_train(open_page, tools, tmp_path):
    story = tmp_path / "story.txt"
    story.write_text(TEXT)
    drawn = random.Random(2)
    with studio(tmp_path / "runs") as client:
        text = client.session.add_text(str(story))
        run = client.post("/api/new", text=text.id, options=SMALL | {"steps": 200}, start=False)["run"]
        client.wait("paused")
        client.post("/api/train", pace=0.01)
        page = open_page(client, view="read")
        for stop in range(10):
            press(page, tools, "Resume" if stop else "Start")
            page.focus("#text")
            while step_of(page, tools) < 15 * (stop + 1):
                page.keyboard.press(drawn.choice(LETTERS).replace("\n", "Enter").replace(" ", "Space"))
            press(page, tools, "Stop")
            page.reload()
            tools.wait(page, "state.reading !== null && state.runs[0].status === 'paused'")
        client.post("/api/train", pace=0)
        press(page, tools, "Resume")
        page.focus("#text")
        while tools.state(page, "runs")["runs"][0]["status"] != "ended":
            page.keyboard.press("e")
        page.context.close()
        made = client.session.run_of(run["id"]).out
    must("train", story, "--steps", 200, *SMALL_FLAGS, "--out", tmp_path / "plain", "--quiet")
    require_same_run(made, tmp_path / "plain")


# After each frame with a new reading: which of the typed texts it is of, its update, and what stands on the page.
FRAMES = """
Promise.all([import('/state.js'), import('/format.js')]).then(([{ state, watch }, { fixed }]) => {
  const area = document.querySelector('#text'), typed = new Map([[area.value, 0]]);
  window.frames500 = [];
  area.addEventListener('input', () => typed.set(area.value, typed.size));
  watch((changed) => {
    if (!changed.has('reading') || !state.reading) return;
    const { text, version, nats, T, spans } = state.reading, [q] = document.querySelectorAll('.say q');
    window.frames500.push({
      at: typed.get(text), update: version.update, mirror: document.querySelector('.mirror').textContent === area.value + '\\n',
      mean: document.querySelector('.text .note').textContent.startsWith(fixed(nats)), steps: state.t < T && document.querySelector('#time').max === String(T - 1),
      say: document.querySelector('.say b').textContent === String(state.t + 1), here: state.here.reading === state.reading.id && state.here.t === state.t,
    });
  });
})
"""


def test_five_hundred_keys_in_a_row_while_training_show_nothing_stale(open_page, tools, tmp_path):
    with studio(tmp_path) as client:
        client.new(steps=10**6)
        client.post("/api/train", pace=0.02)
        client.wait("training", step=2)
        page = open_page(client, view="read")
        tools.wait(page, "state.reading !== null")
        page.fill("#text", "the ")
        tools.wait(page, "state.reading.text === 'the ' && state.reading.version.update > 2")
        page.evaluate(FRAMES)
        typed = (TEXT * 2)[:500].replace("\n", " ")
        page.focus("#text")
        page.keyboard.type(typed, delay=1000 / 30)
        tools.wait(page, f"state.reading.text.length === 504 && state.reading.text === {'the ' + typed!r}")
        before = tools.state(page, "reading")["reading"]["version"]["update"]
        tools.wait(page, f"state.reading.version.update > {before}")  # the newest update is read again
        frames = page.evaluate("window.frames500")
        page.context.close()
    order, updates = ([each[name] for each in frames] for name in ("at", "update"))
    assert order == sorted(order) and order[-1] == 500 and len(set(order)) > 20
    assert updates == sorted(updates)
    for each in frames:
        assert each["mean"] and each["mirror"] and each["steps"] and each["say"] and each["here"], each


def test_a_killed_server_is_shown_and_its_run_resumes_to_the_same_bits(open_page, tools, tmp_path):
    (tmp_path / "story.txt").write_text(TEXT)
    process, client = launch(tmp_path, "story.txt")
    client.wait("preparing", "training", "paused")
    run = client.post("/api/new", text="t2", options=SMALL | {"steps": 120})["run"]
    client.post("/api/train", run=run["id"], pace=0.02)
    page = open_page(client)
    client.wait("training", step=30, name=run["id"])
    tools.wait(page, f"state.runs.find(each => each.id === '{run['id']}')?.step >= 30")
    with tools.quiet(open_page):
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        page.wait_for_selector(".wrong:not([hidden])", timeout=20_000)
        assert "unspool resume" in page.inner_text(".wrong") and page.is_disabled("#go")
        page.context.close()
    made = tmp_path / "runs" / run["name"]
    must("resume", made, "--quiet")
    must(
        "train", tmp_path / "story.txt", "--steps", 120, *SMALL_FLAGS, "--out", tmp_path / "plain", "--quiet"
    )
    require_same_run(made, tmp_path / "plain")


def test_a_foreign_name_that_leads_to_this_machine_is_refused(rebound, finished):
    page, name = rebound
    studio = finished.studio
    answer = page.goto(f"http://{name}:{studio.port}/#token={studio.token}")
    assert answer.status == 403 and "studio" in page.inner_text("body")
    refused = page.evaluate(
        "token => fetch('/api/state', { headers: { 'X-Unspool-Token': token } }).then(answer => answer.status)", studio.token
    )  # fmt: skip
    assert refused == 403
    assert page.goto(f"http://127.0.0.1:{studio.port}/#token={studio.token}").status == 200
    across = page.evaluate(
        "url => fetch(url).then(answer => answer.status, () => 'refused')", f"http://{name}:{studio.port}/main.js"
    )  # fmt: skip
    assert across == "refused"  # by the page's own policy


def test_all_parts_of_back_in_time_come_while_a_run_is_trained(open_page, tools, tmp_path):
    with studio(tmp_path) as client:
        client.new(steps=10**6)
        client.wait("training", step=2)
        page = open_page(client, view="back")
        tools.wait(page, "state['back.flow'] && state['back.lags'] && state['back.truncations']", 30)
        first = tools.state(page, "back.flow")["back.flow"]["version"]["update"]
        tools.wait(
            page,
            f"state['back.flow'].version.update > {first} && state['back.lags'].version.update > {first}",
            30,
        )
        assert page.locator(".cuts.hushed, .lags.hushed").count() == 0
        page.context.close()
