"""The times of a series: read from a column, counted in equal steps, and gone on with beyond the end.

A column of times is dates in one of `FORMATS`, months, or numbers; the step is the median distance (the lower
one of two) of rows that follow one another, in months where all days are the same, else in seconds or in the numbers' units.
Every row lies a whole number of steps behind the first one, or it is an error that names the row.

>>> clock = read_clock(["1960-10", "1960-11", "1961-01"])
>>> clock.numbers(["1960-10", "1960-11", "1961-01"]), clock.label(4)
([0, 1, 3], '1961-02')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from unspool.data.table import as_number

FORMATS = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d",
    "%Y%m%d",
    "%Y-%m",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%Y/%m",
    "%d.%m.%Y",
)
SAMPLE = 20
"""How many times at the beginning tell how they are written."""


@dataclass(frozen=True)
class Clock:
    """Where time begins, and its step."""

    kind: str
    """dates, months or numbers."""
    format: str
    begin: str
    """The first time, as it was written."""
    step: float
    """In seconds, months or the numbers' own units."""

    def numbers(self, times: Sequence[str]) -> list[int | None]:
        """Give each time's number of steps since the beginning; None where it is no whole number of them."""
        return [self._number(time) for time in times]

    def _number(self, time: str) -> int | None:
        start, now = _read(self.begin, self.format), _read(time, self.format)
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
        start = _read(self.begin, self.format)
        if self.kind == "numbers":
            return f"{start + number * self.step:.12g}"
        if self.kind == "months":
            months = start.year * 12 + start.month - 1 + number * round(self.step)
            return str(start.replace(year=months // 12, month=months % 12 + 1).strftime(self.format))
        return str((start + timedelta(seconds=number * self.step)).strftime(self.format))


def read_clock(times: Sequence[str]) -> Clock | None:
    """Learn the clock of a column; None where it is no column of times that rise."""
    if len(times) < 2:
        return None
    found = _format(times)
    values = [_read(time, found) for time in times]
    if any(value is None for value in values):
        return None
    if found == "":
        step = _median(np.diff(np.array(values, float)).tolist())
        return Clock("numbers", found, times[0].strip(), step) if step > 0 else None
    seconds = _median([(b - a).total_seconds() for a, b in pairwise(values)])
    if seconds <= 0:
        return None
    same = len({(each.day, each.hour, each.minute, each.second) for each in values}) == 1
    if same and seconds >= 28 * 86400 and values[0].day <= 28:
        months = [each.year * 12 + each.month for each in values]
        return Clock("months", found, times[0].strip(), _median(np.diff(months).tolist()))
    return Clock("dates", found, times[0].strip(), seconds)


def _median(distances: list[float]) -> float:
    return float(sorted(distances)[(len(distances) - 1) // 2])


def _format(times: Sequence[str]) -> str:
    """Give the first format that all times have; nothing for numbers."""
    for each in FORMATS:
        if _read(times[0], each) is not None and all(_read(time, each) is not None for time in times):
            return each
    return ""


def fault(times: Sequence[str], *, numbers: bool = False) -> tuple[int, str] | None:
    """Say which row keeps a column that is mostly times from having a clock, and why; None where it is none.

    Mostly means all but one in ten, or all but one of a few. Columns of numbers count only where asked for.

    >>> fault(["2020-03", "2020-02", "2020-01"]), fault(["2020-01", "2020-02", "soon", "2020-04"])
    ((1, 'comes before the row above it'), (2, "is no time as '2020-01' is"))
    """
    sample = times[:SAMPLE]
    kinds = [*FORMATS, ""] if numbers else list(FORMATS)
    kind = max(kinds, key=lambda each: sum(_read(time, each) is not None for time in sample))
    if not any(_read(time, kind) is not None for time in sample):
        return None
    values = [_read(time, kind) for time in times]
    strange = [row for row, value in enumerate(values) if value is None]
    other = list[int]()
    for row in strange:
        if not any(_read(times[row], each) is not None for each in FORMATS):
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


@lru_cache(maxsize=1 << 17)
def _read(time: str, format: str) -> Any:
    time = time.strip()
    if not format:
        value = as_number(time)
        return None if value is None or not np.isfinite(value) else value
    if format == "%Y%m%d" and len(time) != 8:
        return None
    try:
        return datetime.strptime(time, format)
    except ValueError:
        return None
