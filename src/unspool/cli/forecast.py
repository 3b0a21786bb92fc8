"""`unspool forecast fit`, `predict` and `backtest`: what a series of numbers does next."""

import csv
import json as jsonlib
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from rich.console import Console

from unspool.cli.fitting import DATA, NETWORK, OUTPUT, TIME, TRAINING, check_before
from unspool.cli.forecasting import (
    about,
    backtest_as_json,
    describe,
    draw_forecasts,
    follow,
    forecast_columns,
    forecast_table,
    forecasts_as_json,
    picture_of,
    read_columns,
    remembered,
    settings_of,
    show_backtest,
    values_of,
)
from unspool.cli.options import Flag
from unspool.draw.forecast import draw_backtest
from unspool.forecast.backtest import Backtesting, trial
from unspool.forecast.forecaster import Forecaster
from unspool.forecast.store import Run, load, save
from unspool.values import CellName

app = App(
    name="forecast", help="What a series of numbers does next, with intervals, beside simple baselines."
)

Columns = Annotated[list[str] | None, Parameter(group=DATA, negative="", consume_multiple=True)]
Time = Annotated[str | None, Parameter(group=DATA)]
Delimiter = Annotated[str | None, Parameter(group=DATA)]
Missing = Annotated[Literal["refuse", "interpolate", "mask"], Parameter(group=DATA)]
Horizon = Annotated[int, Parameter(group=DATA)]
Season = Annotated[str, Parameter(group=DATA)]
Power = Annotated[Literal["guess", "none", "root", "log"], Parameter(group=DATA)]
Differences = Annotated[str, Parameter(group=DATA)]
Threads = Annotated[int | None, Parameter(group=TIME)]
Steps = Annotated[int, Parameter(group=TIME)]
Cell = Annotated[CellName, Parameter(group=NETWORK)]
Hidden = Annotated[int, Parameter(group=NETWORK)]
Members = Annotated[int, Parameter(group=NETWORK)]
Window = Annotated[int, Parameter(group=NETWORK)]
Seed = Annotated[int, Parameter(group=TRAINING)]
Level = Annotated[float, Parameter(group=OUTPUT)]
Json = Annotated[Flag, Parameter(group=OUTPUT)]
Plot = Annotated[Path | None, Parameter(group=OUTPUT)]


@app.command
def fit(
    data: Path,
    /,
    *,
    out: Annotated[Path, Parameter(group=OUTPUT)],
    columns: Columns = None,
    time: Time = None,
    missing: Missing = "refuse",
    delimiter: Delimiter = None,
    horizon: Horizon = 12,
    season: Season = "guess",
    power: Power = "guess",
    differences: Differences = "guess",
    steps: Steps = 0,
    threads: Threads = None,
    cell: Cell = "gru",
    hidden: Hidden = 0,
    members: Members = 0,
    window: Window = 0,
    seed: Seed = 0,
    level: Level = 0.8,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """Learn to forecast every column of a table, judge it on values kept aside, and keep it in a run.

    Parameters
    ----------
    data
        A table with one or several columns of numbers, and perhaps one of times (CSV, TSV).
    out
        The folder to make.
    columns
        The columns to forecast, by name or number from 0 [default: all that have numbers].
    time
        The column of times [default: recognised]; none: there is none.
    missing
        Missing values: refuse, interpolate (and take it for observed) or mask (interpolate to read, never learn).
    delimiter
        What stands between the fields [default: guessed].
    horizon
        How many steps ahead.
    season
        Steps until the series looks as before; 1: no season; guess: from the autocorrelation.
    power
        Whether the logarithm or the root is learned; guess: by how the spread follows the level.
    differences
        d,D: ordinary and seasonal, each 0 or 1; guess: by autocorrelations.
    steps
        Updates of each network; 0: chosen by the length.
    threads
        How many threads; it changes no bit of the result.
    cell
        The recurrence.
    hidden
        H, the units; 0: chosen by the length.
    members
        How many networks are averaged; 0: 4, or 2 for long series.
    window
        How many values a network reads; 0: three seasons, or what a second season needs.
    seed
        Where all random numbers come from.
    level
        The share of what comes that the band should hold.
    json
        Print the result as JSON, and nothing else.
    plot
        Draw the series, the forecast and its band into this file (.png, .svg, .pdf).
    """
    check_before(out, plot, threads)
    console = Console(highlight=False, quiet=json)
    table = read_columns(data, columns, time, missing, delimiter)
    describe(console, table)
    settings = settings_of(
        horizon=horizon, season=season, power=power, differences=differences, steps=steps, cell=cell,
        hidden=hidden, members=members, window=window, seed=seed,
    )  # fmt: skip
    models, judged = {}, {}
    for name, values in table.columns.items():
        model = Forecaster(**settings)
        with about(table, name):
            follow(console, name, model, model.fitting(values.y, values.known))
        models[name], judged[name] = model, trial(model, values.y, values.known)
    run = Run(models, table.time, table.clock, {name: each.begin for name, each in table.columns.items()})
    save(run, out, data=str(data))
    for name, found in judged.items():
        if found is not None:
            said = f"{name}, the last {len(table.columns[name].y) - int(found.origins[0]):,} values, not trained on"
            show_backtest(console, said, found)
    rows = forecast_columns(run, table, level, None)
    console.print(forecast_table(table, rows, level))
    console.print(f"\nkept in {out}; try: unspool forecast predict {out}", soft_wrap=True)
    draw_forecasts(plot, table, rows, level)
    if json:
        print(
            jsonlib.dumps(
                {"run": str(out), "level": level, "columns": forecasts_as_json(table, models, judged, rows)}
            )
        )


@app.command
def predict(
    run: Path,
    data: Path | None = None,
    /,
    *,
    missing: Missing = "refuse",
    delimiter: Delimiter = None,
    steps: Annotated[int | None, Parameter(group=DATA)] = None,
    threads: Threads = None,
    level: Level = 0.8,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """Forecast what follows the series that was learned, or another history of the same columns, as CSV.

    Parameters
    ----------
    run
        The folder of the run.
    data
        A table with the same columns: what came since, or another series [default: the series that was learned].
    missing
        Missing values: refuse, interpolate or mask.
    delimiter
        What stands between the fields [default: guessed].
    steps
        How many steps ahead [default: the horizon of the run].
    threads
        How many threads; it changes no bit of the result.
    level
        The share of what comes that the band should hold.
    json
        Print JSON instead of CSV.
    plot
        Draw the series, the forecast and its band into this file (.png, .svg, .pdf).
    """
    check_before(None, plot, threads)
    found = load(run)
    if data is None:
        table = remembered(found, str(run))
    else:
        table = read_columns(data, list(found.forecasters), found.time or "none", missing, delimiter)
    rows = forecast_columns(found, table, level, steps)
    draw_forecasts(plot, table, rows, level)
    if json:
        print(
            jsonlib.dumps(
                {"run": str(run), "level": level, "columns": forecasts_as_json(table, {}, {}, rows)}
            )
        )
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(
        [table.time or "step", *(f"{name}{end}" for name in rows for end in ("", " low", " high"))]
    )
    for k in range(len(next(iter(rows.values()))[0])):
        fields = [f"{each[k]:.6g}" if each is not None else "" for row in rows.values() for each in row]
        writer.writerow([table.label(table.rows + k), *fields])


@app.command
def backtest(
    data: Path,
    /,
    *,
    test: Annotated[str, Parameter(group=DATA)] = "20%",
    stride: Annotated[int, Parameter(group=DATA)] = 1,
    columns: Columns = None,
    time: Time = None,
    missing: Missing = "refuse",
    delimiter: Delimiter = None,
    horizon: Horizon = 12,
    season: Season = "guess",
    power: Power = "guess",
    differences: Differences = "guess",
    steps: Steps = 0,
    threads: Threads = None,
    cell: Cell = "gru",
    hidden: Hidden = 0,
    members: Members = 0,
    window: Window = 0,
    seed: Seed = 0,
    level: Level = 0.8,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """Forecast the end of a series from one origin after another, beside the baselines; nothing is kept.

    Everything is learned once, from what lies before the first origin.

    Parameters
    ----------
    data
        A table with one or several columns of numbers, and perhaps one of times (CSV, TSV).
    test
        How many values at the end are forecast, or their share with %.
    stride
        Steps from one origin to the next.
    columns
        The columns to forecast, by name or number from 0 [default: all that have numbers].
    time
        The column of times [default: recognised]; none: there is none.
    missing
        Missing values: refuse, interpolate (and take it for observed) or mask (interpolate to read, never score).
    delimiter
        What stands between the fields [default: guessed].
    horizon
        How many steps ahead.
    season
        Steps until the series looks as before; 1: no season; guess: from the autocorrelation.
    power
        Whether the logarithm or the root is learned; guess: by how the spread follows the level.
    differences
        d,D: ordinary and seasonal, each 0 or 1; guess: by autocorrelations.
    steps
        Updates of each network; 0: chosen by the length.
    threads
        How many threads; it changes no bit of the result.
    cell
        The recurrence.
    hidden
        H, the units; 0: chosen by the length.
    members
        How many networks are averaged; 0: 4, or 2 for long series.
    window
        How many values a network reads; 0: chosen.
    seed
        Where all random numbers come from.
    level
        The share of what comes that the band should hold.
    json
        Print the result as JSON, and nothing else.
    plot
        Draw forecasts over the truth, and the errors by steps ahead, into this file (.png, .svg, .pdf).
    """
    check_before(None, plot, threads)
    console = Console(highlight=False, quiet=json)
    table = read_columns(data, columns, time, missing, delimiter)
    describe(console, table)
    settings = settings_of(
        horizon=horizon, season=season, power=power, differences=differences, steps=steps, cell=cell,
        hidden=hidden, members=members, window=window, seed=seed,
    )  # fmt: skip
    judged = {}
    for name, values in table.columns.items():
        model = Forecaster(**settings)
        kept = values_of(test, len(values.y))
        work = Backtesting(model, values.y, kept, stride, level, values.known)
        with about(table, name):
            follow(console, name, work.forecaster, work.steps())
        assert work.result is not None
        judged[name] = work.result
        show_backtest(console, f"{name}, the last {kept:,} values", work.result)
    for name, found in judged.items():
        if plot is not None:
            y, begin = table.columns[name].y, table.columns[name].begin
            labels = [table.label(begin + i) for i in range(len(y))]
            draw_backtest(found, y, picture_of(plot, name, len(judged)), labels=labels, title=name)
    if json:
        content = {name: backtest_as_json(found) for name, found in judged.items()}
        print(jsonlib.dumps({"level": level, "horizon": horizon, "columns": content}))
