"""Choose how a model learns while it reads: the learning rate and the segment with the lowest loss on a text.

The rates are compared with the default segment, then the segments with the best rate. Each setting reads the same head of
the text, scores every target before it learns from it, and starts from the same model. Choose on the validation split, never
on the text whose loss is reported.

>>> import numpy as np
>>> from unspool.model.config import ModelConfig
>>> model = Model.initialise(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=8), seed=1)
>>> choice = choose_learning(model, np.arange(2001, dtype=np.int32) % 5)
>>> choice.learning.learn_rate, choice.targets, len(choice.tried)
(0.002, 2000, 7)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from unspool.errors import Diverged
from unspool.evaluation.language import no_progress
from unspool.kernels.arrays import Ids
from unspool.model.network import Model
from unspool.training.dynamic import Learning, LearningScorer

RATES = (1.25e-4, 2.5e-4, 5e-4, 1e-3, 2e-3)
SEGMENTS = (16, 32, 64)
MOST = 20_000
"""Most targets that a setting is tried on."""
FEWEST = 2_000
"""Fewest targets that a choice is based on."""


class Tried(NamedTuple):
    """A setting and its mean loss; infinite if it diverged."""

    learning: Learning
    nats: float


@dataclass(frozen=True)
class LearningChoice:
    """The setting to learn with, and how it was chosen."""

    learning: Learning
    tried: tuple[Tried, ...] = ()
    """The settings that were compared, in their order; empty if there was no choice."""
    targets: int = 0
    """The number of targets that each was tried on."""


def targets_to_try(ids: Ids, default: Learning, choose: tuple[bool, bool] = (True, True)) -> int:
    """Return how many targets `choose_learning` scores, over all settings; 0 if it chooses nothing."""
    (rate, segment), targets = choose, min(len(ids) - 1, MOST)
    settings = (len(RATES) if rate else 1) + (len(_other_segments(default)) if segment else 0)
    return targets * settings if targets >= FEWEST and (rate or segment) else 0


def _other_segments(default: Learning) -> list[int]:
    return [each for each in SEGMENTS if each != default.learn_segment]


def choose_learning(
    model: Model,
    ids: Ids,
    default: Learning | None = None,
    *,
    choose: tuple[bool, bool] = (True, True),
    on_progress: Callable[[int, int], None] = no_progress,
) -> LearningChoice:
    """Choose the rate, the segment or both (`choose`) on the head of a text, ids (n,); other values are those of `default`.

    If the text has too few targets, the result is the default. `on_progress` is called with the number of scored targets and
    their total.
    """
    default, (rate, segment) = default or Learning(), choose
    head, total = ids[: MOST + 1], targets_to_try(ids, default, choose)
    if total == 0:
        return LearningChoice(default)
    tried = list[Tried]()

    def score(learning: Learning) -> Tried:
        before = len(tried) * (len(head) - 1)
        scorer = LearningScorer(model, learning, lambda done, _: on_progress(before + done, total))
        try:
            nats = -float(scorer.log_prob(head).mean())
        except Diverged:
            nats = math.inf
        tried.append(Tried(learning, nats if math.isfinite(nats) else math.inf))
        return tried[-1]

    found = [score(replace(default, learn_rate=each)) for each in (RATES if rate else (default.learn_rate,))]
    best = min(found, key=lambda each: each.nats)
    lengths = _other_segments(default) if segment else []
    found = [best, *(score(replace(best.learning, learn_segment=each)) for each in lengths)]
    best = min(found, key=lambda each: each.nats)
    if not math.isfinite(best.nats):
        lowest = min(each.learning.learn_rate for each in tried)
        raise Diverged(f"learning while reading diverges even with learn_rate={lowest:g}: choose a lower one")
    return LearningChoice(best.learning, tuple(tried), len(head) - 1)
