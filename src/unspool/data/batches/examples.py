"""Sequences with their targets, and padded minibatches of them with their lengths.

>>> pairs = Examples([np.array([3, 4], np.int32), np.array([5], np.int32)], np.array([0, 1], np.int32))
>>> batch = pairs.batch(np.array([0, 1]), per_step=False)
>>> batch.x.T.tolist(), batch.lengths.tolist(), batch.y.tolist()
([[3, 4], [5, 0]], [2, 1], [0, 1])
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import numpy as np

from unspool.errors import EmptyInput, InputError
from unspool.kernels.arrays import Floats, Ids, Whole
from unspool.options import at_least

BUCKETS = 16
"""The number of batches whose rows are sorted by length together."""
STEPS = 2**20
"""The largest number of steps that are scored at once."""


@dataclass(frozen=True)
class SequenceBatch:
    """A padded minibatch: inputs, and targets where they are known."""

    x: Floats | Ids  # tau B, or tau B X
    lengths: Ids  # B
    y: Floats | Ids | None  # B …, or tau' B …; -1 or NaN where there is no target
    target_lengths: Ids | None  # B, the lengths of the targets where they are sequences
    rows: Whole  # B, which of the examples they are
    weights: Floats | None = None  # B, how much each row counts in the loss; None: all the same

    @property
    def B(self) -> int:
        """The number of rows."""
        return len(self.lengths)

    def part(self, rows: slice) -> SequenceBatch:
        """Return some of the rows, as long as the longest of them."""
        x, lengths = _trimmed(self.x, self.lengths, rows)
        y, target_lengths = self.y, self.target_lengths
        if y is not None and target_lengths is not None:
            y, target_lengths = _trimmed(y, target_lengths, rows)
        elif y is not None:
            y = y[rows]
        weights = None if self.weights is None else self.weights[rows]
        return SequenceBatch(x, lengths, y, target_lengths, self.rows[rows], weights)


@dataclass(frozen=True)
class Examples:
    """Inputs, each an array with time first, and their targets: one array, or one array per row."""

    x: Sequence[Floats | Ids]
    y: Any = None
    weights: Floats | None = None
    """How much each row counts in the loss; None: all the same."""

    def __post_init__(self) -> None:
        if not len(self.x):
            raise EmptyInput("there is not one sequence")
        if self.y is not None and len(self.y) != len(self.x):
            raise InputError(f"there are {len(self.x)} sequences and {len(self.y)} targets")

    def __len__(self) -> int:
        return len(self.x)

    def sha256(self) -> str:
        """Return a hash of every number."""
        digest = hashlib.sha256()
        for part in (self.x, self.y):
            for each in (part,) if isinstance(part, np.ndarray) else part:
                array = np.asarray(each)
                digest.update(f"{array.dtype.str} {array.shape} ".encode() + array.tobytes())
        if self.weights is not None:
            digest.update(self.weights.tobytes())
        return digest.hexdigest()

    def target_lengths(self) -> list[int]:
        """Return the lengths of the targets where they are sequences, else nothing."""
        if self.y is None or (isinstance(self.y, np.ndarray) and self.y.ndim < 2):
            return []
        return [len(each) for each in self.y]

    def rows_at_once(self, most: int) -> int:
        """Return the number of rows that are scored at once: fewer than `most` where sequences are long.

        A function of the sequences alone: the sums of a score depend on how rows are grouped.
        """
        longest = max(max(len(each) for each in self.x), max(self.target_lengths(), default=0), 1)
        return max(1, min(most, STEPS // longest))

    def part(self, rows: Whole) -> Examples:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Examples(_taken(self.x, rows), None if self.y is None else _taken(self.y, rows), weights)

    def batch(self, rows: Whole, *, per_step: bool) -> SequenceBatch:
        """Return a batch of rows; where `per_step`, targets must be as long as their inputs."""
        x, lengths = pad(_taken(self.x, rows))
        weights = None if self.weights is None else self.weights[rows]
        if self.y is None or (isinstance(self.y, np.ndarray) and not (per_step and self.y.ndim >= 2)):
            own = None if self.y is None else self.y[rows]
            return SequenceBatch(x, lengths, own, None, rows, weights)
        y, target_lengths = pad(_taken(self.y, rows), missing=True)
        if per_step and not np.array_equal(lengths, target_lengths):
            at = int(np.flatnonzero(lengths != target_lengths)[0])
            raise InputError(
                f"sequence {rows[at] + 1} has {lengths[at]} steps and {target_lengths[at]} targets; expected one a step"
            )
        return SequenceBatch(x, lengths, y, target_lengths, rows, weights)

    def batches(
        self, B: int, rng: np.random.Generator | None = None, *, per_step: bool
    ) -> Iterator[SequenceBatch]:
        """Yield all rows once, rows of about the same length together; in a random order with `rng`."""
        for rows in group_by_length(np.array([len(x) for x in self.x]), B, rng):
            yield self.batch(rows, per_step=per_step)


def group_by_length(lengths: Whole, B: int, rng: np.random.Generator | None = None) -> list[Whole]:
    """Return groups of at most B rows of about the same length, each row once.

    Without a generator the rows are sorted by length. With one, `BUCKETS` groups of random rows are sorted by length at a
    time, and the groups are shuffled: more buckets mean less padding and less randomness.

    >>> [rows.tolist() for rows in group_by_length(np.array([3, 1, 0, 2]), 2)]
    [[2, 1], [3, 0]]
    """
    at_least("B", B, 1)
    if rng is None:
        return _split(np.argsort(lengths, kind="stable"), B)
    order = rng.permutation(len(lengths))
    pools = [pool[np.argsort(lengths[pool], kind="stable")] for pool in _split(order, B * BUCKETS)]
    groups = [rng.permutation(rows) for pool in pools for rows in _split(pool, B)]
    return [groups[i] for i in rng.permutation(len(groups))]


def _split(order: Whole, size: int) -> list[Whole]:
    return [order[at : at + size] for at in range(0, len(order), size)]


def cycle_batches(
    examples: Examples, B: int, seed: int, *, per_step: bool, done: int = 0
) -> Iterator[SequenceBatch]:
    """Yield batches without end, each epoch in another order; the first `done` batches are left out."""
    begin, skipped = divmod(done, -(-len(examples) // B))
    for epoch in count(begin):
        rng = np.random.default_rng([seed, 2, epoch])
        yield from islice(examples.batches(B, rng, per_step=per_step), skipped, None)
        skipped = 0


def pad(sequences: Sequence[Floats | Ids], *, missing: bool = False) -> tuple[Any, Ids]:
    """Return sequences in one array, time first, and their lengths; padded with 0, or -1 or NaN where `missing`."""
    lengths = np.array([len(each) for each in sequences], np.int32)
    if isinstance(sequences, np.ndarray):
        return np.ascontiguousarray(sequences.swapaxes(0, 1)), lengths
    first = np.asarray(sequences[0])
    nothing = 0 if not missing else np.nan if first.dtype.kind == "f" else -1
    tau = max(1, int(lengths.max()))
    x = np.full((tau, len(sequences), *first.shape[1:]), nothing, first.dtype)
    for b, each in enumerate(sequences):
        x[: len(each), b] = each
    return x, lengths


def _trimmed(values: Floats | Ids, lengths: Ids, rows: slice) -> tuple[Any, Ids]:
    lengths = lengths[rows]
    return np.ascontiguousarray(values[: max(1, lengths.max(initial=0)), rows]), lengths


def _taken(values: Any, rows: Whole) -> Any:
    return values[rows] if isinstance(values, np.ndarray) else [values[i] for i in rows.tolist()]
