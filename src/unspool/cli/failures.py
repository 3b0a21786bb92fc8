"""Turn any exception that reaches the command line into one line on standard error and an exit code.

    UnspoolError           2    the message of the error
    MemoryError            2    out of memory
    any other OSError      2    the file, if there is one, and the message of the system
    KeyboardInterrupt      130  stopped
    BrokenPipeError        141  no line: the reader of the pipe has ended
    anything else          70   a fault of this program; the line names a file that holds the traceback

This module imports nothing slow: it also handles what goes wrong while NumPy and the commands are imported.
"""

import contextlib
import errno
import os
import platform
import shlex
import sys
import tempfile
import threading
import time
import traceback

from unspool import __version__
from unspool.errors import UnspoolError

USAGE, FAULT, INTERRUPTED, PIPE = 2, 70, 130, 141
OUT_OF_MEMORY = "out of memory: choose smaller sizes, give less data, or raise the limit of this process"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LOADER = ("failed to map segment", "cannot allocate memory", "cannot create shared object")
"""What the dynamic loader says when a library does not fit into memory."""
_late: list[BaseException] = []
"""The exceptions of threads since `collect_late`."""
_command: list[str] = []
"""The arguments of the command that is running."""


def ending(error: BaseException) -> tuple[str, int]:
    """Return the line that describes an exception and the exit code; an empty line means: print nothing.

    >>> ending(UnspoolError("no such run")), ending(MemoryError())[1], ending(BrokenPipeError())
    (('no such run', 2), 2, ('', 141))
    """
    if isinstance(error, UnspoolError):
        return str(error), USAGE
    if isinstance(error, KeyboardInterrupt):
        return "stopped", INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return "", PIPE
    if is_out_of_memory(error):
        return OUT_OF_MEMORY, USAGE
    if isinstance(error, OSError):
        reason = error.strerror or str(error) or type(error).__name__
        failed = "the output cannot be written" if error.errno in _FULL else "reading or writing failed"
        return f"{failed if error.filename is None else error.filename}: {reason}", USAGE
    return _fault(error), FAULT


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception means that memory has run out, also while a library was loaded."""
    if isinstance(error, ImportError):
        return any(words in str(error).lower() for words in _LOADER)
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)


def report(line: str, code: int) -> int:
    """Flush standard output, print the line on standard error, and return the exit code."""
    discard_unwritten()
    if line:
        with contextlib.suppress(OSError, ValueError):
            print(f"unspool: {' '.join(line.split())}", file=sys.stderr, flush=True)
    return code


def discard_unwritten() -> None:
    """Flush standard output; where that fails, discard the rest: the interpreter would try again at its end."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def collect_late(tokens: list[str]) -> list[BaseException]:
    """Return a list that receives the exceptions of threads, instead of printing a traceback for each.

    The caller raises the first one after a command that succeeded; a saved report holds all of them, and the command
    line (`tokens`). Exceptions of objects that are being deleted are ignored: no code can catch them.
    """

    def of_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            _late.append(args.exc_value)

    _late.clear()
    _command[:] = tokens
    threading.excepthook, sys.unraisablehook = of_thread, lambda _: None
    return _late


def _fault(error: BaseException) -> str:
    """Save the traceback of a fault of this program; return the line to print."""
    message = " ".join(str(error).split())
    what = f"internal error: {type(error).__name__}{': ' + message[:200] if message else ''}"
    try:
        path = _save_report(error)
    except OSError as failed:
        return (
            f"{what}; the traceback could not be saved ({failed.strerror or failed}); please report this line"
        )
    return f"{what}; the traceback is in {path}; please report it"


def _save_report(error: BaseException) -> str:
    """Write version, command line, platform and traceback into a new file in the temporary folder."""
    head = [
        f"unspool {__version__}",
        f"command:  unspool {shlex.join(_command)}",
        f"platform: {platform.platform()}, Python {platform.python_version()}",
        f"time:     {time.strftime('%Y-%m-%dT%H:%M:%S%z')}",
        "",
    ]
    text = "\n".join(head) + "\n" + "".join(traceback.format_exception(error))
    for late in (each for each in _late if each is not error):
        text += "\nin a thread:\n" + "".join(traceback.format_exception(late))
    handle, path = tempfile.mkstemp(prefix="unspool-error-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    return path
