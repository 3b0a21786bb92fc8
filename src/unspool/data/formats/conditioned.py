"""Texts, each with the class or the numbers that it belongs to: what a generator reads.

    a table with a label column and a text column        CSV, TSV …    class to text
    a table with columns of numbers and a text column    CSV, TSV …    vector to text
    a folder with one text file a class                  a line a text
    a text file with one class a line                    only classes: something to generate from

>>> import pathlib, tempfile
>>> place = tempfile.TemporaryDirectory()
>>> path = pathlib.Path(place.name) / "numbers.csv"
>>> _ = path.write_text("tens,ones,text\\n4,2,forty-two\\n7,0,seventy\\n")
>>> found = read_conditioned(path, features=("tens", "ones"))
>>> found.given.tolist(), found.texts
([[4.0, 2.0], [7.0, 0.0]], ['forty-two', 'seventy'])
>>> place.cleanup()
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unspool.data.formats.labelled import TEXTS, DefaultColumns, read_labelled
from unspool.data.formats.numeric import read_features
from unspool.data.formats.table import Column, Table, read_table
from unspool.data.text.source import read_file
from unspool.errors import EmptyInput, InputError

USUAL = DefaultColumns()


@dataclass(frozen=True)
class Conditioned:
    """Classes or vectors, and the texts that belong to them."""

    name: str
    given: Any
    """A list of classes, or an array of vectors (n, X)."""
    texts: list[str] | None
    """None where the file has none and none were asked for."""
    places: list[str]
    """Where each row stands, for messages."""
    features: tuple[str, ...] = ()
    """The columns of the vectors, by name."""

    def __len__(self) -> int:
        return len(self.given)

    @property
    def are_classes(self) -> bool:
        """Whether texts are generated from classes."""
        return not isinstance(self.given, np.ndarray)

    def part(self, rows: list[int]) -> "Conditioned":
        """Return some of the rows."""
        assert self.texts is not None
        given = [self.given[i] for i in rows] if self.are_classes else self.given[rows]
        places = [self.places[i] for i in rows]
        return Conditioned(self.name, given, [self.texts[i] for i in rows], places, self.features)


def read_conditioned(
    path: str | Path,
    text: Column | None = None,
    label: Column | None = None,
    features: Sequence[Column] = (),
    delimiter: str | None = None,
    need_texts: bool = True,
    usual: DefaultColumns = USUAL,
) -> Conditioned:
    """Read classes or vectors with their texts; without ``need_texts`` a file may have none."""
    path = Path(path)
    name = path.name.lower().removesuffix(".gz")
    if features and label is not None:
        raise InputError(f"{path}: label or features; expected one of them, got both")
    if path.is_dir():
        return _from_folder(path, features)
    if not need_texts and not features and name.endswith(TEXTS):
        return _from_lines(path)
    if name.endswith((".npz", ".npy", ".ts")):
        raise InputError(
            f"{path}: texts are expected, in a table (CSV, TSV) or a folder with one text file a class"
        )
    table = read_table(path, delimiter)
    texts = _texts(table, usual.text if text is None else text, need_texts or text not in (None, "none"))
    places = [f"{table.name}: row {i} (line {line})" for i, line in enumerate(table.lines, 1)]
    if features:
        table.refuse_missing(features)
        found = [table.find(column) for column in features]
        names = tuple(table.names[i] for i in found)
        return Conditioned(table.name, read_features(table, found), texts, places, names)
    at = usual.label if label is None else label
    classes = [each.strip() for each in table.text(at)]
    for i, each in enumerate(classes):
        if not each:
            raise InputError(f"{table.place(i, at)}: the class is missing")
    return Conditioned(table.name, classes, texts, places)


def _texts(table: Table, column: Column, needed: bool) -> list[str] | None:
    return table.text(column) if needed or table.has(column) else None


def _from_folder(path: Path, features: Sequence[Column]) -> Conditioned:
    if features:
        raise InputError(f"{path}: features are for tables, as CSV and TSV")
    found = read_labelled(path)
    if not found.is_text:
        raise InputError(f"{path}: images; expected one text file a class")
    assert found.labels is not None
    return Conditioned(found.name, found.labels, [str(each) for each in found.sequences], found.places)


def _from_lines(path: Path) -> Conditioned:
    lines = read_file(path, newlines="lf").removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise EmptyInput(f"{path}: line {number} is empty; expected a class on every line")
    places = [f"{path}: line {number}" for number in range(1, len(lines) + 1)]
    return Conditioned(str(path), [line.strip() for line in lines], None, places)
