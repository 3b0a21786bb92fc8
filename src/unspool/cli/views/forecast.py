"""What `unspool forecast` shows and writes: progress, tables, pictures, JSON."""

import csv
import math
import sys
import time as clocks
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from unspool.cli.forecast_columns import Forecasts
from unspool.cli.options import OutputOptions
from unspool.cli.output import finite, plain_table, title
from unspool.cli.output_files import check_outputs, output
from unspool.cli.progress import fit_bar
from unspool.cli.signals import Stop
from unspool.data.series.time_table import TimeTable
from unspool.kernels.arrays import Real
from unspool.plots.forecast import draw_forecast
from unspool.tasks.forecast.answer import name_of
from unspool.tasks.forecast.backtest import Backtest
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.forecast.run import ForecastRun
from unspool.training.events import StepDone

NAMED = 8
"""Series whose names the first line of a fit lists."""


def describe(console: Console, table: TimeTable) -> None:
    """Say what was read, and what was left out or filled in."""
    span = f", {table.label(0)} to {table.label(table.rows - 1)}" if table.clock else ""
    lengths = [len(each.y) for each in table.columns.values()]
    sizes = f"{min(lengths):,} to {max(lengths):,} values each, " if table.long else ""
    names, more = list(table.columns)[:NAMED], len(lengths) - NAMED
    which = ", ".join(names) if more <= 0 else f"{len(lengths):,} series: {', '.join(names)}, …"
    console.print(title(table.name, f": {sizes}{table.rows:,} steps{span}; {which}"), soft_wrap=True)
    if table.left_out:
        console.print(f"  ignored, not numeric: {', '.join(table.left_out)}", soft_wrap=True)
    for name, values in table.columns.items():
        if values.filled:
            console.print(
                f"  {name}: {values.filled:,} missing values are interpolated as input and masked in the loss"
            )


def show_fit(
    console: Console, name: str, model: Forecaster, reports: Generator[StepDone], stop: Stop
) -> bool:
    """Run a fit with a bar, or a few lines where there is no terminal; return whether it was stopped by a signal."""
    begin, first, step = clocks.perf_counter(), 0, 0
    with fit_bar(console) as bar, closing(reports):
        task = bar.add_task(name, total=None)
        for report in reports:
            if not step:
                first = report.step - 1  # the updates before this process
                console.print(f"  {name}: {_planned(model, report.steps)}", soft_wrap=True)
            step, mean = report.step, report.train
            bar.update(
                task, completed=report.step, total=report.steps, description=f"{name} · loss {mean:.4f}"
            )
            if not console.is_terminal and report.step % max(1, report.steps // 4) == 0:
                spent = clocks.perf_counter() - begin
                left = spent / (report.step - first) * (report.steps - report.step)
                console.print(
                    f"  update {report.step:,} of {report.steps:,} · loss {mean:.4f} · {left:.0f} s left"
                )
            if stop():
                return True
    spent = clocks.perf_counter() - begin
    console.print(f"  {name}: {_chosen(model)}", soft_wrap=True)
    if step:
        console.print(f"  {step - first:,} updates in {spent:.1f} s", soft_wrap=True)
    if model.errors_ is None:
        console.print(
            "  no prediction interval: the series is too short to hold out values for it", soft_wrap=True
        )
    console.print()
    return False


def _planned(model: Forecaster, steps: int) -> str:
    """Say which networks the updates of a fit are for."""
    members, aside = len(model.fitted_.networks), 0 if model.trial_ is None else len(model.trial_[1].networks)
    band = f" and {aside} that only measure its errors" if aside else ""
    return f"{steps:,} updates planned for {members} network{'s' * (members > 1)} of the forecast{band}"


def _chosen(model: Forecaster) -> str:
    """Say what was chosen for a series."""
    change, layout, networks = model.change_, model.fitted_.layout, model.fitted_.networks
    parts = [f"season {change.season}" if change.season > 1 else "no season"]
    parts += [{"log": "logarithm", "root": "root"}[change.power]] if change.power != "none" else []
    parts += ["differences"] if change.d else []
    parts += ["seasonal differences"] if change.D else []
    parts.append(f"{layout.length} values read")
    parts.append(f"{len(networks)} × {networks[0].config.cell} of {networks[0].config.hidden} units")
    return " · ".join(parts)


def show_backtest(console: Console, heading: str, found: Backtest) -> None:
    """Print all models of a backtest in one table."""
    covers = any(row.coverage is not None for row in found.rows)
    figures = ("MASE", "RMSE", "vs naive", *[f"{found.level:.0%} coverage"] * covers)
    table = plain_table(
        f"{len(found.origins):,} origins, {found.horizon} steps ahead", right=figures, wide=True
    )
    for row in found.rows:
        cells = [
            f"{row.mase:.4f}",
            f"{row.rmse:,.4g}",
            f"{row.relative:.3f}" if math.isfinite(row.relative) else "–",
        ]
        if covers:
            cells.append("" if row.coverage is None else f"{row.coverage:.1%}")
        table.add_row(row.name, *cells, style="bold" if row.name == found.answer else None)
    console.print(title(heading), soft_wrap=True)
    console.print(table)
    console.print(f"  the forecast: {name_of(found.weights)}\n", soft_wrap=True)


def forecast_table(table: TimeTable, rows: Forecasts, level: float) -> Table:
    """Make a table of forecasts: a row a step, or of a long table a row for every series and step."""
    if table.long:
        return _long_table(table, rows, level)
    shown = plain_table(table.time or "step", wide=True)
    for name in rows:
        shown.add_column(name, justify="right")
        shown.add_column(f"{level:.0%} interval", justify="center")
    for k in range(len(next(iter(rows.values()))[0])):
        cells = list[str]()
        for y_hat, low, high in rows.values():
            band = [] if low is None or high is None else [float(low[k]), float(high[k])]
            digits = _digits(float(y_hat[k]), band)
            cells += [f"{y_hat[k]:.{digits}g}", " – ".join(f"{end:.{digits}g}" for end in band)]
        shown.add_row(table.label(table.rows + k), *cells)
    return shown


def _long_table(table: TimeTable, rows: Forecasts, level: float) -> Table:
    assert table.long is not None
    figures = ("forecast", f"{level:.0%} interval")
    shown = plain_table(table.long.series, table.time or "step", right=figures, wide=True)
    for name, (y_hat, low, high) in rows.items():
        for k, value in enumerate(y_hat):
            band = [] if low is None or high is None else [float(low[k]), float(high[k])]
            digits = _digits(float(value), band)
            interval = " – ".join(f"{end:.{digits}g}" for end in band)
            shown.add_row(name, table.label(table.columns[name].end + k), f"{value:.{digits}g}", interval)
    return shown


def write_forecasts(table: TimeTable, rows: Forecasts, more: Mapping[str, Mapping[str, Real]]) -> None:
    """Print forecasts as CSV: columns for each series, or of a long table a row for every series and step."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    ends = ("", " low", " high", *(f" {name}" for name in next(iter(more.values()), {})))
    when = table.time or "step"
    if table.long:
        writer.writerow([table.long.series, when, *(f"forecast{end}" for end in ends)])
        for name, row in rows.items():
            for k in range(len(row[0])):
                label = table.label(table.columns[name].end + k)
                writer.writerow([name, label, *_fields((*row, *more.get(name, {}).values()), k)])
        return
    writer.writerow([when, *(f"{name}{end}" for name in rows for end in ends)])
    for k in range(len(next(iter(rows.values()))[0])):
        fields = [
            field for name, row in rows.items() for field in _fields((*row, *more.get(name, {}).values()), k)
        ]
        writer.writerow([table.label(table.rows + k), *fields])


def _fields(row: Sequence[Real | None], k: int) -> list[str]:
    return ["" if each is None else repr(float(each[k])) for each in row]


def _digits(value: float, band: list[float]) -> int:
    """Return how many significant digits to print: enough to tell the ends of the band apart, 9 without a band.

    >>> _digits(448.2, [430.0, 461.5]), _digits(1_000_000_100.0, [1_000_000_090.0, 1_000_000_110.0])
    (5, 11)
    """
    if not band:
        return 9
    width, size = band[1] - band[0], max(map(abs, (value, *band)))
    return min(17, max(5, 4 + math.floor(math.log10(size / width)))) if width > 0 < size else 9


def draw_forecasts(options: OutputOptions, table: TimeTable, rows: Forecasts, level: float) -> None:
    """Draw a picture for every column, where one is asked for."""
    for name, (y_hat, low, high) in rows.items() if options.plot is not None else ():
        y, begin = table.columns[name].y, table.columns[name].begin
        shown = min(len(y), max(6 * len(y_hat), 48))
        first = begin + len(y) - shown
        labels = [table.label(first + i) for i in range(shown + len(y_hat))]
        with output(pictures(options, list(rows))[name], force=options.force) as path:
            draw_forecast(
                y[-shown:], y_hat, low, high, path, labels=labels, level=level, title=name
            )  # fmt: skip


def pictures(options: OutputOptions, names: list[str]) -> dict[str, Path]:
    """Return the path of each column's picture: of several, each has the column's name in its own."""
    plot = options.plot
    if plot is None or len(names) == 1:
        return {} if plot is None else {names[0]: plot}
    found = dict[str, Path]()
    for name in names:
        safe = "".join(letter if letter.isalnum() else "-" for letter in name)
        path, number = plot.with_stem(f"{plot.stem}-{safe}"), 2
        while path in found.values():  # names that differ only in signs
            path, number = plot.with_stem(f"{plot.stem}-{safe}-{number}"), number + 1
        found[name] = path
    return found


def check_pictures(options: OutputOptions, names: list[str], data: Path | None) -> None:
    """Raise unless the pictures of all columns can be written."""
    check_outputs(*pictures(options, names).values(), force=options.force, inputs=[data])


def backtest_as_json(found: Backtest) -> dict[str, Any]:
    """Give all figures of a backtest as plain values; what is no number is null."""
    models = {
        row.name: {
            "mase": finite(row.mase),
            "rmse": finite(row.rmse),
            "of_naive": finite(row.relative),
            "coverage": row.coverage,
            "mase_by_step": finite(found.by_step(row.name).tolist()),
        }
        for row in found.rows
    }
    return {
        "origins": len(found.origins),
        "scale": found.scale,
        "answer": found.weights,
        "models": models,
    }


def forecasts_as_json(
    table: TimeTable,
    run: ForecastRun,
    level: float,
    rows: Forecasts,
    scores: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Give forecasts as plain values; of a fit, which has scores, also what was chosen and judged."""
    content: dict[str, Any] = {}
    for name, (y_hat, low, high) in rows.items():
        content[name] = {
            "time": [table.label(table.columns[name].end + k) for k in range(len(y_hat))],
            "forecast": y_hat.tolist(),
            "low": None if low is None else low.tolist(),
            "high": None if high is None else high.tolist(),
            "level_reached": run.forecasters[name].level_reached(level),
            "model": name_of(run.forecasters[name].answer_),
        }
        if scores is not None:
            change = run.forecasters[name].change_
            content[name] |= {
                "season": change.season,
                "power": change.power,
                "differences": [change.d, change.D],
            }
        if scores is not None and name in scores:
            content[name]["not_trained_on"] = scores[name]
    return content
