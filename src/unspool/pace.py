"""The pace of a run: when to look, when to draw a sample, what the learning rate is, and how to keep a deadline.

The speed of a machine in its first second is not that of the next minutes. So a run that is to end at a deadline
measures itself on its first fifth, and then says once more how many updates there are: with s of them made in
t seconds of training, and r seconds left without those for looking,

    steps = s + r · s / t                                                               (1)

What was done so far stays as it was done; the rest of the schedule is stretched or pressed (`unspool.schedule`). Both
numbers are written down, and so the run can be repeated to the bit.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from unspool.events import RunConfig
from unspool.schedule import Cosine
from unspool.training import Training

KNOWN = 0.2
"""After this share of the time the pace is known."""
CLOSE = 0.02
"""A plan this close to what the pace says is left alone."""
SAVING = 0.3
"""Seconds for the last files."""
SAMPLES = (0.1, 0.3, 0.6)
"""After which shares of the updates a sample is drawn."""


class Pace:
    """Follows one run; `config` is replaced when the plan is changed."""

    def __init__(self, begun: float, config: RunConfig) -> None:
        self.begun, self.looking, self.looked = begun, 0.0, 0
        self.config = config

    @property
    def config(self) -> RunConfig:
        """What the run depends on."""
        return self._config

    @config.setter
    def config(self, config: RunConfig) -> None:
        recipe, self._config = config.fixed, config
        self._rate = Cosine(
            recipe.steps,
            warmup=max(1, min(recipe.warmup, recipe.steps)),
            planned=recipe.planned,
            changed_at=recipe.changed_at,
        )
        self.looks = self._dues(lambda steps: due(steps, config.validations))
        """After which updates to look at the validation part."""
        self.draws = self._dues(lambda steps: {round(steps * at) for at in SAMPLES})
        """After which updates to draw a sample."""

    def __call__(self, step: int) -> float:
        """Give the share of the learning rate."""
        return self._rate(step)

    def _dues(self, make: Callable[[int], set[int]]) -> set[int]:
        recipe = self.config.fixed
        later = {step for step in make(recipe.steps) if step > recipe.changed_at}
        return later | {step for step in make(recipe.planned or 1) if step <= recipe.changed_at}

    def look(self, glance: Callable[[], float]) -> float:
        """Look, and remember how long it took."""
        start = time.perf_counter()
        seen = glance()
        self.looking += time.perf_counter() - start
        self.looked += 1
        return seen

    def is_known(self, seconds: float, deadline: float) -> bool:
        """Say whether enough of the time is over."""
        return seconds - self.begun >= KNOWN * (deadline - self.begun)

    def kept(self, training: Training, config: RunConfig, deadline: float) -> RunConfig:
        """Give the config with as many updates as keep the deadline: (1); the same one where that is close."""
        step, recipe = training.step, config.fixed
        spent = training.seconds - self.begun - self.looking
        ahead = sum(look > step for look in self.looks) * self.looking / max(self.looked, 1)
        left = deadline - training.seconds - ahead - SAVING
        steps = step + max(1, round(left * step / max(spent, 1e-9)))  # (1)
        if recipe.changed_at or step >= recipe.steps or abs(steps - recipe.steps) <= CLOSE * recipe.steps:
            return config
        return replace(config, recipe=replace(recipe, steps=steps, planned=recipe.steps, changed_at=step))


def due(steps: int, times: int) -> set[int]:
    """Say after which updates to look: most often at first, when the loss falls fastest.

    >>> sorted(due(1000, 5))
    [1, 63, 251, 563, 1000]
    """
    return set((1 + (steps - 1) * np.linspace(0, 1, times) ** 2).round().astype(int).tolist()) | {steps}
