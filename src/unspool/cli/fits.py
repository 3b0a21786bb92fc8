"""What `classify fit`, `tag fit`, `translate fit` and `unspool resume` do: read, fit in a run, judge, tell.

The run keeps what the command was given and a hash of every file, so that it can be gone on with: the same data
is read again in the same way, and the fit goes on from its last saved state.
"""

import json as jsonlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from unspool import checkpoint
from unspool.cli.fit_options import FitOptions, Shown, names_of
from unspool.cli.fitting import check_before
from unspool.cli.following import follow
from unspool.cli.stopping import Stop
from unspool.errors import InputError
from unspool.files import hash_of
from unspool.sequences.estimator import Estimator

COMMAND = "command"
"""The key in the config of what the command was given."""


class Read(NamedTuple):
    """The data of a fit."""

    X: Any
    y: Any
    judged: Any
    """What is held out to judge by, as the command's own judge takes it; None: nothing."""
    said: str
    arguments: dict[str, Any]
    """What the data says about the estimator."""


class Work(NamedTuple):
    """What a command has of its own."""

    name: str
    estimator: type[Estimator]
    options: type[FitOptions]
    read: Callable[[Path, Any], Read]
    judge: Callable[[Console, Any, Any, Any], dict[str, Any]]
    """Prints how well the held out part is answered, and gives what --json tells of it."""


def begin(work: Work, data: Path, options: FitOptions) -> None:
    """Fit from the beginning into a new run."""
    check_before(options.out, options.plot, options.threads)
    test = None if options.test is None else options.test.absolute()
    files = {str(path): hash_of(path) for path in (data.absolute(), test) if path is not None}
    command = {"options": replace(options, test=test).to_json(), "files": files}
    more = {"data": str(data.absolute()), COMMAND: command}
    _walk(work, data, options, Console(highlight=False, quiet=options.json), more)


def go_on(work: Work, run: Path, shown: Shown, save_every: int | None) -> None:
    """Go on with a run where it was last saved."""
    check_before(None, shown.plot, shown.threads)
    content = checkpoint.read_config(run, work.name)
    if COMMAND not in content:
        raise InputError(
            f"{run}: it holds no command to go on with: it was made by an older version or from Python; "
            f"use it with unspool {work.name} predict, or fit again"
        )
    console = Console(highlight=False, quiet=shown.json)
    given, files = content[COMMAND]["options"], content[COMMAND]["files"]
    for path, known in files.items():
        if hash_of(Path(path)) != known:
            raise InputError(
                f"{path}: it has changed since {run} was begun: put it back as it was, or fit anew into another run"
            )
    options = work.options.from_json(given, out=run, save_every=save_every, **vars(shown))
    console.print(_where(run), soft_wrap=True)
    _walk(work, Path(content["data"]), options, console, {})


def _where(run: Path) -> str:
    training = run / checkpoint.TRAINING
    if not training.exists():
        return f"{run}: the fit has ended already; it is only judged again"
    return f"{run}: going on after update {checkpoint.read_arrays(training)[1]['step']:,}"


def _walk(work: Work, data: Path, options: FitOptions, console: Console, more: dict[str, Any]) -> None:
    read = work.read(data, options)
    console.print(read.said, soft_wrap=True)
    model: Any = work.estimator(**options.arguments(names_of(work.estimator)) | read.arguments)
    reports = model.fitting(read.X, read.y, run=options.out, save_every=options.save_every, more=more)
    planned = f"{model.network_.parameters.count:,} parameters, {model.fit_config_.steps:,} updates planned"
    console.print(f"  {planned}", soft_wrap=True)
    stop = Stop()
    stop.listen()
    try:
        if (step := follow(console, model, reports, stop)) is not None:
            stop.leave(options.out, step)
        stop.at_once()
        judged = work.judge(console, model, read.judged, options)
    except KeyboardInterrupt:
        stop.leave(options.out, None)
    console.print(
        f"\nkept in {options.out}; try: unspool {work.name} predict {options.out} FILE", soft_wrap=True
    )
    if options.json:
        content = {"run": str(options.out), "steps": model.n_iter_}
        content["parameters"] = model.network_.parameters.count
        print(jsonlib.dumps(content | judged, ensure_ascii=False))
