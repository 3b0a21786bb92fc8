"""How often each n-gram occurs, for every n up to an order, over tokens of any kind.

The counts are a tree in arrays. An n-gram is an entry of level n; its key joins the number of its first n-1
tokens' entry in level n-1 with its last token, and the keys are sorted:

    key(w(1) … w(n)) = entry(w(1) … w(n-1)) · K + w(n)                                  (1)

So keys never outgrow 64 bits, whatever K and n; the entries that continue a context lie side by side; and
all the n-grams of a text are found with one search a level.

>>> counts = count_ngrams(np.array([0, 1, 0, 1, 2]), K=3, order=2)     # a b a b c
>>> counts.count([0]), counts.count([0, 1]), counts.count([1, 2]), counts.count([2, 2])
(2, 2, 1, 0)
>>> counts.levels[1].continuations(0)                                  # what follows a, and how often
(array([1]), array([2]))
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unspool.data.arrays import Ids, Whole
from unspool.errors import EmptyInput, InputError


@dataclass(frozen=True)
class Level:
    """All n-grams of one n."""

    keys: Whole
    """The keys (1), rising."""
    counts: Whole
    """How often each occurs."""
    suffixes: Whole
    """The entry, one level below, of the n-gram without its first token."""
    K: int
    contexts: int
    """How many entries the level below has; entry numbers of contexts go up to this."""

    @property
    def prefixes(self) -> Whole:
        """The entry, one level below, of the n-gram without its last token: its context."""
        return self.keys // self.K

    def find(self, context: Whole, token: NDArray[np.integer]) -> Whole:
        """Give the entry of context and token, or -1 where there is none or the context is -1."""
        if not len(self.keys):
            return np.full(len(context), -1)
        key = context * self.K + token
        entry = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        return np.where((self.keys[entry] == key) & (context >= 0), entry, -1)

    def span(self, context: int) -> slice:
        """Give where the entries that continue a context lie."""
        start, stop = np.searchsorted(self.keys, [context * self.K, (context + 1) * self.K])
        return slice(int(start), int(stop))

    def continuations(self, context: int) -> tuple[Whole, Whole]:
        """Give the tokens that follow a context, and how often."""
        span = self.span(context)
        return self.keys[span] % self.K, self.counts[span]

    def totals(self, counts: NDArray[np.integer]) -> Whole:
        """Add up numbers of the entries, context by context."""
        return np.bincount(self.prefixes, counts, self.contexts).astype(np.int64)


@dataclass(frozen=True)
class NgramCounts:
    """The counts of a text for n = 1 … order."""

    levels: list[Level]
    K: int
    tokens: int
    """How many tokens the text has."""

    @property
    def order(self) -> int:
        """The largest n."""
        return len(self.levels)

    def count(self, ngram: Sequence[int]) -> int:
        """Say how often an n-gram occurs."""
        if not 1 <= len(ngram) <= self.order:
            raise InputError(f"n-gram: expected 1 … {self.order} tokens, got {len(ngram)}")
        entry = self.entry(ngram)
        return 0 if entry < 0 else int(self.levels[len(ngram) - 1].counts[entry])

    def entry(self, ngram: Sequence[int]) -> int:
        """Give the entry of an n-gram in its level, -1 if it never occurred; the empty one is entry 0."""
        return int(self.entries(np.array([ngram], np.int64).reshape(1, -1).T)[-1][0]) if len(ngram) else 0

    def entries(self, columns: NDArray[np.integer]) -> list[Whole]:
        """Give, for n-grams with their tokens in columns, the entries of their first 1, 2, … tokens."""
        entry = np.zeros(columns.shape[1], np.int64)
        found = []
        for level, tokens in zip(self.levels, columns, strict=False):
            entry = level.find(entry, tokens)
            found.append(entry)
        return found


def count_ngrams(ids: Ids, K: int, order: int) -> NgramCounts:
    """Count all n-grams of a text for n = 1 … order, K being the number of different tokens."""
    return NgramCounts(list(count_levels(ids, K, order)), K, len(ids))


def count_levels(ids: Ids, K: int, order: int) -> Iterator[Level]:
    """Count the n-grams of a text level by level, so that the caller may stop before the last order."""
    if order < 1:
        raise InputError(f"order: expected 1 or more, got {order}")
    if len(ids) < order:
        raise EmptyInput(
            f"text too short: {len(ids)} tokens, but counting {order}-grams needs at least {order}"
        )
    tokens = np.asarray(ids, np.int64)
    if tokens.min() < 0 or tokens.max() >= K:
        raise InputError(f"ids: expected 0 … {K - 1}, got {tokens.min()} … {tokens.max()}")
    contexts = 1
    below = entry = np.zeros(len(tokens), np.int64)  # the entry of the n-gram that starts at each place
    for n in range(1, order + 1):
        below = entry
        starts = len(tokens) - n + 1
        key = below[:starts] * K + tokens[n - 1 :]  # (1)
        keys, entry, counts = _distinct(key, contexts * K)
        suffixes = np.zeros(len(keys), np.int64)
        suffixes[entry] = below[1 : starts + 1] if n > 1 else 0
        yield Level(keys, counts, suffixes, K, contexts)
        contexts = len(keys)


def _distinct(key: Whole, bound: int) -> tuple[Whole, Whole, Whole]:
    """Give the distinct keys, which of them each one is, and how often each occurs."""
    if bound > 8 * len(key) + (1 << 20):
        keys, entry, counts = np.unique(key, return_inverse=True, return_counts=True)
        return keys, entry, counts
    # Few possible keys: a table is faster than sorting.
    counts = np.bincount(key, minlength=bound)
    keys = np.flatnonzero(counts)
    place = np.zeros(bound, np.int64)
    place[keys] = np.arange(len(keys))
    return keys, place[key], counts[keys]
