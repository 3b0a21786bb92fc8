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
from typing import Any, TypeVar

import numpy as np

from unspool.data.batches.lines import padded_lines
from unspool.data.text.lines import line_spans
from unspool.data.text.parts import Part
from unspool.errors import InputError
from unspool.evaluation.metrics import Metrics, ScoresText, measure
from unspool.evaluation.read import WindowRead, read_windows, require_text_model
from unspool.kernels.arrays import Ids, Mask, Real, Whole
from unspool.model.network import Model

WINDOW = 1024
"""Steps read at once: enough for one product over all of them, little enough for the memory."""
AT_ONCE = 1 << 14
"""About how many targets of independent lines are read at once."""

Array = TypeVar("Array", Real, Whole)
Reads = Iterator[tuple[Mask, WindowRead]]
"""The windows of a block, each with a mask of its targets."""


def no_progress(done: int, total: int) -> None:
    """Ignore the number of scored targets."""


def log_prob(
    model: Model,
    ids: Ids,
    *,
    end: int | None = None,
    window: int = WINDOW,
    on_progress: Callable[[int, int], None] = no_progress,
) -> Real:
    """Return log P(x(t) | all before) for every token but the first, which has nothing before it.

    Where `end` is the token that ends a line, "all before" begins with the line. Shapes: ids (n,), result (n - 1,). After each
    window, `on_progress` is called with the number of scored targets and their total.
    """
    _check_length(ids)
    found, done = [np.zeros(0)], 0
    for part in log_prob_windows(model, ids, end=end, window=window):
        found.append(part)
        done += len(part)
        on_progress(done, len(ids) - 1)
    return np.concatenate(found)


def log_prob_windows(
    model: Model, ids: Ids, *, end: int | None = None, window: int = WINDOW
) -> Iterator[Real]:
    """Yield what `log_prob` returns, window by window."""
    _check_length(ids)
    if end is not None:
        for targets, reads in read_lines(model, ids, end, window=window):
            scored = [(there, log_prob_of(model, read)) for there, read in reads]
            yield in_order(targets, [each[there] for there, each in scored])
        return
    for read in read_windows(model, ids[:-1, None], ids[1:, None], window=window, what="evaluate"):
        yield -model.loss(read.output, read.y, weights=read.weights).per_target[:, 0]


def log_prob_of(model: Model, read: WindowRead) -> Real:
    """Return log P of the targets of a window, (tau, B)."""
    found: Real = -model.loss(read.output, read.y, weights=read.weights).per_target
    return found


def in_order(targets: Whole, found: list[Array]) -> Array:
    """Return the figures of targets, which come in the order of `targets`, in the order of the text."""
    values = np.concatenate(found)
    ordered = np.empty_like(values)
    ordered[targets] = values
    return ordered


def read_blocks(
    model: Model, ids: Ids, end: int | None, *, window: int, what: str = "evaluate"
) -> Iterator[tuple[Whole, Reads]]:
    """Yield blocks of a text as `read_lines` does; a text whose state is carried is one block."""
    if end is not None:
        yield from read_lines(model, ids, end, window=window, what=what)
        return
    reads = read_windows(model, ids[:-1, None], ids[1:, None], window=window, what=what)
    yield np.arange(len(ids) - 1), ((np.ones(read.y.shape, bool), read) for read in reads)


def read_lines(
    model: Model, ids: Ids, end: int, *, window: int = WINDOW, what: str = "evaluate"
) -> Iterator[tuple[Whole, Reads]]:
    """Yield blocks of lines: the order of their targets, and what is read, window by window, with a mask of the targets.

    A block has about `AT_ONCE` targets; its lines are read as rows, sorted by length.
    """
    starts, lengths = line_spans(ids, end)
    block = np.cumsum(lengths) // AT_ONCE
    for number in np.unique(block).tolist():
        rows = np.flatnonzero(block == number)
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        first = int(starts[rows].min())
        x, y, there = padded_lines(ids, starts[rows], lengths[rows])
        at = starts[rows] - first + np.arange(len(x))[:, None]
        cuts = range(0, len(x), window)
        order = np.concatenate([at[cut : cut + window][there[cut : cut + window]] for cut in cuts])
        yield order, _read_rows(model, x, y, there, window, what)


def _read_rows(model: Model, x: Ids, y: Ids, there: Mask, window: int, what: str) -> Reads:
    for read in read_windows(model, x, np.maximum(y, 0), window=window, what=what):
        here = slice(read.begin, read.begin + len(read.y))
        yield there[here], read._replace(y=np.ascontiguousarray(y[here]))


def _check_length(ids: Ids) -> None:
    if len(ids) < 2:
        raise InputError(f"evaluate: {len(ids)} tokens leave nothing to predict; give a text of two or more")


@dataclass(frozen=True)
class NetworkScorer:
    """A network as a language model like any other: see `unspool.evaluation.metrics.ScoresText`."""

    model: Model
    window: int = WINDOW
    on_progress: Callable[[int, int], None] = no_progress
    end: int | None = None
    """The token that ends a line, where every line is a separate sequence."""

    def log_prob(self, ids: Ids, given: int = 1) -> Real:
        """Return log P(x(t) | all before) for all tokens but the first ``given``, which are only context."""
        if given < 1:
            raise InputError("a network needs a token to start from: given must be at least 1")
        how: Any = {"end": self.end, "window": self.window, "on_progress": self.on_progress}
        return log_prob(self.model, ids, **how)[given - 1 :]


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


def validated_targets(ids: Ids, tokens: int | None = None, end: int | None = None) -> Whole:
    """Return the targets that validation in training scores, rising: those of `spread`, or of lines at equal distances.

    >>> validated_targets(np.array([0, 5, 6, 0, 7, 0, 8, 0]), 5, end=0)     # the first and the third line
    array([0, 1, 2, 5, 6])
    """
    total = len(ids) - 1
    if end is None:
        return spread(total, tokens).targets
    starts, lengths = line_spans(ids, end)
    step = 1 if tokens is None else -(-total // max(1, min(total, tokens - 1)))
    return np.concatenate([np.arange(a, a + n) for a, n in zip(starts[::step], lengths[::step], strict=True)])


def _validation_loss_of_lines(model: Model, ids: Ids, tokens: int | None, end: int) -> float:
    targets = validated_targets(ids, tokens, end)
    return measure(log_prob(model, np.append(ids[targets], end).astype(np.int32), end=end)).nats


def validation_loss(
    model: Model,
    ids: Ids,
    tokens: int | None = None,
    *,
    end: int | None = None,
    rows: int = 32,
    context: int = 64,
    window: int = 128,
) -> float:
    """Return the mean nats of targets spread over a text: the segments of `spread`, read as one batch.

    Each segment but the first is read after `context` tokens before it, so the figure is a little above that of one
    reading from end to end, which gives the result of a run. Where `end` ends independent lines, these are read whole.
    """
    require_text_model(model.config, "evaluate")
    _check_length(ids)
    if end is not None:
        return _validation_loss_of_lines(model, ids, tokens, end)
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
