"""Warm-up, then half a cosine down to a floor.

shape(x) = floor + (1 - floor) · (1 + cos(π x)) / 2                                 (1)
"""

import math
from dataclasses import dataclass

from unspool.errors import InputError
from unspool.optimisers.schedules.base import Schedule


@dataclass(frozen=True)
class Cosine(Schedule):
    """A learning rate that falls along half a cosine: (1).

    >>> rate = Cosine(steps=100, warmup=10)
    >>> [round(rate(step), 3) for step in (0, 9, 50, 99, 200)]
    [0.1, 0.98, 0.5, 0.0, 0.0]
    """

    floor: float = 0.0
    """The factor at the end."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.floor <= 1:
            raise InputError(f"floor is {self.floor!r}; expected a share from 0 to 1")

    def shape(self, progress: float) -> float:
        """Return the factor after the warm-up: (1)."""
        fall = (1 + math.cos(math.pi * progress)) / 2
        return self.floor + (1 - self.floor) * fall
