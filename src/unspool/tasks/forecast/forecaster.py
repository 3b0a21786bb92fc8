"""Forecast one series: an ensemble of recurrent networks that read a window and predict all steps ahead.

    y ─▶ log, differences ─▶ windows in their own units ─▶ GRU ─▶ H numbers ─▶ … backwards ─▶ ŷ(t+1) … ŷ(t+H)

The networks differ in their seed, and their predictions are averaged. They are trained with noise on their input, more
where there are fewer values: σ = min(0.6, 5/√n), which regularises like a weight penalty. Intervals come from forecasts
of values that were not trained on: the last part of the series is held out of a first training, and the interval
contains the share of the scaled errors there that the level asks for; then the networks are trained again on all values.

>>> y = 10 + np.sin(np.arange(60) * np.pi / 3)
>>> model = Forecaster(horizon=6, members=1, steps=60, calibration=0).fit(y)
>>> model.season_, np.abs(model.predict() - y[:6]).max() < 0.2
(6, np.True_)
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from unspool.cells import TASK_DEFAULT, CellName
from unspool.data.series.checks import check_series
from unspool.data.series.season import guess_season, guess_second_season
from unspool.data.series.transform import Transform, choose_transform
from unspool.data.series.windows import WindowSpec, fit_scale, origins_of, plan_windows, to_series
from unspool.errors import InputError
from unspool.evaluation.intervals import USUAL, errors_to_come, fewest_errors, level_reached, refuse_level
from unspool.kernels.arrays import Precision, Real, Whole
from unspool.kernels.memory import require_memory
from unspool.model import options as network
from unspool.model.memory import bytes_of_training, count_parameters
from unspool.optimisers import options as optimisers
from unspool.options import POSITIVE, at_least, build, check_values, declared
from unspool.tasks.forecast import options as o
from unspool.tasks.forecast.ensemble import (
    Ensemble,
    FittedMember,
    Member,
    MemberConfig,
    fit_member,
    fresh_network,
    network_config,
    quantiles,
    sizes_of_errors,
)
from unspool.tasks.forecast.scored import ScoredForecaster
from unspool.tasks.forecast.store import ALONE, read_forecasters, write_forecasters
from unspool.training import options as training
from unspool.training.events import StepDone
from unspool.training.provenance import provenance, sha256_of

FEWEST = 8
"""The smallest number of windows with their targets to learn from."""


@declared(network, optimisers, training, o)
@dataclass(eq=False, repr=False, kw_only=True)
class Forecaster(ScoredForecaster):
    """Forecasts a series some steps ahead; scikit-learn's conventions for arguments."""

    horizon: int = 12
    season: int | str = "guess"
    power: str = "guess"
    differences: o.Differences = "guess"
    window: int = 0
    cell: CellName = TASK_DEFAULT
    hidden: int = 0
    members: int = 0
    steps: int = 0
    noise: float = -1.0
    learning_rate: float = 8e-3
    calibration: float = 0.2
    seed: int = 0
    optimiser: str = "adam"
    schedule: str = "cosine"
    precision: Precision = "float32"

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
        self.errors_: Real | None = None
        self.unfinished_ = True
        self.trial_: tuple[int, FittedMember] | None = None
        z, count = layout.change.forward(values), self._calibrated(layout, len(values))
        members = self.members or (4 if len(origins_of(layout, len(values))) < 5000 else 2)
        first = self._members(layout, z[:count], max(1, members // 2)) if count else []
        last = self._members(layout, z, members)
        if first:
            self.trial_ = count, FittedMember(layout, first[0].units, [each.network for each in first])
        self.fitted_ = FittedMember(layout, last[0].units, [each.network for each in last])
        return Ensemble(layout, z, known, first + last)

    def _members(self, layout: WindowSpec, z: Real, count: int) -> list[Member]:
        units, recipe = fit_scale(layout, z), self._recipe(layout, len(z))
        seeds = range(self.seed, self.seed + count)
        return [Member(fresh_network(recipe, layout, seed), recipe, units, len(z), seed) for seed in seeds]

    def calibrate(self, ensemble: Ensemble) -> None:
        """End a fit: measure the errors on values that the first networks were not trained on."""
        self.unfinished_ = False
        if self.trial_ is not None:
            count, first = self.trial_
            self.errors_ = sizes_of_errors(first, ensemble.z, ensemble.known, count)

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

    def predict_at(
        self, values: Real, origins: Whole, phase: int = 0, fitted: FittedMember | None = None
    ) -> Real:
        """Forecast from many origins of a series at once, n H; each from values[:origin] only."""
        fitted, z = fitted or self._ready(), self.change_.forward(values)
        y, level, spread = fitted.answers(z, origins, phase)
        return self.change_.inverse(to_series(fitted.layout, fitted.units, z, origins, level, spread, y))

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
        y, centre, spread = fitted.answers(z, origins, phase)
        width = quantiles(self.errors_, level)
        low, high = (
            self.change_.inverse(to_series(fitted.layout, fitted.units, z, origins, centre, spread, end))
            for end in (y - width, y + width)
        )
        return low, high

    def level_reached(self, level: float = USUAL) -> float | None:
        """Return the level that the interval reaches: less where there are too few errors; None without an interval."""
        self._ready()
        return None if self.errors_ is None else level_reached(level, fewest_errors(self.errors_))

    def check(self, y: Any, scored: Any = None, level: float = USUAL) -> None:
        """Raise where a series cannot be learned, or its interval cannot have the level, before anything is learned."""
        values = check_series(y, "the series")
        known = np.ones(len(values), bool) if scored is None else np.asarray(scored, bool)
        if count := self._calibrated(self.plan(values), len(values)):
            refuse_level(level, errors_to_come(known, count, self.horizon))

    def _ready(self) -> FittedMember:
        if not hasattr(self, "fitted_"):
            raise InputError("this Forecaster is not fitted yet: call fit first")
        return self.fitted_

    def _origin(self, history: Any) -> tuple[Real, Whole]:
        layout = self._ready().layout
        values = self.history_ if history is None else check_series(history, "the history")
        if len(values) < layout.reach:
            raise InputError(
                f"the history has {len(values)} values; this model reads the last {layout.reach}"
            )
        if self.change_.power != "none" and values.min() < (1e-300 if self.change_.power == "log" else 0):
            raise InputError(
                f"the history has the value {values.min():g}; this model takes its {self.change_.power}, which needs "
                f"values {'above 0' if self.change_.power == 'log' else 'of 0 or more'}"
            )
        return values, np.array([len(values)])

    def _steps_ahead(self, steps: int | None) -> int:
        if steps is not None and at_least("steps", steps, 1) > self.horizon:
            raise InputError(
                f"steps is {steps}; this model was fitted for 1 … {self.horizon}: fit again with that horizon"
            )
        return self.horizon if steps is None else steps

    def plan(self, values: Real) -> WindowSpec:
        """Choose season, transform and window for a series; raise where it is too short."""
        check_values(self, self.get_params())
        POSITIVE("learning_rate", self.learning_rate)
        if self.horizon >= len(values):
            raise InputError(
                f"horizon is {self.horizon}, longer than the series, which has {len(values)} values"
            )
        if self.window >= len(values):
            raise InputError(
                f"window is {self.window:,}; expected fewer values than the series has, which are {len(values):,}"
            )
        season = guess_season(values) if self.season == "guess" else self._season(len(values))
        change = choose_transform(values, season)
        if self.power != "guess" or self.differences != "guess":
            change = self._given(change, values)
        second = guess_second_season(values, season)
        layout = self._layout(change, second, len(values))
        if len(origins_of(layout, len(values))) < FEWEST:
            need = next(n for n in itertools.count(len(values)) if self._enough(change, second, n))
            raise InputError(
                f"the series has {len(values)} values; {f'a season of {season} and ' if season > 1 else ''}"
                f"a horizon of {self.horizon} need{'s' if season == 1 else ''} {need}"
            )
        self._require_memory(layout, len(values))
        return layout

    def _require_memory(self, layout: WindowSpec, count: int) -> None:
        """Raise where networks and windows do not fit into memory."""
        recipe, steps = self._recipe(layout, count), layout.length // layout.fold
        config = network_config(recipe, layout).encoder
        windows = (
            24 * len(origins_of(layout, count)) * steps * layout.inputs
        )  # float64, float32 and one copy between
        networks = bytes_of_training(config, recipe.batch_size, steps) + 8 * (
            self.members or 4
        ) * count_parameters(config)
        require_memory(
            windows + networks,
            f"a forecaster with hidden {recipe.hidden:,} and a window of {layout.length:,} over {count:,} values",
            "choose a smaller hidden or window",
        )

    def _layout(self, change: Transform, second: int, values: int) -> WindowSpec:
        layout = plan_windows(change, second, self.horizon, values)
        if self.window:
            length = max(layout.fold, self.window // layout.fold * layout.fold)
            layout = dataclasses.replace(layout, length=length)
        return layout

    def _enough(self, change: Transform, second: int, values: int) -> bool:
        return len(origins_of(self._layout(change, second, values), values)) >= FEWEST

    def _season(self, count: int) -> int:
        if (
            not isinstance(self.season, Integral)
            or isinstance(self.season, bool)
            or not 1 <= self.season <= count // 2
        ):
            raise InputError(
                f"season is {self.season!r}; expected guess, or 1 … {count // 2} for {count} values: two seasons at least"
            )
        return int(self.season)

    def _given(self, change: Transform, values: Real) -> Transform:
        power = change.power if self.power == "guess" else self.power
        if power not in ("none", "root", "log"):
            raise InputError(f"power is {power!r}; expected guess, none, root or log")
        if (power == "log" and values.min() <= 0) or (power == "root" and values.min() < 0):
            raise InputError(f"power is {power!r}, but the series has the value {values.min():g}")
        d, D = (change.d, change.D) if isinstance(self.differences, str) else self.differences
        if not {d, D} <= {0, 1} or (D and change.season == 1):
            raise InputError(f"differences are {(d, D)}; expected 0 or 1 each, the second only with a season")
        return Transform(power, d, D, change.season)  # type: ignore[arg-type]

    def _calibrated(self, layout: WindowSpec, count: int) -> int:
        """Return the number of values of the first training; 0 where too few would remain."""
        kept = count - max(layout.horizon + 8, round(self.calibration * count))
        enough = len(origins_of(layout, kept)) >= FEWEST
        return kept if self.calibration > 0 and enough else 0

    def _recipe(self, layout: WindowSpec, count: int) -> MemberConfig:
        return build(MemberConfig, self).chosen(len(origins_of(layout, count)), count)
