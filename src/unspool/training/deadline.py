"""The number of updates: when to validate, the learning rate, and a new number where a run has a deadline.

The speed of a machine in its first second is not its speed in the next minutes. So a run with a deadline measures itself
now and then and computes the number of updates anew: after s updates, n of them since the last measurement, in t seconds
of training, and with r seconds left without those for validation,

    steps = s + r · n / t                                                               (1)

Past updates stay as they were; the rest of the schedule is stretched or compressed (`unspool.optimisers.schedules`). All
these numbers are saved, so the run can be repeated to the bit.
"""

import time
from collections.abc import Callable

import numpy as np

from unspool.optimisers.schedules import make_schedule
from unspool.optimisers.schedules.base import Plans

CHECKS = (0.2, 0.45, 0.7, 0.9)
"""The shares of the time after which the speed is measured."""
CLOSE = 0.02
"""A plan this close to the measured speed is kept."""
SAVING = 0.3
"""Seconds for the last files."""


class StepBudget:
    """The updates of one run."""

    def __init__(
        self,
        steps: int,
        *,
        warmup: int,
        schedule: str,
        validations: Callable[[int], set[int]],
        plans: Plans = (),
        begun: float = 0.0,
        deadline: float | None = None,
    ) -> None:
        """Begin after `begun` seconds of a run; `validations` returns by the number of updates when to validate."""
        self._warmup, self._schedule, self._validations = warmup, schedule, validations
        self._begun, self._deadline, self._checked = begun, deadline, 0
        self._marks, self._validating, self._validated = (0, begun, 0.0), 0.0, 0
        self._set(steps, plans)

    def _set(self, steps: int, plans: Plans) -> None:
        self.steps, self.plans = steps, plans
        self.rate = make_schedule(self._schedule, steps, self._warmup, plans=plans)
        self.validation_steps = self.steps_due(self._validations)
        """The updates after which to validate."""

    def schedule(self, step: int) -> float:
        """Return the factor on the learning rate, under the plan of now."""
        return self.rate(step)

    def steps_due(self, make: Callable[[int], set[int]]) -> set[int]:
        """Return the updates that `make` returns, each under the plan that holds at it."""
        plans = self.plans or ((0, self.steps),)
        ends = [*(at for at, _ in plans[1:]), self.steps]
        return {
            step
            for (begin, steps), end in zip(plans, ends, strict=True)
            for step in make(steps)
            if begin < step <= end
        }

    def timed(self, validate: Callable[[], float]) -> float:
        """Validate, and measure how long it takes."""
        start = time.perf_counter()
        loss = validate()
        self._validating += time.perf_counter() - start
        self._validated += 1
        return loss

    def should_replan(self, seconds: float) -> bool:
        """Return whether to measure the speed now, after so many seconds of the run."""
        return (
            self._deadline is not None
            and self._checked < len(CHECKS)
            and seconds - self._begun >= CHECKS[self._checked] * (self._deadline - self._begun)
        )

    def replan(self, step: int, seconds: float) -> bool:
        """Change the number of updates to keep the deadline: (1). Return whether it was changed."""
        assert self._deadline is not None
        before, then, validating = self._marks
        self._checked += 1
        self._marks = (step, seconds, self._validating)
        spent = seconds - then - (self._validating - validating)
        to_come = sum(at > step for at in self.validation_steps) * self._validating / max(self._validated, 1)
        left = self._deadline - seconds - to_come - SAVING
        steps = step + max(1, round(left * (step - before) / max(spent, 1e-9)))  # (1)
        if step >= self.steps or abs(steps - self.steps) <= CLOSE * (self.steps - step):
            return False
        self._set(steps, (*(self.plans or ((0, self.steps),)), (step, steps)))
        return True


def early_validations(steps: int, times: int) -> set[int]:
    """Return after which updates to validate: most often at first, when the loss falls fastest.

    >>> sorted(early_validations(1000, 5))
    [1, 63, 251, 563, 1000]
    >>> sorted(early_validations(3, 10**18))  # more often than there are updates: after each
    [1, 2, 3]
    """
    return set(
        (1 + (steps - 1) * np.linspace(0, 1, min(times, 2 * steps)) ** 2).round().astype(int).tolist()
    ) | {steps}
