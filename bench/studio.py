"""The studio: how long requests and the page take, and what the studio costs a training.

Requests: over a socket, for a text of 2,000 tokens and a window of 48; they end when the body has arrived.
Page: in Chromium, from the event to the paint of the answer (`studio_page.py`), while a run is stopped and while it trains; then frames per
second of the gradient that flows back, and the heap of the page while Read follows a training.
Throughput: `unspool train` and a run in the studio with a client that reads the stream and draws nothing, in turn, the same text and options,
one kernel thread in both; seconds per update from the logs of the runs. The third arm has the page open in Chromium on the same cores.

    python bench/studio.py [--hidden 256] [--cell lstm] [--requests 100] [--keys 100] [--updates 300] [--rounds 3]
                           [--heap-minutes 0.5] [--no-page] [--text FILE]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import studio_page
from table import save, show
from unspool.data.text.builtin import python_docs
from unspool.storage.log import read_log

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from studio_client import Client, launch

CLICK = {"train": 100, "read": 50, "unit": 100, "back": 250, "unfold": 150}
"""Milliseconds that each kind of request may take (95th percentile)."""
PAINT = {"key": 50, "unit": 100, "matrix": 250, "unfold": 150, "click": 100}
"""The same from an event to its paint."""


@contextmanager
def served(folder: Path, threads: int) -> Iterator[Client]:
    """Serve a studio in a process of its own; its run is saved at the end."""
    process, client = launch(folder, "text.txt", threads=threads)
    try:
        client.wait("preparing", "training")
        yield client
    finally:
        process.terminate()
        process.communicate()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def timed(client: Client, path: str, requests: int, bodies: list[dict[str, Any]]) -> list[float]:
    found = []
    for n in range(requests):
        begin = time.perf_counter()
        client.post(path, **bodies[n % len(bodies)])
        found.append(1000 * (time.perf_counter() - begin))
    return found


def begun(client: Client, options: dict[str, Any], steps: int) -> Any:
    """Begin a run; return what the state says about it."""
    return client.post("/api/new", text="t2", options=options | {"steps": steps})["run"]


def stop(client: Client) -> None:
    client.post("/api/train", action="stop")
    client.wait("paused")


def latencies(folder: Path, text: str, options: dict[str, Any], requests: int) -> list[list[Any]]:
    """Return median and 95th percentile of each kind of request."""
    rows = []
    with served(folder, os.cpu_count() or 1) as client:
        begun(client, options, 10**6)
        client.wait("training", step=1, seconds=600)
        for state in ("training", "stopped"):
            if state == "stopped":
                stop(client)
            cases: list[tuple[str, str, Any]] = [
                ("read", "/api/read", lambda held: [{"text": text[:1990] + key, "states": ["layer0.h"], "after": held, "plane": held, "at": 1990} for key in "abc"]),
                ("read from the beginning", "/api/read", lambda held: [{"text": text[:1990] + key} for key in "abc"]),
                ("at", "/api/at", lambda held: [{"reading": held, "t": t} for t in (9, 99, 999)]),
                ("unit", "/api/unit", lambda held: [{"reading": held, "name": name} for name in ("h1", "h2")]),
                ("unit alone", "/api/unit", lambda held: [{"reading": held, "name": "h1", "off": False}]),
                ("back", "/api/back", lambda held: [{"text": text[:200], "parts": ["flow"]}]),
                ("back, lags", "/api/back", lambda held: [{"text": text[:200], "parts": ["lags"]}]),
                ("back, truncations", "/api/back", lambda held: [{"text": text[:200], "parts": ["truncations"]}]),
                ("unfold", "/api/unfold", lambda held: [{"text": text[:20], "tau": 12}, {"text": "to be or not", "of": "demo", "tau": 12}]),
            ]  # fmt: skip
            if state == "stopped":
                cases.append(("train", "/api/train", lambda held: [{"action": "one"}]))
            for name, path, bodies_after in cases:
                held = client.post("/api/read", text=text[:2000])["reading"]
                rows.append(
                    [
                        state,
                        name,
                        *summary(timed(client, path, requests, bodies_after(held))),
                        CLICK.get(name.split(",")[0], ""),
                    ]
                )
    return rows


def summary(found: list[float]) -> tuple[float, float]:
    return statistics.median(found), percentile(found, 0.95)


def page_figures(
    folder: Path, text: str, options: dict[str, Any], keys: int, minutes: float
) -> dict[str, Any]:
    """Return the waits of the page, the frames of the flow, and the heap."""
    rows: list[list[Any]] = []
    with served(folder, os.cpu_count() or 1) as client:
        run = begun(client, options, 10**6)
        client.wait("training", step=1, seconds=600, name=run["id"])
        with studio_page.opened(client.studio.address) as page:
            studio_page.wait(page, "state.reading !== null")
            heap = studio_page.heap(page, minutes)
            for state in ("training", "stopped"):
                if state == "stopped":
                    stop(client)
                page.keyboard.press("2")
                for name, found in studio_page.views(page, text, keys).items():
                    rows.append([state, name, *summary(found), PAINT[name.split(",")[0]]])
            rows.append(["", "click", *summary(studio_page.clicks(page, max(2, keys // 4))), PAINT["click"]])
            intervals = studio_page.frames(page, 3)
    flow = [1000 / statistics.mean(intervals), percentile(intervals, 0.95)]
    return {"waits": rows, "frames": flow, "heap": heap}


def read_stream(client: Client, ends: threading.Event) -> None:
    connection = HTTPConnection("127.0.0.1", client.studio.port)
    connection.request("GET", "/api/stream", headers={"X-Unspool-Token": client.studio.token})
    answer = connection.getresponse()
    while not ends.is_set() and answer.readline():
        continue
    connection.close()


def seconds_per_update(run: Path) -> float:
    """Return the time per update in the second half of a run, from its log."""
    steps = [(each["step"], each["seconds"]) for each in read_log(run / "log.jsonl") if "step" in each]
    (first, begin), (last, end) = steps[len(steps) // 2], steps[-1]
    return (end - begin) / (last - first)


def in_studio(folder: Path, options: dict[str, Any], updates: int, page: bool) -> float:
    """Train in a studio, with the page open or with a client that only reads the stream; return the seconds per update."""
    ends = threading.Event()
    with served(folder, 1) as client:
        run = begun(client, options, updates)
        if page:
            with studio_page.opened(client.studio.address):
                client.wait("ended", name=run["id"], seconds=3600)
        else:
            threading.Thread(target=read_stream, args=(client, ends), daemon=True).start()
            client.wait("ended", name=run["id"], seconds=3600)
        ends.set()
    return seconds_per_update(folder / "runs" / run["name"])


def throughput(
    folder: Path, options: dict[str, Any], updates: int, rounds: int, page: bool
) -> list[list[Any]]:
    """Return the milliseconds per update of each arm, and its speed as a fraction of that of `unspool train`."""
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    arms: dict[str, list[float]] = {}
    for n in range(rounds):
        command = [
            sys.executable,
            "-m",
            "unspool",
            "train",
            "text.txt",
            "--steps",
            str(updates),
            *flags,
            "--quiet",
            "--out",
            f"plain{n}",
        ]
        subprocess.run(
            command,
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"UNSPOOL_THREADS": "1"},
        )
        arms.setdefault("train", []).append(seconds_per_update(folder / f"plain{n}"))
        arms.setdefault("studio", []).append(in_studio(folder, options, updates, page=False))
        if page:
            arms.setdefault("studio and Chromium", []).append(in_studio(folder, options, updates, page=True))
    best = min(arms["train"])
    return [
        [arm, 1000 * min(found), 1000 * statistics.median(found), best / min(found)]
        for arm, found in arms.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--cell", default="lstm")
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--keys", type=int, default=100)
    parser.add_argument("--updates", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--heap-minutes", type=float, default=0.5)
    parser.add_argument("--no-page", action="store_true")
    parser.add_argument("--text", type=Path)
    given = parser.parse_args()
    text = python_docs()[:200_000] if given.text is None else given.text.read_text()
    options = {"hidden": given.hidden, "cell": given.cell}
    found: dict[str, Any] = {"options": options}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "text.txt").write_text(text)
        found["latencies"] = latencies(folder, text, options, given.requests)
        if not given.no_page:
            found["page"] = page_figures(folder, text, options, given.keys, given.heap_minutes)
        found["throughput"] = throughput(folder, options, given.updates, given.rounds, not given.no_page)
    show(["run", "request", "median ms", "p95 ms", "goal ms"], found["latencies"])
    if "page" in found:
        show(["run", "until painted", "median ms", "p95 ms", "goal ms"], found["page"]["waits"])
        show(["frames/s of the flow", "p95 ms between frames"], [found["page"]["frames"]])
        show(["minutes", "heap MB"], [list(each) for each in found["page"]["heap"]])
    show(["arm", "best ms/update", "median ms/update", "of train"], found["throughput"])
    save("studio", found)


if __name__ == "__main__":
    main()
