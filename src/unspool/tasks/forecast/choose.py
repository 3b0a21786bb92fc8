"""Choose season and transform of a series by forecasts of values held aside.

The candidates are no season, the season of the autocorrelation and those of the calendar, each with the transform of the rules
(`unspool.data.series.transform`), without its power, and with other differences. An autoregression is fitted for each on the first
four fifths of the series and forecasts the rest from many origins. The season and transform of the rules are kept unless
another has an error that is lower by `GAIN` or more.

>>> t = np.arange(200)
>>> y = np.array([5.0, 1, 1, 1, 1, 1, 1])[t % 7] + 0.3 * np.sin(t) ** 3
>>> choose_change(y, 7).season
7
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unspool.baselines.forecast import fit_autoregressive
from unspool.data.series.season import guess_season, guess_second_season
from unspool.data.series.transform import Power, Transform, choose_transform
from unspool.errors import InputError
from unspool.kernels.arrays import Real

GAIN = 0.1
MOST_ORIGINS, MOST_VALUES = 40, 3000
"""Most origins, and most values at the end of the series, by which candidates are judged."""
FEWEST = 24
"""Fewest values that candidates are judged by; the rules decide for shorter series."""


def choose_change(y: Real, horizon: int, calendar: Sequence[int] = ()) -> Transform:
    """Return the season and the transform of a series."""
    rule = choose_transform(y, guess_season(y))
    y = y[-MOST_VALUES:]
    count = len(y) - max(horizon, round(0.2 * len(y)))
    if len(y) < FEWEST or count < 2 * horizon or not np.ptp(y[:count]) > 0:
        return rule
    seasons = {1, rule.season, *(season for season in calendar if 1 < season <= count // 2)}
    candidates = {rule: None} | dict.fromkeys(
        each for season in sorted(seasons) for each in _variants(choose_transform(y, season))
    )
    seconds = {season: guess_second_season(y[:count], season) for season in seasons}
    errors = {each: held_aside_error(y, count, horizon, each, seconds[each.season]) for each in candidates}
    best = min(errors, key=lambda each: errors[each])
    return best if errors[best] < (1 - GAIN) * errors[rule] else rule


def _variants(change: Transform) -> list[Transform]:
    """Return a transform, without its power and with other differences."""
    none: Power = "none"
    powers = dict.fromkeys((change.power, none))
    pairs = [(0, 0), (1, 0)] + [(0, 1), (1, 1)] * (change.season > 1)
    return [replace(change, power=power, d=d, D=D) for power in powers for d, D in pairs]


def held_aside_error(y: Real, count: int, horizon: int, change: Transform, second: int) -> float:
    """Return the mean absolute error of an autoregression fitted to y[:count] on the values after them."""
    origins = np.arange(count, len(y) - horizon + 1)
    origins = origins[np.unique(np.linspace(0, len(origins) - 1, MOST_ORIGINS).round().astype(int))]
    try:
        model = fit_autoregressive(y[:count], change, second)
    except (InputError, np.linalg.LinAlgError):
        return np.inf
    if model.reach > count:
        return np.inf
    with np.errstate(all="ignore"):
        found = np.abs(model.forecast(y, origins, horizon) - y[origins[:, None] + np.arange(horizon)])
    return float(np.nan_to_num(found, nan=np.inf).mean())
