"""Sequences or vectors with numbers to predict, from any file that has them: what a regression reads.

    a table with columns of numbers     CSV, TSV …    a row is a vector, or the steps of one series
    a table with a text column          CSV, TSV …    a row is a text
    arrays with targets                 .npz          ragged
    time series with a number           .ts           timeseries

>>> import pathlib, tempfile
>>> place = tempfile.TemporaryDirectory()
>>> path = pathlib.Path(place.name) / "flats.csv"
>>> _ = path.write_text("rooms,street,area,target\\n2,High St,50,700\\n3,Low St,70,900\\n")
>>> found = read_measured(path)
>>> found.sequences.tolist(), found.targets.tolist(), found.columns.features, found.left_out
([[[2.0, 50.0]], [[3.0, 70.0]]], [[700.0], [900.0]], ('rooms', 'area'), ['street'])
>>> place.cleanup()
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from unspool.data.formats.npz import read_ragged
from unspool.data.formats.table import Column, Table, as_number, read_table
from unspool.data.formats.ts import read_ts
from unspool.errors import InputError
from unspool.kernels.arrays import Real

TARGET = "target"


class Columns(NamedTuple):
    """The columns of a table; names once the table is known."""

    target: tuple[Column, ...] = ()
    """What is predicted [default: target]; none: nothing."""
    features: tuple[Column, ...] = ()
    """The numbers that are read [default: all columns of numbers but the targets]."""
    text: Column | None = None
    """The text that is read instead of numbers."""
    series: bool = False
    """Whether the features are the steps of one series, oldest first, and not one vector."""

    @property
    def given(self) -> bool:
        """Whether a column was chosen."""
        return self != USUAL


USUAL = Columns()


@dataclass(frozen=True)
class Measured:
    """Sequences and their numbers."""

    name: str
    sequences: Any
    """Texts, arrays (tau, X), or one array (n, tau, X)."""
    targets: Real | None  # n O
    names: tuple[str, ...]
    """What the targets are called."""
    places: list[str]
    """Where each row stands, for messages."""
    kind: Literal["vectors", "series", "texts", "sequences"] = "sequences"
    columns: Columns = USUAL
    """The columns that were read, by name: other tables are read by the same names."""
    left_out: list[str] = field(default_factory=list)
    """Columns that are neither numbers nor chosen."""

    def __len__(self) -> int:
        return len(self.sequences)

    def part(self, rows: list[int]) -> "Measured":
        """Return some of the rows."""
        array = isinstance(self.sequences, np.ndarray)
        return Measured(
            self.name,
            self.sequences[rows] if array else [self.sequences[i] for i in rows],
            None if self.targets is None else self.targets[rows],
            self.names,
            [self.places[i] for i in rows],
            self.kind,
            self.columns,
            self.left_out,
        )


def read_measured(
    path: str | Path,
    columns: Columns = USUAL,
    delimiter: str | None = None,
    by: str | None = None,
    need_targets: bool = True,
) -> Measured:
    """Read sequences and the numbers to predict; without ``need_targets`` a file may have none."""
    path = Path(path)
    kind = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if kind not in ("npz", "npy", "ts"):
        if by is not None:
            raise InputError(f"{path}: by={by} is for images, in .npz or .npy")
        return _from_table(read_table(path, delimiter), columns, need_targets)
    if columns.given or delimiter is not None:
        raise InputError(
            f"{path}: target, features, text, series and delimiter are for tables, as CSV and TSV"
        )
    if by is not None and kind == "ts":
        raise InputError(f"{path}: by={by} is for images, and a .ts file has series")
    if kind == "ts":
        return _from_ts(path, need_targets)
    found = read_ragged(path, by)
    places = [f"{path}: sequence {i}" for i in range(1, len(found.sequences) + 1)]
    if found.targets is None and need_targets:
        raise InputError(f"{path}: no array 'targets' in it, and there is nothing to learn without")
    return Measured(str(path), found.sequences, found.targets, _numbered(found.targets), places)


def _from_ts(path: Path, need_targets: bool) -> Measured:
    series = read_ts(path)
    places = [f"{path}: line {line}" for line in series.lines]
    if series.labels is not None and not series.numbers:
        raise InputError(f"{path}: @classLabel true: its series have classes; use unspool classify")
    if series.labels is None:
        if need_targets:
            raise InputError(f"{path}: its series have no numbers; expected @targetLabel true")
        return Measured(str(path), series.sequences, None, (TARGET,), places)
    targets = [as_number(label) for label in series.labels]
    for target, label, place in zip(targets, series.labels, places, strict=True):
        if target is None or not np.isfinite(target):
            raise InputError(f"{place}: expected a finite number as the target, got {label!r}")
    return Measured(str(path), series.sequences, np.array(targets, np.float64)[:, None], (TARGET,), places)


def _numbered(targets: Real | None) -> tuple[str, ...]:
    width = 1 if targets is None else targets.shape[1]
    return (TARGET,) if width == 1 else tuple(f"{TARGET} {i}" for i in range(1, width + 1))


def _from_table(table: Table, columns: Columns, need_targets: bool) -> Measured:
    targets = _target_columns(table, columns.target or (TARGET,), need_targets)
    names = tuple(table.names[i] for i in targets or ())
    numbers = None if targets is None else np.stack([table.numbers(i) for i in targets], axis=1)
    places = [f"{table.name}: row {i} (line {line})" for i, line in enumerate(table.lines, 1)]
    if columns.text is not None:
        if columns.features or columns.series:
            raise InputError(f"{table.name}: text or features; expected one of them, got both")
        text = table.find(columns.text)
        _refuse_same(table, targets, [text])
        chosen = Columns(names, (), table.names[text])
        return Measured(table.name, table.text(text), numbers, names, places, "texts", chosen)
    features, left_out = feature_columns(table, columns.features, targets or [], columns.target)
    _refuse_same(table, targets, features)
    values = read_features(table, features)
    chosen = Columns(names, tuple(table.names[i] for i in features), None, columns.series)
    shaped = values[:, :, None] if columns.series else values[:, None, :]  # n tau X
    kind: Literal["vectors", "series"] = "series" if columns.series else "vectors"
    return Measured(table.name, shaped, numbers, names, places, kind, chosen, left_out)


def _target_columns(table: Table, targets: Sequence[Column], need_targets: bool) -> list[int] | None:
    if not need_targets and (targets == ("none",) or not all(map(table.has, targets))):
        return None
    found = [table.find(column) for column in targets]
    if len(set(found)) < len(found):
        raise InputError(f"{table.name}: a target is given twice: {', '.join(map(str, targets))}")
    return found


def feature_columns(
    table: Table, given: Sequence[Column], targets: Sequence[int], named: Sequence[Column] = ()
) -> tuple[list[int], list[str]]:
    """Return the columns of numbers to read, and the names of the others; all but the targets unless some are given."""
    if given:
        table.refuse_missing(given)
        return [table.find(column) for column in given], []
    others = [i for i in range(len(table.names)) if i not in targets and table.names[i] not in named]
    found = [i for i in others if table.is_numeric(i)]
    if not found:
        raise InputError(
            f"{table.name}: no column of numbers beside what is predicted; choose them as features=, or a text as text=; "
            f"there are {', '.join(table.names)}"
        )
    return found, [table.names[i] for i in others if i not in found]


def read_features(table: Table, features: Sequence[int]) -> Real:
    """Return columns of numbers side by side, n X."""
    return np.stack([table.numbers(i) for i in features], axis=1)


def _refuse_same(table: Table, targets: Sequence[int] | None, read: Sequence[int]) -> None:
    for i in targets or ():
        if i in read:
            raise InputError(
                f"{table.name}: column {table.names[i]!r} is read and predicted; expected one of them"
            )
