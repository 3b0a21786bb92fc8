"""The command line in this process, through its entry point: quick, and independent of how the source is arranged."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import unspool
from unspool.__main__ import main

SIGNALS = (signal.SIGINT, signal.SIGTERM, *filter(None, [getattr(signal, "SIGHUP", None)]))


class Ended(NamedTuple):
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str


def call(*arguments: object, threads: int = 2, isa: str | None = None, columns: int = 100) -> Ended:
    """Run `unspool ARGUMENTS…` with so many threads, on an instruction set, in a terminal of so many columns."""
    environment = {
        "UNSPOOL_THREADS": str(threads),
        "UNSPOOL_ISA": isa or unspool.kernel_info()["isa"],
        "COLUMNS": str(columns),
    }
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with _as_before(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        os.environ |= environment
        sys.argv = ["unspool", *map(str, arguments)]
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    return Ended(code, out.getvalue(), err.getvalue())


def must(*arguments: object, **settings: Any) -> str:
    """Run a command that has to end well, and return what it printed."""
    done = call(*arguments, **settings)
    assert done.code == 0, f"unspool {' '.join(map(str, arguments))}: {done.err}"
    return done.out


@contextlib.contextmanager
def _as_before() -> Iterator[None]:
    """Put back all that a command changes in its process."""
    environment, argv = dict(os.environ), sys.argv
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    hooks = threading.excepthook, sys.unraisablehook
    try:
        with warnings.catch_warnings():  # cyclopts warns of an app that reads sys.argv in a test
            warnings.filterwarnings("ignore", "Cyclopts application invoked without tokens")
            yield
    finally:
        os.environ.clear()
        os.environ |= environment
        sys.argv = argv
        threading.excepthook, sys.unraisablehook = hooks
        for number, handler in handlers.items():
            signal.signal(number, handler)
