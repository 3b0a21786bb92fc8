"""Squared error of numbers.

L = Σ (o - y)²,   ∇o = 2 (o - y)
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from unspool.kernels.arrays import Floats
from unspool.model.losses.base import NumericLoss


class SquaredError(NumericLoss):
    """The squared distance of o from the targets."""

    name: ClassVar[str] = "squared-error"

    def per_target(self, o: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return the loss of every target and the gradient of o."""
        error = np.where(np.isnan(y), 0.0, o.astype(np.float64) - y)
        return error * error, 2 * error
