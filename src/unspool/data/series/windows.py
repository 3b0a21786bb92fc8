"""Cut a series into windows, each standardised by its own level and scale.

A window is the last L values of w before an origin t. Its level and its standard deviation,

    m = mean of the window (0 with differences),   s = its deviation from m + 0.1 × that of the series,  (1)

are removed before the network and restored after it:

    x = (w - m) / s,     y = (z(t+k) - base(t+k) - m) / (s g(k)),   k = 1 … H                  (2)

g(k) is the root mean square of such targets over the training split, so that all steps weigh the same. The network can thus
forecast values outside the range of the training split. A step of the network reads one value, or a whole season of
values if the season has 24 steps or more, and cosines and sines of the phase of the origin in each season.
"""

from dataclasses import dataclass

import numpy as np

from unspool.data.series.transform import Transform
from unspool.errors import InputError
from unspool.kernels.arrays import Floats, Real, Whole
from unspool.options import at_least

FOLDED = 24
HARMONICS = 3


@dataclass(frozen=True)
class WindowSpec:
    """The layout of a window."""

    change: Transform
    length: int
    """L, a multiple of `fold`."""
    fold: int
    """Number of values that a step of the network reads."""
    seasons: tuple[int, ...]
    """The seasons whose phase is an input."""
    horizon: int

    def __post_init__(self) -> None:
        for name in ("length", "fold", "horizon"):
            at_least(name, getattr(self, name), 1)
        if self.length % self.fold:
            raise InputError(f"length is {self.length}; expected a multiple of fold, {self.fold}")
        for season in self.seasons:
            at_least("season", season, 2)

    @property
    def reach(self) -> int:
        """Number of values that an origin needs before it."""
        return self.length + self.change.dropped

    @property
    def inputs(self) -> int:
        """Number of inputs per step of the network."""
        return self.fold + sum(2 * _harmonics(season) for season in self.seasons)


@dataclass(frozen=True)
class WindowScale:
    """Statistics of the training split: mean and standard deviation of w, g(k) of each step ahead."""

    mean: float
    std: float
    sizes: Real  # H


def plan_windows(change: Transform, second: int, horizon: int, count: int) -> WindowSpec:
    """Return the window layout: the second season plus one, or three seasons, or less for a short series."""
    season = change.season
    most = max(2, (count - change.dropped - horizon) // 2)
    if season == 1:
        return WindowSpec(change, min(24, most), 1, (), horizon)
    fold = season if season >= FOLDED else 1
    wanted = second + season if second > 1 else 3 * season
    length = max(fold, min(wanted, most) // fold * fold)
    if length > most:
        fold, length = 1, most
    steady = change.D or count >= 50 * season
    phases = tuple(s for s in (season, second) if s > 1) if steady else ()
    return WindowSpec(change, length, fold, phases, horizon)


def fit_scale(layout: WindowSpec, z: Real) -> WindowScale:
    """Return the statistics of a training split."""
    w = layout.change.differences(z)
    units = WindowScale(float(w.mean()), float(w.std()) or 1.0, np.ones(layout.horizon))
    _, level, std = read_windows(layout, units, z, origins_of(layout, len(z)), 0)
    y = read_targets(layout, units, z, origins_of(layout, len(z)), level, std)
    sizes = np.sqrt(np.nanmean(y**2, axis=0))
    return WindowScale(units.mean, units.std, np.where(sizes > 0, sizes, 1.0))


def origins_of(layout: WindowSpec, count: int) -> Whole:
    """Return all origins whose window and targets lie in the first `count` values of a series."""
    return np.arange(layout.reach, count - layout.horizon + 1)


def read_windows(
    layout: WindowSpec, units: WindowScale, z: Real, origins: Whole, phase: int
) -> tuple[Floats, Real, Real]:
    """Return x (tau, n, inputs) and the level and scale (n,) of each window: (1), (2). `phase` is the step of z[0]."""
    w = layout.change.differences(z)
    at = origins[:, None] - layout.change.dropped - layout.length + np.arange(layout.length)
    window = w[at]  # n L
    differenced = layout.change.dropped > 0
    level = np.full(len(origins), units.mean) if differenced else window.mean(axis=1)
    std = np.sqrt(np.mean((window - level[:, None]) ** 2, axis=1)) + 0.1 * units.std  # (1)
    x = ((window - level[:, None]) / std[:, None]).reshape(len(origins), -1, layout.fold)
    steps = x.shape[1]
    phases = np.repeat(_phases(layout.seasons, origins + phase)[:, None], steps, axis=1)
    joined = np.concatenate([x, phases], axis=2).swapaxes(0, 1)
    return np.ascontiguousarray(joined, np.float32), level, std


def read_targets(
    layout: WindowSpec, units: WindowScale, z: Real, origins: Whole, level: Real, std: Real
) -> Real:
    """Return the targets y (n, H): (2)."""
    truth = z[origins[:, None] + np.arange(layout.horizon)]
    return to_targets(layout, units, z, origins, level, std, truth)


def to_targets(
    layout: WindowSpec, units: WindowScale, z: Real, origins: Whole, level: Real, std: Real, after: Real
) -> Real:
    """Return y (n, H) from values or forecasts of z after the origins, `after` (n, H): (2)."""
    above = after - layout.change.base(z, origins, layout.horizon)
    return np.asarray((above - _target_level(layout, level)) / (std[:, None] * units.sizes))


def to_series(
    layout: WindowSpec, units: WindowScale, z: Real, origins: Whole, level: Real, std: Real, y: Real
) -> Real:
    """Return z (n, H) from y: the inverse of (2)."""
    above = y * std[:, None] * units.sizes + _target_level(layout, level)
    return above + layout.change.base(z, origins, y.shape[1])


def _target_level(layout: WindowSpec, level: Real) -> Real:
    """Return the level (n, 1) that targets are relative to: 0 with differences, whose base includes it."""
    return np.zeros((len(level), 1)) if layout.change.dropped else level[:, None]


def _harmonics(season: int) -> int:
    return min(HARMONICS, season // 2)


def _phases(seasons: tuple[int, ...], t: Whole) -> Real:
    columns = [np.zeros((len(t), 0))]
    for season in seasons:
        angles = 2 * np.pi * np.outer(t % season, np.arange(1, _harmonics(season) + 1)) / season
        columns += [np.cos(angles), np.sin(angles)]
    return np.concatenate(columns, axis=1)
