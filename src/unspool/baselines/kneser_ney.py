"""Interpolated Kneser-Ney: the strongest of the models that only count.

It takes a discount D off every count and gives what that frees to the lower model, whose counts ask not how
often a token occurs but after how many different tokens: "Francisco" is frequent, and yet follows only
"San".

    P(w | c) = max(n(c, w) - D, 0) / n(c)  +  D · N(c, ·) / n(c) · P(w | c')            (1)

c' is c without its oldest token, n(c) = Σ_w n(c, w), and N(c, ·) how many different w follow c. Below the
highest order, the counts n are replaced by the number of different tokens before:

    n(c, w) ─▶ N(·, c, w) = |{v : n(v, c, w) > 0}|                                      (2)

and the lowest order is filled up with the uniform distribution 1/K, so that what was never met has a
probability. D is given, or estimated for each order from the numbers n₁, n₂ of n-grams with the (replaced)
count 1 and 2:

    D = n₁ / (n₁ + 2 n₂)                                                                (3)

By hand, for the text a b a b c, order 2 and D = 0.5: after b came a once and c once, so n(b) = 2. Different
tokens before: of a one (b), of b one (a), of c one (b), together 3; each is P(w) = (1 - 0.5)/3 + 0.5 · 3/3
· 1/3 = 1/3.

    P(a | b) = (1 - 0.5)/2 + 0.5 · 2/2 · 1/3 = 5/12,      P(b | b) = 0.5 · 1/3 = 1/6

>>> from unspool.baselines.ngram_counts import count_ngrams
>>> counts = count_ngrams(np.array([0, 1, 0, 1, 2]), K=3, order=2)
>>> bool(np.allclose(kneser_ney(counts, discount=0.5).next_probs([1]), [5 / 12, 1 / 6, 5 / 12]))
True
"""

from collections.abc import Sequence

import numpy as np

from unspool.baselines.ngram_counts import Level, NgramCounts
from unspool.baselines.ngram_model import NgramModel, Shares
from unspool.errors import InputError
from unspool.kernels.arrays import Whole

FALLBACK = 0.75
"""D where (3) cannot be estimated: no n-gram occurs once, or none twice."""


def kneser_ney(
    counts: NgramCounts, discount: float | Sequence[float] | None = None, uniform: bool = True
) -> NgramModel:
    """Smooth by (1) and (2) with one discount for all orders, one for each, or estimated ones.

    Without ``uniform`` the lowest order is the plain share N(·, w) / Σ N(·, w), as nltk has it.
    """
    replaced = [*map(_different_before, counts.levels[1:], counts.levels), counts.levels[-1].counts]
    discounts = _discounts(discount, replaced)
    if not uniform:
        discounts[0] = 0.0
    return NgramModel(
        counts, [_discounted(*level) for level in zip(counts.levels, replaced, discounts, strict=True)]
    )


def estimate_discount(counts: Whole) -> float:
    """Estimate D by (3).

    >>> estimate_discount(np.array([1, 1, 2, 5]))
    0.5
    """
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    return once / (once + 2 * twice) if once and twice else FALLBACK


def _different_before(above: Level, level: Level) -> Whole:
    """Count for each n-gram how many different tokens came before it: (2)."""
    return np.bincount(above.suffixes, minlength=len(level.keys))


def _discounts(discount: float | Sequence[float] | None, replaced: list[Whole]) -> list[float]:
    if discount is None:
        return [estimate_discount(counts) for counts in replaced]
    values = [float(discount)] * len(replaced) if isinstance(discount, int | float) else list(discount)
    if len(values) != len(replaced) or not all(0 <= value <= 1 for value in values):
        raise InputError(f"discount: expected one or {len(replaced)} numbers from 0 to 1, got {discount}")
    return values


def _discounted(level: Level, counts: Whole, discount: float) -> Shares:
    """Give the two terms of (1)."""
    total = level.totals(counts)
    below = np.maximum(total, 1)
    different = level.totals((counts > 0).astype(np.int64))
    own = np.maximum(counts - discount, 0) / below[level.prefixes]
    return Shares(own, np.where(total > 0, discount * different / below, 1.0))
