"""Run the command line: in this process (`call`, `must`), or in a new one (`process`)."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from typing import Any, NamedTuple
from unittest import mock

import unspool
from unspool.cli.main import main


class Ended(NamedTuple):
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str


def call(*arguments: object, threads: int = 2, isa: str | None = None, columns: int = 100) -> Ended:
    """Run `unspool ARGUMENTS…` with so many threads, on an instruction set, in a terminal of so many columns."""
    environment = {
        "UNSPOOL_THREADS": str(threads),
        "UNSPOOL_ISA": isa or unspool.kernel_info()["bf16"],
        "COLUMNS": str(columns),
    }
    out, err = io.StringIO(), io.StringIO()
    streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with mock.patch.dict(os.environ, environment), streams[0], streams[1]:
        code = main([str(each) for each in arguments])
    return Ended(code, out.getvalue(), err.getvalue())


def must(*arguments: object, **settings: Any) -> str:
    """Run a command that has to succeed, and return what it printed."""
    done = call(*arguments, **settings)
    assert done.code == 0, f"unspool {' '.join(map(str, arguments))}: {done.err}"
    return done.out


def process(*arguments: object, check: int | None = 0, stdin: str = "", **environment: str) -> Ended:
    """Run a command in a new process; with `check`, require this exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "unspool", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=os.environ | {"UNSPOOL_THREADS": "1"} | environment,
        check=False,
        input=stdin,
    )
    assert check is None or done.returncode == check, done.stderr
    return Ended(done.returncode, done.stdout, done.stderr)
