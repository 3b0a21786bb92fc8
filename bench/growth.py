"""Measure time and memory against the length of the window: both are linear in tau.

A line is fitted to the time of a training step, and the residual of each point is printed. The size of the tape is the growth
of the resident memory of a new process that holds it, compared with `unspool.kernels.tape.bytes_of_tape` (from 1,024 steps on;
below, single pages matter).

    python bench/growth.py [--hidden 128] [--batch 16] [--rounds 5]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from table import save, show
from unspool import Model, ModelConfig
from unspool.cells import cell_named
from unspool.kernels.tape import bytes_of_tape

TAUS = [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]
K = 64


def seconds(model: Model, x: np.ndarray, y: np.ndarray) -> float:
    gradient = model.gradient()
    begin = time.perf_counter()
    weights = model.weights()
    output = model.forward(x, weights=weights)
    loss = model.loss(output, y, scale=1 / y.size, weights=weights, gradient=gradient)
    model.backward(output, loss.dh, gradient, weights=weights)
    model.fold_input_tables(gradient, weights)
    return time.perf_counter() - begin


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def hold_a_tape(cell: str, tau: int, B: int, H: int) -> None:
    """Print the growth of this process in bytes when it runs a window and holds the tape."""
    model = Model.initialise(ModelConfig(inputs=K, outputs=K, cell=cell, hidden=H), seed=0)
    x = np.zeros((tau, B), np.int32)
    model.forward(x[:2])
    before = resident()
    held = model.forward(x)
    print(resident() - before)
    del held


def measured_tape(cell: str, tau: int, B: int, H: int) -> int | None:
    if tau < 1024 or not Path("/proc/self/statm").exists():
        return None
    command = [sys.executable, __file__, "--hold", cell, str(tau), str(B), str(H)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    if sys.argv[1:2] == ["--hold"]:
        return hold_a_tape(sys.argv[2], *map(int, sys.argv[3:]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cells", nargs="+", default=["elman", "gru", "lstm"])
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    figures, rows = [], []
    for cell in args.cells:
        model = Model.initialise(ModelConfig(inputs=K, outputs=K, cell=cell, hidden=args.hidden), seed=0)
        data = {tau: rng.integers(0, K, (2, tau, args.batch)).astype(np.int32) for tau in TAUS}
        best = dict.fromkeys(TAUS, float("inf"))
        for turn in range(args.rounds):
            for tau in (
                TAUS if turn % 2 == 0 else TAUS[::-1]
            ):  # in turns, so that a slow minute hits all alike
                for _ in range(max(1, 1024 // tau)):
                    best[tau] = min(best[tau], seconds(model, *data[tau]))
        taus, times = np.array(TAUS, float), np.array([best[tau] for tau in TAUS])
        slope, start = np.polyfit(taus, times, 1, w=1 / times)  # relative errors count alike
        for tau, time_of in zip(TAUS, times, strict=True):
            tape = measured_tape(cell, tau, args.batch, args.hidden)
            formula = bytes_of_tape(cell_named(cell), tau, args.batch, args.hidden)
            off = time_of / (start + slope * tau) - 1
            beside = "" if tape is None else f"{100 * (tape / formula - 1):+.1f} %"
            rows.append([cell, tau, time_of * 1e3, f"{100 * off:+.1f} %", formula, tape or "", beside])
            figures.append(
                {"cell": cell, "tau": tau, "ms": time_of * 1e3, "off": off, "tape": tape, "formula": formula}
            )
    show(["cell", "tau", "ms", "off the line", "tape by formula", "measured", "off the formula"], rows)
    print(f"farthest from the line: {100 * max(abs(f['off']) for f in figures):.1f} %")
    save("growth", figures)


if __name__ == "__main__":
    main()
