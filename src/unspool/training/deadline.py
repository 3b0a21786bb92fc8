"""The pace of a run: when to look, when to draw a sample, what the learning rate is, and how to keep a deadline.

The speed of a machine in its first second is not that of the next minutes. So a run that is to end at a deadline
measures itself now and then, and says anew how many updates there are: after s of them, n since it last looked at
the clock, in t seconds of training, and with r seconds left without those for looking,

    steps = s + r · n / t                                                               (1)

What was done so far stays as it was done; the rest of the schedule is stretched or pressed (`unspool.optimisers.schedules`). All
these numbers are written down, and so the run can be repeated to the bit.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from unspool.optimisers.schedules import make_schedule
from unspool.training.events import RunConfig
from unspool.training.state import TrainingState

CHECKS = (0.2, 0.45, 0.7, 0.9)
"""After which shares of the time the pace is measured."""
CLOSE = 0.02
"""A plan this close to what the pace says is left alone."""
SAVING = 0.3
"""Seconds for the last files."""
SAMPLES = (0.1, 0.3, 0.6)
"""After which shares of the updates a sample is drawn."""


class StepBudget:
    """Follows one run; `config` is replaced when the plan is changed."""

    def __init__(self, begun: float, config: RunConfig) -> None:
        self.begun, self.looking, self.looked, self.checked = begun, 0.0, 0, 0
        self.marks = (0, begun, 0.0)
        self.config = config

    @property
    def config(self) -> RunConfig:
        """What the run depends on."""
        return self._config

    @config.setter
    def config(self, config: RunConfig) -> None:
        recipe, self._config = config.fixed, config
        self._rate = make_schedule(config.schedule, recipe.steps, recipe.warmup, plans=recipe.plans)
        self.looks = self._dues(lambda steps: due(steps, config.validations))
        """After which updates to look at the validation part."""
        self.draws = self._dues(lambda steps: {round(steps * at) for at in SAMPLES})
        """After which updates to draw a sample."""

    def __call__(self, step: int) -> float:
        """Give the share of the learning rate."""
        return self._rate(step)

    def _dues(self, make: Callable[[int], set[int]]) -> set[int]:
        """Give what is due under the plan that holds at each update."""
        recipe = self.config.fixed
        plans = recipe.plans or ((0, recipe.steps),)
        ends = [*(at for at, _ in plans[1:]), recipe.steps]
        return {
            step
            for (begin, steps), end in zip(plans, ends, strict=True)
            for step in make(steps)
            if begin < step <= end
        }

    def look(self, glance: Callable[[], float]) -> float:
        """Look, and remember how long it took."""
        start = time.perf_counter()
        seen = glance()
        self.looking += time.perf_counter() - start
        self.looked += 1
        return seen

    def is_time(self, seconds: float, deadline: float) -> bool:
        """Say whether it is time to measure the pace."""
        return self.checked < len(CHECKS) and seconds - self.begun >= CHECKS[self.checked] * (
            deadline - self.begun
        )

    def kept(self, training: TrainingState, deadline: float) -> RunConfig:
        """Give the config with as many updates as keep the deadline: (1); the same one where that is close."""
        step, seconds, config = training.step, training.seconds, self.config
        recipe, (before, then, looking) = config.fixed, self.marks
        self.checked += 1
        self.marks = (step, seconds, self.looking)
        spent = seconds - then - (self.looking - looking)
        ahead = sum(look > step for look in self.looks) * self.looking / max(self.looked, 1)
        left = deadline - seconds - ahead - SAVING
        steps = step + max(1, round(left * (step - before) / max(spent, 1e-9)))  # (1)
        if step >= recipe.steps or abs(steps - recipe.steps) <= CLOSE * (recipe.steps - step):
            return config
        plans = (*(recipe.plans or ((0, recipe.steps),)), (step, steps))
        return replace(config, recipe=replace(recipe, steps=steps, plans=plans))


def due(steps: int, times: int) -> set[int]:
    """Say after which updates to look: most often at first, when the loss falls fastest.

    >>> sorted(due(1000, 5))
    [1, 63, 251, 563, 1000]
    >>> sorted(due(3, 10**18))  # more often than there are updates: after each
    [1, 2, 3]
    """
    return set(
        (1 + (steps - 1) * np.linspace(0, 1, min(times, 2 * steps)) ** 2).round().astype(int).tolist()
    ) | {steps}
