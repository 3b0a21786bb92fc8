"""How good forecasts are: in units of the seasonal naive forecast, in the series' own, and how honest a band is.

    scale = mean of |y(t) - y(t-s)| over the training part                                   (1)
    MASE  = mean of |ŷ - y| / scale                                                          (2)
    RMSE  = root of the mean of (ŷ - y)²                                                     (3)
    coverage = share of the y with low ≤ y ≤ high                                            (4)

s is the season, 1 where there is none. Values that are not known (NaN) are not scored.

>>> y = np.array([1.0, 2.0, 1.0, 4.0])
>>> naive_scale(y, season=2), mase(np.array([2.0]), np.array([3.0]), naive_scale(y, season=2))
(1.0, 1.0)
"""

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Real


def naive_scale(y: Real, season: int) -> float:
    """Give the mean absolute error of the seasonal naive forecast over a training part: (1)."""
    if len(y) <= season:
        raise InputError(f"season: {season} steps need more than {season} values, got {len(y)}")
    return float(np.nanmean(np.abs(y[season:] - y[:-season])))  # (1)


def mase(y_hat: Real, y: Real, scale: float) -> float:
    """Give the mean absolute scaled error: (2)."""
    return float(np.nanmean(np.abs(y_hat - y))) / scale  # (2)


def rmse(y_hat: Real, y: Real) -> float:
    """Give the root of the mean squared error: (3)."""
    return float(np.sqrt(np.nanmean((y_hat - y) ** 2)))  # (3)


def coverage(low: Real, high: Real, y: Real) -> float:
    """Give the share of values that lie in their band: (4)."""
    known = ~np.isnan(y)
    return float(np.mean((low <= y)[known] & (y <= high)[known]))  # (4)
