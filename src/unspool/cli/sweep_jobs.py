"""Run the jobs of a sweep: each is a separate command that creates a run folder, resumes it, or finds it finished.

    OUT/sweep.json       the command and the options of all jobs
        JOB/             the run of a job
        JOB.txt          what the command of the job printed

A stop is a file, OUT/stop: a worker that finds it interrupts its job, which saves its state, and starts no other.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from unspool.cli.main import main
from unspool.cli.run_summary import FINISHED, RESUMABLE, RunSummary, summarise
from unspool.cli.sweep_file import Job, Sweep
from unspool.errors import FileError, InputError
from unspool.storage import run_folder
from unspool.storage.files import why
from unspool.storage.tensors import read_json, write_json

CONFIG, STOP = "sweep.json", "stop"
STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM)
HIGHER = ("accuracy", "exact", "macro F1", "token accuracy")
"""Figures that are better the higher they are; all others are errors or losses."""


@dataclass(frozen=True)
class Task:
    """A job with its folder."""

    job: Job
    out: Path
    """The folder of the sweep."""
    threads: int | None
    """The threads of the job; None: as many as this process uses."""

    @property
    def run(self) -> Path:
        """The folder of its run."""
        return self.out / self.job.name


class JobResult(NamedTuple):
    """How a job has ended."""

    fault: str | None
    """Why it failed."""
    stopped: bool = False
    skipped: bool = False
    """Whether it had ended before."""


def run_task(task: Task) -> JobResult:
    """Run a job to its end: start it, resume it, or skip it."""
    if (task.out / STOP).exists():
        return JobResult(None, stopped=True)
    state = summarise(task.run) if task.run.exists() and any(task.run.iterdir()) else None
    if state is not None and state.state == FINISHED and (state.test is not None or state.valid is not None):
        return JobResult(None, skipped=True)
    if state is not None and state.state not in (FINISHED, RESUMABLE):
        return JobResult(state.error)
    given = task.job.arguments if state is None else ["resume", str(task.run)]
    words = given if state is not None else [*given, f"--out={task.run}"]
    words = [*words, *([] if task.threads is None else [f"--threads={task.threads}"])]
    with _interrupted_by(task.out / STOP):
        code, printed, fault = _call(words)
    with contextlib.suppress(OSError), open(f"{task.run}.txt", "a", encoding="utf-8") as log:
        log.write(f"$ unspool {' '.join(words)}\n{printed}{fault}")
    if code in STOPPED:
        return JobResult(None, stopped=True)
    lines = fault.strip().splitlines() or [f"exit code {code}"]
    return JobResult(lines[-1].removeprefix("unspool: ") if code else None)


def _call(words: list[str]) -> tuple[int, str, str]:
    """Run a command; return its exit code and what it printed on standard output and error."""
    printed, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
        code = main(words)
    return code, printed.getvalue(), errors.getvalue()


@contextmanager
def _interrupted_by(stop: Path) -> Iterator[None]:
    """Send SIGINT to this process when a file appears; only a main thread can be interrupted in this way."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            if stop.exists():
                return os.kill(os.getpid(), signal.SIGINT)

    watches = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    )
    if watches:  # a worker, which ignores SIGINT between its jobs
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        if watches:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        ended.set()


def prepare(sweep: Sweep) -> None:
    """Create the folder of a sweep, or check that it is the folder of this one."""
    own = {"command": sweep.command, "options": sweep.options}
    place = sweep.out / CONFIG
    if place.exists():
        if {key: value for key, value in read_json(place).items() if key in own} != own:
            raise InputError(
                f"{sweep.out}: the sweep here has another command or other options; only [grid] may change: choose another out"
            )
    else:
        run_folder.require_free_folder(sweep.out)
    try:
        sweep.out.mkdir(parents=True, exist_ok=True)
        (sweep.out / STOP).unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"{sweep.out}: cannot be written: {why(error)}") from error
    write_json(place, own)


def score_of(found: RunSummary) -> tuple[str, float] | None:
    """Return the score that jobs are compared by: the lowest validation loss, or else the figure on held-out data."""
    if found.valid is not None:
        return "validation loss", found.valid
    if found.test is not None and found.test.value is not None:
        return found.test.name, found.test.value
    return None


def as_json(task: Task, result: JobResult, found: RunSummary | None) -> dict[str, Any]:
    """Return a job and its figures as plain values."""
    score = None if found is None else score_of(found)
    test = (
        None if found is None or found.test is None else {"name": found.test.name, "value": found.test.value}
    )
    return {
        "run": str(task.run),
        "values": task.job.values,
        "state": "failed" if result.fault else "stopped" if result.stopped else "finished",
        "error": result.fault,
        "score": None if score is None else {"name": score[0], "value": score[1]},
        "test": test,
        "updates": None if found is None else found.steps,
        "seconds": None if found is None else found.seconds,
    }
