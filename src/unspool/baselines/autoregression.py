"""Autoregression: predict a value as a weighted sum of the tau values before it.

    x(t) = b + Σ_{i=1…τ} w(i) x(t-i) + noise                                            (1)

b and w are fitted by least squares over all windows of the series.

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
    """Oldest first, in the order of a window: the last one is w(1)."""
    sigma: float
    """Standard deviation of the residuals."""

    @property
    def tau(self) -> int:
        """Length of the window."""
        return len(self.weights)

    def predict(self, X: Real) -> Real:
        """Return the prediction (n,) for each row of X (n, tau)."""
        return np.asarray(self.intercept + X @ self.weights)  # (1)


def fit_autoregression(x: Real, tau: int) -> Autoregression:
    """Fit (1) to a series x (n,) by least squares."""
    series = np.asarray(x, np.float64)
    if not np.isfinite(series).all():
        raise InputError("series: holds NaN or infinity; expected finite numbers")
    X, y = lagged(series, tau)
    design = np.column_stack([np.ones(len(X)), X])
    if len(y) < design.shape[1]:
        raise InputError(f"tau is {tau}: got {len(series)} values; expected at least {2 * tau + 1}")
    solution = np.linalg.lstsq(design, y, rcond=None)[0]
    rest = y - design @ solution
    return Autoregression(
        float(solution[0]), np.asarray(solution[1:], np.float64), float(np.sqrt(np.mean(rest**2)))
    )
