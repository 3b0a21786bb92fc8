"""Models for forecasts besides the networks: the answer of a forecaster may be one of them, or a mean.

    last value          ŷ(t+k) = y(t)                                                         (1)
    seasonal naive      ŷ(t+k) = y(t+k-s), repeated                                           (2)
    autoregression      w(t) = b + Σ w(i) w(t-i), least squares, step by step                 (3)
    window MLP          the same with one hidden layer instead of the sum                     (4)

and exponential smoothing and the Theta method, in modules of their own. The lags of the autoregression minimise Akaike's
criterion, n log(mean squared error) + 2 (lags + 2), over the same targets. The candidates are 1 … p for p up to 12, near one
and two seasons (of at most `LONGEST_RUN` steps) and near the second season, and 1 … q with the q + 1 lags that begin at the season.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unspool.baselines.autoregression import fit_lags
from unspool.baselines.multi_step import WindowModel, predict_after
from unspool.baselines.window_network import Training, train_on_numbers
from unspool.data.series.transform import Transform
from unspool.kernels.arrays import Real, Whole
from unspool.options import at_least

LONGEST_RUN = 200
"""Longest season for which all lags up to one and two seasons are candidates."""


class ForecastBaseline(Protocol):
    """Forecasts a series."""

    @property
    def reach(self) -> int:
        """Number of values that an origin needs before it."""

    def forecast(self, y: Real, origins: Whole, steps: int, phase: int = 0) -> Real:
        """Return forecasts (n, steps), each from y[:origin]; `phase` is the step of y[0], from the first value of the fit on."""


@dataclass(frozen=True)
class Naive:
    """Repeats the last season, or the last value if the season is 1: (1), (2)."""

    season: int

    def __post_init__(self) -> None:
        at_least("season", self.season, 1)

    @property
    def reach(self) -> int:
        """Number of values that an origin needs before it."""
        return self.season

    def forecast(self, y: Real, origins: Whole, steps: int, phase: int = 0) -> Real:
        """Return forecasts (n, steps), each from y[:origin]."""
        return np.asarray(y[origins[:, None] - self.season + np.arange(steps) % self.season])


@dataclass(frozen=True)
class Stepwise:
    """A one-step model applied to its own predictions: (3), (4)."""

    model: WindowModel
    change: Transform
    mean: float
    std: float

    @property
    def reach(self) -> int:
        """Number of values that an origin needs before it."""
        return self.model.tau + self.change.dropped

    def forecast(self, y: Real, origins: Whole, steps: int, phase: int = 0) -> Real:
        """Return forecasts (n, steps), each from y[:origin]."""
        z = self.change.forward(y)
        w = (self.change.differences(z) - self.mean) / self.std
        at = origins[:, None] - self.change.dropped - self.model.tau + np.arange(self.model.tau)
        found = predict_after(self.model, w[at], steps)
        return self.change.inverse(self.change.undo(found * self.std + self.mean, z, origins))


def fit_autoregressive(y: Real, change: Transform, second: int = 1) -> Stepwise:
    """Return (3) fitted to a training split."""
    w, mean, std = _scaled(y, change)
    return Stepwise(fit_lags(w, choose_lags(w, change.season, second)), change, mean, std)


def fit_window_mlp(y: Real, change: Transform, tau: int, rng: np.random.Generator) -> Stepwise:
    """Return (4) trained on a training split."""
    w, mean, std = _scaled(y, change)
    tau = max(1, min(tau, len(w) // 3))
    training = Training(H=32, steps=1000, B=64)
    return Stepwise(train_on_numbers(w, tau, rng, training), change, mean, std)


def choose_lags(w: Real, season: int, second: int = 1) -> list[int]:
    """Return the lags of an autoregression, chosen by Akaike's criterion."""
    most = max(1, (len(w) - 3) // 3)
    runs = {*range(1, 13), second + 1}
    if season <= LONGEST_RUN:
        runs |= {*(season + k for k in (-1, 0, 1)), 2 * season, 2 * season + 1}
    sets = [list(range(1, p + 1)) for p in sorted(runs) if 1 <= p <= most]
    if season > 3 and season + 3 <= most:
        sets += [[*range(1, q + 1), *range(season, season + q + 1)] for q in (1, 2, 3) if q < season]
    lags = sorted(set().union(*sets))
    t = np.arange(lags[-1], len(w))
    design = np.column_stack([np.ones(len(t)), *(w[t - lag] for lag in lags), w[t]])
    products, place = design.T @ design, {lag: i for i, lag in enumerate(lags, 1)}
    return min(sets, key=lambda each: _criterion(products, [0, *(place[lag] for lag in each)], len(t)))


def _criterion(products: Real, columns: Sequence[int], count: int) -> float:
    """Return Akaike's criterion of a regression of the last column on others, from the products of all columns."""
    squares, target = products[np.ix_(columns, columns)], products[columns, -1]
    ridge = 1e-12 * float(np.trace(squares)) * np.eye(len(columns))
    rest = float(products[-1, -1] - target @ np.linalg.solve(squares + ridge, target))
    least = 1e-12 * float(products[-1, -1]) + 1e-300
    return count * float(np.log(max(rest, least) / count)) + 2 * (len(columns) + 1)


def _scaled(y: Real, change: Transform) -> tuple[Real, float, float]:
    w = change.differences(change.forward(y))
    mean, std = float(w.mean()), float(w.std()) or 1.0
    return (w - mean) / std, mean, std
