"""Shared code of the benchmarks: alternating peer processes, tables, JSON files."""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


class Peer:
    """A process that measures one library; it is idle while the others run."""

    def __init__(self, script: str, name: str) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, script, "--peer", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.hello = self._answer()

    def measure(self, case: dict[str, Any]) -> Any:
        """Send a case, wait for its figure; None if the process has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(case) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return None
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None

    def ending(self) -> str:
        """Wait for the end of the process; return the name of the signal that ended it, or its exit code."""
        code = self._process.wait()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()


def serve(hello: Any, measure: Callable[[dict[str, Any]], Any]) -> None:
    """Run as a peer: answer each case from standard input with a line of JSON."""
    print(json.dumps(hello), flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(json.loads(line))), flush=True)


def best_seconds(step: Callable[[], Any], seconds: float, least: int = 3) -> float:
    """Return the fastest of as many runs as fit."""
    step()
    best, runs, end = math.inf, 0, time.perf_counter() + seconds
    while runs < least or time.perf_counter() < end:
        begin = time.perf_counter()
        step()
        best, runs = min(best, time.perf_counter() - begin), runs + 1
    return best


def alternate(peers: list[Peer], cases: list[dict[str, Any]], rounds: int) -> list[dict[str, float]]:
    """Measure each case with each peer alternately, `rounds` times; return the best of each."""
    best: list[dict[str, float]] = [{} for _ in cases]
    for turn in range(rounds):
        for i, case in enumerate(cases):
            for peer in peers if turn % 2 == 0 else peers[::-1]:
                figure = peer.measure(case)
                if figure is not None:
                    best[i][peer.name] = min(figure, best[i].get(peer.name, math.inf))
            print(f"\rround {turn + 1} of {rounds}, case {i + 1} of {len(cases)} ", end="", file=sys.stderr)
    print(file=sys.stderr)
    return best


def geometric_mean(values: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def show(columns: list[str], rows: list[list[Any]]) -> None:
    """Print a table in columns."""
    text = [columns, *[[f"{v:.2f}" if isinstance(v, float) else str(v) for v in row] for row in rows]]
    widths = [max(len(row[i]) for row in text) for i in range(len(columns))]
    for row in text:
        print("  ".join(value.rjust(width) for value, width in zip(row, widths, strict=True)))


def markdown(columns: list[str], rows: list[list[Any]]) -> str:
    """Return a table as Markdown."""
    lines = [columns, ["---"] * len(columns), *[[str(value) for value in row] for row in rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fill_page(page: Path, name: str, text: str) -> None:
    """Write text between `<!-- figures:NAME -->` and `<!-- /figures -->` of a page, in place of what is there."""
    begin, end = f"<!-- figures:{name} -->\n", "<!-- /figures -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    if not found or end not in rest:
        raise SystemExit(f"{page}: there is no {begin.strip()} with {end} after it")
    after = rest[rest.index(end) :]
    page.write_text(f"{before}{begin}{text.strip()}\n{after}", encoding="utf-8")


def save(name: str, figures: Any) -> None:
    """Write figures as JSON, with the machine they come from."""
    RESULTS.mkdir(exist_ok=True)
    machine = {"processor": _processor(), "cores": os.cpu_count(), "python": platform.python_version()}
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine, "figures": figures}, indent=1) + "\n")
    print(f"written to {path}")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
