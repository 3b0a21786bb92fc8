"""Minibatches of one long text: windows of ``tau`` steps for ``B`` rows, time-major, targets shifted by one.

x[t, b] is a token and y[t, b] the token that follows it. ``reset[b]`` is True where the state
of row b must not come from the batch before.

*Random sampling*: the text is cut into windows from a random offset, and the windows are shuffled. Every
row is reset.

*Sequential partitioning*: the text, from a random offset, is folded into B long rows, and a batch is the
next tau columns of all rows. Row b of a batch goes on exactly where row b of the batch before stopped:

    text      0  1  2  3  4  5 │ 6  7  8  9 10 11 │12 13 14 15 16 17 │18        B = 3, tau = 2, offset 0
                                                                                (6 tokens a row)
              batch 0    batch 1    batch 2
    row 0     0  1  ──▶  2  3  ──▶  4  5       the state of row 0 is carried along this line
    row 1     6  7  ──▶  8  9  ──▶ 10 11
    row 2    12 13  ──▶ 14 15  ──▶ 16 17
              reset      carried    carried     (18 is only the target of 17)

What an epoch leaves out: at random, fewer than tau tokens at each end and fewer than B windows; in
sequence, fewer than (B + 1) tau tokens at the two ends. All else is used once. The offset changes from
epoch to epoch, so over epochs nothing is left out.

>>> ids, rng = np.arange(20, dtype=np.int32), np.random.default_rng(4)
>>> for batch in sequential_batches(ids, B=3, tau=2, rng=rng, epochs=1):
...     print(batch.x.T.tolist(), batch.y.T.tolist(), batch.reset.tolist())
[[1, 2], [7, 8], [13, 14]] [[2, 3], [8, 9], [14, 15]] [True, True, True]
[[3, 4], [9, 10], [15, 16]] [[4, 5], [10, 11], [16, 17]] [False, False, False]
[[5, 6], [11, 12], [17, 18]] [[6, 7], [12, 13], [18, 19]] [False, False, False]
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, cast

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Ids, Mask, Whole
from unspool.options import at_least


@dataclass(frozen=True)
class Batch:
    """The input of one update."""

    x: Ids  # tau B
    y: Ids  # tau B
    reset: Mask  # B
    """The rows whose state is reset."""
    lengths: Ids | None = None  # B
    """The steps of each row, where rows are padded."""


class Position(TypedDict):
    """A position in the batches, ready for JSON."""

    kind: str
    tokens: int
    B: int
    tau: int
    epoch: int
    position: int
    generator: Mapping[str, Any]
    """The random state before the first batch of the epoch."""


class Batches:
    """An endless (or ``epochs`` long) sequence of batches whose position can be saved and restored.

    The generator (``np.random.default_rng(seed)``) belongs to the batches from now on: use another for
    anything else.
    """

    kind = ""

    def __init__(
        self, ids: Ids, B: int, tau: int, rng: np.random.Generator, epochs: int | None = None
    ) -> None:
        self._check(ids, B, tau)
        self._ids, self._B, self._tau, self._rng, self._epochs = ids, B, tau, rng, epochs
        self.epoch = 0
        """The number of complete epochs."""
        self.position = 0
        """The number of batches of this epoch so far."""
        self._begin()

    @property
    def tau(self) -> int:
        """The most steps of a batch."""
        return self._tau

    @property
    def per_epoch(self) -> int:
        """The number of batches of this epoch; with random windows it depends on the offset."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        if self.position == self.per_epoch:
            self.epoch += 1
            self.position = 0
            self._begin()
        if self._epochs is not None and self.epoch >= self._epochs:
            raise StopIteration
        batch = self._make(self.position)
        self.position += 1
        return batch

    def state(self) -> Position:
        """Return the position as plain values, ready for JSON."""
        return {
            "kind": self.kind,
            "tokens": len(self._ids),
            "B": self._B,
            "tau": self._tau,
            "epoch": self.epoch,
            "position": self.position,
            "generator": self._generator,
        }

    def restore(self, state: Position) -> None:
        """Return to a saved position."""
        own, found = cast(Mapping[str, Any], self.state()), cast(Mapping[str, Any], state)
        for name in ("kind", "tokens", "B", "tau"):
            if found[name] != own[name]:
                raise InputError(
                    f"batches: the saved place has {name} {found[name]!r}, these batches {own[name]!r}"
                )
        try:
            self._rng.bit_generator.state = state["generator"]
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            raise InputError(f"batches: generator is not the state of a random generator: {error}") from error
        self._begin()
        if state["epoch"] < 0 or not 0 <= state["position"] <= self.per_epoch:
            raise InputError(
                f"batches: position {state['position']} of epoch {state['epoch']} does not exist"
            )
        self.epoch, self.position = state["epoch"], state["position"]

    def _check(self, ids: Ids, B: int, tau: int) -> None:
        at_least("B", B, 1)
        at_least("tau", tau, 1)
        if len(ids) < B * tau + 1:
            raise InputError(
                f"text too short: {len(ids):,} tokens, but a batch of {B} rows with {tau} steps needs "
                f"{B * tau + 1:,}; give more text, or a smaller batch or window"
            )

    def _begin(self) -> None:
        """Draw the random numbers of this epoch; the generator's state before is part of the position."""
        self._generator = self._rng.bit_generator.state
        self._draw()

    def _draw(self) -> None:
        raise NotImplementedError

    def _make(self, position: int) -> Batch:
        raise NotImplementedError

    def _gather(self, starts: Whole, reset: bool) -> Batch:
        steps = np.arange(self._tau + 1)[:, None] + starts
        window = np.asarray(self._ids[steps], np.int32)  # tau+1 B
        return Batch(window[:-1], window[1:], np.full(self._B, reset))


class RandomBatches(Batches):
    """Windows in a random order, another one every epoch."""

    kind = "random"

    @property
    def per_epoch(self) -> int:
        """The number of batches of this epoch."""
        return len(self._starts) // self._B

    def _draw(self) -> None:
        # No further than leaves one whole batch.
        offset = self._rng.integers(min(self._tau, len(self._ids) - self._B * self._tau))
        windows = (len(self._ids) - 1 - offset) // self._tau
        self._starts = offset + self._tau * self._rng.permutation(windows)

    def _make(self, position: int) -> Batch:
        return self._gather(self._starts[position * self._B : (position + 1) * self._B], reset=True)


class SequentialBatches(Batches):
    """Windows that follow one another row by row."""

    kind = "sequential"

    @property
    def per_epoch(self) -> int:
        """The number of batches of every epoch."""
        # Room for at least tau different offsets, if that leaves a batch.
        return max(1, (len(self._ids) - self._tau) // (self._B * self._tau))

    def _draw(self) -> None:
        row = self.per_epoch * self._tau
        offset = self._rng.integers(len(self._ids) - self._B * row)
        self._heads = offset + row * np.arange(self._B)

    def _make(self, position: int) -> Batch:
        return self._gather(self._heads + position * self._tau, reset=position == 0)


def random_batches(
    ids: Ids, B: int, tau: int, rng: np.random.Generator, epochs: int | None = None
) -> RandomBatches:
    """Return random windows (τ, B) of a text (n,): every window once per epoch, shuffled again each time.

    >>> batches = random_batches(np.arange(9, dtype=np.int32), B=2, tau=2, rng=np.random.default_rng(0))
    >>> batch = next(batches)
    >>> (batch.y - batch.x).tolist(), batch.reset.tolist()
    ([[1, 1], [1, 1]], [True, True])
    """
    return RandomBatches(ids, B, tau, rng, epochs)


def sequential_batches(
    ids: Ids, B: int, tau: int, rng: np.random.Generator, epochs: int | None = None
) -> SequentialBatches:
    """Return consecutive windows (τ, B) of a text (n,); see the picture above."""
    return SequentialBatches(ids, B, tau, rng, epochs)
