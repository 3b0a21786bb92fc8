"""A linear model of dense features, trained by the loop of every network: o = c + V z."""

from __future__ import annotations

import numpy as np

from unspool.baselines.sequences.ridge_head import RidgeHead, statistics
from unspool.baselines.sequences.sparse_linear import random_batches
from unspool.kernels import native
from unspool.kernels.arrays import Array, Floats, Whole
from unspool.model.heads.base import Head
from unspool.model.linear import Linear, OutputGradient
from unspool.model.parameters import Parameters
from unspool.optimisers.adam import Adam
from unspool.optimisers.schedules.cosine import Cosine
from unspool.training.loop import updates
from unspool.training.objectives import LossAndGradient

STEPS = 6000
"""Updates."""
LEARNING_RATE = 1e-3
DECAY = 0.1
"""The decoupled weight decay of Adam."""


class DenseObjective:
    """The loss of a batch of rows, and its gradient."""

    def __init__(self, z: Floats, y: Array, head: Head) -> None:
        self.mean, self.scale = statistics(z)
        self.parameters = Parameters({"V": (head.K, z.shape[1]), "c": (head.K,)})
        self.z, self.y, self.head, self.gradient = z, y, head, self.parameters.like()

    def __call__(self, rows: Whole, step: int) -> LossAndGradient:
        """Compute the loss of a batch and its gradient."""
        p, gradient = self.parameters, self.gradient
        into = OutputGradient(gradient["V"], gradient["c"], 1 / len(rows), accumulate=False)
        z = (self.z[rows] - self.mean) * self.scale
        return LossAndGradient(
            self.head.loss(Linear.of(p["V"], p["c"], native), z, self.y[rows], into), gradient.flat
        )


def fit_dense(z: Floats, y: Array, head: Head, seed: int) -> RidgeHead:
    """Return a linear head of features (n F) for targets y."""
    objective = DenseObjective(z, y, head)
    optimiser = Adam(learning_rate=LEARNING_RATE, decay=DECAY)
    for _ in updates(
        objective, random_batches(len(z), STEPS, seed), optimiser, schedule=Cosine(STEPS, warmup=1)
    ):
        pass
    V, c = objective.parameters["V"], objective.parameters["c"]
    return RidgeHead(objective.mean, objective.scale, np.ascontiguousarray(V.T), c.copy())
