"""Choose seasons and transforms of a series by forecasts of values held aside.

The candidates are no season, the season of the autocorrelation and those of the calendar, each with the transform of the rules
(`unspool.data.series.transform`), without its power, and with other differences. An autoregression is fitted for each on the first
four fifths of the series and forecasts the rest from many origins. Of each pair of differences the candidate of the least error is
kept, and of these the best `MOST_PAIRS`: their mean forecast depends less on the choice than any alone.

>>> t = np.arange(200)
>>> y = np.array([5.0, 1, 1, 1, 1, 1, 1])[t % 7] + 0.3 * np.sin(t) ** 3
>>> choose_changes(y, 7)[0].season
7
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from unspool.baselines.forecast import fit_autoregressive
from unspool.data.series.season import guess_season, guess_second_season
from unspool.data.series.transform import Power, Transform, choose_transform
from unspool.errors import InputError
from unspool.kernels.arrays import Real

MOST_PAIRS = 3
MOST_ORIGINS, MOST_VALUES = 40, 3000
"""Most origins, and most values at the end of the series, by which candidates are judged."""
FEWEST = 24
"""Fewest values that candidates are judged by; the rules decide for shorter series."""


def choose_changes(
    y: Real, horizon: int, seasons: Sequence[int] = (), given: Callable[[Transform], Transform] | None = None
) -> list[Transform]:
    """Return the best transforms, the first one first; `given` sets what is fixed.

    `seasons` are the candidates besides no season; the first one is that of the rules.
    """
    fix = given or (lambda change: change)
    rule = fix(choose_transform(y, seasons[0] if seasons else guess_season(y)))
    y = y[-MOST_VALUES:]
    count = len(y) - max(horizon, round(0.2 * len(y)))
    if len(y) < FEWEST or count < 2 * horizon or not np.ptp(y[:count]) > 0:
        return [rule]
    found = [season for season in dict.fromkeys((rule.season, *seasons)) if season <= count // 2]
    candidates = dict.fromkeys(
        fix(each) for season in found for each in (rule, *_variants(choose_transform(y, season)))
    )
    seconds = {
        season: guess_second_season(y[:count], season) for season in {each.season for each in candidates}
    }
    errors = {each: held_aside_error(y, count, horizon, each, seconds[each.season]) for each in candidates}
    best: dict[tuple[int, int], Transform] = {}
    for each in sorted(errors, key=lambda each: errors[each]):
        if errors[each] < np.inf:
            best.setdefault((each.d, each.D), each)
    return list(best.values())[:MOST_PAIRS] or [rule]


def season_of(changes: Sequence[Transform]) -> int:
    """Return the season of the best transform that has one, 1 if none has.

    >>> season_of([Transform("none", 0, 0, 1), Transform("none", 0, 1, 12)])
    12
    """
    return next((each.season for each in changes if each.season > 1), 1)


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
