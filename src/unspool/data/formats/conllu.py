"""Recognise and check CoNLL-U: ten columns separated by tabs. The word form and the universal part of speech are the defaults.

    # text = Let's go              comments begin with #
    1-2   Let's  _    _     …      a range of words: repeats the words below, skipped
    1     Let    let  VERB  …
    2     's     we   PRON  …
    2.1   _      _    _     …      an empty node: not in the text, skipped

The older CoNLL-X has the same ten columns in the same order.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from unspool.data.formats.base import ending
from unspool.data.formats.table import Column
from unspool.errors import InputError

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
FORM, UPOS = 1, 3
WORD, SKIPPED = re.compile(r"[1-9]\d*"), re.compile(r"\d+-\d+|\d+\.\d+")
UNKNOWN = "_"

Rows = list[tuple[int, list[str]]]
"""The rows of a sentence: line number and fields."""


def has_conllu_name(path: str | Path) -> bool:
    """Return whether a file has the ending .conllu, gzipped or not."""
    return ending(path) == "conllu"


def is_conllu(path: str | Path, sentences: Sequence[Rows]) -> bool:
    """Return whether a file has the ending .conllu, or ten columns of which the first numbers the words."""
    if has_conllu_name(path):
        return True
    fields = [row for sentence in sentences for _, row in sentence]
    return all(len(row) == len(COLUMNS) for row in fields) and all(map(_counts, sentences))


def _counts(sentence: Rows) -> bool:
    numbers = [row[0] for _, row in sentence if not SKIPPED.fullmatch(row[0])]
    return numbers == [str(i) for i in range(1, len(numbers) + 1)]


def words_of(path: str | Path, sentences: Sequence[Rows]) -> list[Rows]:
    """Return the rows that are words; raise InputError for a row without ten columns or a word number."""
    for number, row in (each for sentence in sentences for each in sentence):
        if len(row) != len(COLUMNS):
            raise InputError(
                f"{path}: line {number} has {len(row)} columns; CoNLL-U has 10 with tabs between them: {', '.join(COLUMNS)}"
            )
        if not WORD.fullmatch(row[0]) and not SKIPPED.fullmatch(row[0]):
            raise InputError(
                f"{path}: line {number} begins with {row[0]!r}; expected the number of a word, 1, 1-2 or 1.1"
            )
    return [[each for each in sentence if WORD.fullmatch(each[1][0])] for sentence in sentences]


def column_number(path: str | Path, column: Column | None) -> int | None:
    """Return the number, from 0, of a column given by number or name."""
    if not isinstance(column, str):
        return column
    if column.lower() not in COLUMNS:
        raise InputError(
            f"{path}: no column {column!r}; CoNLL-U has {', '.join(COLUMNS)}, numbered from 0 to 9"
        )
    return COLUMNS.index(column.lower())
