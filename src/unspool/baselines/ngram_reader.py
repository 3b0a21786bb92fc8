"""Read a text token by token and look up its contexts in n-gram counts: in constant time per token.

A context is the entry of the last m tokens in the counts, m = 0, 1, … as long as they occur in the training text. One more
token w leads from the context of m tokens to that of m + 1 tokens by one search (`unspool.baselines.ngram_counts`):

    entry(w(1) … w(m) w) = find(entry(w(1) … w(m)), w)                                     (1)

>>> from unspool.baselines.kneser_ney_smoothing import kneser_ney
>>> from unspool.baselines.ngram_counts import count_ngrams
>>> ngrams = kneser_ney(count_ngrams(np.array([0, 1, 0, 1, 2]), K=3, order=3), discount=0.5)
>>> reader = NgramReader(ngrams)
>>> reader.read(0)
>>> reader.read(1)
>>> len(reader.contexts) - 1                                  # tokens of the longest context: a b
2
>>> bool((reader.next_probs() == ngrams.next_probs([0, 1])).all())
True
"""

from collections.abc import Iterable

import numpy as np

from unspool.baselines.ngram_model import NgramModel
from unspool.kernels.arrays import Real


class NgramReader:
    """The contexts of a text that is read token by token, for a model whose orders are all interpolated."""

    def __init__(self, ngrams: NgramModel, read: Iterable[int] = ()) -> None:
        assert ngrams.recursive and all(each.unseen == 1 for each in ngrams.weights)
        self.ngrams = ngrams
        self.contexts = [0]
        """The entries of the last 0, 1, 2, … tokens, as far as they are known: at most order - 1 tokens."""
        K, (level, *_), (weights, *_) = ngrams.counts.K, ngrams.counts.levels, ngrams.weights
        self._unigrams = np.full(K, 1 / K) * weights.backoff[0]
        self._unigrams[level.keys] += weights.discounted
        for token in read:
            self.read(token)

    def read(self, token: int) -> None:
        """Read one token."""
        found, K = [0], self.ngrams.counts.K
        for level, context in zip(self.ngrams.counts.levels[:-1], self.contexts, strict=False):
            key = context * K + token
            entry = int(level.keys.searchsorted(key))
            if entry == len(level.keys) or level.keys[entry] != key:
                break
            found.append(entry)  # (1)
            if token == self.ngrams.counts.end:  # a new line: no longer context
                break
        self.contexts = found

    def next_probs(self) -> Real:
        """Return the probability (K,) of each token, with the bits of `NgramModel.next_probs`."""
        p: Real = self._unigrams.copy()
        counts = self.ngrams.counts
        for level, weights, context in zip(
            counts.levels[1:], self.ngrams.weights[1:], self.contexts[1:], strict=False
        ):
            p *= weights.backoff[context]
            start, stop = level.keys.searchsorted((context * counts.K, (context + 1) * counts.K))
            p[level.keys[start:stop] - context * counts.K] += weights.discounted[start:stop]
        return p
