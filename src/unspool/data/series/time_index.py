"""The time index of a series: infer start and step from a column of times, and extend it beyond the end.

A column of times holds dates in one of the formats of `unspool.data.series.times`, months, quarters, weeks, or numbers. The step
is the lower median of the differences of adjacent rows: in months if all days are equal or all are the last of their month, in
business days for days without a Saturday and a Sunday, otherwise in seconds or in the units of the numbers. Each row must lie
a whole number of steps after the first one.

>>> clock = infer_time_index(["1960-10", "1960-11", "1961-01"])
>>> clock.numbers(["1960-10", "1960-11", "1961-01"]), clock.label(4)
([0, 1, 3], '1961-02')
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np

from unspool.data.series.times import FORMATS, format_of, read_time, write_time
from unspool.errors import InputError
from unspool.options import POSITIVE, check_choice

PERIODS = (3600.0, 86400.0, 7 * 86400.0, 365.25 * 86400.0)
"""An hour, a day, a week and a year in seconds."""
KINDS = ("dates", "months", "month ends", "business days", "numbers")
MOST_STEPS = 1500
"""Most steps of a season."""
SAMPLE = 20
"""Number of leading fields from which the format is guessed."""


@dataclass(frozen=True)
class TimeIndex:
    """Start and step of equally spaced times."""

    kind: str
    """dates, months, month ends, business days or numbers."""
    format: str
    begin: str
    """The first time, as in the file."""
    step: float
    """In seconds, months, business days or the units of the numbers."""

    def __post_init__(self) -> None:
        check_choice("clock.kind", self.kind, KINDS)
        if (self.format in FORMATS) == (self.kind == "numbers") or read_time(self.begin, self.format) is None:
            raise InputError(f"clock: {self.begin!r} is not a time of the format {self.format!r}")
        POSITIVE("clock.step", self.step)

    def seasons(self) -> tuple[int, ...]:
        """Return the steps of the calendar's periods: hours of a day and a week, days of a week and a year, months of a year …

        >>> infer_time_index(["2020-01-01 00:00", "2020-01-01 00:30"]).seasons(), infer_time_index(["2000Q1", "2000Q2"]).seasons()
        ((2, 48, 336), (4,))
        """
        if self.kind == "numbers":
            return ()
        periods = {"months": (12.0,), "month ends": (12.0,), "business days": (5.0, 261.0)}.get(
            self.kind, PERIODS
        )
        steps = [period / self.step for period in periods]
        return tuple(round(s) for s in steps if 2 <= s <= MOST_STEPS and (s % 1 == 0 or s > 50))

    def numbers(self, times: Sequence[str]) -> list[int | None]:
        """Return the number of steps since the start of each time; None if it is not a whole number of steps."""
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
            return _months(start, now) if now.day == start.day else 0.5
        if self.kind == "month ends":
            return _months(start, now) if _is_month_end(now) else 0.5
        if self.kind == "business days":
            return float(np.busday_count(start.date(), now.date())) if now.weekday() < 5 else 0.5
        return float((now - start).total_seconds())

    def label(self, number: int) -> str:
        """Return the time after a number of steps, in the same format."""
        start = read_time(self.begin, self.format)
        if self.kind == "numbers":
            return f"{start + number * self.step:.12g}"
        try:
            if self.kind == "months":
                months = start.year * 12 + start.month - 1 + number * round(self.step)
                return self._format(start.replace(year=months // 12, month=months % 12 + 1))
            if self.kind == "month ends":
                months = start.year * 12 + start.month - 1 + number * round(self.step)
                year, month = months // 12, months % 12 + 1
                return self._format(start.replace(year=year, month=month, day=monthrange(year, month)[1]))
            if self.kind == "business days":
                days = np.busday_offset(start.date(), number * round(self.step))
                return self._format(datetime.combine(days.item(), start.timetz()))
            return self._format(start + timedelta(seconds=number * self.step))
        except (ValueError, OverflowError):
            raise InputError(
                f"step {number + 1:,} after {self.begin!r} lies beyond the years 1 to 9999; choose a shorter horizon, "
                "or time='none' to ignore times"
            ) from None

    def _format(self, time: Any) -> str:
        return write_time(time, self.format, like=self.begin)


def infer_time_index(times: Sequence[str], format: str | None = None) -> TimeIndex | None:
    """Return the time index of a column; None if it is not a column of rising times. `format` is guessed unless given."""
    if len(times) < 2:
        return None
    found = format_of(times) if format is None else format
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
    if seconds >= 28 * 86400 and all(map(_is_month_end, values)):
        months = [each.year * 12 + each.month for each in values]
        return TimeIndex("month ends", found, times[0].strip(), _median(np.diff(months).tolist()))
    if seconds == 86400 and _are_business_days(values):
        return TimeIndex("business days", found, times[0].strip(), 1.0)
    return TimeIndex("dates", found, times[0].strip(), seconds)


def _months(start: datetime, now: datetime) -> float:
    return float((now.year - start.year) * 12 + now.month - start.month)


def _is_month_end(time: datetime) -> bool:
    return time.day == monthrange(time.year, time.month)[1]


def _are_business_days(values: Sequence[datetime]) -> bool:
    """Return whether there is a weekend between two of the days, and none of them lies on one."""
    if any(value.weekday() >= 5 for value in values):
        return False
    return any(now.weekday() < before.weekday() for before, now in pairwise(values))


def _median(distances: list[float]) -> float:
    return float(sorted(distances)[(len(distances) - 1) // 2])


def first_fault(times: Sequence[str], *, numbers: bool = False) -> tuple[int, str] | None:
    """Return the first row that is wrong in a column that is mostly times, and why; None for other columns.

    Mostly means that at most one in ten fields, or one of a few, is not a time. Columns of numbers count only with `numbers`.

    >>> first_fault(["2020-03", "2020-02", "2020-01"]), first_fault(["2020-01", "2020-02", "soon", "2020-04"])
    ((1, 'comes before the row above it'), (2, "is not a time like '2020-01'"))
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
        return strange[0], f"is not a time like {like.strip()!r}"
    for row, (before, now) in enumerate(pairwise(values), 1):
        if now <= before:
            return row, "comes before the row above it" if now < before else "is the time of the row above it"
    return None
