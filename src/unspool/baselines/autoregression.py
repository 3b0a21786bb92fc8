"""Autoregression: a number as a weighted sum of the tau numbers before it.

    x(t) = b + Σ_{i=1…τ} w(i) x(t-i) + noise                                            (1)

b and w by least squares over all windows of the series.

>>> x = 0.5 ** np.arange(6)                      # x(t) = x(t-1) / 2
>>> model = fit_autoregression(x, tau=1)
>>> model.weights.round(12).tolist(), model.predict(np.array([[8.0]])).round(12).tolist()
([0.5], [4.0])
"""

from dataclasses import dataclass

import numpy as np

from unspool.data.series.lags import lagged
from unspool.errors import InputError
from unspool.kernels.arrays import Real


@dataclass(frozen=True)
class Autoregression:
    """The fitted equation (1)."""

    intercept: float
    weights: Real  # tau
    """Oldest first, as a window has its numbers: the last one is w(1)."""
    sigma: float
    """The standard deviation of what is left over."""

    @property
    def tau(self) -> int:
        """How many numbers it sees."""
        return len(self.weights)

    def predict(self, X: Real) -> Real:
        """Predict the number that follows each row of tau numbers."""
        return np.asarray(self.intercept + X @ self.weights)  # (1)


def fit_autoregression(x: Real, tau: int) -> Autoregression:
    """Fit (1) to a series by least squares."""
    series = np.asarray(x, np.float64)
    if not np.isfinite(series).all():
        raise InputError("series: every number must be finite")
    X, y = lagged(series, tau)
    design = np.column_stack([np.ones(len(X)), X])
    if len(y) < design.shape[1]:
        raise InputError(f"tau: {tau} lags and an intercept need {2 * tau + 1} numbers, got {len(series)}")
    solution = np.linalg.lstsq(design, y, rcond=None)[0]
    rest = y - design @ solution
    return Autoregression(
        float(solution[0]), np.asarray(solution[1:], np.float64), float(np.sqrt(np.mean(rest**2)))
    )
