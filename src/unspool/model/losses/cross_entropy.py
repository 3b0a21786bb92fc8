"""Cross-entropy of classes.

L = -log softmax(o)[y],   ∇o = softmax(o) - 1[y]        (10.18)
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.tape import Loss
from unspool.model.linear import OutputGradient, OutputLayer
from unspool.model.losses.base import LossFunction


class CrossEntropy(LossFunction):
    """A loss of classes: targets (…), negative ones masked. The output layer computes it without storing o."""

    name: ClassVar[str] = "cross-entropy"

    def is_scored(self, y: Floats | Ids) -> NDArray[np.bool_]:
        """Return which targets count: those of 0 and above."""
        scored: NDArray[np.bool_] = y >= 0
        return scored

    def __call__(
        self, layer: OutputLayer, h: Floats, y: Floats | Ids, into: OutputGradient | None = None
    ) -> Loss:
        """Return the sum in nats and the count; see `LossFunction`."""
        return layer.cross_entropy(h, y, into)
