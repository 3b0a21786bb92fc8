"""Backtest with a rolling origin: forecast from many origins in a test part.

    ├──────────── training part ────────────┤o──H──▶
                                             ·o──H──▶
                                              · ·o──H──▶ …

Everything is learned once, from the training part alone: season, log, differences, units, weights, the
intervals' widths and the scale of MASE. From origin to origin models read the new values and learn nothing.
"""

from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unspool.baselines.forecast import ForecastBaseline, Naive, fit_window_mlp
from unspool.data.series.checks import check_series
from unspool.errors import InputError
from unspool.evaluation.forecast import coverage, mase, naive_scale, rmse
from unspool.evaluation.intervals import USUAL
from unspool.kernels.arrays import Real, Whole
from unspool.options import at_least
from unspool.tasks.forecast.answer import NAIVE, NETWORK, Answer, mean_of
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.training.events import StepDone

Known = NDArray[np.bool_]
"""Which values were observed."""


@dataclass(frozen=True)
class Row:
    """The figures of one model, over all origins and steps ahead."""

    name: str
    mase: float
    rmse: float
    relative: float
    """Its mean absolute error over that of the seasonal naive forecast of the same values."""
    coverage: float | None = None
    """The share of values in the interval: of the model that answers."""


@dataclass(frozen=True)
class Backtest:
    """The figures of all models over the same origins."""

    horizon: int
    level: float
    scale: float
    """The denominator of MASE."""
    origins: Whole
    truth: Real  # n H
    forecasts: dict[str, Real]  # n H each
    low: Real | None
    high: Real | None
    rows: list[Row]
    answer: str = NETWORK
    """The row of the model that answers; "mean" for a mean."""
    weights: Answer = field(default_factory=lambda: {NETWORK: 1.0})
    """The weights of the models in the answer."""

    def row(self, name: str) -> Row:
        """Return the figures of one model."""
        return next(row for row in self.rows if row.name == name)

    def by_step(self, name: str) -> Real:
        """Return the mean absolute scaled error for each step ahead."""
        return np.asarray(np.nanmean(np.abs(self.forecasts[name] - self.truth), axis=0) / self.scale)


@dataclass
class Backtesting:
    """A backtest: iterate over `steps`, then read `result`."""

    forecaster: Forecaster
    y: Real
    test: int
    """The number of values of the test part."""
    stride: int = 1
    """The number of values from one origin to the next."""
    level: float = USUAL
    scored: Known | None = None
    """Which values were observed: False for those that were filled in."""
    result: Backtest | None = field(default=None, init=False)

    def check(self) -> None:
        """Raise where a series cannot be learned and forecast, before anything is learned."""
        y = check_series(self.y, "the series")
        count = int(self._origins()[0])
        known = None if self.scored is None else self.scored[:count]
        self.forecaster.check(y[:count], known, self.level)

    def _origins(self) -> Whole:
        return rolling_origins(len(self.y), self.test, self.forecaster.horizon, self.stride)

    def steps(self) -> Generator[StepDone]:
        """Fit on the training part, then forecast from every origin."""
        y, origins = check_series(self.y, "the series"), self._origins()
        known = np.ones(len(y), bool) if self.scored is None else np.asarray(self.scored, bool)
        count = int(origins[0])
        yield from self.forecaster.fit_iter(y[:count], known[:count])
        model = self.forecaster
        band = (None, None) if model.errors_ is None else model.interval_at(y, origins, self.level)
        self.result = _judge(model, y, known, origins, model.forecasts_at(y, origins), band, self.level)


def holdout_backtest(model: Forecaster, y: Real, scored: Known | None = None) -> Backtest | None:
    """Evaluate a fit on the values held out for its intervals, to which its first networks and models were not fitted.

    Season, log and differences were chosen by all values, and the answer by these errors: a backtest chooses by its training part
    alone.
    """
    if model.trial_ is None:
        return None
    count, H = model.trial_.begin, model.horizon
    known = np.ones(len(y), bool) if scored is None else np.asarray(scored, bool)
    if not naive_scale(np.where(known, y, np.nan)[:count], model.season_) > 0:
        return None  # it repeats itself exactly: there is no error to measure by
    origins = np.arange(count, len(y) - H + 1)
    forecasts = model.forecasts_at(y, origins, trial=model.trial_)
    return _judge(model, y, known, origins, forecasts, (None, None), 0.0)


def _judge(
    model: Forecaster,
    y: Real,
    known: Known,
    origins: Whole,
    forecasts: dict[str, Real],
    band: tuple[Real | None, Real | None],
    level: float,
) -> Backtest:
    """Compare all models with forecasts that need no fit; those are fitted on the values before the first origin."""
    H, answer = model.horizon, next(iter(model.answer_)) if len(model.answer_) == 1 else "mean"
    for name, baseline in fit_baselines(model, y[: origins[0]]).items():
        forecasts[name] = baseline.forecast(y, origins, H)
    naive = forecasts.pop(NAIVE)
    if model.season_ > 1:
        forecasts["seasonal naive"] = naive
    if answer == NAIVE:
        answer = "seasonal naive" if model.season_ > 1 else "last value"
    if answer == "mean":
        forecasts[answer] = mean_of(forecasts, model.answer_)
    observed = np.where(known, y, np.nan)
    truth = observed[origins[:, None] + np.arange(H)]
    scale = naive_scale(observed[: origins[0]], model.season_)
    if not scale > 0:
        raise InputError(
            f"season: the training split repeats itself every {model.season_} steps: no error to scale by"
        )
    (low, high), least = band, mase(naive, truth, scale)
    held = None if low is None or high is None else coverage(low, high, truth)
    rows = [
        Row(
            name,
            error := mase(each, truth, scale),
            rmse(each, truth),
            error / (least or np.nan),
            held if name == answer else None,
        )
        for name, each in forecasts.items()
    ]
    return Backtest(H, level, scale, origins, truth, forecasts, low, high, rows, answer, model.answer_)


def backtest(
    forecaster: Forecaster,
    y: Real,
    test: int,
    stride: int = 1,
    level: float = USUAL,
    scored: Known | None = None,
) -> Backtest:
    """Evaluate a forecaster and the baselines on the last `test` values of a series y (n,).

    `scored` (n,) is false at values that do not count.
    """
    run = Backtesting(forecaster, y, test, stride, level, scored)
    for _ in run.steps():
        pass
    assert run.result is not None
    return run.result


def rolling_origins(count: int, test: int, horizon: int, stride: int) -> Whole:
    """Return the origins whose forecasts lie in the last `test` values.

    >>> rolling_origins(20, test=5, horizon=2, stride=2).tolist()
    [15, 17]
    """
    at_least("stride", stride, 1)
    at_least("test", test, 1)
    if not horizon <= test < count:
        raise InputError(f"test is {test}: expected {horizon} (the horizon) … {count - 1} of {count} values")
    return np.arange(count - test, count - horizon + 1, stride)


def fit_baselines(model: Forecaster, train: Real) -> dict[str, ForecastBaseline]:
    """Fit the models that only a table shows, on the same transform of the same values."""
    window = model.fitted_.layout.length
    rng = np.random.default_rng([model.seed, 4])
    return {"last value": Naive(1), "window MLP": fit_window_mlp(train, model.change_, window, rng)}
