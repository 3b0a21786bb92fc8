"""What `classify predict`, `tag predict` and `translate predict` do alike: load what was fitted, read as it was fitted."""

import sys
from pathlib import Path
from typing import Any

from unspool.cli.fit import COMMAND, Command
from unspool.storage import run_folder
from unspool.storage.schema import read_as
from unspool.tasks.registry import load

COLUMNS = ("text", "label", "token", "tag", "sequence", "columns", "delimiter", "by")
"""The options that say how data is read."""


def load_fitted(run: Path, kind: str) -> Any:
    """Load the model of a run; where its fit has not ended, say whose answers these are."""
    run_folder.read_config(run, kind)  # refuse a run of another kind
    model = load(run)
    if (run / run_folder.TRAINING).exists():
        how = f"; go on with: unspool resume {run}" if COMMAND in run_folder.read_config(run, kind) else ""
        said = f"the fit has not ended, the answers are those after update {model.n_iter_:,}"
        print(f"unspool: {run}: {said}{how}", file=sys.stderr)
    return model


def columns_of_fit(run: Path, kind: str, data: Path) -> dict[str, Any]:
    """Give the columns and the delimiter that the fit was given, so that other data is read alike.

    Names hold for every table, numbers of columns and what stands between them only for files of the same kind.
    A run from Python was given none.
    """
    content = run_folder.read_config(run, kind)
    if COMMAND not in content:
        return {}
    command = read_as(Command, content, run / run_folder.CONFIG)
    told = command["command"]["options"]
    alike = _kind(data) == _kind(Path(command["data"]))
    found = {name: told[name] for name in COLUMNS if told.get(name) is not None}
    for name, column in found.items():
        kind_of_column: Any = tuple[int, int] if name == "columns" else str
        read_as(kind_of_column, column, run / run_folder.CONFIG, f"command.options.{name}")
    if not alike:
        found.pop("delimiter", None)
        return {name: column for name, column in found.items() if not str(column).isdecimal()}
    return found


def _kind(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix
