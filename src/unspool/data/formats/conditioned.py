"""Read texts with one class or vector each, for generation.

    a table with a label column and a text column        CSV, TSV …    class to text
    a table with columns of numbers and a text column    CSV, TSV …    vector to text
    a folder with one text file per class                one text per line
    a text file with one class per line                  only classes, to generate from

>>> import pathlib, tempfile
>>> temporary = tempfile.TemporaryDirectory()
>>> path = pathlib.Path(temporary.name) / "numbers.csv"
>>> _ = path.write_text("tens,ones,text\\n4,2,forty-two\\n7,0,seventy\\n")
>>> found = read_conditioned(path, features=("tens", "ones"))
>>> found.given.tolist(), found.texts
([[4.0, 2.0], [7.0, 0.0]], ['forty-two', 'seventy'])
>>> temporary.cleanup()
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unspool.data.formats.base import ending
from unspool.data.formats.labelled import TEXT_ENDINGS, DefaultColumns, read_labelled
from unspool.data.formats.registry import array_format
from unspool.data.formats.table import Column, read_table
from unspool.data.text.decoding import read_file
from unspool.errors import EmptyInput, InputError

DEFAULTS = DefaultColumns()


@dataclass(frozen=True)
class Conditioned:
    """Classes or vectors, and their texts."""

    name: str
    given: Any
    """A list of classes, or an array of vectors (n, X)."""
    texts: list[str] | None
    """None if the file has none and `need_texts` was false."""
    locations: list[str]
    """The location of each row, for messages."""
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
        texts, locations = ([each[i] for i in rows] for each in (self.texts, self.locations))
        return replace(self, given=given, texts=texts, locations=locations)


def read_conditioned(
    path: str | Path,
    text: Column | None = None,
    label: Column | None = None,
    features: Sequence[Column] = (),
    delimiter: str | None = None,
    need_texts: bool = True,
    defaults: DefaultColumns = DEFAULTS,
) -> Conditioned:
    """Read classes or vectors with their texts; without ``need_texts`` the file may have no texts."""
    path = Path(path)
    if features and label is not None:
        raise InputError(f"{path}: got both label and features; expected one of them")
    if path.is_dir():
        return _from_folder(path, features)
    if not need_texts and not features and ending(path) in TEXT_ENDINGS:
        return _from_lines(path)
    if array_format(path) is not None:
        raise InputError(
            f"{path}: a file of arrays; expected texts in a table (CSV, TSV) or a folder with one text file per class"
        )
    table = read_table(path, delimiter)
    column, needed = defaults.text if text is None else text, need_texts or text not in (None, "none")
    texts = table.text(column) if needed or table.has(column) else None
    if features:
        table.refuse_missing(features)
        names = tuple(table.names[table.find(column)] for column in features)
        return Conditioned(table.name, table.vectors(features), texts, table.locations, names)
    classes = table.labels(defaults.label if label is None else label, "class")
    return Conditioned(table.name, classes, texts, table.locations)


def _from_folder(path: Path, features: Sequence[Column]) -> Conditioned:
    if features:
        raise InputError(f"{path}: features are for tables (CSV, TSV); remove them")
    found = read_labelled(path)
    if not found.is_text:
        raise InputError(f"{path}: images; expected one text file per class")
    assert found.labels is not None
    return Conditioned(found.name, found.labels, [str(each) for each in found.sequences], found.locations)


def _from_lines(path: Path) -> Conditioned:
    lines = read_file(path, newlines="lf").removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise EmptyInput(f"{path}: line {number} is empty; expected a class on every line")
    locations = [f"{path}: line {number}" for number in range(1, len(lines) + 1)]
    return Conditioned(str(path), [line.strip() for line in lines], None, locations)
