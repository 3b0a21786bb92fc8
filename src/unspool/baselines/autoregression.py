"""Autoregression: predict a value as a weighted sum of the tau values before it.

    x(t) = b + Σ_{i=1…τ} w(i) x(t-i) + noise                                            (1)

b and w are fitted by least squares over all windows of the series.

>>> x = 0.5 ** np.arange(6)                      # x(t) = x(t-1) / 2
>>> model = fit_autoregression(x, tau=1)
>>> model.weights.round(12).tolist(), model.predict(np.array([[8.0]])).round(12).tolist()
([0.5], [4.0])
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Real
from unspool.options import at_least


@dataclass(frozen=True)
class Autoregression:
    """The fitted equation (1)."""

    intercept: float
    weights: Real  # tau
    """Oldest first, in the order of a window: the last one is w(1)."""
    sigma: float
    """Standard deviation of the residuals."""

    @property
    def tau(self) -> int:
        """Length of the window."""
        return len(self.weights)

    def predict(self, X: Real) -> Real:
        """Return the prediction (n,) for each row of X (n, tau); the same bits for any number of rows."""
        found = np.full(len(X), self.intercept)
        for i in np.flatnonzero(self.weights):
            found += self.weights[i] * X[:, i]  # (1)
        return found


def fit_autoregression(x: Real, tau: int) -> Autoregression:
    """Fit (1) to a series x (n,) by least squares."""
    series = np.asarray(x, np.float64)
    if not np.isfinite(series).all():
        raise InputError("series: holds NaN or infinity; expected finite numbers")
    at_least("tau", tau, 1)
    if len(series) <= 2 * tau:
        raise InputError(f"tau is {tau}: got {len(series)} values; expected at least {2 * tau + 1}")
    return fit_lags(series, range(tau, 0, -1))


def fit_lags(x: Real, lags: Sequence[int]) -> Autoregression:
    """Fit (1) to a series x (n,) with the given lags; the weights of the other lags are 0."""
    solution, rest = least_squares(x, lags, max(lags))
    weights = np.zeros(max(lags))
    weights[-np.asarray(lags)] = solution[1:]
    return Autoregression(float(solution[0]), weights, float(np.sqrt(np.mean(rest**2))))


def least_squares(x: Real, lags: Sequence[int], first: int) -> tuple[Real, Real]:
    """Return b and the weights of the lags, (1 + lags,), and the residuals of x[first:]."""
    t = np.arange(first, len(x))
    if len(t) <= len(lags):
        raise InputError(
            f"lags: {len(lags)} lags need more than {len(x)} values; use fewer lags or a longer series"
        )
    design = np.column_stack([np.ones(len(t)), *(x[t - lag] for lag in lags)])
    solution = np.asarray(np.linalg.lstsq(design, x[t], rcond=None)[0], np.float64)
    return solution, x[t] - design @ solution
