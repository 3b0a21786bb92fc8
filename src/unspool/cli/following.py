"""What a terminal shows while an estimator is fitted: a bar with the time left; plain lines in a file."""

from collections.abc import Generator
from contextlib import closing
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from unspool.cli.stopping import Stop
from unspool.draw.confusion import draw_confusion
from unspool.sequences.estimator import Estimator
from unspool.sequences.fit import Report
from unspool.sequences.scores import Scores

SHOWN = 40
"""Of more classes than this, the most frequent are shown."""
LINES = 10
"""How many plain lines a fit makes where there is no terminal."""


def follow(console: Console, estimator: Estimator, reports: Generator[Report], stop: Stop) -> int | None:
    """Run a fit to its end and show where it stands; give the update after which it was stopped, if it was."""
    bar = Progress(
        TextColumn("  {task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=console,
        disable=not console.is_terminal or console.quiet,
        transient=True,
    )
    report = None
    with bar, closing(reports):
        task, valid = bar.add_task("fitting", total=None), ""
        for report in reports:
            if report.valid is not None:
                valid = f" · set aside {report.valid:.4f}{' *' if report.best else ''}"
            said = f"loss {report.loss:.4f}{valid}"
            bar.update(task, completed=report.step, total=report.steps, description=said)
            if not console.is_terminal and _due(report):
                console.print(
                    f"  update {report.step:,} of {report.steps:,} · {report.seconds:.1f} s, "
                    f"{report.seconds / report.step * (report.steps - report.step):.0f} s left · {said}",
                    soft_wrap=True,
                )
            if stop():
                return report.step
    if report is not None:
        stopped = "" if report.step == report.steps else ", stopped early"
        kept = f"{stopped}, the best parameters kept" if estimator.validation else ""
        console.print(f"  {report.step:,} updates in {report.seconds:.1f} s{kept}", soft_wrap=True)
    return None


def _due(report: Report) -> bool:
    every = max(1, report.steps // LINES)
    return report.step % every == 0 or report.step == report.steps


def scores_table(scores: Scores) -> Table:
    """Make a table of every class."""
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    table.add_column("class")
    for name in ("precision", "recall", "F1", "of"):
        table.add_column(name, justify="right")
    largest = sorted(scores.classes, key=lambda each: -each.support)[:SHOWN]
    for each in (each for each in scores.classes if each in largest):
        table.add_row(
            each.name, f"{each.precision:.3f}", f"{each.recall:.3f}", f"{each.f1:.3f}", f"{each.support:,}"
        )
    if len(scores.classes) > SHOWN:
        table.add_row(f"… {len(scores.classes) - SHOWN} more", "", "", "", "")
    return table


def confusion_lines(scores: Scores) -> list[str]:
    """Draw the confusion matrix in characters: the truth in rows, the answers in columns."""
    names = [each.name for each in scores.classes]
    counts = scores.confusion
    width = max(3, len(f"{counts.max():,}"))
    left = min(16, max(map(len, names)))
    lines = [" " * (left + 1) + " ".join(name[:width].rjust(width) for name in names)]
    for name, row in zip(names, counts.tolist(), strict=True):
        cells = " ".join((f"{n:,}" if n else "·").rjust(width) for n in row)
        lines.append(f"{name[:left].ljust(left)} {cells}")
    return lines


def show_scores(console: Console, scores: Scores, of: str, what: str = "sequences") -> None:
    """Print accuracy, macro F1, every class, and the confusion matrix where it fits."""
    total = int(scores.confusion.sum())
    console.print(
        f"[bold]{of}[/bold]: {total:,} {what}, accuracy {scores.accuracy:.4f}, macro F1 {scores.macro_f1:.4f}\n",
        soft_wrap=True,
    )
    console.print(scores_table(scores))
    lines = confusion_lines(scores)
    if len(lines) <= SHOWN and len(lines[0]) <= max(console.width, 100):
        console.print("\ntruth in rows, answers in columns", style="dim")
        for line in lines:
            console.print(line, soft_wrap=True, markup=False)


def draw_scores(scores: Scores, path: Path) -> None:
    """Draw the confusion matrix into a file."""
    draw_confusion(scores.confusion, [each.name for each in scores.classes], path)
