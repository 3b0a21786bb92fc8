"""How estimators of sequences are fitted: duration, batches, optimiser, validation."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from unspool.errors import InputError
from unspool.optimisers import check_optimiser
from unspool.optimisers.schedules import check_schedule
from unspool.options import MOST_STEPS, at_least, check_fraction, check_integers, check_positive, is_number


@dataclass(frozen=True)
class FitConfig:
    """How long and how fast a network is fitted."""

    epochs: int = 30
    """How often the training part is read."""
    steps: int | None = None
    """How many updates; None: what the epochs and the minutes allow."""
    minutes: float | None = None
    """The most time that training may take; the updates that fit are counted before the first one."""
    B: int = 32
    """Rows side by side."""
    learning_rate: float = 3e-3
    """The highest learning rate; the schedule multiplies it."""
    clip: float = 1.0
    """The largest norm of a gradient; 0: no limit."""
    decay: float = 0.0
    """Weight decay on matrices."""
    warmup: float = 0.05
    """The share of the updates over which the learning rate rises."""
    validation: float = 0.0
    """The share of the rows that is set aside, to choose the best parameters by; 0: the last ones are kept."""
    patience: int = 0
    """After how many validations without a better one training stops; 0: never."""
    validations: int = 40
    """How often the rows set aside are scored, at most once an epoch."""
    seed: int = 0
    """The seed of all random numbers."""
    optimiser: str = "adam"
    """The name of an optimiser: adam or sgd."""
    schedule: str = "cosine"
    """The name of a learning-rate schedule: cosine or constant, both after the warm-up."""

    def __post_init__(self) -> None:
        check_integers(self, epochs=1, B=1, patience=0, validations=1, seed=0)
        if self.steps is not None:
            check_integers(self, steps=1)
            at_least("steps", self.steps, 1, MOST_STEPS)
        at_least("epochs", self.epochs, 1, MOST_STEPS)
        if self.minutes is not None and not (is_number(self.minutes) and 0 < self.minutes <= 1e5):
            raise InputError(f"minutes is {self.minutes!r}; expected a number above 0")
        for name in ("validation", "warmup"):
            check_fraction(name, getattr(self, name))
        check_positive("learning_rate", self.learning_rate)
        check_optimiser(self.optimiser)
        check_schedule(self.schedule)
        if self.patience and not self.validation:
            raise InputError("patience needs rows set aside: give validation, for instance 0.1")

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return dataclasses.asdict(self)
