"""Run a command for every combination of some values of its options, on several processes, and compare the results.

The TOML file names a command, options of all jobs, and a grid of lists or ranges. For example, five seeds of two sizes:

command = "classify fit names.csv" · [options] steps = 300 · [grid] hidden = [32, 64] · seed = {from = 0, to = 4}

Each job is an ordinary run. Started again, a sweep skips finished jobs and resumes interrupted ones.
"""

import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import CycloptsError, Parameter
from rich.console import Console

from unspool.cli.main import app
from unspool.cli.options import CommonOptions, WorkerOptions
from unspool.cli.output import notes, print_json, terminal
from unspool.cli.progress import counting_bar
from unspool.cli.run_summary import summarise
from unspool.cli.signals import Stop
from unspool.cli.sweep_file import Job, Sweep, expand, read_sweep
from unspool.cli.sweep_jobs import STOP, JobResult, Task, as_json, prepare, run_task
from unspool.cli.usage_errors import explain
from unspool.cli.views.sweep import print_rows, rows_of
from unspool.cli.workers import workers_for
from unspool.errors import InputError
from unspool.training.workers import Workers

LINES = 20
"""Progress lines where there is no terminal."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options(WorkerOptions, CommonOptions):
    """What `sweep` is given."""

    out: Annotated[Path | None, Parameter()] = None
    """The folder of all jobs [default: out in FILE, or runs/FILE-sweep]."""


def sweep(file: Path, /, *, options: Options = Options()) -> None:
    """Run `unspool sweep`.

    Parameters
    ----------
    file
        A TOML file with command, [options] and [grid].
    """
    found = read_sweep(file)
    found = Sweep(found.command, found.options, found.grid, options.out or found.out, found.mean_over)
    jobs = expand(file, found)
    check_jobs(file, jobs)
    options.apply()
    workers = workers_for(len(jobs), options, few=1)
    prepare(found)
    console, stop = notes(options), Stop()
    threads = options.threads if workers.alone else 1
    tasks = [Task(job, found.out, threads) for job in jobs]
    how = "in this process" if workers.alone else f"by {workers.count:,} processes, one thread each"
    console.print(f"{file}: {len(jobs):,} jobs of unspool {' '.join(found.command)}, {how}", soft_wrap=True)
    stop.listen()
    results = run_all(console, tasks, workers, stop)
    ended = [
        as_json(task, result, summarise(task.run) if task.run.exists() else None)
        for task, result in zip(tasks, results, strict=True)
    ]
    rows = rows_of(found, ended)
    if options.json:
        print_json({"out": str(found.out), "jobs": ended, "rows": rows})
    else:
        print_rows(terminal(), found, rows)
    _leave(file, results, stop)


def check_jobs(file: Path, jobs: list[Job]) -> None:
    """Raise for options that the command does not have and values that it cannot read, before any job starts."""
    for i, job in enumerate(jobs, 1):
        try:
            app.parse_args([*job.arguments, "--out=unused"], exit_on_error=False, print_error=False)
        except CycloptsError as error:
            raise InputError(f"{file}: job {i:,} of {len(jobs):,}: {explain(error)}") from None
        except InputError as error:
            raise InputError(f"{file}: job {i:,} of {len(jobs):,}: {error}") from None


def run_all(console: Console, tasks: list[Task], workers: Workers, stop: Stop) -> list[JobResult]:
    """Run all jobs, and return how each has ended; a signal lets the running jobs save, and starts no more."""
    results = [JobResult(None, stopped=True) for _ in tasks]
    begin, fresh = time.perf_counter(), 0
    bar = counting_bar(console, "{task.completed:,} of {task.total:,} jobs", indent=2)
    with bar, closing(workers.run(run_task, tasks)) as ends:
        shown = bar.add_task("", total=len(tasks))
        for done, (i, result) in enumerate(ends, 1):
            results[i] = result
            fresh += not result.skipped
            bar.update(shown, completed=done)
            if result.fault is not None:
                print(f"unspool: {tasks[i].run}: failed: {result.fault}", file=sys.stderr)
            if not console.is_terminal and (done % max(1, len(tasks) // LINES) == 0 or done == len(tasks)):
                spent = time.perf_counter() - begin
                left = spent / max(1, fresh) * (len(tasks) - done)
                console.print(f"  {done:,} of {len(tasks):,} jobs · {spent:.1f} s, {left:.0f} s left")
            if stop() or (result.stopped and workers.alone):
                (tasks[i].out / STOP).touch()
                if workers.alone:
                    break
    return results


def _leave(file: Path, results: list[JobResult], stop: Stop) -> None:
    """Exit with the code of a signal, or with 2 if a job has failed."""
    left, failed = sum(each.stopped for each in results), sum(each.fault is not None for each in results)
    if left:
        ended = f"{len(results) - left - failed:,} of {len(results):,} jobs have ended"
        print(
            f"unspool: stopped: {ended}, the others are saved; go on with the same command", file=sys.stderr
        )
        sys.exit(128 + (stop.signal or 2))
    if failed:
        print(f"unspool: {file}: {failed:,} of {len(results):,} jobs failed", file=sys.stderr)
        sys.exit(2)
