"""Compare pattern 10.4 with all steps in parallel and step by step: loss and gradients of one training step.

With teacher forcing the previous output is known, so steps do not depend on each other. The same model runs both ways
alternately; the gradients are compared bit for bit. For comparison: pattern 10.3 of the same size, and pattern 10.4 with logits
fed back, which is the same recurrence with W = R V.

    python bench/patterns.py [--hidden 128] [--batch 16] [--rounds 5]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from table import save, show
from unspool import Model, ModelConfig

TAUS = [128, 1024]
K = 64


def at_once(model: Model, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    gradient, weights = model.gradient(), model.weights()
    output = model.forward(x, weights=weights, y=y)
    loss = model.loss(output, y, scale=1 / y.size, weights=weights, gradient=gradient)
    model.backward(output, loss.dh, gradient, weights=weights)
    model.fold_input_tables(gradient, weights)
    return gradient.flat


def step_by_step(model: Model, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    gradient, weights = model.gradient(), model.weights()
    state, outputs = None, []
    for t in range(len(x)):
        outputs.append(model.forward(x[t : t + 1], state, weights=weights, y=y[t : t + 1]))
        state = outputs[-1].state
    for t in range(len(x) - 1, -1, -1):
        loss = model.loss(outputs[t], y[t : t + 1], scale=1 / y.size, weights=weights, gradient=gradient)
        model.backward(outputs[t], loss.dh, gradient, weights=weights)
    model.fold_input_tables(gradient, weights)
    return gradient.flat


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    models = {
        name: Model.initialise(
            ModelConfig(inputs=K, outputs=K, cell="elman", hidden=args.hidden, pattern=name), seed=0
        )
        for name in ("10.3", "10.4")
    }
    config = ModelConfig(
        inputs=K, outputs=K, cell="elman", hidden=args.hidden, pattern="10.4", feedback="logits"
    )
    ways = {
        "10.4 at once": (models["10.4"], at_once),
        "10.4 step by step": (models["10.4"], step_by_step),
        "10.3": (models["10.3"], at_once),
        "10.4 logits": (Model.initialise(config, seed=0), at_once),
    }
    figures, rows = [], []
    for tau in TAUS:
        x, y = rng.integers(0, K, (2, tau, args.batch)).astype(np.int32)
        best, flats = dict.fromkeys(ways, float("inf")), {}
        for _ in range(args.rounds):
            for name, (model, way) in ways.items():
                begin = time.perf_counter()
                flats[name] = way(model, x, y)
                best[name] = min(best[name], time.perf_counter() - begin)
        same = bool((flats["10.4 at once"] == flats["10.4 step by step"]).all())
        figures.append(vars(args) | {"tau": tau, "seconds": best, "same bits": same})
        ratio = best["10.4 step by step"] / best["10.4 at once"]
        rows.append([tau, *(1e3 * seconds for seconds in best.values()), ratio, same])
    show(["tau", *(f"{name} ms" for name in ways), "times faster", "same bits"], rows)
    save("patterns", figures)


if __name__ == "__main__":
    main()
