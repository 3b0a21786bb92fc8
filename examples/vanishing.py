"""Measure vanishing and exploding gradients: powers of Wᵀ, and the memory of networks on text.

Left, the linear case: ‖(Wᵀ)^k v‖ for spectral radius 0.9, 1 and 1.1. Clipping bounds the norm of an update, but not the ratio
of far to near contributions; weight decay reduces the radius itself. Right, networks on text: the root mean square gain of
dh(t)/dh(t-k) by lag k (of (h, s) for the LSTM), untrained and trained, and the horizon: the lag from which it stays below 1 %.

    python examples/vanishing.py [--text builtin:python-docs] [--updates 300] [--picture vanishing.png]
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from axes import BLUE, GREEN, GREY, ORANGE, new_axes

from unspool import Adam, Model, ModelConfig, train
from unspool.data import prepare, sequential_batches
from unspool.gradients import (
    Influence,
    decayed,
    gradient_by_lag,
    horizon,
    influence,
    of_radius,
    powers,
    radii,
)

LAGS, PLACES, BIAS = 96, 4, 0.1
CELLS = {"elman": BLUE, "gru": ORANGE, "lstm": GREEN}
RADII = {0.9: BLUE, 1.0: GREY, 1.1: ORANGE}


def seen(model: Model, ids: np.ndarray) -> Influence:
    return influence(model, ids[:-1], lags=LAGS, places=PLACES)


def format_horizon(found: Influence) -> str:
    lag = horizon(found.lags, found.mean, 0.01)
    return f"over {LAGS}" if lag is None else str(lag)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", default="builtin:python-docs")
    parser.add_argument("--updates", type=int, default=300)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--picture", default="")
    args = parser.parse_args()
    corpus = prepare((args.text,), tokens="char")
    K, ids = len(corpus.vocab), np.asarray(corpus.valid.ids[:201], np.int32)[:, None]
    found = {}
    print("cell   when       radius of W   memory length (1 %)   BPTT steps for a bias of 10 %")
    for cell in CELLS:
        model = Model.initialise(ModelConfig(inputs=K, outputs=K, cell=cell, hidden=args.hidden), seed=0)
        for when in ("untrained", "trained"):
            if when == "trained":
                batches = sequential_batches(corpus.train.ids, 16, 64, np.random.default_rng(0))
                optimiser = Adam(learning_rate=4e-3)
                for _ in itertools.islice(train(model, batches, optimiser), args.updates):
                    pass
            found[cell, when] = seen(model, ids)
            enough = gradient_by_lag(model, ids[:-1], ids[1:], lags=LAGS).steps_for(BIAS)
            widest = max(radii(model).values())
            horizon_of = format_horizon(found[cell, when])
            print(f"{cell:6} {when:9} {widest:12.2f}   {horizon_of:>19}   {enough or f'over {LAGS}':>29}")
    if args.picture:
        draw(found, args.picture)


def draw(found: dict[tuple[str, str], Influence], path: str) -> None:
    figure, (left, right) = new_axes(columns=2, width=5.2, height=3.9)
    rotation, v = np.linalg.qr(np.random.default_rng(0).standard_normal((16, 16)))[0], np.full(16, 0.25)
    steps = np.arange(81)
    for radius, colour in RADII.items():
        W = of_radius(rotation, radius)
        left.plot(steps, powers(W, v, 80), color=colour, label=f"ρ = {radius:g}")
        left.plot(steps, np.minimum(powers(W, v, 80), 5), color=colour, linewidth=3, alpha=0.3)
    shrunk = powers(decayed(of_radius(rotation, 1.1), rate=0.1, decay=0.1, updates=15), v, 80)
    left.plot(steps, shrunk, "--", color=ORANGE, label="ρ = 1.1, decayed 15 times")
    left.plot([], [], color=GREY, linewidth=3, alpha=0.3, label="clipped at 5")
    left.set(
        yscale="log", xlabel="steps back k", ylabel="‖(Wᵀ)^k v‖", title="linear: vanishes, stays, explodes"
    )
    left.legend(frameon=False, fontsize=8, loc="upper left")
    for (cell, when), each in found.items():
        style = "-" if when == "trained" else ":"
        right.plot(
            each.lags,
            each.mean,
            style,
            color=CELLS[cell],
            label=f"{cell}, {when}, horizon {format_horizon(each)}",
        )
    right.axhline(0.01, color=GREY, linewidth=0.8, linestyle="--")
    right.set(
        yscale="log", ylim=(1e-4, 2), xlabel="lag k", ylabel="gain of dh(t)/dh(t-k)", title="reading text"
    )
    right.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
