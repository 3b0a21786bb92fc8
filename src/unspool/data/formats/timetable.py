"""Read time series from a table: a column of times, numeric columns, and a rule for missing values.

Rules:

- The times are the given column, or the first column with the name of a time (date, time, year, month …), or the first
  other column that holds dates, or the first column if it holds integers that rise by equal steps. Next to other times,
  such a first column is an index and is left out.
- A column of dates that do not rise, or with a field that is not a date, is an error. So is a column that looks like times
  and cannot be read, and a column that restarts for each series of a long table.
- A long table without such times has a column that names the series of each row, in blocks of rows. It is an error unless
  both the times and the numeric columns are given.
- The series are the given columns, or all others that have a number in any row; the names of the rest are stored in
  ``left_out``. Text among numbers is an error with row and column.
- A missing value, and a step without a row, are errors by default (``refuse``). ``interpolate`` fills them linearly and
  treats them as observed; ``mask`` fills them as inputs, but excludes them from the loss and the scores. Missing values at
  the beginning are dropped; at the end, where a forecast begins, they are an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unspool.data.formats.long_table import refuse_blocks, refuse_long, refuse_restarting_count
from unspool.data.formats.table import Column, Table, as_number, comma_hint, read_table
from unspool.data.series.time_index import TimeIndex, first_fault, infer_time_index
from unspool.data.series.times import day_is_unclear, format_of, look_like_times
from unspool.errors import InputError
from unspool.kernels.arrays import Mask, Real, Whole
from unspool.options import check_choice

NAMED = (
    "date",
    "time",
    "datetime",
    "timestamp",
    "ts",
    "ds",
    "year",
    "month",
    "week",
    "day",
    "hour",
    "period",
    "t",
)
MISSING = ("refuse", "interpolate", "mask")
IGNORE = ", or say time='none'"
HINT = "fill it, or say how: missing='interpolate' or missing='mask'"
MOST_STEPS = 1000
"""Most time steps per row of a table; steps without a row are filled."""


@dataclass(frozen=True)
class Values:
    """One column: values without gaps, and a mask of the observed ones."""

    y: Real
    known: Mask
    begin: int
    """The step of its first value: the number of dropped steps before it."""

    @property
    def filled(self) -> int:
        """Number of missing values."""
        return int((~self.known).sum())


@dataclass(frozen=True)
class TimeTable:
    """Numeric columns and their time index."""

    name: str
    time: str | None
    """The column of times."""
    clock: TimeIndex | None
    columns: dict[str, Values]
    left_out: list[str]
    """Columns without a number, and an index next to the times."""
    rows: int
    """Number of steps from the first row to the last."""

    def label(self, number: int) -> str:
        """Return the label of a step, counted from 0 at the first row: its time, or its number from 1."""
        return self.clock.label(number) if self.clock else str(number + 1)


def read_timetable(
    path: str | Path,
    columns: Sequence[Column] | None = None,
    time: Column | None = None,
    missing: str = "refuse",
    delimiter: str | None = None,
) -> TimeTable:
    """Read a table of time series; ``time`` is a column, or "none" to ignore times."""
    check_choice("missing", missing, MISSING)
    table = read_table(path, delimiter)
    table.refuse_missing(columns or ())
    at = _time_column(table, time, columns)
    clock = infer_time_index(table.text(at)) if at is not None else None
    if at is not None and clock is None and time is not None:
        _refuse(table, at, "", numbers=True)
        raise InputError(f"{table.name}: column {table.names[at]!r} is not a column of rising times")
    at = at if clock is not None else None
    if columns is None or time is None:
        refuse_blocks(table, _names_of_series(table, at))
    steps = _steps(table, at, clock, missing, "" if time is not None else IGNORE)
    chosen, left_out = _numbers(table, at, columns)
    read = {i: table.numbers(i, missing="nan") for i in chosen}
    _refuse_holes(table, read, missing)
    found = {table.names[i]: _values(values, steps, missing) for i, values in read.items()}
    return TimeTable(
        table.name, None if at is None else table.names[at], clock, found, left_out, int(steps[-1]) + 1
    )


def _time_column(table: Table, time: Column | None, columns: Sequence[Column] | None) -> int | None:
    if time == "none":
        return None
    taken = {table.find(column) for column in columns or ()}
    free = [i for i in range(len(table.names)) if i not in taken]
    named = [i for i in free if table.names[i].lower() in NAMED]
    if time is not None:
        _refuse_unclear(table, table.find(time))
        _refuse_long(table, table.find(time))
        return table.find(time)
    if len(free) == 1 and not columns:
        return None
    for i in [*named, *(i for i in free if i not in named)]:
        if _is_clock(table, i, named=i in named):
            return i
    for i in named:
        _refuse(table, i, numbers=True)
    for i in free:
        if look_like_times(table.text(i)):
            raise InputError(
                f"{table.name}: column {table.names[i]!r} looks like times, but {table.rows[0][i]!r} cannot be read; "
                f"write times as 2020-03-31, 2020-03-31T14:00, 2020-03 or 2020Q1{IGNORE}"
            )
    refuse_restarting_count(table, range(len(table.names)))
    return 0 if 0 in free and _counts_rows(table) else None


def _counts_rows(table: Table) -> bool:
    """Return whether the first column holds integers that rise by equal steps."""
    clock, values = infer_time_index(table.text(0)), [as_number(field) for field in table.text(0)]
    whole = all(value is not None and value == value // 1 for value in values)
    return clock is not None and clock.kind == "numbers" and whole and _rises(clock.numbers(table.text(0)))


def _is_clock(table: Table, i: int, *, named: bool) -> bool:
    """Return whether a column holds the times; raise InputError if it is mostly times but unusable."""
    times = table.text(i)
    _refuse_unclear(table, i)
    clock = infer_time_index(times) if named or format_of(times) else None
    if clock is None:
        _refuse(table, i)
        return False
    if named or clock.kind != "numbers":
        _refuse_long(table, i)
    if clock.kind != "numbers":
        return True
    return named and all(value is not None and value == round(value) for value in map(as_number, times))


def _refuse(table: Table, column: int, hint: str = IGNORE, *, numbers: bool = False) -> None:
    """Raise InputError if a column is mostly times, with the first row that is wrong."""
    if (found := first_fault(table.text(column), numbers=numbers)) is not None:
        row, why = found
        if "row" in why:
            _refuse_long(table, column)
            refuse_blocks(table, _names_of_series(table, column))
        what = f"{table.location(row, column)}: {table.rows[row][column]!r} {why}"
        raise InputError(f"{what}; {'sort the rows' if 'row' in why else 'correct it'}{hint}")


def _refuse_unclear(table: Table, column: int) -> None:
    times = table.text(column)
    if day_is_unclear(times):
        raise InputError(
            f"{table.name}: column {table.names[column]!r}: {times[0]!r} can be read with the day or the month first, in "
            f"every row; write times as 2020-03-31{IGNORE}"
        )


def _refuse_long(table: Table, time: int) -> None:
    refuse_long(table, time, _names_of_series(table, time))


def _names_of_series(table: Table, time: int | None) -> list[int]:
    """Return the columns that may name the series of each row: all except the times."""
    return [i for i in range(len(table.names)) if i != time and table.names[i].lower() not in NAMED]


def _rises(numbers: Sequence[int | None]) -> bool:
    return numbers == list(range(len(numbers)))


def _steps(table: Table, at: int | None, clock: TimeIndex | None, missing: str, hint: str) -> Whole:
    """Return the step of each row; raise InputError for times that do not rise or, unless filled, skip steps."""
    if clock is None or at is None:
        return np.arange(len(table))
    numbers, before = clock.numbers(table.text(at)), -1
    for row, number in enumerate(numbers):
        where = f"{table.location(row, at)}: {table.rows[row][at]!r}"
        if number is None:
            raise InputError(
                f"{where} is not a whole number of steps after {clock.begin!r}; use time='none' to ignore times"
            )
        if number <= before:
            raise InputError(
                f"{where} does not come after the row above it; sort the rows, each time once{hint}"
            )
        if number > before + 1 and missing == "refuse":
            raise InputError(f"{where}: {number - before - 1} steps before it have no row; {HINT}")
        before = number
    if before > MOST_STEPS * len(table):
        raise InputError(
            f"{table.name}: the times span {before + 1:,} steps of {clock.step:g}, but there are {len(table):,} rows; "
            "expected one row in a thousand steps or more"
        )
    return np.array(numbers, np.int64)


def _numbers(table: Table, at: int | None, columns: Sequence[Column] | None) -> tuple[list[int], list[str]]:
    if columns:
        return [table.find(column) for column in columns], []
    others = [i for i in range(len(table.names)) if i != at]
    chosen = [i for i in others if any(_is_number(field) for field in table.text(i))]
    if at not in (None, 0) and chosen[:1] == [0] and len(chosen) > 1 and _counts_rows(table):
        chosen = chosen[1:]  # an index next to the times is not a series
    for i in others:
        if i not in chosen and comma_hint(table.rows[0][i]):
            table.numbers(i)
    if not chosen:
        raise InputError(f"{table.name}: no column of numbers; there are {', '.join(table.names)}")
    return chosen, [table.names[i] for i in others if i not in chosen]


def _is_number(field: str) -> bool:
    value = as_number(field)
    return value is not None and not np.isnan(value)


def _refuse_holes(table: Table, read: dict[int, Real], missing: str) -> None:
    """Raise InputError for missing values, with the first one and the names of all columns that have any."""
    holes = {i: np.flatnonzero(np.isnan(values)) for i, values in read.items()}
    holed = [i for i in read if len(holes[i])]
    if holed and missing == "refuse":
        others = ", ".join(repr(table.names[i]) for i in holed[1:])
        also = f", and there are more in {others}" if others else ""
        raise InputError(
            f"{table.location(int(holes[holed[0]][0]), holed[0])}: the value is missing{also}; {HINT}"
        )
    for i in holed:
        if holes[i][-1] == len(table) - 1:
            raise InputError(
                f"{table.location(len(table) - 1, i)}: the last value is missing; cut the rows at the end"
            )


def _values(read: Real, steps: Whole, missing: str) -> Values:
    y = np.full(int(steps[-1]) + 1, np.nan)
    y[steps] = read
    begin = int(np.flatnonzero(~np.isnan(y))[0])
    y = y[begin:]
    known, t = ~np.isnan(y), np.arange(len(y))
    filled = np.interp(t, t[known], y[known])
    return Values(filled, known if missing == "mask" else np.ones(len(y), bool), begin)
