"""Read tables from text files (CSV, TSV and similar), with named columns of text or numbers.

Rules:

- Fields may be quoted with ``"``; inside quotes the delimiter and line ends are text, and ``""`` is a quote.
- The delimiter is given, or a tab for files named ``.tsv`` or ``.tab``, or guessed: of comma, tab, semicolon
  and bar the one that splits the first twenty rows into equal numbers of fields, as many as possible.
- The first row is the heading, unless all its fields are numbers: then columns are named ``column 1`` ….
- Every row has as many fields as the heading. Blank lines are skipped, but in a table of a single column a
  blank line before the last row is an empty field: skipping it would shift the rows below.
- A number has a decimal point and no thousands separators. Missing values are an empty field, ``?`` and, in any
  case, ``na``, ``n/a``, ``nan``, ``null``, ``none``. They are an error unless ``missing="nan"``.
- Errors name the row (counted from 1 below the heading), the line in the file and the column.

>>> import pathlib, tempfile
>>> temporary = tempfile.TemporaryDirectory()
>>> path = pathlib.Path(temporary.name) / "a.csv"
>>> _ = path.write_text('word,"how many"\\n"one, two",2\\nthree,?\\n')
>>> table = read_table(path)
>>> table.names, table.text("word"), table.numbers("how many", missing="nan").tolist()
(('word', 'how many'), ['one, two', 'three'], [2.0, nan])
>>> temporary.cleanup()
"""

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unspool.data.formats.base import ending
from unspool.data.text.decoding import read_file
from unspool.errors import EmptyInput, InputError
from unspool.kernels.arrays import Real
from unspool.options import check_choice

DELIMITERS = {",": "a comma", "\t": "a tab", ";": "a semicolon", "|": "a bar"}
DELIMITER_OF = {"csv": None, "tsv": "\t", "tab": "\t"}
"""Delimiters by file ending; None: guessed."""
WORDS = {"comma": ",", "tab": "\t", "semicolon": ";", "bar": "|"}
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
GUESSED_FROM = 20

Column = str | int
"""A column by name, or by number from 0."""


@dataclass(frozen=True)
class Table:
    """Rows of fields under named columns."""

    name: str
    """The file, for messages."""
    names: tuple[str, ...]
    """The headings."""
    rows: list[list[str]]
    lines: list[int]
    """The line number at which each row ends."""
    delimiter: str
    row_numbers: Sequence[int] | None = None
    """The number of each row in its file, counted from 1; None: 1, 2, …"""

    def __len__(self) -> int:
        return len(self.rows)

    def has(self, column: Column) -> bool:
        """Return whether the table has a column."""
        if isinstance(column, str):
            return column in self.names
        return -len(self.names) <= column < len(self.names)

    def lacks(self, given: Column | None, chosen: Column, other: Column) -> bool:
        """Return whether there are no targets: given is "none", or the default column is missing or holds the inputs."""
        if given is not None:
            return given == "none" and not self.has(given)
        return not self.has(chosen) or self.find(chosen) == self.find(other)

    def find_two(self, one: Column, other: Column, names: str) -> tuple[int, int]:
        """Return the numbers of two columns; raise InputError if they are the same, with their `names` in the call."""
        first, second = self.find(one), self.find(other)
        if first == second:
            raise InputError(f"{self.name}: {names} are the same column, {self.names[first]!r}")
        return first, second

    def find(self, column: Column) -> int:
        """Return the number of a column; raise InputError with the list of columns if it is missing."""
        self.refuse_missing([column])
        return self.names.index(column) if isinstance(column, str) else column % len(self.names)

    def refuse_missing(self, columns: Iterable[Column]) -> None:
        """Raise InputError if columns are missing, with the missing and the existing names."""
        missing = [repr(column) for column in columns if not self.has(column)]
        if missing:
            there = ", ".join(repr(name) for name in self.names)
            how = f"; its fields were cut at {DELIMITERS.get(self.delimiter, repr(self.delimiter))}"
            what = f"no column{'s' * (len(missing) > 1)} {', '.join(missing)}"
            raise InputError(f"{self.name}: {what}; there are {there}{how if len(self.names) == 1 else ''}")

    @property
    def locations(self) -> list[str]:
        """The location of each row, for messages."""
        return [f"{self.name}: row {self._number(i)} (line {line})" for i, line in enumerate(self.lines)]

    def _number(self, row: int) -> int:
        return row + 1 if self.row_numbers is None else self.row_numbers[row]

    def location(self, row: int, column: Column) -> str:
        """Return the location of a field for a message; `row` counts from 0, the message from 1."""
        at = self.find(column)
        return f"{self.name}: row {self._number(row)} (line {self.lines[row]}), column {self.names[at]!r}"

    def text(self, column: Column) -> list[str]:
        """Return the fields of a column."""
        at = self.find(column)
        return [row[at] for row in self.rows]

    def labels(self, column: Column, what: str) -> list[str]:
        """Return the fields of a column without outer blanks; raise InputError for an empty one, with `what` is missing."""
        found = [field.strip() for field in self.text(column)]
        if "" in found:
            raise InputError(f"{self.location(found.index(''), column)}: the {what} is missing")
        return found

    def numbers(self, column: Column, missing: str = "refuse") -> Real:
        """Return a column as float64; ``missing``: refuse (an error) or nan (missing values are NaN)."""
        check_choice("missing", missing, ("refuse", "nan"))
        at = self.find(column)
        values = np.empty(len(self.rows))
        for i, row in enumerate(self.rows):
            value = as_number(row[at])
            if value is None or not math.isfinite(value):
                value = missing_value(row[at], missing, self.location(i, at))
            values[i] = value
        return values

    def vectors(self, columns: Iterable[Column]) -> Real:
        """Return numeric columns as one array (n, X)."""
        return np.stack([self.numbers(column) for column in columns], axis=1)

    def is_numeric(self, column: Column) -> bool:
        """Return whether all fields of a column that are not missing are numbers, and at least one is."""
        values = [as_number(field) for field in self.text(column)]
        return None not in values and not all(value is None or math.isnan(value) for value in values)


def as_number(field: str) -> float | None:
    """Return a field as a number: NaN if it is missing, None if it is not a number.

    >>> as_number(" 2.5 "), as_number("NA"), as_number("1_000"), as_number("two")
    (2.5, nan, None, None)
    """
    field = field.strip()
    if field.lower() in MISSING:
        return math.nan
    try:
        return None if "_" in field else float(field)
    except ValueError:
        return None


def missing_value(field: str, missing: str, location: str) -> float:
    """Return NaN for a missing value, if ``missing`` allows it; raise InputError for any other field."""
    value = as_number(field)
    if value is None or math.isinf(value):
        raise InputError(f"{location}: expected a finite number, got {field!r}{comma_hint(field)}")
    if missing == "refuse":
        raise InputError(f"{location}: the value is missing ({field!r})")
    return value


def comma_hint(field: str) -> str:
    """Return a hint if a field is a number with a comma, otherwise nothing.

    >>> comma_hint("1,5"), comma_hint("one, two")
    (': a number has a decimal point, and no other commas or points', '')
    """
    wrong = re.fullmatch(r"[+-]?[\d.]+(,\d+)+(\.\d*)?", field.strip()) is not None
    return ": a number has a decimal point, and no other commas or points" if wrong else ""


def read_table(path: str | Path, delimiter: str | None = None) -> Table:
    """Read a table; ``delimiter`` is a character or one of comma, tab, semicolon, bar [default: guessed]."""
    text = read_file(path)
    name = str(path)
    cut = _guess(name, text) if delimiter is None else _delimiter(delimiter)
    rows = list(_rows(name, text, cut))
    body = _without_blanks(rows)
    if not body:
        raise EmptyInput(f"{name}: no rows in it")
    first = body[0][1]
    if all(value is not None and math.isfinite(value) for value in map(as_number, first)):
        names = tuple(f"column {i}" for i in range(1, len(first) + 1))
    else:
        names = _headings(name, first)
        body = body[1:]
    if not body:
        raise EmptyInput(f"{name}: no row below its heading")
    for i, (line, row) in enumerate(body, 1):
        if len(row) != len(names):
            fields = f"{len(row)} field{'s' * (len(row) != 1)}"
            raise InputError(
                f"{name}: row {i} (line {line}) has {fields}; the heading has {len(names)}: {', '.join(names)}"
            )
    return Table(name, names, [row for _, row in body], [line for line, _ in body], cut)


def _headings(name: str, first: Sequence[str]) -> tuple[str, ...]:
    names = tuple(field.strip() or f"column {i}" for i, field in enumerate(first, 1))
    for heading in names:
        if names.count(heading) > 1:
            raise InputError(
                f"{name}: the heading has {heading!r} {names.count(heading)} times; expected each name once"
            )
    return names


def _without_blanks(rows: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    while rows and not rows[-1][1]:
        rows.pop()
    single = max((len(row) for _, row in rows), default=0) == 1
    begun = False
    found = []
    for line, row in rows:
        if row or (single and begun):
            found.append((line, row or [""]))
        begun = begun or bool(row)
    return found


def _rows(name: str, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, fields); fields may be long, an unclosed quote is an error."""
    before = csv.field_size_limit(len(text) + 1)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        start = 1
        try:
            for row in reader:
                yield reader.line_num, row
                start = reader.line_num + 1
        except csv.Error as error:
            raise InputError(
                f"{name}: the row that begins at line {start}: {error}; a quote inside quotes is written twice"
            ) from error
    finally:
        csv.field_size_limit(before)


def _delimiter(delimiter: str) -> str:
    cut = WORDS.get(delimiter, delimiter)
    if len(cut) != 1 or cut in '"\r\n':
        raise InputError(f"delimiter: expected one character, or {', '.join(WORDS)}; got {delimiter!r}")
    return cut


def _guess(name: str, text: str) -> str:
    if (known := DELIMITER_OF.get(ending(name))) is not None:
        return known
    return max(DELIMITERS, key=lambda cut: _fit(name, text, cut))  # the first of equals


def _fit(name: str, text: str, delimiter: str) -> tuple[bool, int]:
    """Return how well a delimiter fits: whether all rows have equally many fields, and how many."""
    widths = list[int]()
    try:
        for _, row in _rows(name, text, delimiter):
            if row:
                widths.append(len(row))
            if len(widths) == GUESSED_FROM:
                break
    except InputError:
        return False, max(widths, default=0)
    widths = widths or [0]
    return min(widths) == max(widths) and widths[0] > 1, widths[0]
