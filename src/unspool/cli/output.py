"""Print results: styled lines, tables and JSON. Text of the user is never read as markup."""

import json
import math
import os
import sys
from collections.abc import Callable, Sized
from typing import Any, Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text


def terminal(*, quiet: bool = False, stderr: bool = False) -> Console:
    """Return a console that prints text unchanged, long lines too; no colour and bars in a file, a pipe or with TERM=dumb.

    Rich itself prints no colour if NO_COLOR is set.
    """
    dumb = os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    return Console(
        highlight=False, markup=False, soft_wrap=True, quiet=quiet, stderr=stderr,
        force_terminal=False if dumb else None,
    )  # fmt: skip


class Shows(Protocol):
    """Options that decide how much a command prints."""

    @property
    def json(self) -> bool:
        """Whether the result is printed as JSON, and nothing else."""

    @property
    def quiet(self) -> bool:
        """Whether only the result is printed."""


def notes(options: Shows, *, stderr: bool = False) -> Console:
    """Return the console for progress and descriptions: it prints nothing with --json or --quiet."""
    return terminal(quiet=options.json or options.quiet, stderr=stderr)


def title(head: str, rest: str = "") -> Text:
    """Return a line whose first part is bold.

    >>> title("[red].csv", ": 3 rows").plain
    '[red].csv: 3 rows'
    """
    return Text.assemble((head, "bold"), rest)


def counted(count: int, what: str) -> str:
    """Return a number with a noun, in the plural except for 1.

    >>> counted(1, "thread"), counted(2000, "step")
    ('1 thread', '2,000 steps')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def held_out(rows: Sized | None) -> str:
    """Describe how many rows a fit holds out, as part of a sentence; an empty text if it holds out none."""
    return f", {len(rows):,} held out" if rows else ""


def plain_table(*left: str, right: tuple[str, ...] = (), wide: bool = False, gap: int = 2) -> Table:
    """Return a table without lines: columns of text, then columns of numbers; a wide one has a dim header."""
    padding = (0, gap) if wide else (0, gap, 0, 0)
    table = Table(box=None, pad_edge=False, padding=padding, header_style="dim" if wide else "table.header")
    for name in left:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    return table


def finite(value: Any, instead: Callable[[float], Any] = lambda _: None) -> Any:
    """Return plain values with infinity and NaN replaced, by null unless told otherwise: JSON has no such numbers."""
    if isinstance(value, dict):
        return {key: finite(each, instead) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each, instead) for each in value]
    return instead(value) if isinstance(value, float) and not math.isfinite(value) else value


def print_json(content: Any) -> None:
    """Print a result as one line of JSON; characters that standard output cannot encode are escaped."""
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    print(json.dumps(content, ensure_ascii=not encoding.startswith("utf")))
