"""The forecasters of a table, one per column, as one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from unspool.data.series.time_index import TimeIndex
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.forecast.store import read_forecasters, write_forecasters


@dataclass(frozen=True)
class ForecastRun:
    """Forecasters by column, and the times of their series."""

    forecasters: dict[str, Forecaster]
    time: str | None = None
    """The column of times."""
    clock: TimeIndex | None = None
    begins: dict[str, int] | None = None
    """The number of each column's first value."""

    def save(self, path: str | Path, **more: Any) -> None:
        """Write the fitted forecasters as a new run; `more` goes into its config."""
        write_forecasters(self.forecasters, path, more, time=self.time, clock=self.clock, begins=self.begins)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read all forecasters of a run."""
        return cls(*read_forecasters(Forecaster, path))


def load_forecasts(path: str | Path) -> Forecaster | ForecastRun:
    """Read a run: the forecaster of its only column, or all of them."""
    run = ForecastRun.load(path)
    return next(iter(run.forecasters.values())) if len(run.forecasters) == 1 else run
