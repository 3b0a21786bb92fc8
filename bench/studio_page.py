"""The studio's page in Chromium: how long a key, a click and each view take until the numbers are painted; frames; heap.

A wait begins with the event (of a key: its own time stamp) and ends with the first task after the frame that shows the answer.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ARGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--enable-precise-memory-info",
]
PREPARE = """
import('/state.js').then(({ state, set, watch }) => {
  const painted = (ready) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => ready(performance.now());
    channel.port2.postMessage(0);
  };
  // milliseconds from act() to the paint of the first frame for which done(state, value before) holds
  window.timed = (act, done, key) => new Promise((ready, failed) => {
    const before = state[key];
    const begin = performance.now();
    const end = watch(() => done(state, before) && (end(), painted((now) => ready(now - begin))));
    setTimeout(() => failed(new Error(`${key} did not change in a minute`)), 60000);
    act(state, set);
  });
  window.keys = [];
  window.typed = new Map();
  watch((changed) => {
    const begin = changed.has('reading') && window.typed.get(state.reading?.text);
    if (begin) painted((now) => window.keys.push(now - begin));
  });
  document.addEventListener('input', (event) => event.target.id === 'text' && window.typed.set(event.target.value, event.timeStamp), true);
  // intervals between frames while the view moves
  window.moved = () => new Promise((ready) => {
    const found = [];
    let last = 0;
    set({ playing: true });
    const look = (now) => {
      if (last) found.push(now - last);
      last = now;
      if (state.playing) requestAnimationFrame(look);
      else ready(found);
    };
    requestAnimationFrame(() => requestAnimationFrame(look));
  });
})
"""
NEW = "(state, before) => state['{0}'] && {1}"
OTHER = "state['{0}'].{1} !== before?.{1}"


@contextmanager
def opened(address: str, view: str = "read") -> Iterator[Any]:
    """Open the page of a studio in a browser of its own."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("no browser: install one with make browser, or leave the page out with --no-page")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=ARGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        page.set_default_timeout(120_000)
        page.goto(f"{address}&view={view}")
        page.evaluate(PREPARE)
        yield page
        browser.close()


def wait(page: Any, condition: str, seconds: float = 120) -> None:
    """Wait until a condition on the page's `state` holds."""
    end = time.monotonic() + seconds
    while not page.evaluate(f"import('/state.js').then(({{ state }}) => Boolean({condition}))"):
        if time.monotonic() > end:
            raise SystemExit(f"the page did not come to {condition} in {seconds:g} s")
        page.wait_for_timeout(20)


def key_waits(page: Any, text: str, place: int, count: int) -> list[float]:
    """Return the wait for each key at a place of a text."""
    page.evaluate(
        "text => import('/state.js').then(({ set }) => set({ text, edits: [], t: 0 }))",
        text,
    )
    wait(page, "state.reading?.text === state.text")
    page.evaluate(
        "at => { const area = document.querySelector('#text'); area.focus(); area.setSelectionRange(at, at); window.keys = []; }",
        place,
    )
    for n in range(count):
        page.keyboard.type("etaoinshrdlu"[n % 12])
        wait(page, f"window.keys.length > {n}")
    return [float(each) for each in page.evaluate("window.keys")]


def waits(page: Any, act: str, done: str, key: str, count: int) -> list[float]:
    """Return the wait for each of some actions; `act` is a function of state, set and n."""
    found = []
    for n in range(count):
        page.wait_for_timeout(80)  # what the action before has set off is over
        found.append(
            float(page.evaluate(f"window.timed((state, set) => ({act})(state, set, {n}), {done}, '{key}')"))
        )
    return found


def views(page: Any, text: str, count: int) -> dict[str, list[float]]:
    """Return the waits of all views, by the names of the table of goals."""
    found = {}
    for name, place in (("end", 2000), ("middle", 1000), ("beginning", 1)):
        found[f"key, {name}"] = key_waits(page, text[:2000], place, count)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("3")
    wait(page, "state['units.one'] && state['units.all']")
    found["unit"] = waits(
        page,
        "(state, set, n) => set({ unit: `layer0.h${n + 1}` })",
        NEW.format("units.one", OTHER.format("units.one", "name")),
        "units.one",
        count,
    )
    page.keyboard.press("4")
    wait(page, "state['back.flow'] && state['back.lags'] && state['back.truncations']")
    found["matrix"] = waits(
        page,
        "(state, set, n) => set({ t: 300 + 60 * (n % 12) })",
        NEW.format("back.flow", OTHER.format("back.flow", "begin")),
        "back.flow",
        count,
    )
    page.keyboard.press("5")
    wait(page, "state['unfold.graph']")
    found["unfold"] = waits(
        page,
        "(state, set, n) => set({ 'unfold.tau': n % 2 ? 6 : 12 })",
        NEW.format("unfold.graph", "state['unfold.graph'] !== before"),
        "unfold.graph",
        count,
    )
    return found


def clicks(page: Any, count: int) -> list[float]:
    """Return the wait of the button that stops and starts the training, until the page shows it."""
    of = "(runs) => runs.find((each) => each.id === state.current).status"
    done = f"(state, before) => {{ const of = {of}; return of(state.runs) !== of(before) && ['training', 'paused'].includes(of(state.runs)); }}"
    return waits(page, "() => document.querySelector('#go').click()", done, "runs", 2 * count)


def frames(page: Any, rounds: int) -> list[float]:
    """Return the milliseconds between frames while a gradient flows back."""
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("4")
    wait(page, "state['back.flow'] && state['back.lags'] && state['back.truncations']")
    return [float(each) for _ in range(rounds) for each in page.evaluate("window.moved()")]


def heap(page: Any, minutes: float) -> list[tuple[float, float]]:
    """Return (minutes, MB) of the page's heap after garbage collections, while Read follows the training."""
    page.keyboard.press("2")
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.enable")
    found, begin = [], time.monotonic()
    for part in range(5):
        while time.monotonic() < begin + 60 * minutes * part / 4:
            page.wait_for_timeout(min(1000, max(1, 15_000 * minutes)))
        session.send("HeapProfiler.collectGarbage")
        found.append(
            (
                (time.monotonic() - begin) / 60,
                session.send("Runtime.getHeapUsage")["usedSize"] / 1e6,
            )
        )
    return found
