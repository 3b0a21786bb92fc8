"""Shared by every `fit` (`classify`, `tag`, `forecast`, …) and `unspool resume`: read, fit into a run, evaluate.

The run stores the options of the command and a hash of every file. To resume it, the same data is read again in the same
way, and the fit continues from its last checkpoint.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypedDict

from rich.console import Console
from rich.text import Text

from unspool.cli.checks import check_before, files_of
from unspool.cli.default_out import default_run
from unspool.cli.fit_options import FitOptions, StoredOptions
from unspool.cli.options import RunOptions, names_of
from unspool.cli.output import notes
from unspool.cli.precision import with_precision
from unspool.cli.progress import fit_bar
from unspool.cli.run_summary import SCORES
from unspool.cli.signals import Stop, finish_fit
from unspool.cluster.group import current
from unspool.cluster.launch import restarted
from unspool.errors import InputError, UnspoolError
from unspool.storage import run_folder, tensors
from unspool.storage.files import hash_of, hash_of_all
from unspool.storage.schema import read_as
from unspool.tasks.estimator import Estimator
from unspool.training.events import StepDone
from unspool.training.store import fit_has_ended, saved_step

COMMAND = "command"
"""The key of the command's options and files in the config."""
LINES = 10
"""Progress lines that a fit prints where there is no terminal."""


class Given(TypedDict):
    """The options of a fit, and the hashes of its files."""

    options: dict[str, Any]
    files: dict[str, str]


class Command(TypedDict):
    """The fields of a run's config that describe the command."""

    data: str
    command: Given


class Read(NamedTuple):
    """The data of a fit."""

    X: Any
    y: Any
    held_out: Any
    """The data to evaluate on, in the form that `FitCommand.evaluate` expects; None: there is none."""
    description: Text
    arguments: dict[str, Any]
    """Arguments of the estimator that follow from the data."""
    config: Mapping[str, Any] = MappingProxyType({})
    """Fields of the run's config that `predict` needs to read other data."""


class Resumable(Protocol):
    """A command whose fit can be resumed."""

    @property
    def name(self) -> str:
        """The name of the command, which is the kind of its runs."""

    @property
    def options(self) -> type[StoredOptions]:
        """What its `fit` is given."""

    def fit(self, data: Path, options: Any, console: Console, more: dict[str, Any]) -> None:
        """Fit into the run `options.out`: a new one with `more` in its config, or from its last checkpoint."""

    @property
    def uses(self) -> tuple[str, ...]:
        """The commands that a finished run is used with, RUN for its folder."""

    def resume(self, run: Path, kept: Any) -> None:
        """Resume a run; `kept` are options that do not decide its result."""


class FitCommand(NamedTuple):
    """The parts of a fit of sequences that differ between commands."""

    name: str
    estimator: type[Estimator]
    options: type[FitOptions]
    read: Callable[[Path, Any], Read]
    evaluate: Callable[[Console, Any, Any, Any], dict[str, Any]]
    """Print the scores on the held-out data, and return the fields of --json."""
    to_predict: str = " FILE"
    """What `predict` needs besides the run."""

    @property
    def uses(self) -> tuple[str, ...]:
        """The commands that a finished run is used with."""
        return (f"{self.name} predict RUN{self.to_predict}",)

    def fit(self, data: Path, options: Any, console: Console, more: dict[str, Any]) -> None:
        """Fit, and evaluate on the held-out data."""
        _fit(self, data, options, console, more)

    def resume(self, run: Path, kept: RunOptions) -> None:
        """Resume a run."""
        resume_fit(self, run, kept)


def start_fit(work: Resumable, data: Path, options: StoredOptions, *, streams: bool = False) -> None:
    """Fit into a new run; with `streams`, also from standard input or a pipe: such a run cannot be resumed."""
    options = replace(options, out=options.out or default_run([data], work.name))
    if streams and _is_stream(data):
        check_before(options.out, options)
        return work.fit(data, with_precision(options), notes(options), {"data": str(data)})
    test: Path | None = getattr(options, "test", None)
    if restarted() and options.out is not None and _began_as(work, data, options, test):
        return resume_fit(work, options.out, options)
    check_before(options.out, options, inputs=[*files_of(data), *files_of(test)])
    options = with_precision(options)
    files = {str(path.absolute()): _hash(path.absolute()) for path in (data, test) if path is not None}
    command = {"options": options.to_json(), "files": files}
    more = {"data": str(data.absolute()), COMMAND: command}
    work.fit(data, options, notes(options), more)


def _began_as(work: Resumable, data: Path, options: StoredOptions, test: Path | None) -> bool:
    """Return whether the run was begun by this command on these files: torchrun has started it again."""
    try:
        content = run_folder.read_config(options.out or "", work.name)
        given = read_as(Command, content, data)["command"]
        files = {str(path.absolute()): _hash(path.absolute()) for path in (data, test) if path is not None}
    except UnspoolError:
        return False
    same = options.to_json() | {"precision": given["options"].get("precision")}
    return same == given["options"] and files == given["files"]


def resume_fit(work: Resumable, run: Path, kept: RunOptions) -> None:
    """Resume a run from its last checkpoint."""
    if getattr(kept, "tensorboard", False):
        raise InputError("--tensorboard is for language models only")
    content = run_folder.read_config(run, work.name)
    if COMMAND not in content:
        raise InputError(
            f"{run}: cannot be resumed: it stores no command (made by Python code, by an older version or from a pipe); "
            f"use it with unspool {work.name} predict, or fit again"
        )
    console = notes(kept)
    command = read_as(Command, content, run / run_folder.CONFIG)
    given, files = command["command"]["options"], command["command"]["files"]
    check_before(None, kept, inputs=[each for path in files for each in files_of(Path(path))])
    for path, known in files.items():
        if _hash(Path(path)) != known:
            raise InputError(
                f"{path}: has changed since {run} was started: restore it, or fit into another run"
            )
    passing = {name: getattr(kept, name) for name in names_of(RunOptions)}
    absent = work.estimator.absent if isinstance(work, FitCommand) else {}
    options = work.options.from_json({**absent, **given}, run / run_folder.CONFIG, out=run, **passing)
    console.print(_where(run), soft_wrap=True)
    work.fit(Path(command["data"]), options, console, {})


def _hash(path: Path) -> str:
    """Return the hash of a file, or of the files of a folder that have classes."""
    if path.is_dir():
        return hash_of_all(files_of(path))
    if _is_stream(path):
        raise InputError(
            f"{path}: neither a file nor a folder: a resumed fit reads its data again; write it to a file"
        )
    return hash_of(path)


def _is_stream(path: Path) -> bool:
    """Return whether a path can be read only once: standard input, or a pipe."""
    passing = str(path) == "-" or str(path).startswith(("/dev/stdin", "/dev/fd/", "/proc/"))
    return passing or (path.exists() and not path.is_file() and not path.is_dir())


def _where(run: Path) -> str:
    if fit_has_ended(run):
        return f"{run}: the fit has ended; it is only evaluated again"
    path = run / run_folder.TRAINING
    return f"{run}: resuming after update {saved_step(path):,}"


def _fit(work: FitCommand, data: Path, options: FitOptions, console: Console, more: dict[str, Any]) -> None:
    read, out = work.read(data, options), options.out
    assert out is not None
    if options.plot is not None and read.held_out is None:
        raise InputError(
            "--plot draws the held-out data, and there is none: give a larger --hold-out, or --test"
        )
    console.print(read.description, soft_wrap=True)
    model: Any = work.estimator(**options.arguments(names_of(work.estimator)) | read.arguments)
    reports = model.fit_iter(
        read.X, read.y, run=out, save_every=options.save_every, more=more | dict(read.config)
    )
    planned = f"{model.network_.parameters.count:,} parameters, {model.fit_config_.steps:,} updates planned"
    console.print(f"  {planned}", soft_wrap=True)
    if (cost := current().cost) is not None:
        console.print(f"  {cost.line()}", soft_wrap=True)
    stop = Stop()
    stop.listen()
    content: dict[str, Any] = {"run": str(out), "parameters": model.network_.parameters.count}
    try:
        if (step := _show_fit(console, model, reports, stop)) is None:
            stop.at_once()
            scores = work.evaluate(console, model, read.held_out, options)
            content |= {"steps": model.n_iter_} | scores
            if scores["scores"] is not None:
                answers = {"model": model.choice_.name} if hasattr(model, "choice_") else {}
                tensors.write_json(out / SCORES, scores["scores"] | answers)
        else:
            content["stopped"] = step
    except KeyboardInterrupt:
        content["stopped"] = None
    if "stopped" not in content:
        console.print(f"\nsaved in {out}; try: unspool {work.name} predict {out} FILE", soft_wrap=True)
    finish_fit(content, out, options, stop)


def _show_fit(console: Console, estimator: Estimator, reports: Generator[StepDone], stop: Stop) -> int | None:
    """Run a fit and show its progress; return the update after which it was stopped, or None."""
    report = None
    with fit_bar(console) as bar, closing(reports):
        task, valid = bar.add_task("fitting", total=None), ""
        for report in reports:
            if report.valid is not None:
                valid = f" · validation {report.valid:.4f}{' *' if report.best else ''}"
            said = f"loss {report.train:.4f}{valid}"
            bar.update(task, completed=report.step, total=report.steps, description=said)
            if not console.is_terminal and _due(report):
                console.print(
                    f"  update {report.step:,} of {report.steps:,} · {report.seconds:.1f} s, "
                    f"{report.seconds / report.step * (report.steps - report.step):.0f} s left · {said}",
                    soft_wrap=True,
                )
            if stop():
                return report.step
    if report is not None:
        stopped = "" if report.step == report.steps else ", stopped early"
        kept = f"{stopped}, the best parameters saved" if estimator.fit_config_.validation else ""
        console.print(f"  {report.step:,} updates in {report.seconds:.1f} s{kept}", soft_wrap=True)
    return None


def _due(report: StepDone) -> bool:
    every = max(1, report.steps // LINES)
    return report.step % every == 0 or report.step == report.steps
