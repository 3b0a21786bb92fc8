"""Sequences with a tag at every step: columns with a blank line between sequences, or a table.

    Dogs    NNS          columns between tabs or blanks, one step a line,
    bark    VBP          a blank line between two sequences

    sentence,word,tag    a table says which sequence a row belongs to: rows of the same name that follow
    1,Dogs,NNS           one another are one sequence, and an empty name means the one above
    1,bark,VBP
    2,,                  a row with neither token nor tag, alone in its sequence, is a sequence of no step

Ten columns as CoNLL-U has them are read by its own rules (`unspool.data.formats.conllu`): form and upos.
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

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

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
from unspool.data.formats.table import Column, Table, read_table
from unspool.data.text.source import read_file
from unspool.errors import EmptyInput, InputError

TABLES = (".csv", ".tsv", ".tab")
KNOWN = {*COLUMNS, *range(len(COLUMNS))}
"""The columns of CoNLL-U, by name and by number."""


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


class DefaultTagColumns(NamedTuple):
    """The columns where nobody chooses others; None: the first and the last, in a table those of these names."""

    token: Column | None = None
    tag: Column | None = None
    sequence: Column | None = None


USUAL = DefaultTagColumns()


def read_tagged(
    path: str | Path,
    token: Column | None = None,
    tag: Column | None = None,
    sequence: Column | None = None,
    delimiter: str | None = None,
    need_tags: bool = True,
    usual: DefaultTagColumns = USUAL,
) -> Tagged:
    """Read a file named .csv, .tsv or .tab as a table, any other as columns.

    ``token`` and ``tag`` choose columns [default: the usual ones], ``sequence`` the table's column that names the
    sequence. Without ``need_tags`` a file may have none, or ``none`` says so: something to predict.
    """
    if Path(path).name.lower().removesuffix(".gz").endswith(TABLES) or delimiter is not None:
        return _from_table(
            read_table(path, delimiter), DefaultTagColumns(token, tag, sequence), need_tags, usual
        )
    if sequence is not None:
        raise InputError(f"{path}: sequence is for tables; in columns a blank line begins a new one")
    groups, no_tags = _groups(path), tag == "none" and not need_tags
    if is_conllu(path, groups):
        return _from_conllu(path, groups, DefaultTagColumns(token, tag), need_tags, usual)
    for name, column in (("token", token), ("tag", None if no_tags else tag)):
        if isinstance(column, str):
            raise InputError(f"{path}: {name}: columns have numbers from 0 here, got {column!r}")
    return _from_columns(path, groups, DefaultTagColumns(token, tag), need_tags, usual)


def _groups(path: str | Path) -> list[list[tuple[int, list[str]]]]:
    """Return the lines of every sequence with their numbers, cut into fields, without comments."""
    lines = read_file(path, newlines="lf").split("\n")
    tabs, conllu = any("\t" in line for line in lines), has_conllu_name(path)
    groups: list[list[tuple[int, list[str]]]] = [[]]
    for number, line in enumerate(lines, 1):
        if not line.strip():
            groups.append([])
        elif not (line.startswith("#") and (conllu or (tabs and "\t" not in line))):
            groups[-1].append((number, line.split("\t") if tabs else line.split()))
    groups = [group for group in groups if group and group[0][1][0] != "-DOCSTART-"]
    if not groups:
        raise EmptyInput(f"{path}: no sequence in it")
    return groups


def _from_conllu(
    path: str | Path,
    groups: list[list[tuple[int, list[str]]]],
    told: DefaultTagColumns,
    need_tags: bool,
    usual: DefaultTagColumns,
) -> Tagged:
    no_tags = told.tag == "none" and not need_tags
    token, tag = column_number(path, told.token), None if no_tags else column_number(path, told.tag)
    known = [column_number(path, each) if each in KNOWN else None for each in (usual.token, usual.tag)]
    usual = DefaultTagColumns(FORM if known[0] is None else known[0], UPOS if known[1] is None else known[1])
    words = [group for group in words_of(path, groups) if group]
    if not words:
        raise EmptyInput(f"{path}: no word in it")
    found = _from_columns(path, words, DefaultTagColumns(token, "none" if no_tags else tag), need_tags, usual)
    if found.tags is None or any(each != UNKNOWN for row in found.tags for each in row):
        return found
    if need_tags:
        raise InputError(f"{path}: every tag is _, which means unknown; choose another column as tag=")
    return replace(found, tags=None)


def _from_columns(
    path: str | Path,
    groups: list[list[tuple[int, list[str]]]],
    told: DefaultTagColumns,
    need_tags: bool,
    usual: DefaultTagColumns,
) -> Tagged:
    width = len(groups[0][0][1])
    for number, fields in (row for group in groups for row in group):
        if len(fields) != width:
            raise InputError(f"{path}: line {number} has {len(fields)} columns; the first token has {width}")
    if need_tags and width < 2:
        raise InputError(f"{path}: one column only; expected a token and a tag on every line")
    token, tag = _two_of(width, told, need_tags, usual)
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


def _two_of(
    width: int, told: DefaultTagColumns, need_tags: bool, usual: DefaultTagColumns
) -> tuple[int, int | None]:
    """Give the columns of the tokens and the tags, None where there are none; of the usual ones those that are there."""
    there = [column for column in (told.token, usual.token, 0) if isinstance(column, int)]
    token = next(column for column in there if column < width or column == told.token)
    if not need_tags and (width == 1 or told.tag == "none"):
        return token, None
    if isinstance(told.tag, int):
        return token, told.tag
    tag = usual.tag if isinstance(usual.tag, int) else -1
    return token, None if not need_tags and (tag >= width or tag % width == token) else tag


def _from_table(table: Table, told: DefaultTagColumns, need_tags: bool, usual: DefaultTagColumns) -> Tagged:
    token, tag, sequence = (
        next(column for column in each if column is not None)
        for each in zip(told, usual, DefaultTagColumns._fields, strict=True)
    )
    words, names = table.text(token), table.text(sequence)
    if not need_tags and _without_tags(table, token, tag, told.tag):
        tags = None
    else:
        if table.find(token) == table.find(tag):
            raise InputError(f"{table.name}: token and tag are the same column, {tag!r}")
        tags = table.text(tag)
    begins = _begins(names)
    spans = list(zip(begins, [*begins[1:], len(names)], strict=True))
    spans = [(a, a) if b == a + 1 and not words[a] and not (tags and tags[a]) else (a, b) for a, b in spans]
    for i in (i for a, b in spans for i in range(a, b)):
        if tags is not None and not tags[i]:
            raise InputError(f"{table.place(i, tag)}: the tag is missing")
    return Tagged(
        table.name,
        [words[a:b] for a, b in spans],
        None if tags is None else [tags[a:b] for a, b in spans],
        [table.lines[a:b] for a, b in spans],
    )


def _without_tags(table: Table, token: Column, tag: Column, told: Column | None) -> bool:
    """Say whether a table has no tags: none are said to be there, or the usual column is none or the tokens'."""
    if told is not None:
        return told == "none" and not table.has(told)
    return not table.has(tag) or table.find(tag) == table.find(token)


def _begins(names: list[str]) -> list[int]:
    """Give the rows where another name than that above begins; an empty one is that above."""
    begins, above = list[int](), ""
    for i, name in enumerate(names):
        if i == 0 or (name and name != above):
            begins.append(i)
        above = name or above
    return begins
