"""The factor on the learning rate at every update: linear warm-up times the shape of a schedule.

    rate(s) = min(1, (s + 1) / warmup) · shape(progress(s))                             (1)

Progress is s / steps. Where the number of updates was changed during training, the remaining progress is spread over
the updates that remain then, so a run with the same changes can be repeated to the bit.
"""

from dataclasses import dataclass
from typing import TypeAlias

from unspool.errors import InputError
from unspool.options import check_integers

Plans: TypeAlias = tuple[tuple[int, int], ...]


def refuse_plans(plans: Plans, steps: int) -> None:
    """Raise unless each plan begins after the one before, before its end, and the last has all `steps`."""
    begins, totals = [at for at, _ in plans], [total for _, total in plans]
    rising = begins == sorted(set(begins)) and begins[:1] in ([], [0])
    if not rising or any(at >= total for at, total in plans) or totals[-1:] not in ([], [steps]):
        raise InputError(
            f"plans are {plans}; expected 0:STEPS,AFTER:STEPS,… that end with the {steps} steps that are made"
        )
    if any(begin >= total for begin, total in zip(begins[1:], totals, strict=False)):
        raise InputError(f"plans are {plans}; each must begin before the one before it ends")


@dataclass(frozen=True)
class Schedule:
    """A factor by the update, which counts from 0: (1)."""

    steps: int
    """The number of updates."""
    warmup: int = 50
    """The number of updates over which the rate rises."""
    plans: Plans = ()
    """Changes of the number of updates: ((0, steps at first), (after this update, steps), …)."""

    def __post_init__(self) -> None:
        check_integers(self, steps=1, warmup=1)
        refuse_plans(self.plans, self.steps)

    def progress(self, step: int) -> float:
        """Return the share of the schedule that is done: s / steps, recomputed for the rest after each change.

        >>> changed = Schedule(steps=80, plans=((0, 100), (20, 80)))
        >>> [round(changed.progress(step), 2) for step in (10, 20, 50, 80)]
        [0.1, 0.2, 0.6, 1.0]
        """
        done, since, steps = 0.0, 0, self.plans[0][1] if self.plans else self.steps
        for at, planned in self.plans[1:]:
            if step < at:
                break
            done += (1 - done) * (at - since) / (steps - since)
            since, steps = at, planned
        return min(1.0, done + (1 - done) * (step - since) / (steps - since))

    def shape(self, progress: float) -> float:
        """Return the factor after the warm-up, by the progress from 0 to 1."""
        raise NotImplementedError

    def __call__(self, step: int) -> float:
        """Return the factor at an update: (1)."""
        return min(1.0, (step + 1) / self.warmup) * self.shape(self.progress(step))
