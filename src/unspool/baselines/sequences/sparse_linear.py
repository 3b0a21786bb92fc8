"""A linear model of sparse features, trained by the loop of every network: a network without hidden state.

    o(i) = c + Σ_j z(i, j) W(j),   L = mean over rows of loss(o(i), y(i)) + λ/2 ‖W‖²,   λ = 1 / (C n)            (1)
    ∇c = mean ∇o(i),   ∇W(j) = mean z(i, j) ∇o(i) + λ W(j)                                                      (2)

z(i, j) is feature j of row i and W(j) its weights. Sums are those of the native kernels: the same bits on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unspool.kernels import native
from unspool.kernels.arrays import Array, Floats, Ids, Whole
from unspool.kernels.tape import Loss
from unspool.model.heads.base import Head
from unspool.model.linear import Linear, OutputGradient
from unspool.model.parameters import Parameters
from unspool.optimisers.adam import Adam
from unspool.optimisers.schedules.cosine import Cosine
from unspool.training.loop import updates
from unspool.training.objectives import LossAndGradient

B = 64
"""Rows per update."""
EPOCHS, LEAST, MOST = 20, 400, 6000
"""Updates: those of the epochs, but no fewer and no more."""
LEARNING_RATE = 0.03
BLOCK = 1 << 21
"""The most weights that are gathered at once for predictions."""


class SparseRows(NamedTuple):
    """Rows of features that are mostly zero: those of row i are at positions begin[i] to begin[i + 1]."""

    begin: Whole  # n + 1
    ids: Ids
    z: Floats
    size: int
    """The number of features."""

    def __len__(self) -> int:
        return len(self.begin) - 1

    def part(self, rows: Whole) -> SparseRows:
        """Return some of the rows."""
        counts = np.diff(self.begin)[rows]
        begin = np.concatenate([[0], np.cumsum(counts)])
        at = np.repeat(self.begin[rows] - begin[:-1], counts) + np.arange(begin[-1])
        return SparseRows(begin, self.ids[at], self.z[at], self.size)

    def outputs(self, W: Floats, c: Floats) -> Floats:
        """Compute o (n K) from the weights W (features K) and c (K): (1)."""
        o = np.tile(c, (len(self), 1))
        counts = np.diff(self.begin)
        native.scatter_add(
            o, np.repeat(np.arange(len(self)), counts).astype(np.int32),
            native.gather(W, self.ids) * self.z[:, None],
        )  # fmt: skip
        return o


def outputs_of(features: SparseRows, W: Floats, c: Floats) -> Floats:
    """Compute o of any number of rows, a few at a time."""
    most = max(1, BLOCK // (W.shape[1] * max(1, int(np.diff(features.begin).max(initial=0)))))
    parts = [np.arange(at, min(at + most, len(features))) for at in range(0, len(features), most)]
    return np.concatenate([features.part(rows).outputs(W, c) for rows in parts])


def loss_of(head: Head, o: Floats, y: Array, *, gradient: bool = False) -> Loss:
    """Compute the loss of outputs o (n K) under a head; with `gradient`, `dh` is the gradient of o, divided by n."""
    K = o.shape[1]
    into = OutputGradient(np.zeros((K, K), np.float32), np.zeros(K, np.float32), 1 / len(o))
    layer = Linear.of(np.eye(K, dtype=np.float32), None, native)
    return head.loss(layer, o, y, into if gradient else None)


class SparseObjective:
    """The loss of a batch of rows, and its gradient."""

    def __init__(self, features: SparseRows, y: Array, head: Head, C: float) -> None:
        self.parameters = Parameters({"W": (features.size, head.K), "c": (head.K,)})
        self.features, self.y, self.head, self.gradient = features, y, head, self.parameters.like()
        self.decay = np.float32(1 / (C * len(features)))

    def __call__(self, rows: Whole, step: int) -> LossAndGradient:
        """Compute (1) and (2) for a batch."""
        batch, p, gradient = self.features.part(rows), self.parameters, self.gradient
        loss = loss_of(self.head, batch.outputs(p["W"], p["c"]), self.y[rows], gradient=True)
        assert loss.dh is not None
        each = np.repeat(loss.dh, np.diff(batch.begin), axis=0) * batch.z[:, None]
        gradient["W"][:] = p["W"] * self.decay
        native.scatter_add(gradient["W"], batch.ids, each)
        gradient["c"][:] = native.column_sum(loss.dh)
        return LossAndGradient(loss, gradient.flat)


def fit_sparse(features: SparseRows, y: Array, head: Head, seed: int, C: float) -> tuple[Floats, Floats]:
    """Return W (features K) and c (K) with a low loss (1) of the targets y."""
    objective = SparseObjective(features, y, head, C)
    steps = int(np.clip(EPOCHS * -(-len(features) // B), LEAST, MOST))
    optimiser = Adam(learning_rate=LEARNING_RATE, clip=0)
    batches = random_batches(len(features), steps, seed)
    for _ in updates(objective, batches, optimiser, schedule=Cosine(steps, warmup=1)):
        pass
    return objective.parameters["W"].copy(), objective.parameters["c"].copy()


def random_batches(n: int, steps: int, seed: int) -> Iterator[Whole]:
    """Yield batches of rows, every epoch in another order."""
    rng, left = np.random.default_rng([seed, 4]), np.zeros(0, np.int64)
    for _ in range(steps):
        if not len(left):
            left = rng.permutation(n)
        yield left[:B]
        left = left[B:]
