"""Prepare standard input, output and error, and the width of the terminal, for a command."""

import io
import os
import shutil
import sys
import warnings
from typing import TextIO

from unspool.errors import InputError

try:
    import fcntl
except ImportError:  # not on this system
    fcntl = None  # type: ignore[assignment]

NARROWEST, WIDEST = 40, 1000
"""Columns that help and tables are laid out for; at width 0 the layout of the help never ends."""


def settle() -> None:
    """Make the standard streams safe to use; raise where standard output cannot be written.

    A closed stream is opened on the null device: otherwise the next file that is opened, a model for instance,
    would get its number, and receive what is meant for the terminal.
    """
    closed = sys.stdout is None
    for number in range(3):
        _occupy(number)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - stays open to the end
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode shows a question mark
    warnings.showwarning = _one_line  # type: ignore[assignment]
    if closed or not _writable(sys.stdout):
        state = "closed" if closed else "not open for writing"
        raise InputError(f"standard output is {state}; redirect it to a file or to {os.devnull}")


def settle_environment() -> None:
    """Keep the width that Rich reads from COLUMNS, or from a narrow terminal, within bounds; ignore MPLBACKEND.

    Pictures are written to files without a backend, and matplotlib refuses to be imported with an unknown one.
    """
    os.environ.pop("MPLBACKEND", None)
    given = os.environ.pop("COLUMNS", "").strip()
    width = int(given) if given.isdecimal() and len(given) < 9 else 0
    if not width and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        width = width if width < NARROWEST else 0  # a wider one may be resized while the command runs
    if width:
        os.environ["COLUMNS"] = str(min(max(width, NARROWEST), WIDEST))


def _one_line(message: Warning | str, *_: object) -> None:
    """Print a warning of a library as one line, without the source code that Python shows."""
    print(f"unspool: warning: {' '.join(str(message).split())}", file=sys.stderr)


def _occupy(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)


def _writable(stream: TextIO) -> bool:
    try:
        number = stream.fileno()
        return fcntl is None or fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except (AttributeError, OSError, ValueError):  # no file behind it, as in a test
        return True
