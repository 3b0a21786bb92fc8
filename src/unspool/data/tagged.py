"""Sequences with a tag at every step: columns with a blank line between sequences, or a table.

    Dogs    NNS          columns between tabs or blanks, one step a line,
    bark    VBP          a blank line between two sequences

    sentence,word,tag    a table says which sequence a row belongs to: rows of the same name that follow
    1,Dogs,NNS           one another are one sequence, and an empty name means the one above
    1,bark,VBP

In files with tabs a line that begins with ``#`` and has no tab is a comment; a sequence whose first token is
``-DOCSTART-`` is left out.

>>> import pathlib, tempfile
>>> place = tempfile.TemporaryDirectory()
>>> path = pathlib.Path(place.name) / "two.conll"
>>> _ = path.write_text("Dogs NNS\\nbark VBP\\n\\nYes UH\\n")
>>> found = read_tagged(path)
>>> found.tokens, found.tags
([['Dogs', 'bark'], ['Yes']], [['NNS', 'VBP'], ['UH']])
>>> place.cleanup()
"""

from dataclasses import dataclass
from pathlib import Path

from unspool.data.source import read_file
from unspool.data.table import Column, Table, read_table
from unspool.errors import EmptyInput, InputError

TABLES = (".csv", ".tsv", ".tab")


@dataclass(frozen=True)
class Tagged:
    """Tokens, and as many tags."""

    name: str
    tokens: list[list[str]]
    tags: list[list[str]] | None
    """None where the file has none and none were asked for."""
    lines: list[list[int]]
    """The line of every token, for messages."""

    def __len__(self) -> int:
        return len(self.tokens)


def read_tagged(
    path: str | Path,
    token: Column | None = None,
    tag: Column | None = None,
    sequence: Column | None = None,
    delimiter: str | None = None,
    need_tags: bool = True,
) -> Tagged:
    """Read a file named .csv, .tsv or .tab as a table, any other as columns.

    ``token`` and ``tag`` choose columns [default: in columns the first and the last, in a table those of these
    names], ``sequence`` the table's column that names the sequence [default: sequence].
    """
    if Path(path).name.lower().removesuffix(".gz").endswith(TABLES) or delimiter is not None:
        return _from_table(read_table(path, delimiter), token, tag, sequence, need_tags)
    if sequence is not None:
        raise InputError(f"{path}: sequence is for tables; in columns a blank line begins a new one")
    return _from_columns(path, _place(path, "token", token, 0), _place(path, "tag", tag, -1), need_tags)


def _place(path: str | Path, name: str, column: Column | None, default: int) -> int:
    if isinstance(column, str):
        raise InputError(f"{path}: {name}: columns have numbers from 0 here, got {column!r}")
    return default if column is None else column


def _from_columns(path: str | Path, token: int, tag: int, need_tags: bool) -> Tagged:
    lines = read_file(path, newlines="lf").split("\n")
    tabs = any("\t" in line for line in lines)
    groups: list[list[tuple[int, list[str]]]] = [[]]
    for number, line in enumerate(lines, 1):
        if not line.strip():
            groups.append([])
        elif not (tabs and line.startswith("#") and "\t" not in line):
            groups[-1].append((number, line.split("\t") if tabs else line.split()))
    groups = [group for group in groups if group and group[0][1][0] != "-DOCSTART-"]
    if not groups:
        raise EmptyInput(f"{path}: no sequence in it")
    width = len(groups[0][0][1])
    for number, fields in (row for group in groups for row in group):
        if len(fields) != width:
            raise InputError(f"{path}: line {number} has {len(fields)} columns; the first token has {width}")
    tagged = need_tags or width > 1
    if need_tags and width < 2:
        raise InputError(f"{path}: one column only; expected a token and a tag on every line")
    for column in (token, tag) if tagged else (token,):
        if not -width <= column < width:
            raise InputError(f"{path}: no column {column}; there are {width}, numbered from 0")
    if tagged and token % width == tag % width:
        raise InputError(f"{path}: token and tag are the same column, {token % width}")
    return Tagged(
        str(path),
        [[fields[token] for _, fields in group] for group in groups],
        [[fields[tag] for _, fields in group] for group in groups] if tagged else None,
        [[number for number, _ in group] for group in groups],
    )


def _from_table(
    table: Table, token: Column | None, tag: Column | None, sequence: Column | None, need_tags: bool
) -> Tagged:
    words = table.text("token" if token is None else token)
    tagged = need_tags or tag is not None or "tag" in table.names
    tags = table.text("tag" if tag is None else tag) if tagged else None
    if tagged and table.find("token" if token is None else token) == table.find(
        "tag" if tag is None else tag
    ):
        raise InputError(
            f"{table.name}: token and tag are the same column, {token if tag is None else tag!r}"
        )
    names = table.text("sequence" if sequence is None else sequence)
    for i, each in enumerate(tags or ()):
        if not each:
            raise InputError(f"{table.place(i, 'tag' if tag is None else tag)}: the tag is missing")
    begins = _begins(names)
    spans = list(zip(begins, [*begins[1:], len(names)], strict=True))
    return Tagged(
        table.name,
        [words[a:b] for a, b in spans],
        None if tags is None else [tags[a:b] for a, b in spans],
        [table.lines[a:b] for a, b in spans],
    )


def _begins(names: list[str]) -> list[int]:
    """Give the rows where another name than that above begins; an empty one is that above."""
    begins, above = list[int](), ""
    for i, name in enumerate(names):
        if i == 0 or (name and name != above):
            begins.append(i)
        above = name or above
    return begins
