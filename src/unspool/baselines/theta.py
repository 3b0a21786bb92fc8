"""The Theta method: half of the trend of a line, and exponential smoothing of the rest, without the season.

    x(t) = y(t) / s(t), or y(t) - s(t)              where the autocorrelation shows a season  (1)
    l ← l + α (x - l)                               the first l is x(1)                       (2)
    ŷ(t+k) = l + b/2 (k - 1 + (1 - (1-α)^t) / α),   with the season back                      (3)

b is the slope of the line of least squares, s a classical decomposition of the training split; α minimises the squared errors
of one step. The season is used if |r(m)| exceeds 1.645 √((1 + 2 Σ r(i)²) / n), i < m.

>>> fit_theta(np.arange(10.0)).forecast(np.arange(10.0), np.array([10]), 2).round(2).tolist()
[[9.5, 10.0]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unspool.baselines.exponential_smoothing import seasonal_indices
from unspool.errors import InputError
from unspool.kernels.arrays import Real, Whole

GRID = 1 - np.linspace(0.0, 0.99, 100)


@dataclass(frozen=True)
class Theta:
    """The parameters of (1) to (3)."""

    alpha: float
    slope: float
    indices: tuple[float, ...]
    """The seasonal indices from the first value of the training split on; one index: no season."""
    times: bool
    """Whether the season is a factor."""

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1 or not self.indices:
            raise InputError("alpha: expected a number above 0, up to 1; indices: expected one or more")
        if self.times and min(self.indices) <= 0:
            raise InputError("indices: expected factors above 0")

    @property
    def reach(self) -> int:
        """Number of values that an origin needs before it."""
        return 1

    def forecast(self, y: Real, origins: Whole, steps: int, phase: int = 0) -> Real:
        """Return forecasts (n, steps), each from y[:origin]: (3); `phase` is the step of y[0]."""
        last, k = int(max(origins)), np.arange(steps)
        s = np.array(self.indices)[(phase + np.arange(last + steps)) % len(self.indices)]
        x = y[:last] / s[:last] if self.times else y[:last] - s[:last]
        levels = np.empty(last + 1)
        levels[0] = level = float(x[0])
        for t, value in enumerate(x.tolist()):
            level += self.alpha * (value - level)  # (2)
            levels[t + 1] = level
        gone = (1 - (1 - self.alpha) ** origins) / self.alpha
        line = levels[origins][:, None] + self.slope / 2 * (k + gone[:, None])  # (3)
        again = s[origins[:, None] + k]
        return np.asarray(line * again if self.times else line + again)


def fit_theta(y: Real, season: int = 1) -> Theta:
    """Return the method fitted to a training split y (n,)."""
    times, indices = False, np.zeros(1)
    if 1 < season <= len(y) // 2 and _is_seasonal(y, season):
        times = bool(y.min() > 0)
        indices = seasonal_indices(y, season, "multiplicative" if times else "additive")
    again = np.resize(indices, len(y))
    x = y / again if times else y - again
    t = np.arange(len(x)) - (len(x) - 1) / 2
    slope = float(t @ (x - x.mean()) / (t @ t))
    level, squares = np.full(len(GRID), x[0]), np.zeros(len(GRID))
    for value in x.tolist():
        error = value - level
        squares += error**2
        level += GRID * error
    return Theta(float(GRID[np.argmin(squares)]), slope, tuple(indices.tolist()), times)


def _is_seasonal(y: Real, m: int) -> bool:
    x = y - y.mean()
    r = np.array([x[: len(x) - k] @ x[k:] for k in range(1, m + 1)]) / max(float(x @ x), 1e-300)
    return bool(abs(r[-1]) > 1.645 * np.sqrt((1 + 2 * (r[:-1] ** 2).sum()) / len(y)))
