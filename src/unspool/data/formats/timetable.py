"""Numbers in time from a table: a column of times, one or several of numbers, and a rule for what is missing.

Rules, all of them stated here and nowhere else:

- The times are the column that is given, or the first of those named like a time (date, time, year, month …),
  or the first other column that holds dates, or the first column, if it holds whole numbers that rise by equal
  steps. They are passed through. Beside other times, such a first column is an index and left out.
  A column of dates that do not rise, or one of which is no date, is an error and never passed over. So is a column
  that looks like times and cannot be read, and one that begins again for every series of a long table.
- A long table without such times is known by a column that names the series of every row, in blocks of rows. It is an error
  unless both the times and the columns of numbers are given.
- The numbers are the columns that are given, or all others that have a number in any row; those without one
  are left out, and the table remembers which. Text among numbers is an error that names row and column.
- A value that is missing, and a step that has no row, are errors by default (``refuse``). ``interpolate`` puts
  a straight line between the neighbours and takes it for observed; ``mask`` does the same for reading, but
  nothing is learned from it and nothing is scored on it. At the beginning missing values are cut off; at the
  end they are always refused: a forecast begins there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unspool.data.formats.long_table import refuse_blocks, refuse_long, refuse_restarting_count
from unspool.data.formats.table import Column, Table, as_number, comma, read_table
from unspool.data.series.time_index import TimeIndex, fault, read_clock
from unspool.data.series.times import day_is_unclear, format_of, look_like_times
from unspool.errors import InputError
from unspool.kernels.arrays import Real
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
"""Steps of time for each row of a table: what lies between two rows is filled in."""


@dataclass(frozen=True)
class Values:
    """One column: numbers without holes, and which of them were observed."""

    y: Real
    known: NDArray[np.bool_]
    begin: int
    """The number of its first value: what was cut off before it."""

    @property
    def filled(self) -> int:
        """How many values were missing."""
        return int((~self.known).sum())


@dataclass(frozen=True)
class TimeTable:
    """Columns of numbers, and their clock."""

    name: str
    time: str | None
    """The column of times."""
    clock: TimeIndex | None
    columns: dict[str, Values]
    left_out: list[str]
    """Columns without a number, and an index beside the times."""
    rows: int
    """Steps from the first row to the last."""

    def label(self, number: int) -> str:
        """Name a step, counted from the first row: its time, or its number from 1."""
        return self.clock.label(number) if self.clock else str(number + 1)


def read_timetable(
    path: str | Path,
    columns: Sequence[Column] | None = None,
    time: Column | None = None,
    missing: str = "refuse",
    delimiter: str | None = None,
) -> TimeTable:
    """Read a table of numbers in time; ``time`` is a column, or none to have no times."""
    check_choice("missing", missing, MISSING)
    table = read_table(path, delimiter)
    table.refuse_missing(columns or ())
    at = _time_column(table, time, columns)
    clock = read_clock(table.text(at)) if at is not None else None
    if at is not None and clock is None and time is not None:
        _refuse(table, at, "", numbers=True)
        raise InputError(f"{table.name}: column {table.names[at]!r} is no column of times that rise")
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
    """Return whether the first column holds whole numbers that rise by equal steps."""
    clock, values = read_clock(table.text(0)), [as_number(field) for field in table.text(0)]
    whole = all(value is not None and value == value // 1 for value in values)
    return clock is not None and clock.kind == "numbers" and whole and _rises(clock.numbers(table.text(0)))


def _is_clock(table: Table, i: int, *, named: bool) -> bool:
    """Return whether a column holds the times; raise where it is mostly times and cannot be used as such."""
    times = table.text(i)
    _refuse_unclear(table, i)
    clock = read_clock(times) if named or format_of(times) else None
    if clock is None:
        _refuse(table, i)
        return False
    if named or clock.kind != "numbers":
        _refuse_long(table, i)
    if clock.kind != "numbers":
        return True
    return named and all(value is not None and value == round(value) for value in map(as_number, times))


def _refuse(table: Table, column: int, hint: str = IGNORE, *, numbers: bool = False) -> None:
    """Raise where a column is mostly times, with the first row that keeps it from being a clock."""
    if (found := fault(table.text(column), numbers=numbers)) is not None:
        row, why = found
        if "row" in why:
            _refuse_long(table, column)
            refuse_blocks(table, _names_of_series(table, column))
        what = f"{table.place(row, column)}: {table.rows[row][column]!r} {why}"
        raise InputError(f"{what}; {'sort the rows' if 'row' in why else 'mend it'}{hint}")


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
    """Return the columns that may name the series of every row: all but the times."""
    return [i for i in range(len(table.names)) if i != time and table.names[i].lower() not in NAMED]


def _rises(numbers: Sequence[int | None]) -> bool:
    return numbers == list(range(len(numbers)))


def _steps(
    table: Table, at: int | None, clock: TimeIndex | None, missing: str, hint: str
) -> NDArray[np.int64]:
    """Give the number of every row, and refuse times that fall back or, unless filled, leave steps out."""
    if clock is None or at is None:
        return np.arange(len(table))
    numbers, before = clock.numbers(table.text(at)), -1
    for row, number in enumerate(numbers):
        where = f"{table.place(row, at)}: {table.rows[row][at]!r}"
        if number is None:
            raise InputError(
                f"{where} is no whole number of steps after {clock.begin!r}; use time='none' to ignore times"
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
        chosen = chosen[1:]  # an index beside the times is no series
    for i in others:
        if i not in chosen and comma(table.rows[0][i]):
            table.numbers(i)
    if not chosen:
        raise InputError(f"{table.name}: no column of numbers; there are {', '.join(table.names)}")
    return chosen, [table.names[i] for i in others if i not in chosen]


def _is_number(field: str) -> bool:
    value = as_number(field)
    return value is not None and not np.isnan(value)


def _refuse_holes(table: Table, read: dict[int, Real], missing: str) -> None:
    """Raise where values are missing, with the first of them and the names of all columns that have some."""
    holes = {i: np.flatnonzero(np.isnan(values)) for i, values in read.items()}
    holed = [i for i in read if len(holes[i])]
    if holed and missing == "refuse":
        others = ", ".join(repr(table.names[i]) for i in holed[1:])
        also = f", and there are more in {others}" if others else ""
        raise InputError(
            f"{table.place(int(holes[holed[0]][0]), holed[0])}: the value is missing{also}; {HINT}"
        )
    for i in holed:
        if holes[i][-1] == len(table) - 1:
            raise InputError(
                f"{table.place(len(table) - 1, i)}: the last value is missing; cut the rows at the end"
            )


def _values(read: Real, steps: NDArray[np.int64], missing: str) -> Values:
    y = np.full(int(steps[-1]) + 1, np.nan)
    y[steps] = read
    begin = int(np.flatnonzero(~np.isnan(y))[0])
    y = y[begin:]
    known, t = ~np.isnan(y), np.arange(len(y))
    filled = np.interp(t, t[known], y[known])
    return Values(filled, known if missing == "mask" else np.ones(len(y), bool), begin)
