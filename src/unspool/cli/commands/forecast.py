"""Forecast time series with prediction intervals, compared with simple baselines."""

import csv
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from unspool.cli.checks import check_before
from unspool.cli.default_out import default_run
from unspool.cli.fit_options import OF_FORECASTS, Forecasting
from unspool.cli.forecast_columns import (
    about,
    check_all,
    forecast_columns,
    read_columns,
    remembered,
    settings_of,
    values_of,
)
from unspool.cli.options import DATA, Flag, OfData, OfOutput, OutputOptions, option_class
from unspool.cli.output import notes, print_json, terminal
from unspool.cli.output_files import output
from unspool.cli.sources import RunFolder
from unspool.cli.views.forecast import (
    backtest_as_json,
    check_pictures,
    describe,
    draw_forecasts,
    forecast_table,
    forecasts_as_json,
    pictures,
    show_backtest,
    show_fit,
)
from unspool.data.formats.timetable import read_timetable
from unspool.evaluation.intervals import check_level
from unspool.plots.forecast import draw_backtest
from unspool.tasks.forecast.backtest import Backtesting, holdout_backtest
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.forecast.run import ForecastRun

app = App(name="forecast")


@dataclass(frozen=True, kw_only=True)
class Options(OutputOptions, Forecasting):
    """What `forecast fit` is given."""

    out: OfOutput[Path | None] = None
    """The folder to create [default: runs/NAME-forecast, NAME from DATA]."""
    plot: OfOutput[Path | None] = None
    """Draw the series, the forecast and its prediction interval into this file (.png, .svg, .pdf)."""


@dataclass(frozen=True, kw_only=True)
class Backtested(OutputOptions, Forecasting):
    """What `forecast backtest` is given."""

    test: OfData[str] = "20%"
    """Number of values at the end to forecast, or their percentage of the series, for example 20%."""
    stride: OfData[int] = 1
    """Number of steps from one origin to the next."""
    plot: OfOutput[Path | None] = None
    """Draw the forecasts and the true values, and the error for each number of steps ahead, into this file (.png, .svg, .pdf)."""


@option_class(known=OF_FORECASTS)
class Asked(OutputOptions):
    """What `forecast predict` is given."""

    missing: OfData[Literal["refuse", "interpolate", "mask"]] = "refuse"
    """Missing values: refuse, interpolate or mask."""
    delimiter: OfData[str | None] = None
    """Character between the fields [default: detected]."""
    horizon: Annotated[int | None, Parameter(name=["--steps", "--horizon"], group=DATA)] = None
    """Number of steps to forecast [default: the horizon of the run]."""
    level: float = 0.8
    json: OfOutput[Flag] = False
    """Print JSON instead of CSV."""
    plot: OfOutput[Path | None] = None
    """Draw the series, the forecast and its prediction interval into this file (.png, .svg, .pdf)."""


@app.command
def fit(data: Path, /, *, options: Options = Options()) -> None:
    """Train a forecaster for every column of a table, evaluate it on held-out values, and save it in a run.

    Parameters
    ----------
    data
        A table (CSV, TSV) with one or several numeric columns and optionally a column of times.
    """
    out = options.out or default_run([data], "forecast")
    check_before(out, options, inputs=[data])
    console = notes(options)
    settings = settings_of(options)
    table = read_columns(data, options)
    check_pictures(options, list(table.columns), data)
    describe(console, table)
    check_all(
        table,
        {
            name: partial(Forecaster(**settings).check, values.y, values.known, options.level)
            for name, values in table.columns.items()
        },
    )
    models, judged = {}, {}
    for name, values in table.columns.items():
        model = Forecaster(**settings)
        with about(table, name):
            show_fit(console, name, model, model.fit_iter(values.y, values.known))
        models[name], judged[name] = model, holdout_backtest(model, values.y, values.known)
    run = ForecastRun(
        models, table.time, table.clock, {name: each.begin for name, each in table.columns.items()}
    )
    scores = {name: backtest_as_json(each) for name, each in judged.items() if each is not None}
    run.save(out, data=str(data), scores=scores)
    for name, found in judged.items():
        if found is not None:
            said = f"{name}, the last {len(table.columns[name].y) - int(found.origins[0]):,} values, not trained on"
            show_backtest(console, said, found)
    rows = forecast_columns(run, table, options.level, None)
    console.print(forecast_table(table, rows, options.level))
    console.print(f"\nsaved in {out}; try: unspool forecast predict {out}", soft_wrap=True)
    draw_forecasts(options, table, rows, options.level)
    if options.json:
        columns = forecasts_as_json(table, run, options.level, rows, judged)
        print_json({"run": str(out), "level": options.level, "columns": columns})
    elif options.quiet:
        print(out)


@app.command
def predict(run: RunFolder, data: Path | None = None, /, *, options: Asked = Asked()) -> None:
    """Print forecasts as CSV: the values after the training series, or after the series in DATA.

    Parameters
    ----------
    data
        A table with the same columns: later values, or another series [default: the training series].
    """
    check_before(None, options, inputs=[data])
    check_level(options.level)
    found = ForecastRun.load(run)
    if data is None:
        table = remembered(found, str(run))
    else:
        table = read_timetable(
            data, list(found.forecasters), found.time or "none", options.missing, options.delimiter
        )
    check_pictures(options, list(table.columns), data)
    rows = forecast_columns(found, table, options.level, options.horizon)
    draw_forecasts(options, table, rows, options.level)
    if options.json:
        columns = forecasts_as_json(table, found, options.level, rows)
        print_json({"run": str(run), "level": options.level, "columns": columns})
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(
        [table.time or "step", *(f"{name}{end}" for name in rows for end in ("", " low", " high"))]
    )
    for k in range(len(next(iter(rows.values()))[0])):
        fields = ["" if each is None else repr(float(each[k])) for row in rows.values() for each in row]
        writer.writerow([table.label(table.rows + k), *fields])


@app.command
def backtest(data: Path, /, *, options: Backtested = Backtested()) -> None:
    """Forecast the end of a series from several origins, and compare with the baselines; nothing is saved.

    An origin is the time from which a forecast starts. The models are trained once, on the values before the first origin.

    Parameters
    ----------
    data
        A table (CSV, TSV) with one or several numeric columns and optionally a column of times.
    """
    check_before(None, options, inputs=[data])
    console, result = notes(options), terminal(quiet=options.json)
    settings = settings_of(options)
    table = read_columns(data, options)
    check_pictures(options, list(table.columns), data)
    describe(console, table)
    works = {
        name: Backtesting(
            Forecaster(**settings),
            values.y,
            values_of(options.test, len(values.y)),
            options.stride,
            options.level,
            values.known,
        )
        for name, values in table.columns.items()
    }
    check_all(table, {name: work.check for name, work in works.items()})
    judged = {}
    for name, work in works.items():
        with about(table, name):
            show_fit(console, name, work.forecaster, work.steps())
        assert work.result is not None
        judged[name] = work.result
        show_backtest(result, f"{name}, the last {work.test:,} values", work.result)
    for name, path in pictures(options, list(judged)).items():
        y, begin = table.columns[name].y, table.columns[name].begin
        labels = [table.label(begin + i) for i in range(len(y))]
        with output(path, force=options.force) as unfinished:
            draw_backtest(judged[name], y, unfinished, labels=labels, title=name)
    if options.json:
        content = {name: backtest_as_json(found) for name, found in judged.items()}
        print_json({"level": options.level, "horizon": options.horizon, "columns": content})
