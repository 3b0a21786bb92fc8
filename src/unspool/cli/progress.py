"""Progress of work that takes its time: bars in a terminal, plain lines elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

WIDTH = 28


def shows_progress(console: Console) -> bool:
    """Return whether bars are drawn: in a terminal, unless the console is quiet."""
    return console.is_terminal and not console.quiet


def progress_bar(
    console: Console, *columns: str | ProgressColumn, transient: bool = True, hidden: bool = False
) -> Progress:
    """Return a bar with columns beside it; it prints nothing where no bar is drawn."""
    parts = [TextColumn(each) if isinstance(each, str) else each for each in columns]
    hidden = hidden or not shows_progress(console)
    return Progress(*parts, console=console, transient=transient, disable=hidden)


def counting_bar(console: Console, counted: str, *, indent: int = 0, hidden: bool = False) -> Progress:
    """Return a bar for things that are counted, with the time left, for example of the format "{task.completed:,} tokens"."""
    indented = [" " * (indent - 1)] if indent else []
    left = (TimeRemainingColumn(compact=True), "left")
    return progress_bar(console, *indented, BarColumn(bar_width=WIDTH), counted, *left, hidden=hidden)


def fit_bar(console: Console) -> Progress:
    """Return a bar for the updates of a fit: a description, the share that is done, the time left."""
    left = TimeRemainingColumn(compact=True, elapsed_when_finished=True)
    return progress_bar(
        console, "  {task.description}", BarColumn(bar_width=30), "{task.percentage:>3.0f}%", left
    )


@contextmanager
def stages(console: Console, count: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that is called with the name of each of `count` stages when it starts."""
    columns = ("{task.description:34}", BarColumn(bar_width=WIDTH), TimeElapsedColumn())
    with progress_bar(console, *columns) as progress:
        task, started = progress.add_task("", total=count), iter(range(count))
        yield lambda what: progress.update(task, description=what, completed=next(started, count))


def waiting(console: Console, what: str) -> AbstractContextManager[Any]:
    """Return a context that shows a spinner with a message, in a terminal."""
    return console.status(what) if shows_progress(console) else nullcontext()
