"""Read sequences or vectors with real-valued targets, for regression.

    a table with columns of numbers     CSV, TSV …    a row is a vector, or the steps of one series
    a table with a text column          CSV, TSV …    a row is a text
    arrays with targets                 .npz          npz
    time series with a number           .ts           ts

>>> import pathlib, tempfile
>>> temporary = tempfile.TemporaryDirectory()
>>> path = pathlib.Path(temporary.name) / "flats.csv"
>>> _ = path.write_text("rooms,street,area,target\\n2,High St,50,700\\n3,Low St,70,900\\n")
>>> found = read_measured(path)
>>> found.sequences.tolist(), found.targets.tolist(), found.columns.features, found.left_out
([[[2.0, 50.0]], [[3.0, 70.0]]], [[700.0], [900.0]], ('rooms', 'area'), ['street'])
>>> temporary.cleanup()
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from unspool.data.formats.registry import array_format
from unspool.data.formats.table import Column, Table, read_table
from unspool.errors import InputError
from unspool.kernels.arrays import Real

TARGET = "target"


class Columns(NamedTuple):
    """The columns of a table, by name or number; in a result by name."""

    target: tuple[Column, ...] = ()
    """Targets [default: target]; ("none",): no targets."""
    features: tuple[Column, ...] = ()
    """Inputs [default: all numeric columns except the targets]."""
    text: Column | None = None
    """Text input, instead of numbers."""
    series: bool = False
    """Whether the features are the steps of one series, oldest first, instead of one vector."""

    @property
    def given(self) -> bool:
        """Whether a column was chosen."""
        return self != DEFAULTS


DEFAULTS = Columns()


@dataclass(frozen=True)
class Measured:
    """Sequences and their targets."""

    name: str
    sequences: Any
    """Texts, arrays (tau, X), or one array (n, tau, X)."""
    targets: Real | None  # n O
    names: tuple[str, ...]
    """Names of the targets."""
    locations: list[str]
    """The location of each row, for messages."""
    kind: Literal["vectors", "series", "texts", "sequences"] = "sequences"
    columns: Columns = DEFAULTS
    """The columns that were read, by name, to read other tables in the same way."""
    left_out: list[str] = field(default_factory=list)
    """Columns that are neither numeric nor chosen."""

    def __len__(self) -> int:
        return len(self.sequences)

    def part(self, rows: list[int]) -> "Measured":
        """Return some of the rows."""
        array = isinstance(self.sequences, np.ndarray)
        return replace(
            self,
            sequences=self.sequences[rows] if array else [self.sequences[i] for i in rows],
            targets=None if self.targets is None else self.targets[rows],
            locations=[self.locations[i] for i in rows],
        )


def read_measured(
    path: str | Path,
    columns: Columns = DEFAULTS,
    delimiter: str | None = None,
    by: str | None = None,
    need_targets: bool = True,
) -> Measured:
    """Read sequences and their targets; without ``need_targets`` the file may have no targets."""
    path = Path(path)
    format = array_format(path)
    if by is not None and not (format and format.may_hold_images):
        raise InputError(f"{path}: by={by} is for images, in .npz or .npy; remove it")
    if format is None:
        return _from_table(read_table(path, delimiter), columns, need_targets)
    if columns.given or delimiter is not None:
        raise InputError(
            f"{path}: target, features, text, series and delimiter are for tables (CSV, TSV); remove them"
        )
    found = format.read(path, by, "refuse")
    if found.targets is None and need_targets:
        how = f"expected {format.targets}" if found.labels is None else "for its labels use unspool classify"
        raise InputError(f"{path}: its sequences have no targets; {how}")
    return Measured(str(path), found.sequences, found.targets, _numbered(found.targets), found.locations)


def _numbered(targets: Real | None) -> tuple[str, ...]:
    width = 1 if targets is None else targets.shape[1]
    return (TARGET,) if width == 1 else tuple(f"{TARGET} {i}" for i in range(1, width + 1))


def _from_table(table: Table, columns: Columns, need_targets: bool) -> Measured:
    targets = _target_columns(table, columns.target or (TARGET,), need_targets)
    names = tuple(table.names[i] for i in targets or ())
    numbers = None if targets is None else table.vectors(targets)
    if columns.text is not None:
        if columns.features or columns.series:
            raise InputError(f"{table.name}: text or features; expected one of them, got both")
        text = table.find(columns.text)
        _refuse_same(table, targets, [text])
        chosen = Columns(names, (), table.names[text])
        return Measured(table.name, table.text(text), numbers, names, table.locations, "texts", chosen)
    features, left_out = _feature_columns(table, columns.features, targets or [], columns.target)
    _refuse_same(table, targets, features)
    values = table.vectors(features)
    chosen = Columns(names, tuple(table.names[i] for i in features), None, columns.series)
    shaped = values[:, :, None] if columns.series else values[:, None, :]  # n tau X
    kind: Literal["vectors", "series"] = "series" if columns.series else "vectors"
    return Measured(table.name, shaped, numbers, names, table.locations, kind, chosen, left_out)


def _target_columns(table: Table, targets: Sequence[Column], need_targets: bool) -> list[int] | None:
    if not need_targets and (targets == ("none",) or not all(map(table.has, targets))):
        return None
    found = [table.find(column) for column in targets]
    if len(set(found)) < len(found):
        raise InputError(f"{table.name}: a target is given twice: {', '.join(map(str, targets))}")
    return found


def _feature_columns(
    table: Table, given: Sequence[Column], targets: Sequence[int], named: Sequence[Column]
) -> tuple[list[int], list[str]]:
    """Return the numeric columns to read, and the names of the others; all except the targets unless some are given."""
    if given:
        table.refuse_missing(given)
        return [table.find(column) for column in given], []
    others = [i for i in range(len(table.names)) if i not in targets and table.names[i] not in named]
    found = [i for i in others if table.is_numeric(i)]
    if not found:
        raise InputError(
            f"{table.name}: no numeric column besides the targets; choose columns as features=, or a text as text=; "
            f"there are {', '.join(table.names)}"
        )
    return found, [table.names[i] for i in others if i not in found]


def _refuse_same(table: Table, targets: Sequence[int] | None, read: Sequence[int]) -> None:
    for i in targets or ():
        if i in read:
            raise InputError(
                f"{table.name}: column {table.names[i]!r} is both input and target; expected one of them"
            )
