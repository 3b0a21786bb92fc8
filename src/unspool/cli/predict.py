"""Shared by every `predict` command: load the model of a run, read data as in the fit, print predictions."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from unspool.cli.fit import COMMAND, Command
from unspool.cli.output import Shows, print_json, terminal
from unspool.storage import run_folder
from unspool.storage.schema import read_as
from unspool.tasks.registry import load
from unspool.training.store import saved_step

COLUMNS = ("text", "label", "token", "tag", "sequence", "columns", "delimiter", "by")
"""The options that say how data is read."""


class Predictions(NamedTuple):
    """The result of a `predict` command."""

    content: dict[str, Any]
    """The fields of --json, besides the run and the scores."""
    lines: Iterable[str]
    scores: dict[str, Any] | None = None
    """The fields of the scores; None where the data holds no truth."""
    show_scores: Callable[[Console], None] = lambda _: None


def print_predictions(run: Path, options: Shows, found: Predictions) -> None:
    """Print predictions, one per line, and the scores on standard error; or all of it as JSON."""
    if options.json:
        scores = {"scores": found.scores} if found.scores else {}
        return print_json({"run": str(run)} | found.content | scores)
    for line in found.lines:
        print(line)
    if found.scores is not None and not options.quiet:
        found.show_scores(terminal(stderr=True))


def load_fitted(run: Path, kind: str) -> Any:
    """Load the model of a run; print a note if its fit has not ended."""
    run_folder.read_config(run, kind)  # refuse a run of another kind
    model = load(run)
    note_unfinished(run, kind, model)
    return model


def note_unfinished(run: Path, kind: str, model: Any) -> None:
    """Print a note if the fit of a run has not ended."""
    if (path := run / run_folder.TRAINING).exists():
        how = f"; resume with: unspool resume {run}" if COMMAND in run_folder.read_config(run, kind) else ""
        step = getattr(model, "n_iter_", None) or saved_step(path)
        said = f"the fit has not ended; the predictions are those after update {step:,}"
        print(f"unspool: {run}: {said}{how}", file=sys.stderr)


def columns_of_fit(run: Path, kind: str, data: Path) -> dict[str, Any]:
    """Return the columns and the delimiter of the fit, so that other data is read in the same way.

    Names of columns hold for every table; numbers of columns and the delimiter only for files with the same ending.
    A run from Python has none.
    """
    content = run_folder.read_config(run, kind)
    if COMMAND not in content:
        return {}
    command = read_as(Command, content, run / run_folder.CONFIG)
    given = command["command"]["options"]
    same_ending = _kind(data) == _kind(Path(command["data"]))
    found = {name: given[name] for name in COLUMNS if given.get(name) is not None}
    for name, column in found.items():
        kind_of_column: Any = tuple[int, int] if name == "columns" else str
        read_as(kind_of_column, column, run / run_folder.CONFIG, f"command.options.{name}")
    if not same_ending:
        found.pop("delimiter", None)
        return {name: column for name, column in found.items() if not str(column).isdecimal()}
    return found


def _kind(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix
