"""N-gram language models with interpolated smoothing.

Every model, from maximum likelihood to Kneser-Ney, has the form

    P(w | c) = a(c, w) + g(c) · Q(w)                                                    (1)

c is the context (the last n-1 tokens), a(c, w) the discounted estimate from the counts of c and w, and g(c) the backoff
weight of the lower order Q. Q is the same model with a context shorter by one token, or the unigram model; below the
unigrams lies the uniform distribution 1/K. An unseen context has a = 0 and g = ``unseen``.

A smoothing method only chooses a and g, see ``laplace`` and ``kneser_ney``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unspool.baselines.ngram_counts import NgramCounts
from unspool.errors import InputError
from unspool.kernels.arrays import Ids, Real, Whole

BLOCK = 1 << 19


@dataclass(frozen=True)
class LevelWeights:
    """a and g of equation (1) for one level."""

    discounted: Real
    """a, for each n-gram of the level."""
    backoff: Real
    """g, for each context."""
    unseen: float = 1.0
    """g for an unseen context."""


@dataclass(frozen=True)
class NgramModel:
    """Probabilities of tokens from n-gram counts."""

    counts: NgramCounts
    weights: list[LevelWeights]
    recursive: bool = True
    """Whether the lower order has a context one token shorter, or is the unigram model."""

    @cached_property
    def largest(self) -> list[Real]:
        """The largest a(c, w) of each context of each level; 0 for a context that nothing follows."""
        found = list[Real]()
        for level, weights in zip(self.counts.levels, self.weights, strict=True):
            prefixes, most = level.prefixes, np.zeros(level.contexts)
            first = np.flatnonzero(np.append(True, prefixes[1:] != prefixes[:-1]))
            most[prefixes[first]] = np.maximum.reduceat(weights.discounted, first)
            found.append(most)
        return found

    def log_prob(self, ids: Ids, given: int = 1) -> Real:
        """Return log P(x(t) | the tokens before), float64, for all tokens except the first ``given``; -inf for P = 0."""
        self._check(ids)
        found = [self._log_prob(ids, at, min(at + BLOCK, len(ids))) for at in range(given, len(ids), BLOCK)]
        return np.concatenate(found) if found else np.zeros(0)

    def _log_prob(self, ids: Ids, start: int, stop: int) -> Real:
        behind = max(0, start - len(self.weights) + 1)
        probabilities = self._prob(np.asarray(ids[behind:stop], np.int64))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(probabilities[start - behind :]))

    def _prob(self, tokens: Whole) -> Real:
        """Return the probability of each token given the tokens before it: (1), level by level."""
        total = len(tokens)
        entry = np.zeros(total + 1, np.int64)
        p = unigram = np.full(total, 1 / self.counts.K)
        for n, (level, weights) in enumerate(zip(self.counts.levels, self.weights, strict=True), 1):
            starts = total - n + 1
            if starts <= 0:
                break
            context = entry[:starts]
            entry = level.find(context, tokens[n - 1 :])
            lower = p if self.recursive or n <= 2 else unigram
            p = np.append(p[: n - 1], self._mix(weights, context, entry, lower[n - 1 :]))
            unigram = p if n == 1 else unigram
        return p

    @staticmethod
    def _mix(weights: LevelWeights, context: Whole, entry: Whole, lower: Real) -> Real:
        discounted = np.where(entry >= 0, weights.discounted[entry], 0.0)
        backoff = np.where(context >= 0, weights.backoff[context], weights.unseen)
        return discounted + backoff * lower  # (1)

    def next_probs(self, context: Sequence[int]) -> Real:
        """Return the probability (K,) of each token after a context."""
        p = unigram = np.full(self.counts.K, 1 / self.counts.K)
        for n, (level, weights) in enumerate(zip(self.counts.levels, self.weights, strict=True), 1):
            if len(context) < n - 1:
                break
            lower = p if self.recursive or n <= 2 else unigram
            entry = self.counts.entry(context[len(context) - n + 1 :])
            p = (weights.backoff[entry] if entry >= 0 else weights.unseen) * lower  # (1)
            if entry >= 0:
                span = level.span(entry)
                p[level.keys[span] % self.counts.K] += weights.discounted[span]
            unigram = p if n == 1 else unigram
        return p

    def next_probs_rows(self, ids: Ids | Whole, start: int) -> Real:
        """Return the probability (rows, K) of each token after the first `start`, start + 1, … and all tokens of a text.

        Bit-identical to `next_probs`, for many contexts at once; only for recursive models.
        """
        assert self.recursive
        behind = max(0, start - len(self.weights) + 1)
        tokens, K = np.asarray(ids[behind:], np.int64), self.counts.K
        first, rows = start - behind, len(tokens) - (start - behind) + 1
        p: Real = np.full((rows, K), 1 / K)
        entry: Whole = np.zeros(
            len(tokens) + 1, np.int64
        )  # of the contexts of n - 1 tokens that end before each place
        for n, (level, weights) in enumerate(zip(self.counts.levels, self.weights, strict=True), 1):
            if n > 1:
                entry = self.counts.levels[n - 2].find(entry[: len(entry) - 1], tokens[n - 2 :])
            place = np.arange(max(first, n - 1), len(tokens) + 1)
            context, row = entry[place - n + 1], place - first
            p[row] *= np.where(context >= 0, weights.backoff[context], weights.unseen)[:, None]  # (1)
            known = context >= 0
            begin, end = np.searchsorted(level.keys, [context[known] * K, (context[known] + 1) * K])
            sizes = end - begin
            within = np.arange(sizes.sum()) - np.repeat(sizes.cumsum() - sizes, sizes)
            found = np.repeat(begin, sizes) + within
            p[np.repeat(row[known], sizes), level.keys[found] % K] += weights.discounted[found]
        return p

    def _check(self, ids: Ids) -> None:
        if len(ids) and not 0 <= int(np.min(ids)) <= int(np.max(ids)) < self.counts.K:
            raise InputError(f"ids: expected 0 … {self.counts.K - 1}, the ids of the model's vocabulary")


def generate(
    model: NgramModel, length: int, rng: np.random.Generator, prefix: Sequence[int] = ()
) -> list[int]:
    """Return `length` sampled tokens, each conditioned on the tokens before it; the prefix is not included.

    If every token has probability 0, as with maximum likelihood after an unseen context, the context is dropped.
    """
    context, drawn = list(prefix), list[int]()
    for _ in range(length):
        context = context[max(0, len(context) - model.counts.order + 1) :]
        heights = np.cumsum(model.next_probs(context))
        if heights[-1] <= 0:
            context, heights = [], np.cumsum(model.next_probs([]))
        token = int(np.searchsorted(heights, rng.random() * heights[-1], side="right"))
        drawn.append(token)
        context.append(token)
    return drawn
