"""Cross-entropy of classes.

L = -log softmax(o)[y],   ∇o = softmax(o) - 1[y]        (10.18)
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.tape import Loss
from unspool.model.linear import Linear, OutputGradient
from unspool.model.losses.base import LossFunction


class CrossEntropy(LossFunction):
    """A loss of classes: targets (…), negative ones masked. One kernel computes it without storing o."""

    name: ClassVar[str] = "cross-entropy"

    def is_scored(self, y: Floats | Ids) -> NDArray[np.bool_]:
        """Return which targets count: those of 0 and above."""
        scored: NDArray[np.bool_] = y >= 0
        return scored

    def __call__(self, layer: Linear, h: Floats, y: Floats | Ids, into: OutputGradient | None = None) -> Loss:
        """Return the sum in nats and the count; see `LossFunction`."""
        given: dict[str, Any] = {} if into is None else into._asdict()
        return layer.backend.softmax_cross_entropy(h, layer.V, layer.c, y, **given)
