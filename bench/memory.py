"""Compare full tape and √tau checkpoints: memory and time of one training step over a long window.

With recompute="sqrt" only the state before each segment of about √tau steps is stored; the backward pass recomputes the rest. The
gradients are compared bit for bit. The size of the tape is computed (`bench/growth.py` measures it); the table also shows the
peak memory growth of a new process during such a step.

    python bench/memory.py [--tau 65536] [--hidden 128] [--batch 4] [--rounds 3]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

import numpy as np

from table import save, show
from unspool import Model, ModelConfig
from unspool.gradients.bptt import backpropagate, bytes_of_model_tape

K = 64


def model_of(cell: str, H: int, layers: int) -> Model:
    return Model.initialise(ModelConfig(inputs=K, outputs=K, cell=cell, hidden=H, layers=layers), seed=0)


def step(model: Model, x: np.ndarray, y: np.ndarray, recompute: str) -> tuple[float, np.ndarray]:
    gradient = model.gradient()
    begin = time.perf_counter()
    backpropagate(model, x, y, None, gradient, scale=1 / y.size, recompute=recompute)
    model.fold_input_tables(gradient)
    return time.perf_counter() - begin, gradient.flat


def peak() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def grow(cell: str, tau: int, B: int, H: int, layers: int, recompute: str) -> None:
    """Print the peak memory growth of this process in one step, in bytes."""
    model = model_of(cell, H, layers)
    x = np.zeros((tau, B), np.int32)
    step(model, x[:8], x[:8], recompute)
    before = peak()
    step(model, x, x, recompute)
    print(peak() - before)


def grown(*case: object) -> int:
    command = [sys.executable, __file__, "--grow", *map(str, case)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    if sys.argv[1:2] == ["--grow"]:
        return grow(sys.argv[2], *map(int, sys.argv[3:7]), sys.argv[7])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tau", type=int, default=65_536)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cells", nargs="+", default=["elman", "gru", "lstm"])
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, K, (2, args.tau, args.batch)).astype(np.int32)
    figures, rows = [], []
    for cell in args.cells:
        model = model_of(cell, args.hidden, args.layers)
        best = {"none": float("inf"), "sqrt": float("inf")}
        flats = {}
        for _ in range(args.rounds):
            for recompute in best:
                seconds, flats[recompute] = step(model, x, y, recompute)
                best[recompute] = min(best[recompute], seconds)
        tape = {
            recompute: bytes_of_model_tape(model.config, args.tau, args.batch, recompute)
            for recompute in best
        }
        most = {m: grown(cell, args.tau, args.batch, args.hidden, args.layers, m) for m in best}
        same = bool((flats["none"] == flats["sqrt"]).all())
        figure = {"cell": cell, "seconds": best, "tape": tape, "peak": most, "same bits": same}
        figures.append(vars(args) | figure)
        for recompute in best:
            rows.append(
                [
                    cell,
                    recompute,
                    tape[recompute] / 2**20,
                    tape["none"] / tape[recompute],
                    most[recompute] / 2**20,
                    best[recompute],
                    best[recompute] / best["none"],
                    same,
                ]
            )
    show(
        ["cell", "memory", "tape MiB", "times less", "peak MiB", "seconds", "times the time", "same bits"],
        rows,
    )
    save("memory", figures)


if __name__ == "__main__":
    main()
