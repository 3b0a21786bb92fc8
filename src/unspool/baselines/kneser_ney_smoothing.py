"""N-gram models with interpolated Kneser-Ney smoothing.

A discount D is subtracted from every count, and the freed probability goes to the lower order. Lower orders count the
distinct preceding tokens, not the occurrences: "Francisco" is frequent, but follows only "San".

    P(w | c) = max(n(c, w) - D, 0) / n(c)  +  D · N(c, ·) / n(c) · P(w | c')            (1)

c' is c without its oldest token, n(c) = Σ_w n(c, w), and N(c, ·) is the number of distinct w that follow c. Below the
highest order, the counts n are replaced by the number of distinct preceding tokens:

    n(c, w) ─▶ N(·, c, w) = |{v : n(v, c, w) > 0}|                                      (2)

except for n-grams that begin with the end of the line before, where lines are independent: nothing precedes them.

and the lowest order is interpolated with the uniform distribution 1/K, so that unseen tokens have a probability above 0. D
is given, or estimated per order from the numbers n₁, n₂ of n-grams with the (replaced) counts 1 and 2:

    D = n₁ / (n₁ + 2 n₂)                                                                (3)

By hand, for the text a b a b c, order 2 and D = 0.5: b is followed by a once and by c once, so n(b) = 2. Distinct
preceding tokens: one for a (b), one for b (a), one for c (b), in total 3; so P(w) = (1 - 0.5)/3 + 0.5 · 3/3 · 1/3 = 1/3.

    P(a | b) = (1 - 0.5)/2 + 0.5 · 2/2 · 1/3 = 5/12,      P(b | b) = 0.5 · 1/3 = 1/6

>>> from unspool.baselines.ngram_counts import count_ngrams
>>> counts = count_ngrams(np.array([0, 1, 0, 1, 2]), K=3, order=2)
>>> bool(np.allclose(kneser_ney(counts, discount=0.5).next_probs([1]), [5 / 12, 1 / 6, 5 / 12]))
True
"""

from collections.abc import Sequence

import numpy as np

from unspool.baselines.ngram_counts import Level, NgramCounts
from unspool.baselines.ngram_model import LevelWeights, NgramModel
from unspool.errors import InputError
from unspool.kernels.arrays import Whole

FALLBACK = 0.75
"""D if (3) cannot be estimated because no n-gram occurs once, or none twice."""


def kneser_ney(
    counts: NgramCounts, discount: float | Sequence[float] | None = None, uniform: bool = True
) -> NgramModel:
    """Return the model (1), (2) with one discount for all orders, one per order, or estimated discounts.

    Without ``uniform`` the lowest order is N(·, w) / Σ N(·, w), as in nltk.
    """
    replaced = [*map(_continuation_counts, counts.levels[1:], counts.levels), counts.levels[-1].counts]
    if counts.end is not None:  # nothing stands before the line end that an n-gram begins with
        kept = zip(replaced[1:], counts.levels[1:], strict=True)
        replaced[1:] = [np.where(number > 0, number, level.counts) for number, level in kept]
    discounts = _discounts(discount, replaced)
    if not uniform:
        discounts[0] = 0.0
    return NgramModel(
        counts, [_discounted(*level) for level in zip(counts.levels, replaced, discounts, strict=True)]
    )


def estimate_discount(counts: Whole) -> float:
    """Return the estimate of D by (3) from counts (n,).

    >>> estimate_discount(np.array([1, 1, 2, 5]))
    0.5
    """
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    return once / (once + 2 * twice) if once and twice else FALLBACK


def _continuation_counts(above: Level, level: Level) -> Whole:
    """Return the number of distinct preceding tokens of each n-gram: (2)."""
    return np.bincount(above.suffixes, minlength=len(level.keys))


def _discounts(discount: float | Sequence[float] | None, replaced: list[Whole]) -> list[float]:
    if discount is None:
        return [estimate_discount(counts) for counts in replaced]
    values = [float(discount)] * len(replaced) if isinstance(discount, int | float) else list(discount)
    if len(values) != len(replaced) or not all(0 <= value <= 1 for value in values):
        raise InputError(f"discount is {discount}; expected one or {len(replaced)} numbers from 0 to 1")
    return values


def _discounted(level: Level, counts: Whole, discount: float) -> LevelWeights:
    """Return the two terms of (1)."""
    total = level.totals(counts)
    below = np.maximum(total, 1)
    different = level.totals((counts > 0).astype(np.int64))
    discounted = np.maximum(counts - discount, 0) / below[level.prefixes]
    return LevelWeights(discounted, np.where(total > 0, discount * different / below, 1.0))
