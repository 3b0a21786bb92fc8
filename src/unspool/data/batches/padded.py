"""Minibatches of sequences that each have their own length: padded to the longest row, with their lengths.

Sequences of about the same length go together (*buckets*), so that little is padding. A sequence is an
array whose first axis is time: ids, or numbers with channels behind it. One of length 0 is fine.

>>> rows = [np.array([1, 2, 3]), np.array([4]), np.array([], int)]
>>> batch = next(padded_batches(rows, B=3, rng=np.random.default_rng(0), pad=9))
>>> batch.rows.tolist(), batch.lengths.tolist()
([0, 1, 2], [3, 1, 0])
>>> batch.x.T.tolist()
[[1, 2, 3], [4, 9, 9], [9, 9, 9]]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.errors import EmptyInput, InputError
from unspool.kernels.arrays import Whole


@dataclass(frozen=True)
class PaddedBatch:
    """Sequences side by side."""

    x: NDArray[Any]  # tau B …, tau the longest length
    lengths: Whole  # B
    rows: Whole  # B
    """Which of the sequences they are: to fetch labels by."""

    @property
    def mask(self) -> NDArray[np.bool_]:
        """What is not padding."""
        return np.arange(len(self.x))[:, None] < self.lengths  # tau B


def padded_batches(
    sequences: Sequence[NDArray[Any]],
    B: int,
    rng: np.random.Generator | None = None,
    pad: float = 0,
    buckets: int = 8,
) -> Iterator[PaddedBatch]:
    """Go once through all sequences, each in exactly one batch; the last batch may have fewer than B rows.

    Without a generator they come in the order of their lengths. With one, ``buckets`` batches' worth of
    random sequences are sorted by length at a time, and the batches come in a random order: the more
    buckets, the less padding and the less chance.
    """
    if B < 1 or buckets < 1:
        raise InputError(
            f"padded batches: B and buckets must be at least 1, got B = {B}, buckets = {buckets}"
        )
    if not len(sequences):
        raise EmptyInput("padded batches: no sequences")
    lengths = np.array([len(sequence) for sequence in sequences])
    groups = _groups(lengths, B, rng, buckets)
    return (_pad(sequences, lengths, rows, pad) for rows in groups)


def _groups(lengths: Whole, B: int, rng: np.random.Generator | None, buckets: int) -> list[Whole]:
    if rng is None:
        return _cut(np.argsort(lengths, kind="stable"), B)
    order = rng.permutation(len(lengths))
    pools = [pool[np.argsort(lengths[pool], kind="stable")] for pool in _cut(order, B * buckets)]
    groups = [rng.permutation(rows) for pool in pools for rows in _cut(pool, B)]
    return [groups[i] for i in rng.permutation(len(groups))]


def _cut(order: Whole, size: int) -> list[Whole]:
    return [order[at : at + size] for at in range(0, len(order), size)]


def _pad(sequences: Sequence[NDArray[Any]], lengths: Whole, rows: Whole, pad: float) -> PaddedBatch:
    first = np.asarray(sequences[rows[0]])
    x = np.full((int(lengths[rows].max()), len(rows), *first.shape[1:]), pad, first.dtype)
    for b, row in enumerate(rows.tolist()):
        x[: lengths[row], b] = sequences[row]
    return PaddedBatch(x, lengths[rows], rows)
