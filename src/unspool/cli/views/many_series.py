"""What `unspool forecast fit` shows of many series: their number and the time left, then one table for all."""

import statistics
import time as clocks
from collections.abc import Generator, Iterable
from contextlib import closing
from typing import Any

from rich.console import Console
from rich.table import Table

from unspool.cli.output import plain_table, title
from unspool.cli.progress import counting_bar
from unspool.cli.views.forecast import backtest_as_json
from unspool.errors import InputError
from unspool.tasks.forecast.many import SeriesFit
from unspool.training.workers import Workers

LINES = 10
"""Progress lines where there is no terminal."""
FORECAST = "the forecast"
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
    figures = ("series", "mean MASE", "median", "highest", "lowest error")
    table = plain_table(f"{len(scores):,} series", right=figures, wide=True)
    known = {
        name: {model: row["mase"] for model, row in each["models"].items()} for name, each in scores.items()
    }
    answers = {name: known[name][_answer(each)] for name, each in scores.items()}
    best = [min(row, key=lambda model: (row[model] is None, row[model])) for row in known.values()]
    _add_row(table, FORECAST, answers.values(), None)
    for model in dict.fromkeys(model for row in known.values() for model in row):
        _add_row(table, model, [row.get(model) for row in known.values()], best.count(model))
    console.print(title("the last values of each series, not trained on"), soft_wrap=True)
    console.print(table)
    order = sorted((mase, name) for name, mase in answers.items() if mase is not None)
    for what, some in (("lowest", order[:EXTREMES]), ("highest", order[::-1][:EXTREMES])):
        named = ", ".join(f"{name} {mase:.4f}" for mase, name in some)
        console.print(f"  {what} errors of the forecast: {named}", soft_wrap=True)
    console.print()


def _answer(scores: dict[str, Any]) -> str:
    """Return the row of the model that answers."""
    models, answer = scores["models"], scores["answer"]
    name = answer[0] if len(answer) == 1 else "mean"
    return next(each for each in (name, "seasonal naive", "last value") if each in models)


def _add_row(table: Table, name: str, errors: Iterable[float | None], best: int | None) -> None:
    values = [each for each in errors if each is not None]
    if values:
        three = (statistics.fmean(values), statistics.median(values), max(values))
        cells = [f"{len(values):,}", *(f"{each:.4f}" for each in three), "" if best is None else f"{best:,}"]
        table.add_row(name, *cells, style="bold" if name == FORECAST else None)
