"""Read sequences with one tag per step: columns with a blank line between sequences, or a table.

    Dogs    NNS          columns separated by tabs or blanks, one step per line,
    bark    VBP          a blank line between two sequences

    sentence,word,tag    a column of the table names the sequence of each row: adjacent rows of the same name
    1,Dogs,NNS           are one sequence, and an empty name repeats the name above
    1,bark,VBP
    2,,                  a sequence of one row without token and tag is empty: no steps

CoNLL-U has its own rules (`unspool.data.formats.conllu`). In files with tabs a line that begins with ``#`` and has no tab
is a comment; a sequence whose first token is ``-DOCSTART-`` is skipped.

>>> import pathlib, tempfile
>>> temporary = tempfile.TemporaryDirectory()
>>> path = pathlib.Path(temporary.name) / "two.conll"
>>> _ = path.write_text("Dogs NNS\\nbark VBP\\n\\nYes UH\\n")
>>> found = read_tagged(path)
>>> found.tokens, found.tags
([['Dogs', 'bark'], ['Yes']], [['NNS', 'VBP'], ['UH']])
>>> temporary.cleanup()
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

from unspool.data.formats.base import ending
from unspool.data.formats.conllu import (
    COLUMNS,
    FORM,
    UNKNOWN,
    UPOS,
    column_number,
    has_conllu_name,
    is_conllu,
    words_of,
)
from unspool.data.formats.table import DELIMITER_OF, Column, Table, read_table
from unspool.data.text.decoding import read_file
from unspool.errors import EmptyInput, InputError

KNOWN = {*COLUMNS, *range(len(COLUMNS))}
"""Names and numbers of the columns of CoNLL-U."""


@dataclass(frozen=True)
class Tagged:
    """Sequences of tokens, and one tag per token."""

    name: str
    tokens: list[list[str]]
    tags: list[list[str]] | None
    """None if the file has none and `need_tags` was false."""
    lines: list[list[int]]
    """The line number of each token, for messages."""

    def __len__(self) -> int:
        return len(self.tokens)


class DefaultTagColumns(NamedTuple):
    """The columns that are read by default; None: the first and the last, in a table the columns of these names."""

    token: Column | None = None
    tag: Column | None = None
    sequence: Column | None = None


DEFAULTS = DefaultTagColumns()
Groups: TypeAlias = list[list[tuple[int, list[str]]]]
"""The rows of each sequence: line number and fields."""


class _Wanted(NamedTuple):
    """The columns to read."""

    given: DefaultTagColumns
    defaults: DefaultTagColumns
    need_tags: bool

    @property
    def no_tags(self) -> bool:
        """Whether tags are ignored."""
        return self.given.tag == "none" and not self.need_tags


def read_tagged(
    path: str | Path,
    token: Column | None = None,
    tag: Column | None = None,
    sequence: Column | None = None,
    delimiter: str | None = None,
    need_tags: bool = True,
    defaults: DefaultTagColumns = DEFAULTS,
) -> Tagged:
    """Read a file named .csv, .tsv or .tab as a table, any other as columns.

    ``token`` and ``tag`` choose columns [default: ``defaults``], ``sequence`` the column of a table that names the sequence.
    Without ``need_tags`` the file may have no tags, and ``tag="none"`` ignores them.
    """
    wanted = _Wanted(DefaultTagColumns(token, tag, sequence), defaults, need_tags)
    if ending(path) in DELIMITER_OF or delimiter is not None:
        return _from_table(read_table(path, delimiter), wanted)
    if sequence is not None:
        raise InputError(f"{path}: sequence is for tables; in columns a blank line begins a new one")
    groups = _groups(path)
    if is_conllu(path, groups):
        return _from_conllu(path, groups, wanted)
    for name, column in (("token", token), ("tag", None if wanted.no_tags else tag)):
        if isinstance(column, str):
            raise InputError(f"{path}: {name} is {column!r}; expected the number of a column, from 0")
    return _from_columns(path, groups, wanted)


def _groups(path: str | Path) -> Groups:
    """Return the rows of each sequence (line number, fields), without comments."""
    lines = read_file(path, newlines="lf").split("\n")
    tabs, conllu = any("\t" in line for line in lines), has_conllu_name(path)
    groups: Groups = [[]]
    for number, line in enumerate(lines, 1):
        if not line.strip():
            groups.append([])
        elif not (line.startswith("#") and (conllu or (tabs and "\t" not in line))):
            groups[-1].append((number, line.split("\t") if tabs else line.split()))
    groups = [group for group in groups if group and group[0][1][0] != "-DOCSTART-"]
    if not groups:
        raise EmptyInput(f"{path}: no sequence in it")
    return groups


def _from_conllu(path: str | Path, groups: Groups, wanted: _Wanted) -> Tagged:
    given, defaults, need_tags = wanted
    token, tag = (
        column_number(path, given.token),
        "none" if wanted.no_tags else column_number(path, given.tag),
    )
    known = [column_number(path, each) if each in KNOWN else None for each in (defaults.token, defaults.tag)]
    defaults = DefaultTagColumns(
        FORM if known[0] is None else known[0], UPOS if known[1] is None else known[1]
    )
    words = [group for group in words_of(path, groups) if group]
    if not words:
        raise EmptyInput(f"{path}: no word in it")
    found = _from_columns(path, words, _Wanted(DefaultTagColumns(token, tag), defaults, need_tags))
    if found.tags is None or any(each != UNKNOWN for row in found.tags for each in row):
        return found
    if need_tags:
        raise InputError(f"{path}: every tag is _, which means unknown; choose another column as tag=")
    return replace(found, tags=None)


def _from_columns(path: str | Path, groups: Groups, wanted: _Wanted) -> Tagged:
    width = len(groups[0][0][1])
    for number, fields in (row for group in groups for row in group):
        if len(fields) != width:
            raise InputError(f"{path}: line {number} has {len(fields)} columns; the first token has {width}")
    if wanted.need_tags and width < 2:
        raise InputError(f"{path}: one column only; expected a token and a tag on every line")
    token, tag = _two_of(width, wanted)
    for column in (token,) if tag is None else (token, tag):
        if not -width <= column < width:
            raise InputError(f"{path}: no column {column}; there are {width}, numbered from 0")
    if tag is not None and token % width == tag % width:
        raise InputError(f"{path}: token and tag are the same column, {token % width}")
    return Tagged(
        str(path),
        [[fields[token] for _, fields in group] for group in groups],
        None if tag is None else [[fields[tag] for _, fields in group] for group in groups],
        [[number for number, _ in group] for group in groups],
    )


def _two_of(width: int, wanted: _Wanted) -> tuple[int, int | None]:
    """Return the columns of the tokens and the tags, None without tags; defaults that the file lacks are ignored."""
    given, defaults, need_tags = wanted
    there = [column for column in (given.token, defaults.token, 0) if isinstance(column, int)]
    token = next(column for column in there if column < width or column == given.token)
    if not need_tags and (width == 1 or given.tag == "none"):
        return token, None
    if isinstance(given.tag, int):
        return token, given.tag
    tag = defaults.tag if isinstance(defaults.tag, int) else -1
    return token, None if not need_tags and (tag >= width or tag % width == token) else tag


def _from_table(table: Table, wanted: _Wanted) -> Tagged:
    given, defaults, need_tags = wanted
    token, tag, sequence = (
        next(column for column in each if column is not None)
        for each in zip(given, defaults, DefaultTagColumns._fields, strict=True)
    )
    words, names = table.text(token), table.text(sequence)
    if not need_tags and table.lacks(given.tag, tag, token):
        tags = None
    else:
        table.find_two(token, tag, "token and tag")
        tags = table.text(tag)
    begins = _begins(names)
    spans = list(zip(begins, [*begins[1:], len(names)], strict=True))
    spans = [(a, a) if b == a + 1 and not words[a] and not (tags and tags[a]) else (a, b) for a, b in spans]
    for i in (i for a, b in spans for i in range(a, b)):
        if tags is not None and not tags[i]:
            raise InputError(f"{table.location(i, tag)}: the tag is missing")
    return Tagged(
        table.name,
        [words[a:b] for a, b in spans],
        None if tags is None else [tags[a:b] for a, b in spans],
        [table.lines[a:b] for a, b in spans],
    )


def _begins(names: list[str]) -> list[int]:
    """Return the rows at which the name changes; an empty name repeats the name above."""
    begins, above = list[int](), ""
    for i, name in enumerate(names):
        if i == 0 or (name and name != above):
            begins.append(i)
        above = name or above
    return begins
