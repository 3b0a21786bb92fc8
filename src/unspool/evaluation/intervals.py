"""The widths of prediction intervals, and which levels they can have.

The half-width at a step ahead is a quantile of the absolute errors on values that were not trained on: with m of them,

    width(level) = the ⌈level (m + 1)⌉-th smallest,                                          (1)

which holds `level` of exchangeable errors on average. Where values after the training part are known, the errors are the last
`RECENT` ones, and the level of each step adapts, so that the share of values outside tends to 1 - level also when errors grow:

    level(t+1) = level(t) + γ (1[outside] - (1 - level))                                     (2)

for each value that becomes known at t, with the interval that was given for it (adaptive conformal inference).

The levels are bounded by (1): with m errors, the
highest level is m / (m + 1). A higher one is refused. The usual level is always answered, by the widest error where m is
too small for it, and `level_reached` gives the level that was reached.
"""

import math

import numpy as np
from numpy.typing import NDArray

from unspool.errors import InputError
from unspool.kernels.arrays import Real, Whole

RATE = 0.05
"""γ in (2)."""
PRIOR = 5.0
"""Seasons that the mean of all phases counts for."""
RECENT = 150
"""Number of errors that an adapted width is a quantile of: the last ones that are known."""
USUAL = 0.8
"""The level of a band where none is given."""


def check_level(level: float) -> None:
    """Refuse a level that is no share."""
    if not 0 < level < 1:
        raise InputError(f"level is {level}; expected a share between 0 and 1, as {USUAL}")


def fewest_errors(errors: Real) -> int:
    """Return how many errors the step with the fewest has.

    >>> fewest_errors(np.array([[1.0, 2.0], [3.0, np.nan]]))
    1
    """
    return int((~np.isnan(errors)).sum(axis=0).min())


def errors_to_come(known: NDArray[np.bool_], count: int, horizon: int) -> int:
    """Return the same before a fit whose first training sees `count` values.

    >>> errors_to_come(np.ones(30, bool), count=18, horizon=4)
    9
    """
    origins = np.arange(count, len(known) - horizon + 1)
    return int(known[origins[:, None] + np.arange(horizon)].sum(axis=0).min())


def level_reached(level: float, count: int) -> float:
    """Return the level that a band holds which is asked for `level` and made of `count` errors."""
    return min(level, count / (count + 1))


def refuse_level(level: float, count: int) -> None:
    """Raise where a level above the usual one takes more errors than there are.

    >>> refuse_level(0.9, 9)
    >>> refuse_level(0.99, 9)
    Traceback (most recent call last):
    ...
    unspool.errors.InputError: level 0.99 needs at least 99 errors on values not trained on, there are 9; the highest level here is 0.9: use it, or give a longer series
    """
    check_level(level)
    highest = max(USUAL, count / (count + 1))
    if level > highest:
        need = math.ceil(level / (1 - level) - 1e-6)
        raise InputError(
            f"level {level:.12g} needs at least {need:,} errors on values not trained on, there are {count:,}; "
            f"the highest level here is {math.floor(highest * 1e6) / 1e6:g}: use it, or give a longer series"
        )


def quantiles(errors: Real, level: float | Real) -> Real:
    """Return the half-width of the interval for every step: (1), averaged over neighbouring steps.

    >>> quantiles(np.arange(1.0, 10.0)[:, None] * [1.0, 2.0], 0.8).tolist()
    [12.0, 12.0]
    """
    ordered, counts = np.sort(errors, axis=0), (~np.isnan(errors)).sum(axis=0)
    return _widths(ordered, counts, np.broadcast_to(np.asarray(level, np.float64), counts.shape))


def _widths(ordered: Real, counts: Whole, levels: Real) -> Real:
    """Return the mean quantile of each step and its neighbours, at the level of the step."""
    k, last = np.arange(len(counts)), len(counts) - 1
    found = []
    for step in (k - 1, k, k + 1):
        at = np.clip(step, 0, last)
        ranks = np.clip(np.ceil(levels * (counts[at] + 1)).astype(int), 1, np.maximum(counts[at], 1))
        width = np.where(counts[at] > 0, ordered[ranks - 1, at], np.inf)  # (1)
        found.append(np.where(at == step, width, np.nan))
    return np.asarray(np.nanmean(found, axis=0))


def adapted_widths(errors: Real, level: float, later: Real) -> Real:
    """Return half-widths (n, H) for n origins that follow each other, from the errors of training and the errors `later` (n, H): (2).

    The width at an origin depends on errors that are known there alone: of step k, those of k or more origins before.

    >>> adapted_widths(np.arange(1.0, 10.0)[:, None], 0.8, np.full((40, 1), 8.5))[[0, 20, 39], 0].tolist()
    [8.0, 8.5, 8.5]
    """
    m, (n, H) = len(errors), later.shape
    every, found, levels, k = (
        np.concatenate([errors, later]),
        np.empty(later.shape),
        np.full(H, level),
        np.arange(H),
    )
    size = min(m, RECENT)
    for t in range(n):
        at = k[: min(t, H)]
        then = t - 1 - at, at  # the value before this origin, as it was forecast 1, 2, … steps ahead
        outside = later[then] > found[then]
        levels[at] += np.where(np.isnan(later[then]), 0.0, RATE * (outside - (1 - level)))  # (2)
        rows = np.maximum(m + t - k, m) - size + np.arange(size)[:, None]
        recent = every[rows, k]
        found[t] = _widths(np.sort(recent, axis=0), (~np.isnan(recent)).sum(axis=0), levels)
    return found


def phase_factors(errors: Real, phases: Whole, season: int) -> Real:
    """Return the mean absolute error of each phase of a season, over that of all phases: (season,).

    `errors` and `phases` are n H. A mean over c seasons counts c / (c + `PRIOR`), the mean of all phases the rest. The factors of the
    first half of the rows must describe the second half better than ones do, by the likelihood of a Laplace distribution; else they are 1.

    >>> phase_factors(np.tile([[1.0, 3.0]], (15, 1)), np.tile([[0, 1]], (15, 1)), 2).round(3).tolist()
    [0.692, 1.308]
    """
    half, ones = len(errors) // 2, np.ones(max(season, 1))
    if season < 2 or not half or np.isnan(errors[half:]).all():
        return ones
    first = _factors_of(errors[:half], phases[:half], season)
    rest, factors = np.abs(errors[half:]), first[phases[half:]]
    with np.errstate(all="ignore"):
        gain = np.log(np.nanmean(rest)) - np.log(np.nanmean(rest / factors)) - np.mean(np.log(factors))
    return _factors_of(errors, phases, season) if gain > 0 else ones


def _factors_of(errors: Real, phases: Whole, season: int) -> Real:
    size, known = np.abs(errors), ~np.isnan(errors)
    overall = float(size[known].mean()) if known.any() else 0.0
    if not overall > 0:
        return np.ones(season)
    counts = np.bincount(phases[known], minlength=season)
    means = np.bincount(phases[known], size[known], minlength=season) / np.maximum(counts, 1)
    seasons = (len(errors) + errors.shape[1] - 1) / season
    share = np.where(counts > 0, seasons / (seasons + PRIOR), 0.0)
    return np.asarray(share * means / overall + 1 - share)
