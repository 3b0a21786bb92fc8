"""What a network has to beat, on the same series with the same change: four forecasts without a state.

    last value          ŷ(t+k) = y(t)                                                         (1)
    seasonal naive      ŷ(t+k) = y(t+k-s), repeated                                           (2)
    autoregression      w(t) = b + Σ w(i) w(t-i), least squares, step after step              (3)
    window MLP          the same with one hidden layer in the place of the sum                (4)

The autoregression's lags are chosen by Akaike's criterion, n log(mean squared error) + 2 (lags + 2), over the
same targets: 1 … p up to 12 and around one and two seasons and the second season, and 1 … q together with the
q + 1 lags from the season on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unspool.baselines.autoregression import Autoregression
from unspool.baselines.multi_step import WindowModel
from unspool.baselines.window_network import Training, train_on_numbers
from unspool.data.series.transform import Transform
from unspool.errors import InputError
from unspool.kernels.arrays import Real, Whole


class Baseline(Protocol):
    """Forecasts a series of numbers."""

    def forecast(self, y: Real, origins: Whole, steps: int) -> Real:
        """Give n forecasts of so many steps, each from y[:origin]."""


@dataclass(frozen=True)
class Naive:
    """Repeats the last season, or the last value where the season is 1: (1), (2)."""

    season: int

    def forecast(self, y: Real, origins: Whole, steps: int) -> Real:
        """Give n forecasts of so many steps, each from y[:origin]."""
        return np.asarray(y[origins[:, None] - self.season + np.arange(steps) % self.season])


@dataclass(frozen=True)
class Stepwise:
    """A model of one step, applied to its own predictions: (3), (4)."""

    model: WindowModel
    change: Transform
    mean: float
    spread: float

    def forecast(self, y: Real, origins: Whole, steps: int) -> Real:
        """Give n forecasts of so many steps, each from y[:origin]."""
        z = self.change.forward(y)
        w = (self.change.differences(z) - self.mean) / self.spread
        at = origins[:, None] - self.change.dropped - self.model.tau + np.arange(self.model.tau)
        window = w[at]  # n tau
        found = np.empty((len(origins), steps))
        for k in range(steps):
            found[:, k] = self.model.predict(window)
            window = np.column_stack([window[:, 1:], found[:, k]])
        return self.change.inverse(self.change.undo(found * self.spread + self.mean, z, origins))


def fit_autoregressive(y: Real, change: Transform, second: int = 1) -> Stepwise:
    """Fit (3) to a training part."""
    w, mean, spread = _scaled(y, change)
    return Stepwise(fit_lags(w, choose_lags(w, change.season, second)), change, mean, spread)


def fit_window_mlp(y: Real, change: Transform, tau: int, rng: np.random.Generator) -> Stepwise:
    """Train (4) on a training part."""
    w, mean, spread = _scaled(y, change)
    tau = max(1, min(tau, len(w) // 3))
    training = Training(H=32, steps=1000, B=64)
    return Stepwise(train_on_numbers(w, tau, rng, training), change, mean, spread)


def choose_lags(w: Real, season: int, second: int = 1) -> list[int]:
    """Choose the lags of an autoregression by Akaike's criterion."""
    most = max(1, (len(w) - 3) // 3)
    runs = {*range(1, 13), *(season + k for k in (-1, 0, 1)), 2 * season, 2 * season + 1, second + 1}
    sets = [list(range(1, p + 1)) for p in sorted(runs) if 1 <= p <= most]
    if season > 3 and season + 3 <= most:
        sets += [[*range(1, q + 1), *range(season, season + q + 1)] for q in (1, 2, 3) if q < season]
    first = max(lags[-1] for lags in sets)
    return min(sets, key=lambda lags: _criterion(w, lags, first))


def fit_lags(w: Real, lags: Sequence[int]) -> Autoregression:
    """Fit (3) with some lags only; the weights of the others are 0."""
    design, y = _design(w, lags, lags[-1])
    solution = np.linalg.lstsq(design, y, rcond=None)[0]
    weights = np.zeros(lags[-1])
    weights[-np.asarray(lags)] = solution[1:]
    rest = y - design @ solution
    return Autoregression(float(solution[0]), weights, float(np.sqrt(np.mean(rest**2))))


def _criterion(w: Real, lags: Sequence[int], first: int) -> float:
    design, y = _design(w, lags, first)
    rest = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    return len(y) * float(np.log(np.mean(rest**2) + 1e-300)) + 2 * (len(lags) + 2)


def _design(w: Real, lags: Sequence[int], first: int) -> tuple[Real, Real]:
    t = np.arange(first, len(w))
    if len(t) <= len(lags):
        raise InputError(f"lags: {len(lags)} of them need more than {len(w)} values")
    return np.column_stack([np.ones(len(t)), *(w[t - lag] for lag in lags)]), w[t]


def _scaled(y: Real, change: Transform) -> tuple[Real, float, float]:
    w = change.differences(change.forward(y))
    mean, spread = float(w.mean()), float(w.std()) or 1.0
    return (w - mean) / spread, mean, spread
