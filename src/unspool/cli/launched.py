"""A command that torchrun or mpiexec has started several times: rank 0 runs it, the others train with it.

Only rank 0 prints. The others print one line if they lose a process, or fail themselves.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from unspool.cli import failures
from unspool.cluster import start
from unspool.cluster.group import Group, use
from unspool.cluster.launch import Launch
from unspool.errors import ProcessLost, UnspoolError
from unspool.training.follow import follow

FITS = ("classify", "tag", "regress", "translate", "generate-from")
GRACE = 1.0
"""Seconds in which all processes notice that one is lost, before the first of them ends."""


def refuse_command(tokens: list[str]) -> None:
    """Raise where a command does not train with several processes."""
    command, rest = (tokens or [""])[0], tokens[1:2]
    if command not in ("train", "resume") and not (command in FITS and rest == ["fit"]):
        raise UnspoolError(
            f"unspool {' '.join([command, *rest])} runs in one process: start it without torchrun or mpiexec (train, resume and fit of "
            f"{', '.join(FITS)} train in several)"
        )


def run_launched(launch: Launch, tokens: list[str], run: Callable[[list[str]], int]) -> int:
    """Run a command on rank 0, and train with it on the other ranks; return the exit code."""
    try:
        refuse_command(tokens)
        start.share_cores(launch, _threads(tokens))
        group = start.join(launch, tokens)
    except UnspoolError as error:
        if launch.rank == 0 or isinstance(error, ProcessLost):
            return failures.report(str(error), failures.USAGE)
        return failures.USAGE
    code = _lead(group, tokens, run) if launch.rank == 0 else _follow(group)
    if group.lost:  # closing the transport could block forever
        time.sleep(GRACE)
        failures.discard_unwritten()
        os._exit(code)
    return code


def _threads(tokens: list[str]) -> str:
    """Return the value of --threads, which holds for every process; nothing if it is not given."""
    for i, token in enumerate(tokens):
        name, _, value = token.partition("=")
        if name == "--threads":
            return value or "".join(tokens[i + 1 : i + 2])
    return ""


def _lead(group: Group, tokens: list[str], run: Callable[[list[str]], int]) -> int:
    use(group)
    code = run(tokens)
    with contextlib.suppress(UnspoolError, KeyboardInterrupt):
        group.end(code)
    return code


def _follow(group: Group) -> int:
    """Follow rank 0: it decides when to stop, also where a signal comes here."""

    def note(number: int, frame: FrameType | None) -> None:
        group.interrupted = True

    if threading.current_thread() is threading.main_thread():
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            if (number := getattr(signal, name, None)) is not None:
                signal.signal(number, note)
    try:
        code = follow(group)
        group.transport.close()
        return code
    except BaseException as error:
        group.lost = True
        return failures.report(*failures.ending(error))
    finally:
        sys.stdout.flush()
