"""The inputs of a command: a run, or texts (files, folders, - for standard input, builtin:…)."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter

from unspool.cli.options import TEXT, Flag
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


@Parameter(name="*", group=TEXT)
@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the texts are read."""

    tokens: str = "char"
    """char, word, byte, space (text already cut into tokens), jieba, subword:N or subword:FILE."""
    valid: str | None = None
    """A file that is the validation part; TEXT is the training part then."""
    split: Annotated[tuple[float, float, float] | None, Parameter(negative="")] = None
    """Shares of train, valid and test, in order [default: 0.9 0.05 0.05, of fewer than 100,000 tokens 0.9 0.1 0]."""
    clean: Flag = False
    """Keep only the letters A-Z, in lower case, as common lecture notes do. Other letters are lost."""
    min_freq: int = 0
    """Tokens rarer than this in the training part are unknown."""
    errors: str = "strict"
    """Bytes that are not UTF-8: strict stops, replace reads U+FFFD."""
    newlines: str = "keep"
    """Line ends: keep, or lf to make CRLF and CR into LF."""
