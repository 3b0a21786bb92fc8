"""The change that makes a series easier to learn, and its exact inverse.

    z(t) = log y(t), √y(t) or y(t)                                                            (1)
    w(t) = z(t) - z(t-s)   where D = 1,   then  w(t) - w(t-1)   where d = 1                   (2)

A forecast from an origin is told as what it adds to the value that differences repeat:

    base(t+k) = z(t+k-s)                           D = 1, d = 0                               (3)
                z(t)                               D = 0, d = 1
                z(t+k-s) + z(t) - z(t-s)           D = 1, d = 1, and so on, season after season
                0                                  D = 0, d = 0

so ŷ = f⁻¹(base + what the model says). The rules, when nothing is given:

- log or root: the standard deviations of blocks as long as a season (or a tenth of the series) are compared
  with their means. With a correlation of at least 0.7 between their logarithms, a slope of at least 0.75
  asks for the logarithm (for the root where there are zeros), one of at least 0.25 for the root.
- D = 1 where the season's autocorrelation is at least 0.7 and there are fewer than 50 seasons to learn from:
  given more, the network learns the season better by itself.
- d = 1 where what is left still has an autocorrelation of at least 0.95 from one step to the next, and
  there is no season or D = 1.

>>> change = Transform("log", d=0, D=1, season=2)
>>> y = np.array([1.0, 10.0, 2.0, 20.0])
>>> change.base(change.forward(y), np.array([4]), 2).round(3).tolist()
[[0.693, 2.996]]
>>> change.back(np.log([[2.0, 20.0]]) + np.log(2)).round(6).tolist()
[[4.0, 40.0]]
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from unspool.data.series.season import autocorrelation
from unspool.errors import InputError
from unspool.kernels.arrays import Real, Whole
from unspool.options import at_least, check_choice

Power = Literal["none", "root", "log"]
FARTHEST = 700.0
"""Beyond this an exponential leaves the numbers of a computer."""

SAME = 1e-12
"""Levels whose logarithms differ by less are one level: the difference is rounding."""


@dataclass(frozen=True)
class Transform:
    """(1) and (2) as a value."""

    power: Power
    d: int
    D: int
    season: int

    def __post_init__(self) -> None:
        check_choice("power", self.power, ("none", "root", "log"))
        at_least("season", self.season, 1)
        if self.d not in (0, 1) or self.D not in (0, 1):
            raise InputError(f"differences are {(self.d, self.D)}; expected 0 or 1 each")

    @property
    def lost(self) -> int:
        """How many values at the beginning have no difference."""
        return self.d + self.D * self.season

    def forward(self, y: Real) -> Real:
        """Compute z: (1)."""
        if self.power == "log":
            return np.log(y)
        return np.sqrt(y) if self.power == "root" else np.asarray(y, np.float64)

    def back(self, z: Real) -> Real:
        """Compute y from z: (1) backwards."""
        if self.power == "log":
            return np.exp(np.clip(z, -FARTHEST, FARTHEST))
        return np.maximum(z, 0) ** 2 if self.power == "root" else z

    def differences(self, z: Real) -> Real:
        """Compute w, shorter than z by what is lost: (2)."""
        w = z[self.season :] - z[: -self.season] if self.D else z
        return np.diff(w) if self.d else w  # (2)

    def base(self, z: Real, origins: Whole, steps: int) -> Real:
        """Compute what differences repeat, n steps, for origins that know z[:origin]: (3)."""
        return self.undo(np.zeros((len(origins), steps)), z, origins)

    def undo(self, w: Real, z: Real, origins: Whole) -> Real:
        """Compute z (n steps) from differences that follow each origin: (2) backwards."""
        found = np.array(w, np.float64)
        if self.d:
            last = z[origins - 1] - (z[origins - 1 - self.season] if self.D else 0.0)
            found = last[:, None] + np.cumsum(found, axis=1)
        for k in range(found.shape[1] if self.D else 0):
            found[:, k] += z[origins - self.season + k] if k < self.season else found[:, k - self.season]
        return found


def choose_change(y: Real, season: int) -> Transform:
    """Choose log or root and differences by the rules above."""
    power = choose_power(y, season)
    z = Transform(power, 0, 0, season).forward(y)
    r = autocorrelation(z, min(season, len(z) - 1)) if season > 1 else np.zeros(1)
    D = int(season > 1 and r[-1] >= 0.7 and len(y) < 50 * season)
    if season > 1 and not D:
        return Transform(power, 0, 0, season)
    w = Transform(power, 0, D, season).differences(z)
    d = int(len(w) > 3 and np.ptp(w) > 0 and _correlation(w[1:], w[:-1]) >= 0.95)
    return Transform(power, d, D, season)


def choose_power(y: Real, season: int) -> Power:
    """Choose log, root or none by how the spread follows the level."""
    if y.min() < 0:
        return "none"
    size = season if season >= 4 else max(4, len(y) // 10)
    count = len(y) // size
    if count < 4:
        return "none"
    blocks = y[len(y) - count * size :].reshape(count, size)
    mean, spread = blocks.mean(axis=1), blocks.std(axis=1)
    if mean.min() <= 0 or spread.min() <= 0:
        return "none"
    level, height = np.log(mean), np.log(spread)
    r = _correlation(level, height)
    if np.ptp(level) < SAME or r < 0.7:
        return "none"
    slope = r * float(height.std() / level.std())  # of least squares
    if slope < 0.25:
        return "none"
    return "log" if slope >= 0.75 and y.min() > 0 else "root"


def _correlation(x: Real, y: Real) -> float:
    """Return the correlation of two rows of numbers; 0 where one of them never changes.

    >>> _correlation(np.array([1.0, 2.0]), np.array([1.0, 3.0])).__round__(6), _correlation(np.zeros(2), np.ones(2))
    (1.0, 0.0)
    """
    return float(np.corrcoef(x, y)[0, 1]) if np.ptp(x) > 0 and np.ptp(y) > 0 else 0.0
