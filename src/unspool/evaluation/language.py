"""Score a text by a network: log P of every target, the state carried from the first token to the last.

    x(1) ─▶ h(1) ─▶ x(2) ─▶ h(2) ─▶ …        log P(x(t+1) | x(1) … x(t)) = log softmax(c + V h(t))[x(t+1)]

Where tokens are fed back (figure 10.4), the output before is the token x(t) itself, as in training: it is known by then.
The text is read in windows (`unspool.evaluation.read`), and `unspool.evaluation.metrics` adds up the result, as for
n-gram models.

>>> from unspool.model.config import ModelConfig
>>> from unspool.model.network import Model
>>> model = Model.initialise(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=8), seed=1)
>>> ids = np.arange(100, dtype=np.int32) % 5
>>> at_once, in_sevens = log_prob(model, ids, window=100), log_prob(model, ids, window=7)
>>> len(at_once), bool((at_once == in_sevens).all())
(99, True)
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from unspool.data.text.parts import Part
from unspool.errors import InputError
from unspool.evaluation.metrics import Metrics, ScoresText, measure
from unspool.evaluation.read import read_windows, require_text_model
from unspool.kernels.arrays import Ids, Real, Whole
from unspool.model.network import Model

WINDOW = 1024
"""Steps read at once: enough for one product over all of them, little enough for the memory."""


def no_progress(done: int, total: int) -> None:
    """Ignore the number of scored targets."""


def log_prob(
    model: Model, ids: Ids, *, window: int = WINDOW, on_progress: Callable[[int, int], None] = no_progress
) -> Real:
    """Return log P(x(t) | all before) for every token but the first, which has nothing before it.

    Shapes: ids (n,), result (n - 1,). After each window, `on_progress` is called with the number of scored targets and their total.
    """
    _check_length(ids)
    found, done = [np.zeros(0)], 0
    for part in log_prob_windows(model, ids, window=window):
        found.append(part)
        done += len(part)
        on_progress(done, len(ids) - 1)
    return np.concatenate(found)


def log_prob_windows(model: Model, ids: Ids, *, window: int = WINDOW) -> Iterator[Real]:
    """Yield what `log_prob` returns, window by window."""
    _check_length(ids)
    for read in read_windows(model, ids[:-1, None], ids[1:, None], window=window, what="evaluate"):
        yield -model.loss(read.output, read.y, weights=read.weights).per_target[:, 0]


def _check_length(ids: Ids) -> None:
    if len(ids) < 2:
        raise InputError(f"evaluate: {len(ids)} tokens leave nothing to predict; give a text of two or more")


@dataclass(frozen=True)
class NetworkScorer:
    """A network as a language model like any other: see `unspool.evaluation.metrics.ScoresText`."""

    model: Model
    window: int = WINDOW
    on_progress: Callable[[int, int], None] = no_progress

    def log_prob(self, ids: Ids, given: int = 1) -> Real:
        """Return log P(x(t) | all before) for all tokens but the first ``given``, which are only context."""
        if given < 1:
            raise InputError("a network needs a token to start from: given must be at least 1")
        return log_prob(self.model, ids, window=self.window, on_progress=self.on_progress)[given - 1 :]


def in_reading_order(ids: Ids, backward: bool) -> Ids:
    """Return ids in the direction of a model: unchanged, or the last one first."""
    return ids[::-1] if backward else ids


def evaluate(model: ScoresText, part: Part, *, backward: bool = False) -> Metrics:
    """Score any language model on a part of a corpus: every target once, sums divided once."""
    return measure(model.log_prob(in_reading_order(part.ids, backward)), *part.widths_after_first(backward))


@dataclass(frozen=True)
class Uniform:
    """The uniform distribution, 1/K for every token: its perplexity is K."""

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
    require_text_model(model.config, "evaluate")
    _check_length(ids)
    targets = len(ids) - 1
    segments = spread(targets, tokens, rows=rows, context=context)
    first, length = segments.first, segments.length
    start = np.maximum(first - context, 0)
    steps = np.arange(context + length)[:, None] + start  # T rows
    scored = (steps >= first) & (steps < np.minimum(first + length, targets))
    steps = np.minimum(steps, targets - 1)
    found = []
    for read in read_windows(model, ids[steps], ids[steps + 1], window=window, what="evaluate"):
        y = np.where(scored[read.begin : read.begin + window], read.y, -1).astype(np.int32)
        found.append(-model.loss(read.output, y, weights=read.weights).per_target)
    return measure(np.concatenate(found)[scored]).nats
