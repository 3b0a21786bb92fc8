"""Transform a series before training (logarithm or root, differences), and invert the transform exactly.

    z(t) = log y(t), √y(t) or y(t)                                                            (1)
    w(t) = z(t) - z(t-s)   where D = 1,   then  w(t) - w(t-1)   where d = 1                   (2)

A forecast from an origin is relative to the value that zero differences repeat:

    base(t+k) = z(t+k-s)                           D = 1, d = 0                               (3)
                z(t)                               D = 0, d = 1
                z(t+k-s) + z(t) - z(t-s)           D = 1, d = 1, and so on, season after season
                0                                  D = 0, d = 0

so ŷ = f⁻¹(base + output of the model). The default rules:

- log or root: regress the log standard deviations of blocks as long as a season (or a tenth of the series) on their log
  means. If the correlation is at least 0.7, a slope of at least 0.75 selects the logarithm (the root if there are zeros),
  a slope of at least 0.25 the root.
- D = 1 if the autocorrelation at the season is at least 0.7 and there are fewer than 50 seasons: with more data the
  network learns the season better itself.
- d = 1 if the result still has an autocorrelation of at least 0.95 at lag 1, and there is no season or D = 1.

>>> change = Transform("log", d=0, D=1, season=2)
>>> y = np.array([1.0, 10.0, 2.0, 20.0])
>>> change.base(change.forward(y), np.array([4]), 2).round(3).tolist()
[[0.693, 2.996]]
>>> change.inverse(np.log([[2.0, 20.0]]) + np.log(2)).round(6).tolist()
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
"""Largest argument of the exponential: exp(710) overflows."""

SAME = 1e-12
"""Log levels that differ by less are equal up to rounding."""


@dataclass(frozen=True)
class Transform:
    """The transform (1) and (2)."""

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
    def dropped(self) -> int:
        """Number of values at the beginning that have no difference."""
        return self.d + self.D * self.season

    def forward(self, y: Real) -> Real:
        """Return z: (1)."""
        if self.power == "log":
            return np.log(y)
        return np.sqrt(y) if self.power == "root" else np.asarray(y, np.float64)

    def inverse(self, z: Real) -> Real:
        """Return y from z: the inverse of (1)."""
        if self.power == "log":
            return np.exp(np.clip(z, -FARTHEST, FARTHEST))
        return np.maximum(z, 0) ** 2 if self.power == "root" else z

    def differences(self, z: Real) -> Real:
        """Return w, shorter than z by `dropped`: (2)."""
        w = z[self.season :] - z[: -self.season] if self.D else z
        return np.diff(w) if self.d else w  # (2)

    def base(self, z: Real, origins: Whole, steps: int) -> Real:
        """Return the base (3), (n, steps), for origins that know z[:origin]."""
        return self.undo(np.zeros((len(origins), steps)), z, origins)

    def undo(self, w: Real, z: Real, origins: Whole) -> Real:
        """Return z (n, steps) from the differences after each origin: the inverse of (2)."""
        found = np.array(w, np.float64)
        if self.d:
            last = z[origins - 1] - (z[origins - 1 - self.season] if self.D else 0.0)
            found = last[:, None] + np.cumsum(found, axis=1)
        for k in range(found.shape[1] if self.D else 0):
            found[:, k] += z[origins - self.season + k] if k < self.season else found[:, k - self.season]
        return found


def choose_transform(y: Real, season: int) -> Transform:
    """Return the transform that the rules above choose."""
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
    """Return log, root or none by the dependence of the standard deviation on the level."""
    if y.min() < 0:
        return "none"
    size = season if season >= 4 else max(4, len(y) // 10)
    count = len(y) // size
    if count < 4:
        return "none"
    blocks = y[len(y) - count * size :].reshape(count, size)
    mean, std = blocks.mean(axis=1), blocks.std(axis=1)
    if mean.min() <= 0 or std.min() <= 0:
        return "none"
    level, height = np.log(mean), np.log(std)
    r = _correlation(level, height)
    if np.ptp(level) < SAME or r < 0.7:
        return "none"
    slope = r * float(height.std() / level.std())  # of least squares
    if slope < 0.25:
        return "none"
    return "log" if slope >= 0.75 and y.min() > 0 else "root"


def _correlation(x: Real, y: Real) -> float:
    """Return the correlation of two vectors; 0 if one of them is constant.

    >>> _correlation(np.array([1.0, 2.0]), np.array([1.0, 3.0])).__round__(6), _correlation(np.zeros(2), np.ones(2))
    (1.0, 0.0)
    """
    return float(np.corrcoef(x, y)[0, 1]) if np.ptp(x) > 0 and np.ptp(y) > 0 else 0.0
