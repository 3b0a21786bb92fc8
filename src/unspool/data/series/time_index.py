"""The times of a series: read from a column, counted in equal steps, and gone on with beyond the end.

A column of times is dates in one of the formats of `unspool.data.series.times`, months, quarters, or numbers; the step is
the median distance (the lower one of two) of rows that follow one another, in months where all days are the same, else in seconds or in the numbers' units.
Every row lies a whole number of steps behind the first one, or it is an error that names the row.

>>> clock = read_clock(["1960-10", "1960-11", "1961-01"])
>>> clock.numbers(["1960-10", "1960-11", "1961-01"]), clock.label(4)
([0, 1, 3], '1961-02')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

import numpy as np

from unspool.data.series.times import FORMATS, format_of, read_time, write_time
from unspool.errors import InputError
from unspool.options import POSITIVE, check_choice

SAMPLE = 20
"""How many times at the beginning tell how they are written."""


@dataclass(frozen=True)
class TimeIndex:
    """Where time begins, and its step."""

    kind: str
    """dates, months or numbers."""
    format: str
    begin: str
    """The first time, as it was written."""
    step: float
    """In seconds, months or the numbers' own units."""

    def __post_init__(self) -> None:
        check_choice("clock.kind", self.kind, ("dates", "months", "numbers"))
        if (self.format in FORMATS) == (self.kind == "numbers") or read_time(self.begin, self.format) is None:
            raise InputError(f"clock: {self.begin!r} is no time of the format {self.format!r}")
        POSITIVE("clock.step", self.step)

    def numbers(self, times: Sequence[str]) -> list[int | None]:
        """Give each time's number of steps since the beginning; None where it is no whole number of them."""
        return [self._number(time) for time in times]

    def _number(self, time: str) -> int | None:
        start, now = read_time(self.begin, self.format), read_time(time, self.format)
        if start is None or now is None:
            return None
        steps = self._distance(start, now) / self.step
        return round(steps) if abs(steps - round(steps)) < 1e-6 else None

    def _distance(self, start: Any, now: Any) -> float:
        if self.kind == "numbers":
            return float(now - start)
        if self.kind == "months":
            return (now.year - start.year) * 12 + now.month - start.month if now.day == start.day else 0.5
        return float((now - start).total_seconds())

    def label(self, number: int) -> str:
        """Write the time of a number of steps in the same format."""
        start = read_time(self.begin, self.format)
        if self.kind == "numbers":
            return f"{start + number * self.step:.12g}"
        try:
            if self.kind == "months":
                months = start.year * 12 + start.month - 1 + number * round(self.step)
                return self._written(start.replace(year=months // 12, month=months % 12 + 1))
            return self._written(start + timedelta(seconds=number * self.step))
        except (ValueError, OverflowError):
            raise InputError(
                f"step {number + 1:,} after {self.begin!r} lies beyond the years 1 to 9999; choose a shorter horizon, "
                "or time='none' to ignore times"
            ) from None

    def _written(self, time: Any) -> str:
        return write_time(time, self.format, like=self.begin)


def read_clock(times: Sequence[str]) -> TimeIndex | None:
    """Learn the clock of a column; None where it is no column of times that rise."""
    if len(times) < 2:
        return None
    found = format_of(times)
    values = [read_time(time, found) for time in times]
    if any(value is None for value in values):
        return None
    if found == "":
        step = _median(np.diff(np.array(values, float)).tolist())
        return TimeIndex("numbers", found, times[0].strip(), step) if step > 0 else None
    seconds = _median([(b - a).total_seconds() for a, b in pairwise(values)])
    if seconds <= 0:
        return None
    same = len({(each.day, each.timetz(), each.utcoffset()) for each in values}) == 1
    if same and seconds >= 28 * 86400 and values[0].day <= 28:
        months = [each.year * 12 + each.month for each in values]
        return TimeIndex("months", found, times[0].strip(), _median(np.diff(months).tolist()))
    return TimeIndex("dates", found, times[0].strip(), seconds)


def _median(distances: list[float]) -> float:
    return float(sorted(distances)[(len(distances) - 1) // 2])


def fault(times: Sequence[str], *, numbers: bool = False) -> tuple[int, str] | None:
    """Say which row keeps a column that is mostly times from having a clock, and why; None where it is none.

    Mostly means all but one in ten, or all but one of a few. Columns of numbers count only where asked for.

    >>> fault(["2020-03", "2020-02", "2020-01"]), fault(["2020-01", "2020-02", "soon", "2020-04"])
    ((1, 'comes before the row above it'), (2, "is no time as '2020-01' is"))
    """
    sample = times[:SAMPLE]
    kinds = [*FORMATS, ""] if numbers else list(FORMATS)
    kind = max(kinds, key=lambda each: sum(read_time(time, each) is not None for time in sample))
    if not any(read_time(time, kind) is not None for time in sample):
        return None
    values = [read_time(time, kind) for time in times]
    strange = [row for row, value in enumerate(values) if value is None]
    other = list[int]()
    for row in strange:
        if not any(read_time(times[row], each) is not None for each in FORMATS):
            other.append(row)
        if len(other) > max(1, len(times) // 10):
            return None
    if len(times) - len(other) < 3 or len(strange) == len(times):
        return None
    if strange:
        like = next(time for time, value in zip(times, values, strict=True) if value is not None)
        return strange[0], f"is no time as {like.strip()!r} is"
    for row, (before, now) in enumerate(pairwise(values), 1):
        if now <= before:
            return row, "comes before the row above it" if now < before else "is the time of the row above it"
    return None
