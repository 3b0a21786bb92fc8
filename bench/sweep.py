"""Measure many small jobs: 64 fits with one worker and with two, and the forecast of 1,000 series of 144 months.

    python bench/sweep.py [--jobs 64] [--series 1000] [--steps 0] [--workers 2] [--json FILE]

Every command runs in a process of its own. Peak memory is the largest sum of the resident sizes of all its processes, read
ten times a second, so that shared pages count once per process. `--steps` are the updates of each network of a forecast; 0: the default.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

SWEEP = """
command = "classify fit names.csv"
[options]
steps = {steps}
hidden = 32
[grid]
seed = {{from = 1, to = {jobs}}}
"""


def main() -> None:
    """Print the table; write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=64)
    parser.add_argument("--updates", type=int, default=300, help="updates of each of the small fits")
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_names(place / "names.csv")
        (place / "s.toml").write_text(SWEEP.format(steps=given.updates, jobs=given.jobs))
        rows = []
        for workers in (1, given.workers):
            words = ["sweep", "s.toml", "--out", f"w{workers}", "--workers", workers, "--quiet"]
            rows.append(measured(place, f"{given.jobs:,} small fits, {workers} worker(s)", words, threads=1))
        same = models(place / "w1") == models(place / f"w{given.workers}")
        write_series(place / "series.csv", given.series)
        words = [
            "forecast",
            "fit",
            "series.csv",
            "--series",
            "id",
            "--out",
            "many",
            "--workers",
            given.workers,
        ]
        words += ["--steps", given.steps] if given.steps else []
        rows.append(
            measured(place, f"{given.series:,} series of 144 months, {given.workers} worker(s)", words)
        )
    speed_up = rows[0]["seconds"] / rows[1]["seconds"]
    print("| work | seconds | peak memory, MiB |\n|---|---:|---:|")
    for row in rows:
        print(f"| {row['work']} | {row['seconds']:.1f} | {row['peak_mib']:.0f} |")
    print(f"\n{given.workers} workers are {speed_up:.2f} times as fast as one; the same model files: {same}")
    if given.json:
        given.json.write_text(json.dumps({"rows": rows, "speed_up": speed_up, "same_bits": same}, indent=1))


def measured(place: Path, work: str, words: list[Any], threads: int | None = None) -> dict[str, Any]:
    """Run a command; return its seconds and the peak of its memory."""
    command = [sys.executable, "-m", "unspool", *map(str, words)]
    command += [] if threads is None else [f"--threads={threads}"]
    begin, peak = time.perf_counter(), 0
    process = subprocess.Popen(command, cwd=place)
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.1)
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
    return {"work": work, "seconds": time.perf_counter() - begin, "peak_mib": peak / 2**20}


def resident(pid: int) -> int:
    """Return the resident bytes of a process and of all processes below it (Linux)."""
    try:
        own = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    return own + sum(resident(int(child)) for child in children)


def models(out: Path) -> dict[str, str]:
    """Return the hashes of all model files of a sweep."""
    found = sorted(out.glob("*/model.safetensors"))
    return {path.parent.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def write_names(path: Path) -> None:
    """Write 1,000 words of two classes."""
    chance = random.Random(0)
    lines = [f"{''.join(chance.choices('uvwxyz' + c, k=12))},{c}" for c in chance.choices("ab", k=1000)]
    path.write_text("\n".join(["text,label", *lines]) + "\n")


def write_series(path: Path, count: int) -> None:
    """Write series with a trend, a season of 12 months and noise, below each other."""
    rng, t = np.random.default_rng(0), np.arange(144)
    with path.open("w") as file:
        file.write("id,month,value\n")
        for s in range(count):
            level, trend, size, phase = (
                rng.uniform(50, 500),
                rng.normal(0, 0.004),
                rng.uniform(0.05, 0.3),
                rng.uniform(0, 6.28),
            )
            season = size * np.sin(2 * np.pi * t / 12 + phase)
            y = level * np.exp(trend * t + season + 0.05 * rng.standard_normal(144))
            file.writelines(f"s{s},{1990 + k // 12}-{k % 12 + 1:02},{y[k]:.4f}\n" for k in t)


if __name__ == "__main__":
    main()
