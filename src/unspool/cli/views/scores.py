"""What a terminal shows of answers that are judged: figures of every class, and what is taken for what."""

from collections.abc import Iterable
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from unspool.cli.options import OutputOptions
from unspool.cli.output import plain_table, title
from unspool.cli.output_files import output
from unspool.cli.predict import Predictions
from unspool.evaluation.scores import Scores
from unspool.plots.confusion import draw_confusion

SHOWN = 40
"""Of more classes than this, the most frequent are shown."""
DRAWN = 300
"""Of more classes than this, the most frequent are drawn."""
LEFT = 16
"""So much of a class's name stands before its row, or more where it takes more to tell it from the others."""


def scores_table(scores: Scores) -> Table:
    """Make a table of every class."""
    table = plain_table("class", right=("precision", "recall", "F1", "count"), wide=True)
    largest = sorted(scores.classes, key=lambda each: -each.support)[:SHOWN]
    for each in (each for each in scores.classes if each in largest):
        table.add_row(
            each.name, f"{each.precision:.3f}", f"{each.recall:.3f}", f"{each.f1:.3f}", f"{each.support:,}"
        )
    if len(scores.classes) > SHOWN:
        table.add_row(f"… {len(scores.classes) - SHOWN} more", "", "", "", "")
    return table


def confusion_lines(scores: Scores, room: int) -> list[str]:
    """Draw the confusion matrix in characters: the truth in rows, the answers in columns.

    The columns' heads are beginnings of the names, as long as it takes to tell them apart; where these have no room,
    the classes are numbered. No line, where there is no room for that either.
    """
    names, counts = [each.name for each in scores.classes], scores.confusion.tolist()
    cells = [[f"{n:,}" if n else "·" for n in row] for row in counts]
    cut = beginnings(names, LEFT)
    numbers = [str(i) for i in range(1, len(names) + 1)]
    numbered = [f"{i:>{len(numbers[-1])}} {left}" for i, left in enumerate(cut, 1)]
    for lefts, heads in ((cut, beginnings(names, 3)), (numbered, numbers)):
        lines = _lined_up([["", *heads], *([left, *row] for left, row in zip(lefts, cells, strict=True))])
        if cell_len(lines[0]) <= room:
            return lines
    return []


def beginnings(names: list[str], least: int) -> list[str]:
    """Cut names to the fewest characters, `least` or more, that leave them all different.

    >>> beginnings(["Portuguese", "Polish", "Greek"], 3)
    ['Por', 'Pol', 'Gre']
    >>> beginnings(["north-east", "north-west"], 3)
    ['north-e', 'north-w']
    """
    longest = max(map(len, names))
    lengths = range(min(least, longest), longest + 1)
    return next(cut for n in lengths if len(set(cut := [name[:n] for name in names])) == len(set(names)))


def _lined_up(rows: list[list[str]]) -> list[str]:
    """Put blanks before what stands in columns, and after what stands at the left."""
    widths = [max(3 * (i > 0), *map(cell_len, column)) for i, column in enumerate(zip(*rows, strict=True))]
    width = max(widths[1:])
    lines = list[str]()
    for left, *cells in rows:
        fill = " " * (widths[0] - cell_len(left))
        lines.append(" ".join([left + fill, *(" " * (width - cell_len(cell)) + cell for cell in cells)]))
    return lines


def show_scores(console: Console, scores: Scores, of: str, what: str = "sequences") -> None:
    """Print accuracy, macro F1, every class, and the confusion matrix where it fits."""
    console.print(
        title(
            of, f": {scores.total:,} {what}, accuracy {scores.accuracy:.4f}, macro F1 {scores.macro_f1:.4f}\n"
        )
    )
    console.print(scores_table(scores))
    room = console.width if console.is_terminal else max(console.width, 100)
    lines = confusion_lines(scores, room) if len(scores.classes) <= SHOWN else []
    if lines:
        console.print("\ntruth in rows, predictions in columns", style="dim")
        for line in lines:
            console.print(line)


def report_held_out(
    console: Console, scores: Scores, options: OutputOptions, what: str = "sequences"
) -> dict[str, Any]:
    """Print and draw the scores on held-out data; return the fields of --json."""
    console.print()
    show_scores(console, scores, "held out", what)
    draw_scores(scores, options)
    return {"scores": scores.to_json()}


def with_scores(
    content: dict[str, Any], lines: Iterable[str], scores: Scores | None, of: str, what: str = "sequences"
) -> Predictions:
    """Return predictions of classes with their scores, where there are labels."""
    if scores is None:
        return Predictions(content, lines)
    return Predictions(
        content, lines, scores.to_json(), lambda console: show_scores(console, scores, of, what)
    )


def draw_scores(scores: Scores | None, options: OutputOptions) -> None:
    """Draw the confusion matrix into the file of --plot; of very many classes, of the most frequent."""
    if options.plot is None or scores is None:
        return
    scores = scores.most_frequent(DRAWN) if len(scores.classes) > DRAWN else scores
    with output(options.plot, force=options.force) as unfinished:
        draw_confusion(scores.confusion, [each.name for each in scores.classes], unfinished)
