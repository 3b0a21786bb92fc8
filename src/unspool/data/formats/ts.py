"""Read time series with a class or a number from ``.ts`` files, as in the archives of series classification and regression.

    #  a comment
    @problemName JapaneseVowels        header fields; case is ignored
    @dimensions 12                     number of values per step
    @classLabel true 1 2 3             each line ends with a label; the list of labels
    @targetLabel true                  instead: each line ends with a number to predict
    @data
    1.8,1.9,2.0:-0.2,-0.1,-0.3:1       one series per line: dimensions separated by colons, then the label

Missing values, ``?`` or ``NaN``, are an error unless ``missing="nan"``. Time stamps, ``(0,1.8),(1,1.9)``, are an error.

>>> import pathlib, tempfile
>>> temporary = tempfile.TemporaryDirectory()
>>> path = pathlib.Path(temporary.name) / "two.ts"
>>> _ = path.write_text("@classLabel true low high\\n@data\\n1,2,3:4,5,6:low\\n7:8:high\\n")
>>> found = read_ts(path)
>>> found.sequences[0].tolist(), found.labels
([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]], ['low', 'high'])
>>> temporary.cleanup()
"""

import math
from pathlib import Path

import numpy as np

from unspool.data.formats.base import Sequences
from unspool.data.formats.table import as_number, missing_value
from unspool.data.text.decoding import read_file
from unspool.errors import EmptyInput, InputError
from unspool.kernels.arrays import Real
from unspool.options import check_choice


class Header:
    """The lines before @data: fields by lower-case name."""

    def __init__(self, words: dict[str, list[str]]) -> None:
        true = {key for key, values in words.items() if values and values[0].lower() == "true"}
        self.numbers = "targetlabel" in true
        """Whether each line ends with a number to predict."""
        self.labelled = self.numbers or "classlabel" in true
        """Whether each line ends with a label, a class or a number."""
        self.classes = words["classlabel"][1:] if "classlabel" in true else []
        """The declared labels; none if the label is a number."""
        self.stamped = "timestamps" in true
        """Whether values have time stamps."""
        self.dimensions = next(iter(words.get("dimensions", words.get("dimension", ()))), "")
        """The declared number of values per step, as written."""


def read_ts(path: str | Path, missing: str = "refuse") -> Sequences:
    """Read all series of a file; ``missing``: refuse (an error) or nan (missing values are NaN)."""
    check_choice("missing", missing, ("refuse", "nan"))
    lines = [line.strip() for line in read_file(path, newlines="lf").split("\n")]
    header, begin = _header(path, lines)
    if header.numbers and header.classes:
        raise InputError(f"{path}: @classLabel and @targetLabel are both true; expected one of them")
    if header.stamped:
        raise InputError(f"{path}: @timestamps true: time stamps are not supported; remove them")
    sequences, labels, locations = list[Real](), list[str](), list[str]()
    for number, line in enumerate(lines[begin:], begin + 1):
        if not line or line.startswith("#"):
            continue
        parts, at = line.split(":"), f"{path}: line {number}"
        if header.labelled:
            labels.append(_label(at, parts.pop().strip(), header.classes))
        sequences.append(_series(at, parts, header, missing))
        locations.append(at)
        if sequences[-1].shape[1] != sequences[0].shape[1]:
            raise InputError(
                f"{at} has {sequences[-1].shape[1]} dimensions; the first series has {sequences[0].shape[1]}"
            )
    if not sequences:
        raise EmptyInput(f"{path}: no series below @data")
    if header.numbers:
        return Sequences(sequences, None, _targets(labels, locations), locations)
    return Sequences(sequences, labels if header.labelled else None, None, locations)


def _targets(labels: list[str], locations: list[str]) -> Real:
    targets = [as_number(label) for label in labels]
    for target, label, location in zip(targets, labels, locations, strict=True):
        if target is None or not math.isfinite(target):
            raise InputError(f"{location}: expected a finite number as the target, got {label!r}")
    return np.array(targets, np.float64)[:, None]


def _header(path: str | Path, lines: list[str]) -> tuple[Header, int]:
    words = dict[str, list[str]]()
    for number, line in enumerate(lines, 1):
        if line.lower() == "@data":
            return Header(words), number
        if line.startswith("@"):
            key, *rest = line[1:].split()
            words[key.lower()] = rest
        elif line and not line.startswith("#"):
            raise InputError(f"{path}: line {number}: expected @data before the first series")
    raise InputError(f"{path}: no @data in it; is it a .ts file?")


def _label(at: str, label: str, classes: list[str]) -> str:
    if not label or (classes and label not in classes):
        raise InputError(f"{at}: label {label!r}; @classLabel has {', '.join(classes) or 'none'}")
    return label


def _series(at: str, parts: list[str], header: Header, missing: str) -> Real:
    stated = header.dimensions
    if stated.isdecimal() and len(parts) != int(stated):
        raise InputError(f"{at} has {len(parts)} dimensions; @dimensions says {stated}")
    if not parts:
        raise InputError(f"{at}: a label and no series")
    columns = [_values(f"{at}, dimension {i}", part, missing) for i, part in enumerate(parts, 1)]
    for i, column in enumerate(columns, 1):
        if len(column) != len(columns[0]):
            raise InputError(
                f"{at}: dimension {i} has {len(column)} values, dimension 1 has {len(columns[0])}"
            )
    return np.array(columns, np.float64).T.copy()  # tau X


def _values(at: str, part: str, missing: str) -> list[float]:
    fields = part.split(",") if part.strip() else []
    numbers = list[float]()
    for i, each in enumerate(fields, 1):
        value = as_number(each)
        if value is None or not math.isfinite(value):
            value = missing_value(each.strip(), missing, f"{at}, value {i}")
        numbers.append(value)
    return numbers
