"""What `unspool forecast` reads and forecasts: options that are words, columns, where a history stands in time."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from unspool.cli.fit_options import Forecasting, as_column
from unspool.cli.options import names_of
from unspool.data.formats.timetable import read_timetable
from unspool.data.series.time_index import TimeIndex
from unspool.data.series.time_table import TimeTable, Values
from unspool.errors import InputError
from unspool.evaluation.intervals import check_level
from unspool.kernels.arrays import Real
from unspool.tasks.forecast.ensemble import Ensemble
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.forecast.run import ForecastRun

SHOWN = 5
"""Series, and faults, that an error names."""
Forecasts = dict[str, tuple[Real, Real | None, Real | None]]


def settings_of(options: Forecasting, clock: TimeIndex | None) -> dict[str, Any]:
    """Read the options that are words or numbers, and give all arguments of a forecaster."""
    check_level(options.level)
    season, differences = options.season, options.differences
    if season != "guess" and not season.isdecimal():
        raise InputError(f"season is {season!r}; expected a number of steps, or guess")
    pair = tuple(differences.split(","))
    if differences != "guess" and pair not in {("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")}:
        raise InputError(f"differences is {differences!r}; expected d,D as 0,1, or guess")
    given = {name: getattr(options, name) for name in names_of(Forecaster) if hasattr(options, name)}
    return given | {
        "season": season if season == "guess" else int(season),
        "calendar": clock.seasons() if clock else (),
        "differences": differences if differences == "guess" else (int(pair[0]), int(pair[1])),
    }


def read_columns(data: Path, options: Forecasting) -> TimeTable:
    """Read the table; a column that is a number goes by its place."""
    chosen = [as_column(column) for column in options.columns] if options.columns else None
    time, series = as_column(options.time), as_column(options.series)
    return read_timetable(data, chosen, time, options.missing, options.delimiter, series, options.dates)


def begin_columns(table: TimeTable, options: Forecasting) -> tuple[ForecastRun, dict[str, Ensemble]]:
    """Check all columns, and give their forecasters and the networks to train, before the first update."""
    settings, columns = settings_of(options, table.clock), table.columns
    models = {name: Forecaster(**settings) for name in columns}
    checks = {
        name: partial(models[name].check, values.y, values.known, options.level)
        for name, values in columns.items()
    }
    check_all(table, checks)
    ensembles = {}
    for name, values in columns.items():
        with about(table, name):  # the memory that is left may not suffice for the networks of this column
            ensembles[name] = models[name].begin(values.y, values.known)
    begins = {name: each.begin for name, each in columns.items()}
    return ForecastRun(models, table.time, table.clock, begins, table.long), ensembles


@contextmanager
def about(table: TimeTable, name: str) -> Iterator[None]:
    """Name the file and the column in whatever is wrong with it."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{table.name}: {table.noun} {name!r}: {error}") from error


def check_all(table: TimeTable, checks: Mapping[str, Callable[[], object]]) -> None:
    """Check every column before any is learned, and name all that cannot be used at once."""
    faults: dict[str, list[str]] = {}
    for name, check in checks.items():
        try:
            check()
        except InputError as error:
            faults.setdefault(str(error), []).append(repr(name))
    if faults:
        lines = [f"{_named(table, of)}: {fault}" for fault, of in faults.items()]
        more = f"; and {len(lines) - SHOWN:,} other faults" if len(lines) > SHOWN else ""
        raise InputError(f"{table.name}: {'; '.join(lines[:SHOWN])}{more}")


def _named(table: TimeTable, names: list[str]) -> str:
    """Name some series, the first few of many.

    >>> _named(TimeTable("a.csv", None, None, {}, [], 0), ["'a'", "'b'"])
    "columns 'a', 'b'"
    """
    noun = table.noun if len(names) == 1 or table.long else f"{table.noun}s"
    more = f" and {len(names) - SHOWN:,} others" if len(names) > SHOWN else ""
    return f"{noun} {', '.join(names[:SHOWN])}{more}"


def values_of(test: str, count: int) -> int:
    """Give how many values a test part has, from a number or a share with %."""
    share = test.removesuffix("%")
    if not share.replace(".", "", 1).isdecimal():
        raise InputError(f"test is {test!r}; expected a number of values, or a share as 20%")
    return max(1, round(count * float(share) / 100)) if test.endswith("%") else int(float(share))


def forecast_columns(run: ForecastRun, table: TimeTable, level: float, steps: int | None) -> Forecasts:
    """Forecast every column from the end of a table."""
    rows: Forecasts = {}
    for name, values in table.columns.items():
        model = run.forecasters[name]
        with about(table, name):
            phase = _phase(run, table, name, values)
            y_hat = model.predict(steps, values.y, phase)
            band: tuple[Real | None, Real | None] = None, None
            if model.errors_ is not None:
                band = model.predict_interval(level, steps, values.y, phase)
                _note_level(name, level, model)
            rows[name] = (y_hat, *band)
    return rows


def more_columns(
    run: ForecastRun, table: TimeTable, steps: int | None, levels: Sequence[float], samples: int, seed: int
) -> dict[str, dict[str, Real]]:
    """Return quantiles ("q0.9") and sample paths ("sample 1") of every column, by their names."""
    found: dict[str, dict[str, Real]] = {}
    for name, values in table.columns.items():
        model = run.forecasters[name]
        each: dict[str, Real] = {}
        with about(table, name):
            phase = _phase(run, table, name, values)
            if levels:
                quantiles = model.predict_quantiles(levels, steps, values.y, phase)
                each |= {f"q{level:g}": row for level, row in zip(levels, quantiles, strict=True)}
            if samples:
                paths = model.sample_paths(samples, steps, values.y, phase, seed)
                each |= {f"sample {i}": row for i, row in enumerate(paths, 1)}
        found[name] = each
    return found


def _note_level(name: str, level: float, model: Forecaster) -> None:
    """Print in one line on standard error that a band holds less than its level asks for."""
    reached = model.level_reached(level)
    if reached is not None and reached < level:
        print(
            f"unspool: column {name!r}: too few errors for a prediction interval of level {level:g}; its level is {reached:.3g} at most",
            file=sys.stderr,
        )


def _phase(run: ForecastRun, table: TimeTable, name: str, values: Values) -> int:
    """Give the place in time of a history's first value, counted from the first value that was learned."""
    begin = (run.begins or {}).get(name, 0)
    first = values.begin
    if run.clock is not None and table.clock is not None:
        number = run.clock.numbers([table.label(0)])[0]
        if number is None or table.clock.step != run.clock.step:
            raise InputError(
                f"its times do not go in the steps of the run, which begin at {run.clock.begin!r}"
            )
        first += number
    return first - begin


def remembered(run: ForecastRun, name: str) -> TimeTable:
    """Give the series that were learned as a table."""
    begins = run.begins or {}
    columns = {
        column: Values(model.history_, np.ones(len(model.history_), bool), begins.get(column, 0))
        for column, model in run.forecasters.items()
    }
    rows = max(each.end for each in columns.values())
    return TimeTable(name, run.time, run.clock, columns, [], rows, run.long)


def read_later(run: ForecastRun, data: Path, options: Any) -> TimeTable:
    """Read a table as in the fit of a run; of a long table, the series that were learned."""
    time = run.time or "none"
    if run.long is None:
        return read_timetable(
            data, list(run.forecasters), time, options.missing, options.delimiter, dates=options.dates
        )
    table = read_timetable(
        data, run.long.values, time, options.missing, options.delimiter, run.long.series, options.dates
    )
    known = {name: each for name, each in table.columns.items() if name in run.forecasters}
    strange = [repr(name) for name in table.columns if name not in known]
    if not known:
        learned = _named(table, [repr(name) for name in run.forecasters])
        raise InputError(f"{table.name}: no series that was learned; expected some of the {learned}")
    if strange:
        print(
            f"unspool: {table.name}: left out, never seen in training: {_named(table, strange)}",
            file=sys.stderr,
        )
    return replace(table, columns=known)
