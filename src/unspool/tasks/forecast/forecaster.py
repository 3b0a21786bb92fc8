"""A forecaster of one series: a few recurrent networks that read a window and answer for all steps ahead.

    y ─▶ log, differences ─▶ windows in their own units ─▶ GRU ─▶ H numbers ─▶ … backwards ─▶ ŷ(t+1) … ŷ(t+H)

The networks differ in their seed, and their answers are averaged. They are trained with noise on what they
read, the more the fewer values there are: σ = min(0.6, 5/√n), as much a guard against learning by heart as
a weight penalty. Intervals come from forecasts of values that were not trained on: the last part of the
series is kept from a first training, the errors there, in each window's units, are sorted, and the share of
them that the level asks for fits into the band; then the networks are trained again on everything.

>>> y = 10 + np.sin(np.arange(60) * np.pi / 3)
>>> model = Forecaster(horizon=6, members=1, steps=60, calibration=0).fit(y)
>>> model.season_, np.abs(model.predict() - y[:6]).max() < 0.2
(6, np.True_)
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np

from unspool.cells import TASK_DEFAULT, CellName
from unspool.data.series.checks import check_series
from unspool.data.series.season import guess_season, guess_second_season
from unspool.data.series.transform import Transform, choose_transform
from unspool.data.series.windows import WindowSpec, fit_scale, origins_of, plan_windows, to_series
from unspool.errors import InputError
from unspool.evaluation.intervals import USUAL, errors_to_come, fewest_errors, level_reached, refuse_level
from unspool.kernels.arrays import Real, Whole
from unspool.kernels.memory import require_memory
from unspool.model import options as network
from unspool.model.memory import bytes_of_training, count_parameters
from unspool.model.sequence_network import Network
from unspool.optimisers import options as optimiser
from unspool.options import POSITIVE, Arguments, at_least, check_values, declared
from unspool.tasks.forecast import options as o
from unspool.tasks.forecast.ensemble import (
    FittedMember,
    MemberConfig,
    fresh_network,
    network_config,
    quantiles,
    sizes_of_errors,
    train_network,
)
from unspool.training import options as training
from unspool.training.provenance import provenance, sha256_of

FEWEST = 8
"""Windows with their targets, to learn anything from."""


class Progress(NamedTuple):
    """Where a fit stands."""

    step: int
    steps: int
    loss: float


@declared(network, optimiser, training, o)
@dataclass(eq=False, repr=False, kw_only=True)
class Forecaster(Arguments):
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

    def fit(self, y: Any, scored: Any = None) -> Self:
        """Learn from a series."""
        for _ in self.fit_iter(y, scored):
            pass
        return self

    def fit_iter(self, y: Any, scored: Any = None) -> Iterator[Progress]:
        """Learn, with a report after every update; values that are not `scored` are read and not learned."""
        values = check_series(y, "the series")
        known = np.ones(len(values), bool) if scored is None else np.asarray(scored, bool)
        layout = self.plan(values)
        self.provenance_ = provenance(sha256_of([values.tobytes()]))
        self.season_, self.change_ = layout.change.season, layout.change
        self.history_, self.errors_, self.trial_ = values, None, None
        filled = layout.change.forward(values)
        count = self._calibrated(layout, len(values))
        members = self.members or (4 if len(origins_of(layout, len(values))) < 5000 else 2)
        aside = max(1, members // 2) if count else 0
        plans = [(count, i) for i in range(aside)] + [(len(values), i) for i in range(members)]
        total, done = sum(self._recipe(layout, n).steps for n, _ in plans), 0
        made: dict[int, list[Network]] = {}
        for n, i in plans:
            units = fit_scale(layout, filled[:n])
            recipe = self._recipe(layout, n)
            network = fresh_network(recipe, layout, self.seed + i)
            for loss in train_network(network, recipe, layout, units, filled[:n], known[:n], self.seed + i):
                done += 1
                yield Progress(done, total, loss)
            made.setdefault(n, []).append(network)
        if count:
            first = FittedMember(layout, fit_scale(layout, filled[:count]), made[count])
            self.errors_, self.trial_ = sizes_of_errors(first, filled, known, count), (count, first)
        self.fitted_ = FittedMember(layout, fit_scale(layout, filled), made[len(values)])

    def predict(self, steps: int | None = None, history: Any = None, phase: int = 0) -> Real:
        """Forecast the next steps, of the series that was learned or of another history."""
        values, origins = self._origin(history)
        return self.predict_at(values, origins, phase)[0, : self._steps_ahead(steps)]

    def predict_interval(
        self, level: float = USUAL, steps: int | None = None, history: Any = None, phase: int = 0
    ) -> tuple[Real, Real]:
        """Give the lower and the upper end of a band that holds this share of what comes."""
        values, origins = self._origin(history)
        low, high = self.interval_at(values, origins, level, phase)
        return low[0, : self._steps_ahead(steps)], high[0, : self._steps_ahead(steps)]

    def predict_at(
        self, values: Real, origins: Whole, phase: int = 0, fitted: FittedMember | None = None
    ) -> Real:
        """Forecast from many origins of a series at once, n H; each knows values[:origin] only."""
        fitted, z = fitted or self._ready(), self.change_.forward(values)
        y, level, spread = fitted.answers(z, origins, phase)
        return self.change_.inverse(to_series(fitted.layout, fitted.units, z, origins, level, spread, y))

    def interval_at(
        self, values: Real, origins: Whole, level: float = USUAL, phase: int = 0
    ) -> tuple[Real, Real]:
        """Give the bands of many origins, each n H."""
        fitted, z = self._ready(), self.change_.forward(values)
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
        """Return what the band of a level holds: less where there are too few errors for it; None without a band."""
        self._ready()
        return None if self.errors_ is None else level_reached(level, fewest_errors(self.errors_))

    def check(self, y: Any, scored: Any = None, level: float = USUAL) -> None:
        """Refuse a series that cannot be learned, or a level that its band cannot have, before anything is learned."""
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
        """Choose season, change and window for a series, and refuse one that is too short."""
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
        """Refuse networks and windows that do not fit into memory."""
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
        """Give how many values the first training sees; 0 where too few are left for it."""
        kept = count - max(layout.horizon + 8, round(self.calibration * count))
        enough = len(origins_of(layout, kept)) >= FEWEST
        return kept if self.calibration > 0 and enough else 0

    def _recipe(self, layout: WindowSpec, count: int) -> MemberConfig:
        return MemberConfig.chosen(
            len(origins_of(layout, count)),
            count,
            cell=self.cell,
            hidden=self.hidden,
            steps=self.steps,
            noise=self.noise,
            learning_rate=self.learning_rate,
        )
