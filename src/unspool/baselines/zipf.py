"""Fit Zipf's law: the frequency n(i) of the i-th most frequent token or n-gram as a function of its rank i.

    log n(i) = -α log i + c                                                             (1)

α and c are fitted by least squares over a range of ranks, which is part of the result. The 95 % intervals are those of
ordinary least squares. They are too narrow, because sorted frequencies are not independent.

>>> fit = fit_zipf(np.array([1200, 600, 400, 300, 240, 200]))          # exactly 1200 / i
>>> round(fit.alpha, 6), round(math.exp(fit.c), 3), fit.ranks
(1.0, 1200.0, (1, 6))
"""

import math
from dataclasses import dataclass

import numpy as np

from unspool.baselines.ngram_counts import count_ngrams
from unspool.baselines.student_t import t_quantile
from unspool.errors import InputError
from unspool.kernels.arrays import Ids, Whole

LEAST = 5
"""Smallest frequency in the default range: below it many ranks share a frequency, and (1) becomes a staircase."""


@dataclass(frozen=True)
class ZipfFit:
    """Exponent and constant with their 95 % intervals."""

    alpha: float
    alpha_interval: tuple[float, float]
    c: float
    c_interval: tuple[float, float]
    ranks: tuple[int, int]
    """The first and the last rank of the fit."""
    types: int
    """Number of distinct n-grams."""


def frequencies(ids: Ids, K: int, n: int) -> Whole:
    """Return the counts of all n-grams of a text, ids (n,), largest first.

    >>> frequencies(np.array([0, 1, 0, 1, 2]), K=3, n=2).tolist()
    [2, 1, 1]
    """
    return np.sort(count_ngrams(ids, K, n).levels[-1].counts)[::-1]


def fit_zipf(counts: Whole, ranks: tuple[int, int] | None = None) -> ZipfFit:
    """Return the fit of (1) to sorted frequencies (n,), by default to all ranks with a frequency of at least 5."""
    first, last = ranks or default_ranks(counts)
    last = min(last, len(counts))
    if first < 1 or last - first < 2:
        raise InputError(
            f"ranks: got {first} … {last} of {len(counts)} n-grams; expected at least three ranks"
        )
    x = np.log(np.arange(first, last + 1))
    y = np.log(counts[first - 1 : last])
    x_mean, y_mean, m = x.mean(), y.mean(), len(x)
    squares = float(((x - x_mean) ** 2).sum())
    slope = float((x - x_mean) @ (y - y_mean)) / squares
    c = float(y_mean - slope * x_mean)
    variance = float(((y - c - slope * x) ** 2).sum()) / (m - 2)
    t = t_quantile(0.975, m - 2)
    slope_error = t * math.sqrt(variance / squares)
    c_error = t * math.sqrt(variance * (1 / m + float(x_mean) ** 2 / squares))
    return ZipfFit(
        alpha=-slope,
        alpha_interval=(-slope - slope_error, -slope + slope_error),
        c=c,
        c_interval=(c - c_error, c + c_error),
        ranks=(first, last),
        types=len(counts),
    )


def default_ranks(counts: Whole) -> tuple[int, int]:
    """Return the first and last rank with a frequency of at least 5; of all ranks if these are fewer than three."""
    frequent = int((counts >= LEAST).sum())
    return 1, frequent if frequent >= 3 else len(counts)
