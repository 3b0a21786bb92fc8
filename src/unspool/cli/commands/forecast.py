"""Forecast time series with prediction intervals, compared with simple baselines."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from cyclopts import App, Parameter
from rich.console import Console

from unspool.cli.checks import check_before
from unspool.cli.fit import resume_fit, start_fit
from unspool.cli.fit_options import OF_FORECASTS, Forecasting, StoredOptions
from unspool.cli.forecast_columns import (
    about,
    begin_columns,
    check_all,
    forecast_columns,
    more_columns,
    read_columns,
    read_later,
    remembered,
    settings_of,
    values_of,
)
from unspool.cli.options import (
    DATA,
    Flag,
    OfData,
    OfOutput,
    OutputOptions,
    RunOptions,
    WorkerOptions,
    option_class,
)
from unspool.cli.output import notes, print_json, terminal
from unspool.cli.output_files import output
from unspool.cli.precision import with_precision
from unspool.cli.predict import note_unfinished
from unspool.cli.signals import Stop, finish_fit
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
    write_forecasts,
)
from unspool.cli.views.many_series import show_fit_of_many, show_scores_of_many
from unspool.cli.workers import FEW, workers_for
from unspool.data.series.time_table import TimeTable
from unspool.errors import InputError
from unspool.evaluation.intervals import check_level
from unspool.options import whole
from unspool.plots.forecast import draw_backtest
from unspool.storage import run_folder
from unspool.storage.schema import read_as
from unspool.tasks.forecast.backtest import Backtesting, holdout_backtest
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.forecast.many import fit_many
from unspool.tasks.forecast.run import ForecastFit, ForecastRun, open_fit
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.store import fit_has_ended
from unspool.training.workers import Workers

app = App(name="forecast")


@dataclass(frozen=True, kw_only=True)
class Options(WorkerOptions, StoredOptions, Forecasting):
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
    dates: OfData[Literal["guess", "day-first", "month-first"]] = "guess"
    """Order of dates as 03/04/2020: day-first, month-first or guess (from all rows; an error if both fit)."""
    horizon: Annotated[int | None, Parameter(name=["--steps", "--horizon"], group=DATA)] = None
    """Number of steps to forecast [default: the horizon of the run]."""
    level: float = 0.8
    quantiles: Annotated[
        list[float] | None, Parameter(group="Output", negative="", consume_multiple=True)
    ] = None
    """Quantiles to print besides the interval, for example 0.05 0.5 0.95."""
    samples: OfOutput[int] = 0
    """Number of sample paths to print: forecasts with errors as they occurred together in held-out forecasts."""
    seed: OfOutput[int] = 0
    """Seed of the sample paths."""
    append: OfData[Path | None] = None
    """Table with new observations: take them into the run, without a new fit, and forecast from their end. Rows that the run has already are skipped."""
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
        A table (CSV, TSV) with one or several numeric columns and optionally a column of times; with --series, a long table.
    """
    start_fit(FIT, data, options, streams=True)


class ForecastCommand(NamedTuple):
    """The fit of forecasters, as `unspool resume` knows it."""

    name: str = "forecast"
    options: type[StoredOptions] = Options
    uses: tuple[str, ...] = ("forecast predict RUN",)

    def fit(self, data: Path, options: Any, console: Console, more: dict[str, Any]) -> None:
        """Fit a forecaster for every column, evaluate it on held-out values, and forecast."""
        table, out, stop = read_columns(data, options), options.out, Stop()
        check_pictures(options, list(table.columns), data)
        describe(console, table)
        if len(table.columns) > FEW:
            console.print(f"  choosing season, window and size of each of {len(table.columns):,} series")
        content: dict[str, Any] = {"run": str(out), "level": options.level}
        scores: dict[str, Any] | None
        if not more and fit_has_ended(out):
            run, content_of = ForecastRun.load(out), run_folder.read_config(out, self.name)
            scores = read_as(dict[str, Any], content_of.get("scores", {}), out / run_folder.CONFIG, "scores")
        else:
            run, ensembles = begin_columns(table, options)
            if more:
                run.create(out, ensembles, more)
            try:
                with open_fit(run, ensembles, out, CheckpointPolicy(steps=options.save_every)) as work:
                    workers = workers_for(len(ensembles), options)
                    if len(ensembles) > FEW or not workers.alone:
                        scores = _fit_many(console, table, work, stop, workers)
                    else:
                        scores = _fit_columns(console, table, work, stop)
                    content |= {"stopped": work.step} if scores is None else {}
            except KeyboardInterrupt:
                content["stopped"] = None
        if "stopped" not in content:
            rows = forecast_columns(run, table, options.level, None)
            if len(rows) <= FEW:
                console.print(forecast_table(table, rows, options.level))
            console.print(f"\nsaved in {out}; try: unspool forecast predict {out}", soft_wrap=True)
            draw_forecasts(options, table, rows, options.level)
            content["columns"] = forecasts_as_json(table, run, options.level, rows, scores)
        finish_fit(content, out, options, stop)

    def resume(self, run: Path, kept: RunOptions) -> None:
        """Resume a run."""
        resume_fit(self, run, kept)


FIT = ForecastCommand()


def _fit_columns(console: Console, table: TimeTable, work: ForecastFit, stop: Stop) -> dict[str, Any] | None:
    """Fit all columns, and evaluate them when all are fitted; return the scores, or None if a signal came."""
    stop.listen()
    for name, model in work.run.forecasters.items():
        with about(table, name):
            if show_fit(console, name, model, work.column(name), stop):
                return None
    stop.at_once()
    scores = {}
    for name, model in work.run.forecasters.items():
        values = table.columns[name]
        found = holdout_backtest(model, values.y, values.known)
        if found is not None:
            scores[name] = backtest_as_json(found)
            said = f"{name}, the last {len(values.y) - int(found.origins[0]):,} values, not trained on"
            show_backtest(console, said, found)
    work.finish(scores)
    return scores


def _fit_many(
    console: Console, table: TimeTable, work: ForecastFit, stop: Stop, workers: Workers
) -> dict[str, Any]:
    """Fit many series at the same time; a signal saves those that are fitted and raises KeyboardInterrupt."""
    stop.listen()
    stop.at_once()
    reports = fit_many(work, table.columns, workers)
    try:
        scores = show_fit_of_many(console, len(table.columns), table.noun, reports, workers)
    except BaseException:
        work.save()
        raise
    show_scores_of_many(console, scores)
    work.finish({name: scores[name] for name in table.columns if name in scores})
    return scores


@app.command
def predict(run: RunFolder, data: Path | None = None, /, *, options: Asked = Asked()) -> None:
    """Print forecasts as CSV: the values after the training series, or after the series in DATA.

    Parameters
    ----------
    data
        A table with the same columns: later values, or another series [default: the training series].
    """
    check_before(None, options, inputs=[data, options.append])
    check_level(options.level)
    if data is not None and options.append is not None:
        raise InputError(
            "append: give new observations as --append FILE or another history as DATA, not both"
        )
    found = ForecastRun.load(run)
    note_unfinished(run, "forecast", found)
    if options.append is not None:
        newer = read_later(found, options.append, options)
        added = found.append(newer, run)
        print(f"unspool: appended to {run}: {max(added.values()):,} steps", file=sys.stderr)
    table = remembered(found, str(run)) if data is None else read_later(found, data, options)
    check_pictures(options, list(table.columns), data)
    rows = forecast_columns(found, table, options.level, options.horizon)
    levels = options.quantiles or []
    more = more_columns(
        found, table, options.horizon, levels, whole(0)("samples", options.samples), options.seed
    )
    draw_forecasts(options, table, rows, options.level)
    if options.json:
        columns = forecasts_as_json(table, found, options.level, rows)
        for name, each in more.items() if any(more.values()) else ():
            columns[name]["more"] = {key: row.tolist() for key, row in each.items()}
        print_json({"run": str(run), "level": options.level, "columns": columns})
        return
    write_forecasts(table, rows, more)


@app.command
def backtest(data: Path, /, *, options: Backtested = Backtested()) -> None:
    """Forecast the end of a series from several origins, and compare with the baselines; nothing is saved.

    An origin is the last time whose value a forecast uses; the forecast starts at the next step.
    The models are trained once, on the values up to the first origin.

    Parameters
    ----------
    data
        A table (CSV, TSV) with one or several numeric columns and optionally a column of times.
    """
    options = with_precision(options)
    check_before(None, options, inputs=[data])
    console, result = notes(options), terminal(quiet=options.json)
    table = read_columns(data, options)
    settings = settings_of(options, table.clock)
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
            show_fit(console, name, work.forecaster, work.steps(), Stop())
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
