"""Guess the season of a series: the number of steps after which it repeats.

With x the series without its linear trend (least squares), and its autocorrelation

    r(k) = Σ x(t) x(t+k) / Σ x(t)²,                                                          (1)

the season is the k with the highest peak, r(k) > r(k-1) and r(k) ≥ r(k+1), from 2 to a third of the length.
It must have r(k) ≥ 0.3 and rise by at least 0.3 above the lowest value before it; otherwise the series has no season,
written as 1. A second, longer season is a multiple of the first with r(k) ≥ 0.15 in the seasonal differences.

>>> t = np.arange(120)
>>> guess_season(np.sin(2 * np.pi * t / 12) + 0.01 * t), guess_season((t % 7) ** 2.0), guess_season(t**2.0)
(12, 7, 1)
"""

import numpy as np

from unspool.kernels.arrays import Real

LEAST, RISE, SECOND = 0.3, 0.3, 0.15
LONGEST = 2000


def autocorrelation(x: Real, lags: int) -> Real:
    """Return r(0) … r(lags) of the detrended series: (1)."""
    x = detrend(x)
    power = np.abs(np.fft.rfft(x, 2 * len(x))) ** 2
    sums = np.fft.irfft(power)[: lags + 1]
    return np.asarray(sums / sums[0]) if sums[0] > 0 else np.zeros(lags + 1)  # (1)


def detrend(x: Real) -> Real:
    """Subtract the line of least squares."""
    t = np.linspace(-1, 1, len(x))
    centred = x - x.mean()
    return np.asarray(centred - t * (t @ centred) / (t @ t))


def guess_season(x: Real) -> int:
    """Return the season of a series x (n,), 1 if it has none."""
    lags = min(len(x) // 3, LONGEST)
    if lags < 3 or np.ptp(x) == 0:
        return 1
    r = autocorrelation(x, lags + 1)
    found = [k for k in _peaks(r) if r[k] >= LEAST and r[k] - r[:k].min() >= RISE]
    return max(found, key=lambda k: float(r[k]), default=1)


def guess_second_season(x: Real, season: int) -> int:
    """Return a longer season that is a multiple of the first, 1 if there is none."""
    lags = min((len(x) - season) // 3, LONGEST)
    if season < 2 or lags < 2 * season:
        return 1
    r = autocorrelation(x[season:] - x[:-season], lags + 1)
    found = [k for k in _peaks(r) if k % season == 0 and k > season and r[k] >= SECOND]
    return max(found, key=lambda k: float(r[k]), default=1)


def _peaks(r: Real) -> list[int]:
    middle = r[1:-1]
    return [k for k in (np.flatnonzero((middle > r[:-2]) & (middle >= r[2:])) + 1).tolist() if k >= 2]
