"""The inputs of a command: a run, or texts (files, folders, - for standard input, builtin:…)."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter

from unspool.data.text.source import files_in


def _no_options(type_: Any, names: Any) -> None:
    """Refuse words that look like options: ``-`` must be allowed, and with it every word that starts with it."""
    for name in names or ():
        if name.startswith("-") and name != "-":
            raise ValueError(f"unknown option {name}")


RunFolder: TypeAlias = Annotated[Path, Parameter(help="The folder of the run.")]
Sources: TypeAlias = Annotated[list[str], Parameter(allow_leading_hyphen=True, validator=_no_options)]


def files_read(text: Iterable[str], *more: str | None) -> list[Path]:
    """Return the files that a command reads: its texts, and others that options name (`subword:FILE` too)."""
    names = [*text, *(name.removeprefix("subword:") for name in more if name is not None)]
    return [path for name in names if name != "-" for path in files_in(name)]
