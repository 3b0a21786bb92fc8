"""What a terminal shows of answers that are judged: figures of every class, and what is taken for what."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from unspool.draw.confusion import draw_confusion
from unspool.sequences.scores import Scores

SHOWN = 40
"""Of more classes than this, the most frequent are shown."""


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
