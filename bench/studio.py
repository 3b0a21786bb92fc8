"""The studio: how long a click waits for its answer, and what the studio costs a training.

Latencies: requests over a socket, for a text of 2,000 tokens and a window of 48, while a run is stopped and while it trains; each
row has the median and the 95th percentile. They end when the body has arrived: what the page paints with it is not in them.
Throughput: `unspool train` and a run in the studio with a client that reads the stream and draws nothing, in turn, the same text and options,
one kernel thread in both; seconds per update from the logs of the runs.

    python bench/studio.py [--hidden 256] [--cell lstm] [--requests 100] [--updates 300] [--rounds 3] [--text FILE]
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
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from table import save, show
from unspool.data.text.builtin import python_docs
from unspool.storage.log import read_log

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from studio_client import Client

CLICK = {"train": 100, "read": 50, "unit": 100, "back": 250, "unfold": 150}
"""Milliseconds that each kind of request may take (95th percentile)."""


class Served:
    """A studio in a process of its own."""

    def __init__(self, folder: Path, threads: int) -> None:
        command = [sys.executable, "-m", "unspool", "studio", "text.txt", "--no-open"]
        environment = os.environ | {"UNSPOOL_THREADS": str(threads)}
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout is not None
        address = self.process.stdout.readline().split()[0]
        port, _, self.token = address.removeprefix("http://127.0.0.1:").partition("/#token=")
        self.port, self.session = int(port), None
        self.client = Client(self)  # type: ignore[arg-type]

    def close(self) -> None:
        """End the process; its run is saved."""
        self.process.terminate()
        self.process.wait()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def timed(client: Client, path: str, requests: int, bodies: list[dict[str, Any]]) -> list[float]:
    found = []
    for n in range(requests):
        begin = time.perf_counter()
        client.post(path, **bodies[n % len(bodies)])
        found.append(1000 * (time.perf_counter() - begin))
    return found


def latencies(folder: Path, text: str, options: dict[str, Any], requests: int) -> list[list[Any]]:
    served = Served(folder, os.cpu_count() or 1)
    client, rows = served.client, []
    client.wait("preparing", "training")
    client.post("/api/new", text="t2", options=options | {"steps": 10**6})
    client.wait("training", step=1, seconds=600)
    for state in ("training", "stopped"):
        if state == "stopped":
            client.post("/api/train", action="stop")
            client.wait("paused")
        keys = [
            {"text": text[:1990] + key, "states": ["layer0.h"]}
            for key in ("aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc")
        ]
        reading = client.post("/api/read", text=text[:2000])["reading"]
        cases = [
            ("read", "/api/read", keys), ("at", "/api/at", [{"reading": reading, "t": t} for t in (9, 99, 999)]),
            ("unit", "/api/unit", [{"reading": reading, "name": name} for name in ("h1", "h2")]),
            ("unit alone", "/api/unit", [{"reading": reading, "name": "h1", "off": False}]),
            ("back", "/api/back", [{"text": text[:200], "parts": ["flow"]}]),
            ("back, lags", "/api/back", [{"text": text[:200], "parts": ["lags"]}]),
            ("back, truncations", "/api/back", [{"text": text[:200], "parts": ["truncations"]}]),
            ("unfold", "/api/unfold", [{"text": text[:20], "tau": 12}, {"text": "to be or not", "of": "demo", "tau": 12}]),
        ]  # fmt: skip
        if state == "stopped":
            cases.append(("train", "/api/train", [{"action": "one"}]))
        for name, path, bodies in cases:
            found = timed(client, path, requests, bodies)
            limit = CLICK.get(name.split(",")[0], "")
            rows.append([state, name, statistics.median(found), percentile(found, 0.95), limit])
    served.close()
    return rows


def read_stream(served: Served, ends: threading.Event) -> None:
    connection = HTTPConnection("127.0.0.1", served.port)
    connection.request("GET", "/api/stream", headers={"X-Unspool-Token": served.token})
    answer = connection.getresponse()
    while not ends.is_set() and answer.readline():
        continue
    connection.close()


def seconds_per_update(run: Path) -> float:
    """Return the time per update in the second half of a run, from its log."""
    steps = [(each["step"], each["seconds"]) for each in read_log(run / "log.jsonl") if "step" in each]
    (first, begin), (last, end) = steps[len(steps) // 2], steps[-1]
    return (end - begin) / (last - first)


def throughput(folder: Path, options: dict[str, Any], updates: int, rounds: int) -> list[list[Any]]:
    arms: dict[str, list[float]] = {"train": [], "studio": []}
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
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
        ]
        subprocess.run(
            [*command, "--out", f"plain{n}"], cwd=folder, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"UNSPOOL_THREADS": "1"}
        )  # fmt: skip
        arms["train"].append(seconds_per_update(folder / f"plain{n}"))
        served, ends = Served(folder, 1), threading.Event()
        served.client.wait("preparing", "training")
        threading.Thread(target=read_stream, args=(served, ends), daemon=True).start()
        run = served.client.post("/api/new", text="t2", options=options | {"steps": updates})["run"]
        served.client.wait("ended", name=run["id"], seconds=3600)
        ends.set()
        served.close()
        arms["studio"].append(seconds_per_update(folder / "runs" / run["name"]))
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
    parser.add_argument("--updates", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--text", type=Path)
    given = parser.parse_args()
    text = python_docs()[:200_000] if given.text is None else given.text.read_text()
    options = {"hidden": given.hidden, "cell": given.cell}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "text.txt").write_text(text)
        waits = latencies(folder, text, options, given.requests)
        costs = throughput(folder, options, given.updates, given.rounds)
    show(["run", "request", "median ms", "p95 ms", "goal ms"], waits)
    show(["arm", "best ms/update", "median ms/update", "of train"], costs)
    save("studio", {"options": options, "latencies": waits, "throughput": costs})


if __name__ == "__main__":
    main()
