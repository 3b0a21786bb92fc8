"""The terminal: styles are given apart from words, so that brackets in a user's names stay what they are."""

from rich.console import Console
from rich.text import Text


def terminal(*, quiet: bool = False, stderr: bool = False) -> Console:
    """Give a console that prints words as they are."""
    return Console(highlight=False, markup=False, quiet=quiet, stderr=stderr)


def title(head: str, rest: str = "") -> Text:
    """Give a line whose beginning stands out.

    >>> title("[red].csv", ": 3 rows").plain
    '[red].csv: 3 rows'
    """
    return Text.assemble((head, "bold"), rest)
