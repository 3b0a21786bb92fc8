"""Exponential smoothing with errors, trend and season (ETS), chosen by Akaike's corrected criterion.

With additive errors, and with multiplicative ones (positive series only):

    μ = l + φb + s                                  μ = (l + φb) s                            (1)
    e = y - μ                                       e = (y - μ) / μ                           (2)
    l ← l + φb + αe                                 l ← (l + φb) (1 + αe)                     (3)
    b ← φb + βe                                     b ← φb + β (l + φb) e                     (4)
    s ← s + γe                                      s ← s (1 + γe)                            (5)

    ŷ(t+k) = l + (φ + … + φ^k) b + s                ŷ(t+k) = (l + (φ + … + φ^k) b) s          (6)

s is the value of one season before. Without a trend b = β = 0, without damping φ = 1, without a season γ = 0 and s = 0 or 1. The
first level, trend and season come from the first values: the seasonal indices of a classical decomposition, then a line of
least squares through the first ten values without the season. The parameters minimise -2 log likelihood,

    n log(mean e²) + 2 Σ log μ  (multiplicative)  + n (log 2π + 1),                           (7)

over a population of points that is drawn again around the best ones, for all forms at once. The form minimises (7) + 2k + 2k(k+1)/(n-k-1),
where k counts parameters, first states and the variance.

>>> y = np.array([10.0, 20.0, 12.0, 22.0, 14.0, 24.0] * 3) + 6 * np.repeat(np.arange(3), 6)
>>> model = fit_smoothing(y, season=2)
>>> model.trend, model.forecast(y, np.array([18]), 3).round(1).tolist()
(True, [[28.0, 38.0, 30.0]])
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Real, Whole
from unspool.options import at_least, check_choice

POINTS, BEST, ROUNDS = 60, 6, 6
"""Points per form and round; the best ones that the next round is drawn around; rounds."""
FIRST = 10
"""Values that determine the first level and trend."""
MOST_VALUES, MOST_SEASONS = 600, 5
"""The parameters are fitted to the last values: this many, and at least this many seasons."""
LONGEST_SEASON = 400
FAR = 1e150

Errors = Literal["additive", "multiplicative"]


@dataclass(frozen=True)
class Smoothing:
    """A form of (1) to (6) with its parameters."""

    errors: Errors
    trend: bool
    season: int
    """Steps per season; 1: none."""
    alpha: float
    beta: float
    gamma: float
    phi: float

    def __post_init__(self) -> None:
        check_choice("errors", self.errors, ("additive", "multiplicative"))
        at_least("season", self.season, 1)
        if not all(0 <= each <= 1 for each in (self.alpha, self.beta, self.gamma, self.phi)):
            raise InputError("alpha, beta, gamma and phi: expected numbers from 0 to 1")

    @property
    def reach(self) -> int:
        """Number of values that an origin needs before it."""
        return max(3 * self.season, FIRST)

    def forecast(self, y: Real, origins: Whole, steps: int, phase: int = 0) -> Real:
        """Return forecasts (n, steps), each from y[:origin]: (6)."""
        m, times = self.season, self.errors == "multiplicative"
        level, trend, s = first_states(y[: min(origins)], m, self.trend, self.errors)
        season = s.tolist()
        a, be, g, phi = self.alpha, self.beta, self.gamma, self.phi
        damped, turn = np.cumsum(phi ** np.arange(1, steps + 1)), np.arange(steps)
        last, found = int(max(origins)), np.empty((len(origins), steps))
        rows: dict[int, list[int]] = {}
        for row, origin in enumerate(origins.tolist()):
            rows.setdefault(origin, []).append(row)
        values = y[:last].tolist()
        for t in range(last + 1):
            for row in rows.get(t, ()):
                line, repeated = level + damped * trend, np.array(season)[(t + turn) % m]
                found[row] = line * repeated if times else line + repeated  # (6)
            if t == last:
                break
            base, before = level + phi * trend, season[t % m]
            if times:
                mean = base * before
                e = (values[t] - mean) / mean if abs(mean) > 1 / FAR else 0.0
                level, trend = base * (1 + a * e), phi * trend + be * base * e
                season[t % m] = before * (1 + g * e)
            else:
                e = values[t] - base - before
                level, trend, season[t % m] = base + a * e, phi * trend + be * e, before + g * e
        return np.clip(np.nan_to_num(found, nan=float(y[last - 1])), -FAR, FAR)


def first_states(y: Real, season: int, trend: bool, errors: Errors) -> tuple[float, float, Real]:
    """Return the states before the first value."""
    times = errors == "multiplicative"
    if season > 1:
        s = seasonal_indices(y[: 3 * season], season, errors)
        y = y[: max(FIRST, 2 * season)]
        again = np.resize(s, len(y))
        y = y / again if times else y - again
    else:
        s, y = np.full(1, 1.0 if times else 0.0), y[:FIRST]
    if not trend:
        return float(y.mean()), 0.0, s
    t = np.arange(len(y)) - (len(y) - 1) / 2
    slope = float(t @ (y - y.mean()) / (t @ t))
    return float(y.mean() - slope * (len(y) + 1) / 2), slope, s  # the line one step before the first value


def seasonal_indices(y: Real, season: int, errors: Errors = "additive") -> Real:
    """Return the seasonal indices (m,) of a classical decomposition, from the phase of y[0] on; their mean is 0, or 1.

    The trend is the centred moving average over one season, for the values that have one.

    >>> seasonal_indices(np.tile([1.0, 2.0, 6.0], 4), 3).tolist()
    [-2.0, -1.0, 3.0]
    """
    m, times = season, errors == "multiplicative"
    weights = np.ones(m) / m if m % 2 else np.r_[0.5, np.ones(m - 1), 0.5] / m
    half = len(weights) // 2
    if len(y) < len(weights):
        return np.full(m, 1.0 if times else 0.0)
    trend = np.convolve(y, weights, "valid")
    middle = y[half : half + len(trend)]
    rest = middle / np.where(np.abs(trend) > 1e-300, trend, 1.0) if times else middle - trend
    at = (half + np.arange(len(rest))) % m
    counts = np.bincount(at, minlength=m)
    s = np.bincount(at, rest, minlength=m) / np.maximum(counts, 1)
    s = np.where(counts > 0, s, s[counts > 0].mean())
    if times:
        return np.asarray(np.maximum(s / s.mean(), 1e-3)) if s.mean() > 0 else np.ones(m)
    return np.asarray(s - s.mean())


def fit_smoothing(y: Real, season: int = 1, seed: int = 0) -> Smoothing:
    """Return the form and the parameters for a training split y (n,)."""
    usable = 1 < season <= LONGEST_SEASON and len(y) >= 3 * season
    seasons = (1, season) if usable else (1,)
    y = y[-max(MOST_VALUES, MOST_SEASONS * max(seasons)) :]
    kinds: list[Errors] = ["additive", "multiplicative"] if y.min() > 0 else ["additive"]
    best, least = Smoothing("additive", False, 1, 1.0, 0.0, 0.0, 1.0), np.inf
    for errors, m in itertools.product(kinds, seasons):
        for model, value in _fitted_forms(y, m, errors, seed):
            k = 2 + (2 if model.trend else 0) + (model.phi < 1) + (m if m > 1 else 0)
            k += int(m > 1)
            room = len(y) - k - 1
            value += 2 * k + 2 * k * (k + 1) / room if room > 0 else np.inf
            if value < least:
                best, least = model, value
    return best


def _fitted_forms(y: Real, m: int, errors: Errors, seed: int) -> list[tuple[Smoothing, float]]:
    """Return the best points of no trend, a trend and a damped trend, with -2 log likelihood each."""
    rng = np.random.default_rng([seed, 5])
    lines = [first_states(y, m, trend, errors) for trend in (False, True, True)]
    points = [rng.uniform(size=(POINTS, 4)) for _ in lines]
    points = [np.concatenate([_corners(), each]) for each in points]
    spread = 0.2
    kept: list[tuple[Real, Real]] = [(np.empty((0, 4)), np.empty(0))] * 3
    for _ in range(ROUNDS):
        sizes = [len(each) for each in points]
        parameters = np.concatenate([_parameters(each, form, m) for form, each in enumerate(points)])
        level = np.repeat([line[0] for line in lines], sizes)
        trend = np.repeat([line[1] for line in lines], sizes)
        values = np.split(
            deviance(y, m, errors, parameters, level, trend, lines[0][2]), np.cumsum(sizes)[:-1]
        )
        for form, (each, value) in enumerate(zip(points, values, strict=True)):
            at = np.concatenate([kept[form][0], each])
            found = np.concatenate([kept[form][1], value])
            order = np.argsort(found, kind="stable")[:BEST]
            kept[form] = at[order], found[order]
            around = np.repeat(kept[form][0], POINTS // BEST, axis=0)
            points[form] = np.clip(around + spread * rng.standard_normal(around.shape), 0, 1)
        spread /= 2
    made = []
    for form in range(3):
        alpha, beta, gamma, phi = _parameters(kept[form][0][:1], form, m)[0].tolist()
        made.append((Smoothing(errors, form > 0, m, alpha, beta, gamma, phi), float(kept[form][1][0])))
    return made


def _corners() -> Real:
    return np.array(list(itertools.product((0.02, 0.3, 0.95), (0.01, 0.3), (0.01, 0.3), (0.5,))))


def _parameters(points: Real, form: int, m: int) -> Real:
    """Return α, β, γ, φ for points of the unit cube: 0 < β < α, 0 < γ < 1 - α, 0.8 ≤ φ ≤ 0.98."""
    alpha = 1e-4 + (1 - 2e-4) * points[:, 0]
    beta = alpha * points[:, 1] if form else 0 * alpha
    gamma = (1 - alpha) * points[:, 2] if m > 1 else 0 * alpha
    phi = 0.8 + 0.18 * points[:, 3] if form == 2 else 0 * alpha + 1
    return np.stack([alpha, beta, gamma, phi], axis=1)


def deviance(
    y: Real, m: int, errors: Errors, parameters: Real, first_level: Real, first_trend: Real, s: Real
) -> Real:
    """Return -2 log likelihood (P,) of points α, β, γ, φ (P, 4) from their first states: (1) to (5), (7)."""
    alpha, beta, gamma, phi = parameters.T
    times, n = errors == "multiplicative", len(y)
    level, trend, season = first_level, first_trend, np.repeat(s[:, None], len(first_level), axis=1)
    squares, logs = np.zeros(len(level)), np.zeros(len(level))
    with np.errstate(all="ignore"):
        for t, value in enumerate(y.tolist()):
            before = season[t % m]
            drift = phi * trend
            base = level + drift
            if times:
                mean = base * before  # (1)
                e = value / mean - 1  # (2)
                step = base * e
                level, trend = base + alpha * step, drift + beta * step  # (3), (4)
                season[t % m] = before + gamma * before * e  # (5)
                logs += np.log(mean)
            else:
                e = value - base - before
                level, trend = base + alpha * e, drift + beta * e
                if m > 1:
                    season[t % m] = before + gamma * e
            squares += e * e
        floor = 1e-12 * float(np.mean(y**2) if not times else 1.0) + 1e-300
        found = n * np.log(np.maximum(squares / n, floor)) + 2 * logs + n * (math.log(2 * math.pi) + 1)
    return np.asarray(np.where(np.isfinite(found), found, np.inf))
