"""People have minutes, not epochs: how many updates fit, and a learning rate that ends with the last of them.

    rate(s) = min(1, (s + 1) / warmup) · (floor + (1 - floor) · (1 + cos(π s / steps)) / 2)        (1)

The number of updates is fixed before the first one, from a short measurement, and anew on the way, as the
machine's pace is known better. So the clock decides only how long a run is; given these numbers, it can be repeated
to the bit.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

from unspool.errors import InputError
from unspool.options import check_integers

Plans: TypeAlias = tuple[tuple[int, int], ...]


def refuse_plans(plans: Plans, steps: int) -> None:
    """Raise unless each plan begins after the one before, before its end, and the last is the one that is kept."""
    begins, totals = [at for at, _ in plans], [total for _, total in plans]
    rising = begins == sorted(set(begins)) and begins[:1] in ([], [0])
    if not rising or any(at >= total for at, total in plans) or totals[-1:] not in ([], [steps]):
        raise InputError(
            f"plans are {plans}; expected 0:STEPS,AFTER:STEPS,… that end with the {steps} steps that are made"
        )
    if any(begin >= total for begin, total in zip(begins[1:], totals, strict=False)):
        raise InputError(f"plans are {plans}; each must begin before the one before it ends")


@dataclass(frozen=True)
class Cosine:
    """The share of the learning rate at a step that counts from 0: (1).

    >>> rate = Cosine(steps=100, warmup=10)
    >>> [round(rate(step), 3) for step in (0, 9, 50, 99, 200)]
    [0.1, 0.98, 0.5, 0.0, 0.0]
    """

    steps: int
    """How many updates there will be."""
    warmup: int = 50
    """Over how many the rate rises."""
    floor: float = 0.0
    """The share at the end."""
    plans: Plans = ()
    """Where the plan was changed on the way: ((0, steps at first), (after this update, steps), …)."""

    def __post_init__(self) -> None:
        check_integers(self, steps=1, warmup=1)
        if not 0 <= self.floor <= 1:
            raise InputError(f"floor is {self.floor!r}; expected a share from 0 to 1")
        refuse_plans(self.plans, self.steps)

    def progress(self, step: int) -> float:
        """Give how much of the way is behind: s / steps in (1), the rest anew after each change.

        >>> changed = Cosine(steps=80, plans=((0, 100), (20, 80)))
        >>> [round(changed.progress(step), 2) for step in (10, 20, 50, 80)]
        [0.1, 0.2, 0.6, 1.0]
        """
        behind, since, steps = 0.0, 0, self.plans[0][1] if self.plans else self.steps
        for at, planned in self.plans[1:]:
            if step < at:
                break
            behind += (1 - behind) * (at - since) / (steps - since)
            since, steps = at, planned
        return min(1.0, behind + (1 - behind) * (step - since) / (steps - since))

    def __call__(self, step: int) -> float:
        """Give the share at a step."""
        fall = (1 + math.cos(math.pi * self.progress(step))) / 2
        return min(1.0, (step + 1) / self.warmup) * (self.floor + (1 - self.floor) * fall)
