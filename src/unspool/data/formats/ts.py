"""Time series with a class or a number, as ``.ts`` files have them: the archives of series classification and regression.

    #  a comment
    @problemName JapaneseVowels        words about the data, in any case of letters
    @dimensions 12                     how many values a step has
    @classLabel true 1 2 3             whether a label ends each line, and the labels there are
    @targetLabel true                  instead of it: whether a number to predict ends each line
    @data
    1.8,1.9,2.0:-0.2,-0.1,-0.3:1       a series a line: dimensions between colons, then the label

A value ``?`` or ``NaN`` is missing: refused unless asked for as NaN. Stamped times, ``(0,1.8),(1,1.9)``, are
refused.

>>> import pathlib, tempfile
>>> place = tempfile.TemporaryDirectory()
>>> path = pathlib.Path(place.name) / "two.ts"
>>> _ = path.write_text("@classLabel true low high\\n@data\\n1,2,3:4,5,6:low\\n7:8:high\\n")
>>> found = read_ts(path)
>>> found.sequences[0].tolist(), found.labels
([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]], ['low', 'high'])
>>> place.cleanup()
"""

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from unspool.data.formats.table import as_number
from unspool.data.text.source import read_file
from unspool.errors import EmptyInput, InputError
from unspool.kernels.arrays import Real
from unspool.options import check_choice


@dataclass
class Header:
    """What stands before @data."""

    words: dict[str, list[str]] = field(default_factory=dict)
    """Lower-case keys, and what follows them."""

    @property
    def labelled(self) -> bool:
        """Whether each line ends with a label, a class or a number."""
        return self._says("classlabel") or self._says("targetlabel")

    @property
    def numbers(self) -> bool:
        """Whether each line ends with a number to predict."""
        return self._says("targetlabel")

    @property
    def classes(self) -> list[str]:
        """The labels that are announced; none where the label is a number."""
        return self.words["classlabel"][1:] if self._says("classlabel") else []

    @property
    def stamped(self) -> bool:
        """Whether every value has its time."""
        return self._says("timestamps")

    def _says(self, key: str) -> bool:
        return [word.lower() for word in self.words.get(key, ())[:1]] == ["true"]


@dataclass(frozen=True)
class Series:
    """Series (tau X) of different lengths, their labels, and the lines they stand in."""

    sequences: list[Real]
    labels: list[str] | None
    classes: list[str]
    """The labels that the header announces."""
    lines: list[int]
    numbers: bool = False
    """Whether the labels are numbers to predict and no classes."""


def read_ts(path: str | Path, missing: str = "refuse") -> Series:
    """Read all series of a file; ``missing`` is refuse, or nan to have NaN in the place of what is missing."""
    check_choice("missing", missing, ("refuse", "nan"))
    lines = [line.strip() for line in read_file(path, newlines="lf").split("\n")]
    header, begin = _header(path, lines)
    if header.numbers and header.classes:
        raise InputError(f"{path}: @classLabel and @targetLabel are both true; expected one of them")
    if header.stamped:
        raise InputError(f"{path}: @timestamps true: values with times of their own are not read")
    sequences, labels, places = list[Real](), list[str](), list[int]()
    for number, line in enumerate(lines[begin:], begin + 1):
        if not line or line.startswith("#"):
            continue
        parts = line.split(":")
        if header.labelled:
            labels.append(_label(path, number, parts.pop().strip(), header.classes))
        sequences.append(_series(path, number, parts, header, missing))
        places.append(number)
        if sequences[-1].shape[1] != sequences[0].shape[1]:
            raise InputError(
                f"{path}: line {number} has {sequences[-1].shape[1]} dimensions; the first series has "
                f"{sequences[0].shape[1]}"
            )
    if not sequences:
        raise EmptyInput(f"{path}: no series below @data")
    return Series(sequences, labels if header.labelled else None, header.classes, places, header.numbers)


def _header(path: str | Path, lines: list[str]) -> tuple[Header, int]:
    header = Header()
    for number, line in enumerate(lines, 1):
        if line.lower() == "@data":
            return header, number
        if line.startswith("@"):
            key, *rest = line[1:].split()
            header.words[key.lower()] = rest
        elif line and not line.startswith("#"):
            raise InputError(f"{path}: line {number}: expected @data before the first series")
    raise InputError(f"{path}: no @data in it; is it a .ts file?")


def _label(path: str | Path, line: int, label: str, classes: list[str]) -> str:
    if not label or (classes and label not in classes):
        raise InputError(
            f"{path}: line {line}: label {label!r}; @classLabel has {', '.join(classes) or 'none'}"
        )
    return label


def _series(path: str | Path, line: int, parts: list[str], header: Header, missing: str) -> Real:
    stated = header.words.get("dimensions", header.words.get("dimension", [""]))[0]
    if stated.isdecimal() and len(parts) != int(stated):
        raise InputError(f"{path}: line {line} has {len(parts)} dimensions; @dimensions says {stated}")
    if not parts:
        raise InputError(f"{path}: line {line}: a label and no series")
    columns = [_values(path, line, i, part, missing) for i, part in enumerate(parts, 1)]
    for i, column in enumerate(columns, 1):
        if len(column) != len(columns[0]):
            raise InputError(
                f"{path}: line {line}: dimension {i} has {len(column)} values, dimension 1 has {len(columns[0])}"
            )
    return np.array(columns, np.float64).T.copy()  # tau X


def _values(path: str | Path, line: int, dimension: int, part: str, missing: str) -> list[float]:
    fields = part.split(",") if part.strip() else []
    values = [as_number(each) for each in fields]
    numbers = list[float]()
    for i, (value, written) in enumerate(zip(values, fields, strict=True), 1):
        at = f"{path}: line {line}, dimension {dimension}, value {i}"
        if value is None or math.isinf(value):
            raise InputError(f"{at}: expected a finite number, got {written.strip()!r}")
        if math.isnan(value) and missing == "refuse":
            raise InputError(f"{at}: the value is missing ({written.strip()!r})")
        numbers.append(value)
    return numbers
