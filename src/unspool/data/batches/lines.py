"""Minibatches of whole lines: each row is one line, read from its beginning to its end.

Rows of about the same length are read together and padded: y is -1 where a line has ended. The state of every row is reset. Each
line is in one batch per epoch; the last batch of some lengths has fewer rows.

>>> ids = np.array([0, 5, 6, 0, 7, 0], np.int32)     # two lines, 0 ends a line
>>> batch = next(LineBatches(ids, 0, 2, np.random.default_rng(0)))
>>> batch.x.T.tolist(), batch.y.T.tolist(), batch.lengths.tolist()
([[0, 7, 0], [0, 5, 6]], [[7, 0, -1], [5, 6, 0]], [2, 3])
"""

import numpy as np

from unspool.data.batches.examples import group_by_length
from unspool.data.batches.text_windows import Batch, Batches
from unspool.data.text.lines import line_spans
from unspool.kernels.arrays import Ids, Mask, Whole
from unspool.options import at_least


def padded_lines(ids: Ids, starts: Whole, lengths: Whole) -> tuple[Ids, Ids, Mask]:
    """Return inputs and targets (tau, B) of some lines, and where there is a target; y is -1 where there is none."""
    steps = np.arange(int(lengths.max()))[:, None]
    there = steps < lengths
    at = np.where(there, starts + steps, 0)
    x, y = np.asarray(ids[at], np.int32), np.asarray(ids[at + 1], np.int32)
    y[~there] = -1
    return x, y, there


class LineBatches(Batches):
    """Lines in a random order, another one every epoch."""

    kind = "lines"

    def __init__(
        self, ids: Ids, end: int, B: int, rng: np.random.Generator, epochs: int | None = None
    ) -> None:
        self._starts, self._lengths = line_spans(ids, end)
        super().__init__(ids, B, int(self._lengths.max()), rng, epochs)

    @property
    def per_epoch(self) -> int:
        """The number of batches of this epoch."""
        return len(self._groups)

    def _check(self, ids: Ids, B: int, tau: int) -> None:
        at_least("B", B, 1)

    def _draw(self) -> None:
        self._groups = group_by_length(self._lengths, self._B, self._rng)

    def _make(self, position: int) -> Batch:
        rows = self._groups[position]
        lengths = self._lengths[rows]
        x, y, _ = padded_lines(self._ids, self._starts[rows], lengths)
        return Batch(x, y, np.full(len(rows), True), lengths.astype(np.int32))
