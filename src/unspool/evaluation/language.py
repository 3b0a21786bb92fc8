"""How well a network predicts a text: log P of every target, the state carried from the first token to the last.

    x(1) ─▶ h(1) ─▶ x(2) ─▶ h(2) ─▶ …        log P(x(t+1) | x(1) … x(t)) = log softmax(c + V h(t))[x(t+1)]

Where tokens are fed back (figure 10.4), the output before is the token x(t) itself, as in training: it is known by then.
The text is read in windows only to bound the memory: the state goes from one to the next, and a window of any
size gives the same bits. What comes out is what `unspool.evaluation.metrics` adds up, as for the models that count.

>>> from unspool.model.config import ModelConfig
>>> model = Model.initialise(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=8), seed=1)
>>> ids = np.arange(100, dtype=np.int32) % 5
>>> at_once, in_sevens = log_prob(model, ids, window=100), log_prob(model, ids, window=7)
>>> len(at_once), bool((at_once == in_sevens).all())
(99, True)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unspool.data.text.parts import Part
from unspool.errors import InputError
from unspool.evaluation.metrics import Metrics, ScoresText, measure
from unspool.kernels.arrays import Ids, Real, Whole
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.values import State

WINDOW = 1024
"""Steps read at once: enough for one product over all of them, little enough for the memory."""


def no_progress(done: int, total: int) -> None:
    """Tell nobody how many targets have been scored."""


def log_prob(
    model: Model, ids: Ids, *, window: int = WINDOW, told: Callable[[int, int], None] = no_progress
) -> Real:
    """Give log P(x(t) | all before) for every token but the first, which has nothing before it.

    After each window `told` hears how many targets of how many have been scored.
    """
    _check(model, ids, window)
    state: State | None = None
    weights = model.weights()
    found = [np.zeros(0)]
    for at in range(0, len(ids) - 1, window):
        here = np.asarray(ids[at : at + window + 1], np.int32)[:, None]  # tau+1 1
        output = model.forward(here[:-1], state, weights=weights, y=here[1:])
        found.append(-model.loss(output, here[1:], weights=weights).per_target[:, 0])
        state = output.state
        told(min(at + window, len(ids) - 1), len(ids) - 1)
    return np.concatenate(found)


def refuse_no_text(config: ModelConfig, what: str) -> None:
    """Raise unless a model reads tokens in one direction and predicts the next one at every step."""
    if config.dense or config.bidirectional or config.pattern == "last":
        raise InputError(
            f"{what}: needs a model of tokens that reads in one direction, with an output at every step "
            "(pattern='hidden' or 'output')"
        )


def _check(model: Model, ids: Ids, window: int) -> None:
    refuse_no_text(model.config, "evaluate")
    if window < 1:
        raise InputError(f"evaluate: window is {window}; expected at least 1")
    if len(ids) < 2:
        raise InputError(f"evaluate: {len(ids)} tokens leave nothing to predict; give a text of two or more")


@dataclass(frozen=True)
class NetworkScorer:
    """A network as a language model like any other: see `unspool.evaluation.metrics.ScoresText`."""

    model: Model
    window: int = WINDOW
    told: Callable[[int, int], None] = no_progress

    def log_prob(self, ids: Ids, given: int = 1) -> Real:
        """Give log P(x(t) | all before) for all tokens but the first ``given``, which are only context."""
        if given < 1:
            raise InputError("a network needs a token to start from: given must be at least 1")
        return log_prob(self.model, ids, window=self.window, told=self.told)[given - 1 :]


def in_reading_order(ids: Ids, backward: bool) -> Ids:
    """Give ids in the direction of a model: as they are, or the last one first."""
    return ids[::-1] if backward else ids


def evaluate(model: ScoresText, part: Part, *, backward: bool = False) -> Metrics:
    """Judge any language model by a part of a corpus: every target once, sums divided once."""
    return measure(model.log_prob(in_reading_order(part.ids, backward)), *part.widths_after_first(backward))


@dataclass(frozen=True)
class Uniform:
    """The guess without knowledge, 1/K for every token: its perplexity is K."""

    K: int

    def log_prob(self, ids: Ids, given: int = 1) -> Real:
        """Return -ln K for every token but the first ``given``."""
        return np.full(len(ids) - given, -math.log(self.K))


@dataclass(frozen=True)
class Spread:
    """Segments of equal length at equal distances over a text: the targets that validation in training scores."""

    first: Whole
    """The first target of each segment."""
    length: int
    total: int
    """How many targets the text has."""

    @property
    def targets(self) -> Whole:
        """The scored targets, rising; target t is token t+1 of the text."""
        ends = np.minimum(self.first + self.length, self.total)
        return np.concatenate([np.arange(*span) for span in zip(self.first, ends, strict=True)])


def spread(total: int, tokens: int | None = None, *, rows: int = 32, context: int = 64) -> Spread:
    """Spread about `tokens` of a text's `total` targets over it, in segments that are long against the context.

    >>> spread(10_000, 1025).first, spread(10_000, 1025).length
    (array([   0, 2500, 5000, 7500]), 256)
    >>> len(spread(10_000).targets)
    10000
    """
    scored = total if tokens is None else min(total, max(1, tokens - 1))
    rows = max(1, min(rows, scored // (4 * context)))
    length = -(-scored // rows)
    return Spread(max(length, total // rows) * np.arange(rows), length, total)


def validation_loss(
    model: Model,
    ids: Ids,
    tokens: int | None = None,
    *,
    rows: int = 32,
    context: int = 64,
    window: int = 128,
) -> float:
    """Return the mean nats of targets spread over a text: the segments of `spread`, read as one batch.

    Each segment but the first is read after `context` tokens before it, so the figure is a little above that of one
    reading from end to end, which gives the result of a run.
    """
    _check(model, ids, window)
    targets = len(ids) - 1
    segments = spread(targets, tokens, rows=rows, context=context)
    first, length = segments.first, segments.length
    start = np.maximum(first - context, 0)
    steps = np.arange(context + length)[:, None] + start  # T rows
    scored = (steps >= first) & (steps < np.minimum(first + length, targets))
    steps = np.minimum(steps, targets - 1)
    found, state, weights = [], None, model.weights()
    for at in range(0, len(steps), window):
        here = steps[at : at + window]
        after = np.asarray(ids[here + 1], np.int32)
        output = model.forward(np.asarray(ids[here], np.int32), state, weights=weights, y=after)
        y = np.where(scored[at : at + window], after, -1).astype(np.int32)
        found.append(-model.loss(output, y, weights=weights).per_target)
        state = output.state
    return measure(np.concatenate(found)[scored]).nats
