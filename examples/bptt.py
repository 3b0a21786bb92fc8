"""Decompose gradients by time step: the contribution of each step, and the loss that it comes from.

Left: for each character, the norm of its contribution to ∇V, ∇W and ∇U; the contributions add up to the gradients.
Right: the gradient of the loss at step t (columns) with respect to the pre-activations of step k (rows), ‖da(k ← t)‖. It is 0
for k > t and decays with the lag t - k.

    python examples/bptt.py [--sentence "she sells sea shells"] [--picture bptt.png]
"""

from __future__ import annotations

import argparse

import numpy as np
from axes import BLUE, GREEN, ORANGE, new_axes

from unspool import Model, ModelConfig
from unspool.data import Vocab
from unspool.gradients import GradientDecomposition, decompose_gradient


def per_step(model: Model, ids: np.ndarray) -> np.ndarray:
    """Return the norms of da(k ← t), rows k and columns t: backpropagate the loss of one step at a time."""
    tau = len(ids) - 1
    found = np.zeros((tau, tau))
    for t in range(tau):
        y = np.full((tau, 1), -1, np.int32)
        y[t] = ids[t + 1]
        found[:, t] = np.linalg.norm(decompose_gradient(model, ids[:-1], y).da()[:, 0], axis=1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentence", default="she sells sea shells")
    parser.add_argument("--cell", default="elman")
    parser.add_argument("--picture", default="")
    args = parser.parse_args()
    vocab = Vocab(list(args.sentence))
    ids = np.array(vocab[list(args.sentence)], np.int32)[:, None]
    model = Model.initialise(
        ModelConfig(cell=args.cell, inputs=len(vocab), outputs=len(vocab), hidden=8), seed=0
    )
    apart = decompose_gradient(model, ids[:-1], ids[1:])
    print("t  reads  L(t)   share of ∇V   ∇W     ∇U")
    norms = {name: apart.contribution_norms(name) for name in ("V", "layer0.W", "layer0.U")}
    for t, letter in enumerate(args.sentence[:-1]):
        shares = "   ".join(f"{norm[t]:.2f}" for norm in norms.values())
        print(f"{t + 1:2} {letter!r:5} {apart.L[t, 0]:6.2f}   {shares}")
    if args.picture:
        draw(apart, norms, per_step(model, ids), args.sentence[:-1], args.picture)


def draw(
    apart: GradientDecomposition, norms: dict[str, np.ndarray], flow: np.ndarray, letters: str, path: str
) -> None:
    figure, (left, right) = new_axes(columns=2, width=5.0, height=3.9)
    steps = np.arange(len(letters))
    for (name, norm), colour, shift in zip(
        norms.items(), (GREEN, BLUE, ORANGE), (-0.27, 0, 0.27), strict=True
    ):
        left.bar(steps + shift, norm, 0.27, color=colour, label=f"∇{name[-1]}")
    left.set(
        xlabel="character read at step t", ylabel="norm of the step's share", title="shares of the gradients"
    )
    left.legend(frameon=False)
    shown = np.where(flow > 0, np.log10(np.maximum(flow, 1e-4)), np.nan)
    image = right.imshow(shown, cmap="viridis", vmin=-3, vmax=0)
    right.set(xlabel="loss at step t", ylabel="arrives at step k", title="log₁₀ ‖da(k ← t)‖")
    figure.colorbar(image, ax=right, shrink=0.8)
    for axis in (left.xaxis, right.xaxis, right.yaxis):
        axis.set_ticks(steps, labels=[letter if letter != " " else "·" for letter in letters])
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
