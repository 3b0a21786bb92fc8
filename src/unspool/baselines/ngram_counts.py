"""Count all n-grams of a text, for every n up to an order.

The counts are a trie in arrays. An n-gram is an entry of level n; its key combines the entry of its first n-1 tokens in
level n-1 with its last token, and the keys are sorted:

    key(w(1) … w(n)) = entry(w(1) … w(n-1)) · K + w(n)                                  (1)

So keys fit into 64 bits for any K and n; the entries that continue a context are adjacent; and all n-grams of a text are
found with one search per level.

>>> counts = count_ngrams(np.array([0, 1, 0, 1, 2]), K=3, order=2)     # a b a b c
>>> counts.count([0]), counts.count([0, 1]), counts.count([1, 2]), counts.count([2, 2])
(2, 2, 1, 0)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unspool.errors import EmptyInput, InputError
from unspool.kernels.arrays import Ids, Whole
from unspool.kernels.memory import require_memory
from unspool.options import check_order

BLOCK = 1 << 20
"""Number of tokens per block."""
CARRIED = 1 << 25
"""Most tokens for which the entry of each is in memory while counting, 4 bytes each: one search per token and level instead of n."""


@dataclass(frozen=True)
class Level:
    """All n-grams of one n."""

    keys: Whole
    """The keys (1), sorted."""
    counts: Whole
    """The count of each n-gram."""
    suffixes: Whole
    """The entry, one level below, of the n-gram without its first token."""
    K: int
    contexts: int
    """Number of entries of the level below: the possible contexts."""

    @property
    def prefixes(self) -> Whole:
        """The entry, one level below, of the n-gram without its last token: its context."""
        return self.keys // self.K

    def find(self, context: Whole, token: NDArray[np.integer]) -> Whole:
        """Return the entry of each context and token; -1 if there is none or the context is -1."""
        if not len(self.keys):
            return np.full(len(context), -1)
        key = context * self.K + token
        entry = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        return np.where((self.keys[entry] == key) & (context >= 0), entry, -1)

    def span(self, context: int) -> slice:
        """Return the range of entries that continue a context."""
        start, stop = np.searchsorted(self.keys, [context * self.K, (context + 1) * self.K])
        return slice(int(start), int(stop))

    def totals(self, counts: NDArray[np.integer]) -> Whole:
        """Return the sums of `counts` per context."""
        return np.bincount(self.prefixes, counts, self.contexts).astype(np.int64)


@dataclass(frozen=True)
class NgramCounts:
    """The counts of a text for n = 1 … order."""

    levels: list[Level]
    K: int
    tokens: int
    """Number of tokens of the text."""
    end: int | None = None
    """The token that ends a line, where no n-gram reaches from one line into the next."""

    @property
    def order(self) -> int:
        """The largest n."""
        return len(self.levels)

    def count(self, ngram: Sequence[int]) -> int:
        """Return the count of an n-gram."""
        if not 1 <= len(ngram) <= self.order:
            raise InputError(f"n-gram: got {len(ngram)} tokens; expected 1 … {self.order}")
        entry = self.entry(ngram)
        return 0 if entry < 0 else int(self.levels[len(ngram) - 1].counts[entry])

    def entry(self, ngram: Sequence[int]) -> int:
        """Return the entry of an n-gram in its level, -1 if it is unseen; the empty n-gram has entry 0."""
        return int(_contexts(self.levels[: len(ngram)], np.array([*ngram, 0], np.int64))[0])


def count_ngrams(ids: Ids, K: int, order: int, end: int | None = None) -> NgramCounts:
    """Return the counts of all n-grams of a text, ids (n,), for n = 1 … order; K is the size of the vocabulary.

    Where `end` ends independent lines, only n-grams within a line and the line end before it are counted.
    The text is read in blocks, once per level: only one block, the distinct n-grams, and for up to CARRIED tokens one entry per
    token are in memory.
    """
    return NgramCounts(list(count_levels(ids, K, order, end)), K, len(ids), end)


def within_line(context: Whole, last: NDArray[np.integer], n: int, end: int | None) -> Whole:
    """Return the entries of contexts of n tokens, -1 where a context reaches back beyond the end of a line: its last token is one."""
    return context if end is None or n < 2 else np.where(last == end, -1, context)


def count_levels(ids: Ids, K: int, order: int, end: int | None = None) -> Iterator[Level]:
    """Yield the n-gram counts of a text level by level, so that the caller can stop before the last order."""
    check_order(order)
    if len(ids) < order:
        raise EmptyInput(
            f"text too short: {len(ids)} tokens, but counting {order}-grams needs at least {order}"
        )
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= K:
        raise InputError(f"ids: got {low} … {high}; expected 0 … {K - 1}")
    levels: list[Level] = []
    carried = np.zeros(len(ids), np.int32) if len(ids) <= CARRIED else None  # entries of the level below
    for n in range(1, order + 1):
        contexts, starts = len(levels[-1].keys) if levels else 1, len(ids) - n + 1
        counter, begins = _Counter(contexts * K), range(0, starts, BLOCK)
        for begin in begins:
            tokens = _block(ids, begin, starts, n)
            context = _contexts(levels, tokens, end) if carried is None else carried[begin : begin + BLOCK]
            context, last = context[: len(tokens) - n + 1].astype(np.int64), tokens[n - 1 :]
            known = slice(None) if end is None else context >= 0
            counter.add(context[known] * K + last[known])  # (1)
        keys, counts = counter.distinct()
        if not len(keys):  # all lines are shorter
            return
        level = Level(keys, counts, _suffixes(levels, keys, K), K, contexts)
        if carried is not None and n < order:
            for begin in begins:
                last = _block(ids, begin, starts, n)[n - 1 :]
                here = slice(begin, begin + len(last))
                carried[here] = within_line(level.find(carried[here].astype(np.int64), last), last, n, end)
        levels.append(level)
        yield level


def _block(ids: Ids, begin: int, starts: int, n: int) -> Whole:
    """Return the tokens of the n-grams of one block."""
    return np.asarray(ids[begin : min(begin + BLOCK, starts) + n - 1], np.int64)


def levels_from_keys(pairs: Sequence[tuple[Whole, Whole]], K: int) -> list[Level]:
    """Return the levels of saved keys and counts, one pair per order from 1 on.

    >>> levels = count_ngrams(np.array([0, 1, 0, 1, 2]), K=3, order=2).levels
    >>> again = levels_from_keys([(level.keys, level.counts) for level in levels], K=3)
    >>> all((one.suffixes == two.suffixes).all() for one, two in zip(levels, again))
    True
    """
    levels: list[Level] = []
    for keys, counts in pairs:
        contexts = len(levels[-1].keys) if levels else 1
        levels.append(Level(keys, counts, _suffixes(levels, keys, K), K, contexts))
    return levels


def _contexts(levels: list[Level], tokens: Whole, end: int | None = None) -> Whole:
    """Return the entry of the tokens before the last one of each n-gram, n - 1 = number of levels: one search per level."""
    starts = len(tokens) - len(levels)
    entry = np.zeros(starts, np.int64)
    for i, level in enumerate(levels):
        last = tokens[i : i + starts]
        entry = within_line(level.find(entry, last), last, i + 1, end)
    return entry


def _suffixes(levels: list[Level], keys: Whole, K: int) -> Whole:
    """Return the entries of the n-grams without their first token: the suffix of the context plus the last token."""
    if not levels:
        return np.zeros(len(keys), np.int64)
    return levels[-1].find(levels[-1].suffixes[keys // K], keys % K)


class _Counter:
    """Counts keys below a bound, block by block: in a table if the bound is small, otherwise as sorted distinct keys."""

    def __init__(self, bound: int) -> None:
        self._table = np.zeros(bound, np.int64) if bound <= BLOCK else None
        self._parts: list[tuple[Whole, Whole]] = []

    def add(self, keys: Whole) -> None:
        """Count the keys of one more block."""
        if self._table is not None:
            self._table += np.bincount(keys, minlength=len(self._table))
            return
        self._parts.append(np.unique(keys, return_counts=True))
        # As in merge sort: parts of similar size are merged, so each key moves only a few times.
        while len(self._parts) > 1 and len(self._parts[-2][0]) <= 2 * len(self._parts[-1][0]):
            self._parts.append(_merged(self._parts.pop(), self._parts.pop()))

    def distinct(self) -> tuple[Whole, Whole]:
        """Return the distinct keys, sorted, and their counts."""
        if self._table is not None:
            keys = np.flatnonzero(self._table)
            return keys, self._table[keys]
        while len(self._parts) > 1:
            self._parts.append(_merged(self._parts.pop(), self._parts.pop()))
        return self._parts[0]


def _merged(one: tuple[Whole, Whole], other: tuple[Whole, Whole]) -> tuple[Whole, Whole]:
    total = len(one[0]) + len(other[0])
    require_memory(
        48 * total, f"counting {total:,} different n-grams", "choose a lower order or a shorter text"
    )
    keys = np.concatenate([one[0], other[0]])
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], np.concatenate([one[1], other[1]])[order]
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return keys[first], np.add.reduceat(counts, first)
