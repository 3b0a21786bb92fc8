"""Choose what is fixed before a fit of a forecaster: season, transforms, window, sizes of the networks, the held-out part."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from numbers import Integral

from unspool.cells import TASK_DEFAULT, CellName
from unspool.data.series.season import guess_season, guess_second_season
from unspool.data.series.transform import Transform, choose_transform
from unspool.data.series.windows import WindowSpec, origins_of, plan_windows
from unspool.errors import InputError
from unspool.kernels.arrays import Precision, Real
from unspool.kernels.memory import require_memory
from unspool.model import options as network
from unspool.model.memory import bytes_of_training, count_parameters
from unspool.optimisers import options as optimisers
from unspool.options import POSITIVE, Arguments, build, check_values, declared
from unspool.tasks.forecast import options as o
from unspool.tasks.forecast.choose import choose_changes, season_of
from unspool.tasks.forecast.ensemble import MemberConfig, network_config
from unspool.training import options as training

FEWEST = 8
"""The smallest number of windows with their targets to learn from."""


@declared(network, optimisers, training, o)
@dataclass(eq=False, repr=False, kw_only=True)
class ForecastPlan(Arguments):
    """The arguments of a forecaster, and what follows from them for a series."""

    horizon: int = 12
    model: o.ModelName = "best"
    season: int | str = "guess"
    calendar: tuple[int, ...] = ()
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
        seasons = (
            [guess_season(values), 1, *self.calendar]
            if self.season == "guess"
            else [self._season(len(values))]
        )
        fixed = self.power != "guess" or self.differences != "guess"
        given = (lambda change: self._given(change, values)) if fixed else None
        self.changes_ = choose_changes(values, self.horizon, seasons, given)
        season = season_of(self.changes_)
        change = choose_transform(values, season)
        if fixed:
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
        recipe, steps = self.recipe(layout, count), layout.length // layout.fold
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

    def calibrated(self, layout: WindowSpec, count: int) -> int:
        """Return the number of values of the first training; 0 where too few would remain."""
        kept = count - max(layout.horizon + 8, round(self.calibration * count))
        enough = len(origins_of(layout, kept)) >= FEWEST
        return kept if self.calibration > 0 and enough else 0

    def recipe(self, layout: WindowSpec, count: int) -> MemberConfig:
        """Return how the networks are made and trained on the first values of a series."""
        return build(MemberConfig, self).chosen(len(origins_of(layout, count)), count)
