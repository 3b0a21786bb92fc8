"""The interface of a loss function, and the losses that are computed from o."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.tape import Loss
from unspool.model.linear import Linear, OutputGradient, OutputLayer


class LossFunction(ABC):
    """A loss of h and targets, through the output layer."""

    name: ClassVar[str]

    @abstractmethod
    def is_scored(self, y: Floats | Ids) -> NDArray[np.bool_]:
        """Return which targets count; the others are masked."""

    @abstractmethod
    def __call__(
        self, layer: OutputLayer, h: Floats, y: Floats | Ids, into: OutputGradient | None = None
    ) -> Loss:
        """Return the sum over all targets and their count.

        With `into`, write the gradients of V and c there and return the gradient of h in the loss.
        """


class NumericLoss(LossFunction):
    """A loss of numbers: targets (…, outputs), NaN masked."""

    @abstractmethod
    def per_target(self, o: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return the loss of every target and the gradient of o, both zero where y is NaN, in float64."""

    def is_scored(self, y: Floats | Ids) -> NDArray[np.bool_]:
        """Return which targets count: those that are not NaN."""
        return ~np.isnan(y)

    def __call__(
        self, layer: OutputLayer, h: Floats, y: Floats | Ids, into: OutputGradient | None = None
    ) -> Loss:
        """Return the sum and count; see `LossFunction`."""
        assert isinstance(layer, Linear)
        each, do = self.per_target(layer(h), y)
        scored = self.is_scored(y)
        dh = None
        if into is not None:
            if not into.accumulate:
                into.dV[:], into.dc[:] = 0, 0
            dh = layer.backward(h, (do * into.scale).astype(layer.backend.DTYPE), into.dV, into.dc)
        return Loss(math.fsum(each[scored].tolist()), int(scored.sum()), each, dh)
