"""What `unspool forecast fit` shows of many series: their number and the time left, then one table for all."""

import statistics
import time as clocks
from collections.abc import Generator
from contextlib import closing
from typing import Any

from rich.console import Console

from unspool.cli.output import plain_table, title
from unspool.cli.progress import counting_bar
from unspool.cli.views.forecast import backtest_as_json
from unspool.errors import InputError
from unspool.tasks.forecast.backtest import NETWORK
from unspool.tasks.forecast.many import SeriesFit
from unspool.training.workers import Workers

LINES = 10
"""Progress lines where there is no terminal."""
EXTREMES = 3
"""Series that the lines of the best and the worst name."""


def show_fit_of_many(
    console: Console, count: int, noun: str, reports: Generator[SeriesFit], workers: Workers
) -> dict[str, Any]:
    """Run the fit of many series with a bar, or a few lines where there is no terminal; return the scores by series."""
    begin, scores = clocks.perf_counter(), dict[str, Any]()
    how = "in this process" if workers.alone else f"by {workers.count:,} processes, one thread each"
    console.print(f"  {count:,} series to fit {how}", soft_wrap=True)
    said = "{task.completed:,} of {task.total:,} series"
    with counting_bar(console, said, indent=2) as bar, closing(reports):
        task = bar.add_task("", total=count)
        for done, report in enumerate(reports, 1):
            if report.fault is not None:
                raise InputError(f"{noun} {report.name!r}: {report.fault}")
            if report.scores is not None:
                scores[report.name] = backtest_as_json(report.scores)
            bar.update(task, completed=done)
            if not console.is_terminal and (done % max(1, count // LINES) == 0 or done == count):
                spent = clocks.perf_counter() - begin
                left = spent / done * (count - done)
                console.print(f"  {done:,} of {count:,} series · {spent:.1f} s, {left:.0f} s left")
    console.print()
    return scores


def show_scores_of_many(console: Console, scores: dict[str, Any]) -> None:
    """Print the scores of all series in one table, and the series with the lowest and the highest error."""
    if not scores:
        return
    first = next(iter(scores.values()))
    figures = ("mean MASE", "median", "highest", "lowest error")
    table = plain_table(f"{len(scores):,} series", right=figures, wide=True)
    known = {
        name: {model: row["mase"] for model, row in each["models"].items()} for name, each in scores.items()
    }
    best = [min(row, key=lambda model: (row[model] is None, row[model])) for row in known.values()]
    for model in first["models"]:
        values = [row[model] for row in known.values() if row.get(model) is not None]
        if values:
            cells = [
                f"{each:.4f}" for each in (statistics.fmean(values), statistics.median(values), max(values))
            ]
            table.add_row(model, *cells, f"{best.count(model):,}", style="bold" if model == NETWORK else None)
    console.print(title("the last values of each series, not trained on"), soft_wrap=True)
    console.print(table)
    order = sorted((row[NETWORK], name) for name, row in known.items() if row[NETWORK] is not None)
    for what, some in (("lowest", order[:EXTREMES]), ("highest", order[::-1][:EXTREMES])):
        console.print(
            f"{what} errors of the network: {', '.join(f'{name} {mase:.4f}' for mase, name in some)}",
            soft_wrap=True,
        )
    console.print()
