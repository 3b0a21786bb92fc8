"""A language model of counts: what is known of an n-gram, filled up with what is known of a shorter one.

Every model here, from maximum likelihood to Kneser-Ney, has the form

    P(w | c) = a(c, w) + g(c) · Q(w)                                                    (1)

c is the context (the last n-1 tokens), a what the counts of c and w say themselves, g(c) the share left
over for the lower model Q. Q is the same model with a context shorter by one token, or the unigram model,
as the smoothing says; below the unigrams lies the uniform distribution 1/K. A context that never occurred
has a = 0 and g = ``unseen``.

The smoothings only choose a and g, see ``laplace`` and ``kneser_ney``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unspool.baselines.ngram_counts import NgramCounts
from unspool.errors import InputError
from unspool.kernels.arrays import Ids, Real, Whole

BLOCK = 1 << 19


@dataclass(frozen=True)
class Shares:
    """a and g of equation (1) for one level."""

    own: Real
    """a, for every n-gram of the level."""
    left: Real
    """g, for every context."""
    unseen: float = 1.0
    """g for a context that never occurred."""


@dataclass(frozen=True)
class NgramModel:
    """Probabilities of tokens from the counts of n-grams."""

    counts: NgramCounts
    shares: list[Shares]
    recursive: bool = True
    """Whether the lower model has a context one token shorter, or none at all."""

    def log_prob(self, ids: Ids, given: int = 1) -> Real:
        """Give log P(x(t) | the tokens before) for all tokens but the first ``given``; -inf for P = 0."""
        self._check(ids)
        found = [self._log_prob(ids, at, min(at + BLOCK, len(ids))) for at in range(given, len(ids), BLOCK)]
        return np.concatenate(found) if found else np.zeros(0)

    def _log_prob(self, ids: Ids, start: int, stop: int) -> Real:
        behind = max(0, start - len(self.shares) + 1)
        probabilities = self._prob(np.asarray(ids[behind:stop], np.int64))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(probabilities[start - behind :]))

    def _prob(self, tokens: Whole) -> Real:
        """Give the probability of each token after those before it in ``tokens``: (1), level by level."""
        total = len(tokens)
        entry = np.zeros(total + 1, np.int64)
        p = unigram = np.full(total, 1 / self.counts.K)
        for n, (level, shares) in enumerate(zip(self.counts.levels, self.shares, strict=True), 1):
            starts = total - n + 1
            if starts <= 0:
                break
            context = entry[:starts]
            entry = level.find(context, tokens[n - 1 :])
            lower = p if self.recursive or n <= 2 else unigram
            p = np.append(p[: n - 1], self._mix(shares, context, entry, lower[n - 1 :]))
            unigram = p if n == 1 else unigram
        return p

    @staticmethod
    def _mix(shares: Shares, context: Whole, entry: Whole, lower: Real) -> Real:
        own = np.where(entry >= 0, shares.own[entry], 0.0)
        left = np.where(context >= 0, shares.left[context], shares.unseen)
        return own + left * lower  # (1)

    def next_probs(self, context: Sequence[int]) -> Real:
        """Give the probability of every token after a context."""
        p = unigram = np.full(self.counts.K, 1 / self.counts.K)
        for n, (level, shares) in enumerate(zip(self.counts.levels, self.shares, strict=True), 1):
            if len(context) < n - 1:
                break
            lower = p if self.recursive or n <= 2 else unigram
            entry = self.counts.entry(context[len(context) - n + 1 :])
            p = (shares.left[entry] if entry >= 0 else shares.unseen) * lower  # (1)
            if entry >= 0:
                span = level.span(entry)
                p[level.keys[span] % self.counts.K] += shares.own[span]
            unigram = p if n == 1 else unigram
        return p

    def sequence_log_prob(self, ids: Ids) -> float:
        """Give log P(x(1), …, x(T)), left to right, the first token by its unigram probability."""
        return float(self.log_prob(ids, given=0).sum())

    def _check(self, ids: Ids) -> None:
        if len(ids) and not 0 <= int(np.min(ids)) <= int(np.max(ids)) < self.counts.K:
            raise InputError(f"ids: expected 0 … {self.counts.K - 1}, the ids of the model's vocabulary")


def generate(
    model: NgramModel, length: int, rng: np.random.Generator, prefix: Sequence[int] = ()
) -> list[int]:
    """Draw tokens one after the other, each given the ones before it; the prefix is not repeated.

    Where the model gives every token the probability 0, as maximum likelihood does after a context that it
    never saw, the context is forgotten.
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
