"""Windows of a series as the network reads them: each in units of its own.

A window is the last L values of w before an origin t. Its level and its spread,

    m = mean of the window (0 where there are differences),   s = its deviation from m + 0.1 of the series',  (1)

are taken out before the network and put back behind it:

    x = (w - m) / s,     y = (z(t+k) - base(t+k) - m) / (s g(k)),   k = 1 … H                  (2)

g(k) is the size of such a target over the training part, so that all steps weigh the same. A network in these
units does not mind that a series climbs to where it never was. A step of the network is one value, or a whole
season of values where a season has 24 steps or more; beside them stand cosines and sines of the place of the
origin in each season.
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
    """What a window is made of."""

    change: Transform
    length: int
    """L, a multiple of `fold`."""
    fold: int
    """How many values a step of the network reads."""
    seasons: tuple[int, ...]
    """Those whose phase is told."""
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
        """How many values an origin needs before it."""
        return self.length + self.change.lost

    @property
    def inputs(self) -> int:
        """How many values a step of the network has."""
        return self.fold + sum(2 * _harmonics(season) for season in self.seasons)


@dataclass(frozen=True)
class WindowScale:
    """What the training part taught: the mean and spread of w, the size of a target at each step ahead."""

    mean: float
    spread: float
    sizes: Real  # H


def plan_windows(change: Transform, second: int, horizon: int, count: int) -> WindowSpec:
    """Choose the window: the second season and one more, or three seasons, or what a short series allows."""
    season = change.season
    most = max(2, (count - change.lost - horizon) // 2)
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


def learn_units(layout: WindowSpec, z: Real) -> WindowScale:
    """Learn the units from a training part."""
    w = layout.change.differences(z)
    units = WindowScale(float(w.mean()), float(w.std()) or 1.0, np.ones(layout.horizon))
    _, level, spread = read_windows(layout, units, z, origins_of(layout, len(z)), 0)
    y = read_targets(layout, units, z, origins_of(layout, len(z)), level, spread)
    sizes = np.sqrt(np.nanmean(y**2, axis=0))
    return WindowScale(units.mean, units.spread, np.where(sizes > 0, sizes, 1.0))


def origins_of(layout: WindowSpec, count: int) -> Whole:
    """Give all origins whose window and targets lie in the first values of a series."""
    return np.arange(layout.reach, count - layout.horizon + 1)


def read_windows(
    layout: WindowSpec, units: WindowScale, z: Real, origins: Whole, phase: int
) -> tuple[Floats, Real, Real]:
    """Give x (tau n inputs), and each window's level and spread: (1), (2). `phase` is the number of z[0]."""
    w = layout.change.differences(z)
    at = origins[:, None] - layout.change.lost - layout.length + np.arange(layout.length)
    window = w[at]  # n L
    differenced = layout.change.lost > 0
    level = np.full(len(origins), units.mean) if differenced else window.mean(axis=1)
    spread = np.sqrt(np.mean((window - level[:, None]) ** 2, axis=1)) + 0.1 * units.spread  # (1)
    x = ((window - level[:, None]) / spread[:, None]).reshape(len(origins), -1, layout.fold)
    steps = x.shape[1]
    told = np.repeat(_phases(layout.seasons, origins + phase)[:, None], steps, axis=1)
    joined = np.concatenate([x, told], axis=2).swapaxes(0, 1)
    return np.ascontiguousarray(joined, np.float32), level, spread


def read_targets(
    layout: WindowSpec, units: WindowScale, z: Real, origins: Whole, level: Real, spread: Real
) -> Real:
    """Give y (n H): (2)."""
    truth = z[origins[:, None] + np.arange(layout.horizon)] - layout.change.base(z, origins, layout.horizon)
    return np.asarray((truth - _kept(layout, level)) / (spread[:, None] * units.sizes))


def to_series(
    layout: WindowSpec, units: WindowScale, z: Real, origins: Whole, level: Real, spread: Real, y: Real
) -> Real:
    """Give z (n H) from y: (2) backwards."""
    above = y * spread[:, None] * units.sizes + _kept(layout, level)
    return above + layout.change.base(z, origins, y.shape[1])


def _kept(layout: WindowSpec, level: Real) -> Real:
    """Give the level that targets are told above: the base has it already where there are differences."""
    return np.zeros((len(level), 1)) if layout.change.lost else level[:, None]


def _harmonics(season: int) -> int:
    return min(HARMONICS, season // 2)


def _phases(seasons: tuple[int, ...], t: Whole) -> Real:
    columns = [np.zeros((len(t), 0))]
    for season in seasons:
        angles = 2 * np.pi * np.outer(t % season, np.arange(1, _harmonics(season) + 1)) / season
        columns += [np.cos(angles), np.sin(angles)]
    return np.concatenate(columns, axis=1)
