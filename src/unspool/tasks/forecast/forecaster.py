"""Forecast one series: an ensemble of recurrent networks that read a window and predict all steps ahead.

    y ─▶ log, differences ─▶ windows in their own units ─▶ GRU ─▶ H numbers ─▶ … backwards ─▶ ŷ(t+1) … ŷ(t+H)

The networks differ in their seed, and their predictions are averaged. They are trained with noise on their input, more
where there are fewer values: σ = min(0.6, 5/√n), which regularises like a weight penalty. Intervals come from forecasts
of values that were not trained on: the last part of the series is held out of a first training, and the interval
contains the share of the scaled errors there that the level asks for; then the networks are trained again on all values.

Other models (`unspool.tasks.forecast.answer`) are fitted to the same values. The answer is the mean of all models, weighted by
their errors on the held-out part; the intervals are those of the answer.

>>> y = 10 + np.sin(np.arange(60) * np.pi / 3)
>>> model = Forecaster(horizon=6, members=1, steps=60, calibration=0).fit(y)
>>> model.season_, np.abs(model.predict() - y[:6]).max() < 0.2
(6, np.True_)
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import numpy as np

from unspool.baselines.forecast import ForecastBaseline
from unspool.data.series.checks import check_series
from unspool.data.series.windows import (
    WindowSpec,
    fit_scale,
    origins_of,
    read_windows,
    to_series,
    to_targets,
)
from unspool.errors import InputError
from unspool.evaluation.intervals import (
    USUAL,
    adapted_widths,
    errors_to_come,
    fewest_errors,
    level_reached,
    phase_factors,
    quantiles,
    refuse_level,
)
from unspool.kernels.arrays import Real, Whole
from unspool.options import INSIDE_UNIT, at_least
from unspool.tasks.forecast.answer import NETWORK, Answer, choose_answer, fit_models, mean_of
from unspool.tasks.forecast.ensemble import (
    Ensemble,
    FittedMember,
    Member,
    fit_member,
    fresh_network,
)
from unspool.tasks.forecast.plan import ForecastPlan
from unspool.tasks.forecast.scored import ScoredForecaster
from unspool.tasks.forecast.store import ALONE, read_forecasters, write_forecasters
from unspool.training.events import StepDone
from unspool.training.provenance import provenance, sha256_of


class Trial(NamedTuple):
    """What was fitted without the held-out values."""

    begin: int
    """The number of values before them."""
    fitted: FittedMember
    models: dict[str, ForecastBaseline]


class Forecaster(ForecastPlan, ScoredForecaster):
    """Forecasts a series some steps ahead; scikit-learn's conventions for arguments."""

    unfinished_ = False
    """Whether the fit has not ended: during a fit, and of a run that is loaded before its fit has ended."""

    def save(self, path: str | Path, **more: Any) -> None:
        """Write the fitted forecaster as a new run; `more` goes into its config."""
        write_forecasters({ALONE: self}, path, more)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the forecaster of a run that has one column."""
        found = read_forecasters(cls, path)[0]
        if len(found) != 1:
            raise InputError(
                f"{path}: a run of {len(found)} columns, {', '.join(found)}; read it with unspool.load"
            )
        return cast(Self, next(iter(found.values())))

    def fit(self, y: Any, scored: Any = None) -> Self:
        """Learn from a series."""
        with closing(self.fit_iter(y, scored)) as events:
            for _ in events:
                pass
        return self

    def fit_iter(self, y: Any, scored: Any = None) -> Generator[StepDone]:
        """Learn, and yield an event after every update; values that are not `scored` are inputs, but no targets.

        A fit that does not come to its end leaves the forecaster as it was before.
        """
        before = dict(vars(self))
        try:
            ensemble, state = self.begin(y, scored), None
            for k in range(len(ensemble.members)):
                state = ensemble.state(k, before=state)
                yield from fit_member(ensemble, k, state)
            self.calibrate(ensemble)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def begin(self, y: Any, scored: Any = None) -> Ensemble:
        """Choose all that is fixed before the first update; return the networks to train, which are not trained yet."""
        values = check_series(y, "the series")
        known = np.ones(len(values), bool) if scored is None else np.asarray(scored, bool)
        layout = self.plan(values)
        self.provenance_ = provenance(sha256_of([values.tobytes()]))
        self.season_, self.change_ = layout.change.season, layout.change
        self.history_ = values
        self.learned_ = len(values)
        self.errors_: Real | None = None
        self.residuals_: Real | None = None
        self.factors_: Real = np.ones(self.season_)
        self.unfinished_ = True
        self.trial_: Trial | None = None
        self.models_: dict[str, ForecastBaseline] = {}
        self.answer_: Answer = {NETWORK: 1.0}
        z, count = layout.change.forward(values), self.calibrated(layout, len(values))
        members = self.members or (4 if len(origins_of(layout, len(values))) < 5000 else 2)
        first = self._members(layout, z[:count], max(1, members // 2)) if count else []
        last = self._members(layout, z, members)
        if first:
            fitted = FittedMember(layout, first[0].units, [each.network for each in first])
            self.trial_ = Trial(count, fitted, {})
        self.fitted_ = FittedMember(layout, last[0].units, [each.network for each in last])
        return Ensemble(layout, z, known, first + last)

    def _members(self, layout: WindowSpec, z: Real, count: int) -> list[Member]:
        units, recipe = fit_scale(layout, z), self.recipe(layout, len(z))
        seeds = range(self.seed, self.seed + count)
        return [Member(fresh_network(recipe, layout, seed), recipe, units, len(z), seed) for seed in seeds]

    def calibrate(self, ensemble: Ensemble) -> None:
        """End a fit: fit the other models, choose the answer, and measure its errors on values held aside."""
        self.unfinished_ = False
        y, known, changes = self.history_, ensemble.known, self.changes_
        self.models_ = fit_models(y, changes, self.seed)
        if self.trial_ is None:
            named = "mean" if self.model == "best" else self.model
            self.answer_ = choose_answer(dict.fromkeys([NETWORK, *self.models_], y), y, named)
            return
        count = self.trial_.begin
        self.trial_.models.update(fit_models(y[:count], changes, self.seed))
        origins = np.arange(count, len(y) - self.horizon + 1)
        forecasts = self.forecasts_at(y, origins, trial=self.trial_)
        truth = np.where(known, y, np.nan)[origins[:, None] + np.arange(self.horizon)]
        self.answer_ = choose_answer(forecasts, truth, self.model)
        found = self._relative(mean_of(forecasts, self.answer_), y, origins, self.trial_.fitted)
        residuals = self._relative(truth, y, origins, self.trial_.fitted) - found
        self.factors_ = phase_factors(residuals, self._phases(origins), self.season_)
        self.residuals_ = residuals / self._factors(origins)
        self.errors_ = np.abs(self.residuals_)

    def predict(self, steps: int | None = None, history: Any = None, phase: int = 0) -> Real:
        """Forecast the next steps of the training series, or of another history."""
        values, origins = self._origin(history)
        return self.predict_at(values, origins, phase)[0, : self._steps_ahead(steps)]

    def predict_interval(
        self, level: float = USUAL, steps: int | None = None, history: Any = None, phase: int = 0
    ) -> tuple[Real, Real]:
        """Return the lower and the upper end of the prediction interval of a level."""
        values, origins = self._origin(history)
        low, high = self.interval_at(values, origins, level, phase)
        return low[0, : self._steps_ahead(steps)], high[0, : self._steps_ahead(steps)]

    def predict_quantiles(
        self, levels: Sequence[float], steps: int | None = None, history: Any = None, phase: int = 0
    ) -> Real:
        """Return quantiles (Q H) of the next values: the ends of intervals; the forecast itself at 0.5."""
        values, origins = self._origin(history)
        found = []
        for level in levels:
            INSIDE_UNIT("quantiles", level)
            if level == 0.5:
                found.append(self.predict_at(values, origins, phase)[0])
            else:
                found.append(
                    self.interval_at(values, origins, round(abs(2 * level - 1), 12), phase)[int(level > 0.5)][
                        0
                    ]
                )
        return np.stack(found)[:, : self._steps_ahead(steps)]

    def sample_paths(
        self, count: int, steps: int | None = None, history: Any = None, phase: int = 0, seed: int = 0
    ) -> Real:
        """Return possible courses (count, H) of the next values: the forecast with the errors of held-out forecasts, each of one origin."""
        at_least("count", count, 1)
        values, origins = self._origin(history)
        rows = None if self.residuals_ is None else self.residuals_[~np.isnan(self.residuals_).any(axis=1)]
        if rows is None or not len(rows):
            raise InputError(
                "samples: there are no errors of whole forecasts to draw from; fit again, or a longer series"
            )
        fitted, z = self._ready(), self.change_.forward(values)
        _, centre, std = read_windows(fitted.layout, fitted.units, z, origins, phase)
        y = self._relative(self.predict_at(values, origins, phase), values, origins, fitted)
        drawn = (
            y
            + self._factors(origins, phase)
            * rows[np.random.default_rng([seed, 6]).integers(len(rows), size=count)]
        )
        found = [
            to_series(fitted.layout, fitted.units, z, origins, centre, std, row[None])[0] for row in drawn
        ]
        return self.change_.inverse(np.stack(found))[:, : self._steps_ahead(steps)]

    def append(self, y: Any) -> Self:
        """Take in observations that follow the series, without a new fit: later forecasts start after them."""
        self._ready()
        added = np.asarray(y, np.float64)
        check_series(np.concatenate([self.history_, added]), "the series with the new values")
        self._check_power(added)
        self.history_ = np.concatenate([self.history_, added])
        return self

    def predict_at(self, values: Real, origins: Whole, phase: int = 0) -> Real:
        """Forecast from many origins of a series at once, n H; each from values[:origin] only."""
        return mean_of(self.forecasts_at(values, origins, phase, only=list(self.answer_)), self.answer_)

    def forecasts_at(
        self,
        values: Real,
        origins: Whole,
        phase: int = 0,
        trial: Trial | None = None,
        only: Sequence[str] | None = None,
    ) -> dict[str, Real]:
        """Return the forecasts (n H) of all models, or of some, by name: of those that the held-out values were kept from with `trial`."""
        fitted, models = (trial.fitted, trial.models) if trial else (self._ready(), self.models_)
        names = [NETWORK, *models] if only is None else only
        found = {}
        for name in names:
            if name == NETWORK:
                z = self.change_.forward(values)
                y, level, std = fitted.answers(z, origins, phase)
                found[name] = self.change_.inverse(
                    to_series(fitted.layout, fitted.units, z, origins, level, std, y)
                )
            else:
                found[name] = models[name].forecast(values, origins, self.horizon, phase)
        return found

    def _phases(self, origins: Whole, phase: int = 0) -> Whole:
        return np.asarray((origins[:, None] + phase + np.arange(self.horizon)) % len(self.factors_))

    def _factors(self, origins: Whole, phase: int = 0) -> Real:
        """Return the size of the errors (n H) at the phases of the season that are forecast."""
        return np.asarray(self.factors_[self._phases(origins, phase)])

    def _relative(self, y: Real, values: Real, origins: Whole, fitted: FittedMember) -> Real:
        """Return forecasts or true values (n H) in the units of the windows before them."""
        change, z = self.change_, self.change_.forward(values)
        least = {"none": -np.inf, "root": 0.0, "log": 1e-3 * float(values.min())}[change.power]
        _, level, std = read_windows(fitted.layout, fitted.units, z, origins, 0)
        return to_targets(
            fitted.layout, fitted.units, z, origins, level, std, change.forward(np.maximum(y, least))
        )

    def interval_at(
        self, values: Real, origins: Whole, level: float = USUAL, phase: int = 0
    ) -> tuple[Real, Real]:
        """Return the lower and upper ends of the intervals of many origins, each n H."""
        fitted, z = self._ready(), self.change_.forward(values)
        if self.errors_ is None and self.unfinished_:
            raise InputError(
                "the fit of this Forecaster has not ended, and its intervals are measured in the end: "
                "resume its run with unspool resume, or fit again"
            )
        if self.errors_ is None:
            raise InputError(
                "calibration: no values were kept for intervals; the series is too short, or it is 0"
            )
        refuse_level(level, fewest_errors(self.errors_))
        if list(self.answer_) == [NETWORK]:
            y, centre, std = fitted.answers(z, origins, phase)
        else:
            _, centre, std = read_windows(fitted.layout, fitted.units, z, origins, phase)
            y = self._relative(self.predict_at(values, origins, phase), values, origins, fitted)
        width = self._widths(values, origins, level, phase)
        low, high = (
            self.change_.inverse(to_series(fitted.layout, fitted.units, z, origins, centre, std, end))
            for end in (y - width, y + width)
        )
        return low, high

    def _widths(self, values: Real, origins: Whole, level: float, phase: int) -> Real:
        """Return the half-widths (n H) in units of the windows; after the training series, they adapt to the errors since then."""
        assert self.errors_ is not None
        n, last = self.learned_, int(max(origins))
        factors = self._factors(origins, phase)
        widths = factors * quantiles(self.errors_, level)
        if phase or last <= n or not np.array_equal(values[:n], self.history_[:n]):
            return widths
        every = np.arange(n, last + 1)
        padded = np.pad(values[:last], (0, self.horizon), constant_values=np.nan)
        found = self._relative(self.predict_at(values, every), values, every, self.fitted_)
        truth = self._relative(padded[every[:, None] + np.arange(self.horizon)], values, every, self.fitted_)
        adapted = adapted_widths(self.errors_, level, np.abs(truth - found) / self._factors(every))
        after = origins >= n
        widths[after] = factors[after] * adapted[origins[after] - n]
        return widths

    def level_reached(self, level: float = USUAL) -> float | None:
        """Return the level that the interval reaches: less where there are too few errors; None without an interval."""
        self._ready()
        return None if self.errors_ is None else level_reached(level, fewest_errors(self.errors_))

    def check(self, y: Any, scored: Any = None, level: float = USUAL) -> None:
        """Raise where a series cannot be learned, or its interval cannot have the level, before anything is learned."""
        values = check_series(y, "the series")
        known = np.ones(len(values), bool) if scored is None else np.asarray(scored, bool)
        if count := self.calibrated(self.plan(values), len(values)):
            refuse_level(level, errors_to_come(known, count, self.horizon))

    def _ready(self) -> FittedMember:
        if not hasattr(self, "fitted_"):
            raise InputError("this Forecaster is not fitted yet: call fit first")
        return self.fitted_

    def _origin(self, history: Any) -> tuple[Real, Whole]:
        layout = self._ready().layout
        values = self.history_ if history is None else check_series(history, "the history")
        reach = max(
            layout.reach, *(self.models_[name].reach for name in self.answer_ if name in self.models_), 0
        )
        if len(values) < reach:
            raise InputError(f"the history has {len(values)} values; this model reads the last {reach}")
        self._check_power(values)
        return values, np.array([len(values)])

    def _check_power(self, values: Real) -> None:
        if self.change_.power != "none" and values.min() < (1e-300 if self.change_.power == "log" else 0):
            raise InputError(
                f"the history has the value {values.min():g}; this model takes its {self.change_.power}, which needs "
                f"values {'above 0' if self.change_.power == 'log' else 'of 0 or more'}"
            )

    def _steps_ahead(self, steps: int | None) -> int:
        if steps is not None and at_least("steps", steps, 1) > self.horizon:
            raise InputError(
                f"steps is {steps}; this model was fitted for 1 … {self.horizon}: fit again with that horizon"
            )
        return self.horizon if steps is None else steps
