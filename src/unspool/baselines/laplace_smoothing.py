"""N-gram models by maximum likelihood and Laplace smoothing, with one weight per order.

n is the number of tokens of the training text, m the number of distinct tokens, n(x), n(x, x') … are counts:

    P(x)            = (n(x) + ε₁/m) / (n + ε₁)                                          (1)
    P(x' | x)       = (n(x, x') + ε₂ P(x')) / (n(x) + ε₂)                               (2)
    P(x'' | x', x)  = (n(x, x', x'') + ε₃ P(x'')) / (n(x, x') + ε₃)                      (3)

as in "Dive into Deep Learning". The trigram (3) backs off to the unigram P(x''); ``recursive`` backs off to
P(x'' | x') instead. Probabilities sum to 1 because m is the size K of the vocabulary, including <unk>, and n(x) in a
denominator does not count x at the end of the text, where no token follows.

By hand, for the text a b a b c (n = 5, m = 3), with ε = (1, 1, 1):

    P(b)        = (2 + 1/3) / (5 + 1)          = 7/18
    P(b | a)    = (2 + 1 · 7/18) / (2 + 1)     = 43/54
    P(a | b, a) = (1 + 1 · P(a)) / (2 + 1)     = (1 + 7/18) / 3 = 25/54

>>> from unspool.baselines.ngram_counts import count_ngrams
>>> counts = count_ngrams(np.array([0, 1, 0, 1, 2]), K=3, order=3)
>>> model = laplace(counts, eps=(1, 1, 1))
>>> P_b, P_ba, P_aba = model.next_probs([])[1], model.next_probs([0])[1], model.next_probs([0, 1])[0]
>>> bool(np.allclose([P_b, P_ba, P_aba], [7 / 18, 43 / 54, 25 / 54]))
True

With ``recursive``, P(a | b) = (1 + 7/18) / (2 + 1) = 25/54 replaces P(a), so P(a | b, a) = (1 + 25/54) / 3 = 79/162:

>>> bool(np.isclose(laplace(counts, (1, 1, 1), recursive=True).next_probs([0, 1])[0], 79 / 162))
True

With ε = 0 there is no smoothing: P(a | b, a) = 1/2, and unseen n-grams have probability 0:

>>> model = maximum_likelihood(counts)
>>> model.next_probs([0, 1]).tolist(), model.next_probs([2]).tolist()
([0.5, 0.0, 0.5], [0.0, 0.0, 0.0])
"""

import math
from collections.abc import Sequence

import numpy as np

from unspool.baselines.ngram_counts import Level, NgramCounts
from unspool.baselines.ngram_model import LevelWeights, NgramModel
from unspool.errors import InputError


def laplace(counts: NgramCounts, eps: Sequence[float] = (1.0,), recursive: bool = False) -> NgramModel:
    """Return the model with weights ε₁, ε₂, …, one per order; the last one holds for all higher orders."""
    if not len(eps) or not all(0 <= weight < math.inf for weight in eps):
        raise InputError(f"eps is {tuple(eps)}; expected one or more finite numbers of 0 or more")
    weights = [eps[min(n, len(eps) - 1)] for n in range(counts.order)]
    smoothed = [_smoothed(level, weight) for level, weight in zip(counts.levels, weights, strict=True)]
    return NgramModel(counts, smoothed, recursive)


def maximum_likelihood(counts: NgramCounts) -> NgramModel:
    """Return the model of relative frequencies; after an unseen context every token has probability 0."""
    return laplace(counts, (0.0,))


def _smoothed(level: Level, weight: float) -> LevelWeights:
    """Return (n(c, w) + ε Q(w)) / (n(c) + ε) in the form a + g Q."""
    followed = level.totals(level.counts)
    below = np.where(followed + weight > 0, followed + weight, 1.0)
    return LevelWeights(
        level.counts / below[level.prefixes], weight / below, unseen=1.0 if weight > 0 else 0.0
    )
