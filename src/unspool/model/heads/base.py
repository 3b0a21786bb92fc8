"""The interface of a head: the meaning of the output o, the targets that it takes, and its loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unspool.errors import InputError
from unspool.kernels.arrays import Floats, Ids, cached_attribute
from unspool.model.losses import LOSSES
from unspool.model.losses.base import LossFunction


@dataclass(frozen=True)
class Head:
    """A head of numbers; subclasses change what differs.

    >>> from unspool.model.heads import HEADS
    >>> [(name, head(outputs=3).K, head(3).is_discrete, head(3).loss.name) for name, head in HEADS.items()]
    [('classes', 3, True, 'cross-entropy'), ('numbers', 3, False, 'squared-error'), ('distribution', 6, False, 'gaussian')]
    """

    outputs: int
    """The number of classes, or of predicted values."""
    floor: float = 1e-3
    """The smallest standard deviation, for a head that has one."""
    name: ClassVar[str]
    loss_name: ClassVar[str]
    is_discrete: ClassVar[bool] = False
    """Whether targets are class ids (…); else numbers (…, outputs)."""
    has_std: ClassVar[bool] = False
    """Whether `std` gives the standard deviation of each number."""

    @property
    def K(self) -> int:
        """The width of the output o."""
        return self.outputs

    @cached_attribute
    def loss(self) -> LossFunction:
        """The loss that trains this head."""
        return LOSSES[self.loss_name]()

    def check_targets(self, h: Floats, y: Floats | Ids) -> None:
        """Raise unless y has one target for each row of h."""
        if y.shape != (*h.shape[:-1], self.outputs):
            raise InputError(f"y has shape {y.shape}; expected {(*h.shape[:-1], self.outputs)}")

    def mean(self, o: Floats) -> Floats:
        """Return the predicted values (…, outputs)."""
        return o

    def std(self, o: Floats) -> Floats:
        """Return the standard deviation of each value (…, outputs)."""
        raise InputError(f"the head {self.name!r} has no standard deviation")
