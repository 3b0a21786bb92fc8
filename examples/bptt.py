"""Decompose gradients by time step: the contribution of each step, and where the gradient of each loss arrives.

Left: for each character, the norm of its contribution to ∇V, ∇W and ∇U; the contributions add up to the gradients.
Right: the norm of the gradient of the loss at step t (rows) with respect to the state h(k) (columns). It is 0 for k > t and decays
with the lag t - k. `unspool inspect` and `unspool studio` show this matrix for a run of your own (Back in time).

    python examples/bptt.py [--sentence "she sells sea shells"] [--picture bptt.png]
"""

from __future__ import annotations

import argparse

import numpy as np

from unspool import Model, ModelConfig, draw_gradients
from unspool.data import Vocab
from unspool.gradients import arrivals, decompose_gradient


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
    norms = {name[-1]: apart.contribution_norms(name) for name in ("V", "layer0.W", "layer0.U")}
    for t, letter in enumerate(args.sentence[:-1]):
        shares = "   ".join(f"{norm[t]:.2f}" for norm in norms.values())
        print(f"{t + 1:2} {letter!r:5} {apart.L[t, 0]:6.2f}   {shares}")
    if args.picture:
        draw_gradients(norms, arrivals(model, ids[:-1], ids[1:]).h, args.sentence[:-1], args.picture)


if __name__ == "__main__":
    main()
