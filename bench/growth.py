"""Time and memory as the window grows: both are linear in tau.

The time of a training step is fitted by a line; each point's distance from it is printed. The tape's bytes are
measured as they are allocated and compared with the formula in `unspool.values.bytes_of_tape`.

    python bench/growth.py [--hidden 128] [--batch 16] [--rounds 5]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from table import save, show
from unspool import Model, ModelConfig
from unspool.values import bytes_of_tape

TAUS = [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]
K = 64


def seconds(model: Model, x: np.ndarray, y: np.ndarray) -> float:
    gradient = model.gradient()
    begin = time.perf_counter()
    weights = model.weights()
    output = model.forward(x, weights=weights)
    loss = model.loss(output, y, scale=1 / y.size, weights=weights, gradient=gradient)
    model.backward(output, loss.dh, gradient, weights=weights)
    model.finish(gradient, weights)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cells", nargs="+", default=["elman", "gru", "lstm"])
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    figures, rows = [], []
    for cell in args.cells:
        model = Model.fresh(ModelConfig(inputs=K, outputs=K, cell=cell, hidden=args.hidden), seed=0)
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
            tape = sum(t.nbytes for layer in model.forward(data[tau][0]).tape for t in layer.directions)
            formula = bytes_of_tape(cell, tau, args.batch, args.hidden)
            off = time_of / (start + slope * tau) - 1
            rows.append(
                [
                    cell,
                    tau,
                    time_of * 1e3,
                    f"{100 * off:+.1f} %",
                    tape,
                    f"{100 * (tape / formula - 1):+.1f} %",
                ]
            )
            figures.append(
                {"cell": cell, "tau": tau, "ms": time_of * 1e3, "off": off, "tape": tape, "formula": formula}
            )
    show(["cell", "tau", "ms", "off the line", "tape bytes", "off the formula"], rows)
    print(f"farthest from the line: {100 * max(abs(f['off']) for f in figures):.1f} %")
    save("growth", figures)


if __name__ == "__main__":
    main()
