"""Read time series from a table: a column of times, numeric columns, and a rule for missing values.

Rules:

- The times are the given column, or the first column with the name of a time (date, time, year, month …), or the first
  other column that holds dates, or the first column if it holds integers that rise by equal steps. Next to other times,
  such a first column is an index and is left out.
- A column of dates that do not rise, or with a field that is not a date, is an error. So is a column that looks like times
  and cannot be read, and a column that restarts for each series of a long table.
- A long table holds several series below each other. ``series`` is the column that names the series of each row; rows of
  different series may alternate. Each series has its own times and its own length; all go in the same steps.
- A long table without ``series`` is an error where its times repeat, or where the rows of each name stand below each other
  and there are no times. The second error does not occur if both the times and the numeric columns are given.
- The series are the given columns, or all others that have a number in any row; the names of the rest are stored in
  ``left_out``. Text among numbers is an error with row and column.
- A missing value, and a step without a row, are errors by default (``refuse``). ``interpolate`` fills them linearly and
  treats them as observed; ``mask`` fills them as inputs, but excludes them from the loss and the scores. Missing values at
  the beginning are dropped; at the end, where a forecast begins, they are an error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from unspool.data.formats.long_table import (
    refuse_blocks,
    refuse_long,
    refuse_restarting_count,
    split_series,
    without_column,
)
from unspool.data.formats.table import Column, Table, as_number, comma_hint, read_table
from unspool.data.series.time_index import TimeIndex, first_fault, infer_time_index
from unspool.data.series.time_table import LongFormat, TimeTable, Values
from unspool.data.series.times import day_is_unclear, format_of, in_one_order, look_like_times
from unspool.errors import InputError
from unspool.kernels.arrays import Real, Whole
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
DATES = ("guess", "day-first", "month-first")
IGNORE = ", or say time='none'"
HINT = "fill it, or say how: missing='interpolate' or missing='mask'"
MOST_STEPS = 1000
"""Most time steps per row of a table; steps without a row are filled."""


def read_timetable(
    path: str | Path,
    columns: Sequence[Column] | None = None,
    time: Column | None = None,
    missing: str = "refuse",
    delimiter: str | None = None,
    series: Column | None = None,
    dates: str = "guess",
) -> TimeTable:
    """Read a table of time series; ``dates`` is day-first, month-first or guess, for dates as 03/04/2020.

    ``time`` is a column, or "none" to ignore times. ``series`` is the column of a long table that names the series of each row.
    """
    check_choice("missing", missing, MISSING)
    check_choice("dates", dates, DATES)
    table = read_table(path, delimiter)
    if dates != "guess":
        rows = [[in_one_order(field, dates) for field in row] for row in table.rows]
        table = replace(table, rows=rows)
    table.refuse_missing(columns or ())
    if series is not None:
        return _read_long(table, columns, time, missing, series)
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


def _read_long(
    table: Table, columns: Sequence[Column] | None, time: Column | None, missing: str, series: Column
) -> TimeTable:
    """Read each series of a long table; all steps are counted from the earliest time in the table."""
    name = table.names[table.find(series)]
    chosen = None if columns is None else [table.names[table.find(column)] for column in columns]
    when = time if time in (None, "none") else table.names[table.find(time)]
    if name in (chosen or []) or name == when:
        other = "times" if name == when else "values"
        raise InputError(
            f"{table.name}: series={name!r} is also a column of {other}; expected another column"
        )
    parts, whole = split_series(table, name), without_column(table, name)
    longest = max(parts.values(), key=len)
    at = _time_column(longest, when, chosen)
    clock = _common_clock(parts, longest, at)
    starts = {key: _start(part, at, clock) for key, part in parts.items()}
    numbers, left_out = _numbers(whole, at, chosen)
    long, found = LongFormat(name, [whole.names[i] for i in numbers]), dict[str, Values]()
    for key, part in parts.items():
        own = clock and replace(clock, begin=part.rows[0][at or 0].strip())
        steps = _steps(part, at, own, missing, "" if time is not None else IGNORE)
        read = {i: part.numbers(i, missing="nan") for i in numbers}
        _refuse_holes(part, read, missing)
        for i, values in read.items():
            label, one = long.name(key, part.names[i]), _values(values, steps, missing)
            if label in found:
                raise InputError(
                    f"{table.name}: two series are called {label!r}; rename a column or a series"
                )
            found[label] = replace(one, begin=one.begin + starts[key] - min(starts.values()))
    earliest = parts[min(starts, key=lambda key: starts[key])]
    clock = clock and replace(clock, begin=earliest.rows[0][at or 0].strip())
    when = None if at is None else whole.names[at]
    return TimeTable(table.name, when, clock, found, left_out, max(each.end for each in found.values()), long)


def _common_clock(parts: Mapping[str, Table], longest: Table, at: int | None) -> TimeIndex | None:
    """Return the time index of the longest series, in the format of all times; None without times."""
    if at is None:
        return None
    times, format = longest.text(at), format_of([each for part in parts.values() for each in part.text(at)])
    clock = infer_time_index(times, format) or infer_time_index(
        times
    )  # one bad field hides the format of all
    if clock is None:
        _refuse(longest, at, "", numbers=True)
        raise InputError(
            f"{longest.name}: column {longest.names[at]!r}: expected times that rise within each series"
        )
    return clock


def _start(part: Table, at: int | None, clock: TimeIndex | None) -> int:
    """Return the step of the first row of a series, counted from the start of the clock."""
    if at is None or clock is None:
        return 0
    number = clock.numbers([part.rows[0][at]])[0]
    if number is None:
        raise InputError(
            f"{part.location(0, at)}: {part.rows[0][at]!r} is not a whole number of steps from {clock.begin!r}; expected "
            "the same steps in all series: forecast the others separately, or use time='none' to ignore times"
        )
    return number


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
                f"write times as 2020-03-31, 2020-03-31T14:00, 2020-03, 2020Q1 or 2020-W05{IGNORE}"
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
            f"every row; say dates='day-first' or dates='month-first', write times as 2020-03-31{IGNORE}"
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
            back = "; where clocks are set back, write the offset, as 02:00+01:00" if number == before else ""
            raise InputError(
                f"{where} does not come after the row above it; sort the rows, each time once{back}{hint}"
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
