"""Read and write single times: dates, dates with a time of day, months, quarters and numbers.

A format is one of `FORMATS`, in the notation of `strptime`. Two parts are handled here, because `strptime` cannot restore
them: `.%f`, 1 to 9 digits after the second, and `%z`, `Z`, `+01:00`, `+0100` or `+01`.
`QUARTER` stands for 2000Q1, 2000-Q1 and 2000 Q1, `WEEK` for the ISO weeks 2020-W05 and 2020W05, read as their Mondays. The empty
format stands for numbers.

>>> read_time("2000Q3", QUARTER)
datetime.datetime(2000, 7, 1, 0, 0)
>>> time = read_time("2020-01-31T12:00:00.250Z", "%Y-%m-%dT%H:%M:%S.%f%z")
>>> write_time(time, "%Y-%m-%dT%H:%M:%S.%f%z", like="2020-01-31T12:00:00.250Z")
'2020-01-31T12:00:00.250Z'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np

from unspool.data.formats.table import MISSING, as_number

QUARTER, WEEK = "quarter", "week"
MONTH_FIRST, DAY_FIRST = "%m/%d/%Y", "%d/%m/%Y"
DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", MONTH_FIRST, DAY_FIRST)
HOURS = (" %H:%M:%S", "T%H:%M:%S", " %H:%M", "T%H:%M")
FORMATS = (
    *(day + hour for day in DAYS for hour in HOURS),
    *DAYS,
    "%Y%m%d",
    "%Y-%m",
    "%Y/%m",
    QUARTER,
    WEEK,
    *("%b %Y", "%B %Y", "%Y %b", "%Y %B", "%b-%Y", "%Y-%b"),
    *("%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%b-%d-%Y"),
    *(day + hour + end for end in (".%f", ".%f%z", "%z") for day in DAYS for hour in HOURS if "%S" in hour),
    *(day + hour + "%z" for day in DAYS for hour in HOURS if "%S" not in hour),
)
QUARTERS = re.compile(r"(\d{4})([- ]?[Qq])([1-4])")
WEEKS = re.compile(r"(\d{4})(-?[Ww])(\d\d)")
END = re.compile(r"(?P<fraction>\.\d{1,9})?(?P<blank> ?)(?P<zone>[Zz]|[+-]\d\d(?::?\d\d)?)?$")
SLASHES = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})(.*)")
SAMPLE = 20
"""Number of leading fields that decide whether a column can be times."""
NAMES = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
TIME_LIKE = re.compile(
    rf"""\d{{1,4}}[-/.]\d{{1,2}}[-/.]\d{{1,4}}(?:[ T,].*)?      # 03/31/20, 31-3-2020 14:00
    |\d{{4}}[-/ ]?[QWM]\d{{1,2}}|[QWM]\d{{1,2}}[-/ ]?\d{{2,4}}  # 2020-W05, Q1 2000
    |\d{{1,2}}[-/]\d{{4}}                                       # 03/2020
    |\d{{1,2}}:\d\d(?::\d\d)?(?:\.\d+)?(?:[ ]?[ap]m)?           # 14:30, 2:30 pm
    |(?:\d{{1,4}}[-/., ]*)?(?:{NAMES})[a-z]*[-/., ]*\d.*        # 31-Mar-2020, Mar 2020
    |(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*[., ]+\S*\d.*         # Tue, 31 Mar 2020""",
    re.X | re.I,
)


@lru_cache(maxsize=1 << 17)
def read_time(time: str, format: str) -> Any:
    """Return a time as a datetime, or as a float if the format is empty; None if it has another format."""
    time = time.strip()
    if not format:
        value = as_number(time)
        return None if value is None or not np.isfinite(value) else value
    if format == QUARTER:
        found = QUARTERS.fullmatch(time)
        return datetime(int(found[1]), 3 * int(found[3]) - 2, 1) if found and found[1] != "0000" else None
    if format == WEEK:
        found = WEEKS.fullmatch(time)
        try:
            return datetime.fromisocalendar(int(found[1]), int(found[3]), 1) if found else None
        except ValueError:
            return None
    if format == "%Y%m%d" and len(time) != 8:
        return None
    try:
        return datetime.strptime(_plain_end(time, format), format)
    except (ValueError, OverflowError):
        return None


def _plain_end(time: str, format: str) -> str:
    """Return a time whose fraction and zone `strptime` can read: at most 6 digits, hours and minutes."""
    if "%f" not in format and "%z" not in format:
        return time
    end = END.search(time)
    assert end is not None
    fraction, zone = end["fraction"] or "", (end["zone"] or "").upper()
    if len(fraction) > 7 and not fraction[7:].strip("0"):
        fraction = fraction[:7]
    return time[: end.start()] + fraction + (zone + "00" if len(zone) == 3 else zone)


def write_time(time: datetime, format: str, *, like: str) -> str:
    """Return a time in a format, with the fraction's digits and the zone of `like`."""
    if format == QUARTER:
        found = QUARTERS.fullmatch(like)
        assert found is not None
        return f"{time.year:04d}{found[2]}{(time.month + 2) // 3}"
    if format == WEEK:
        year, week, _ = time.isocalendar()
        return f"{year:04d}{'-' * ('-' in like)}W{week:02d}"
    text, end = time.strftime(format.replace(".%f", "").replace("%z", "")), END.search(like)
    assert end is not None
    if "%f" in format:
        exact = f"{time.microsecond:06d}000"
        digits = max(len(end["fraction"] or ".") - 1, len(exact.rstrip("0")))
        text += f".{exact[:digits]}"
    return text + end["blank"] + (end["zone"] or "") if "%z" in format else text


def format_of(times: Sequence[str]) -> str:
    """Return the first format that all times have; empty if there is none, or if day and month are ambiguous."""
    found = next((each for each in FORMATS if _all_have(times, each)), "")
    return "" if found and day_is_unclear(times) else found


def day_is_unclear(times: Sequence[str]) -> bool:
    """Return whether all times can be read with the day before the month and with the month before the day.

    >>> day_is_unclear(["03/04/2020", "04/04/2020"]), day_is_unclear(["03/30/2020", "03/31/2020"])
    (True, False)
    """
    both = (each for each in FORMATS if each.startswith(MONTH_FIRST) and _all_have(times, each))
    return any(_all_have(times, each.replace(MONTH_FIRST, DAY_FIRST)) for each in both)


def _all_have(times: Sequence[str], format: str) -> bool:
    return read_time(times[0], format) is not None and all(read_time(t, format) is not None for t in times)


def in_one_order(time: str, order: str) -> str:
    """Return a date with slashes as year, month and day; `order` is day-first or month-first. Other fields stay.

    >>> in_one_order("3/4/2020 12:00", "day-first"), in_one_order("3/4/2020", "month-first"), in_one_order("3.5", "day-first")
    ('2020-04-03 12:00', '2020-03-04', '3.5')
    """
    found = SLASHES.fullmatch(time.strip())
    if found is None:
        return time
    one, two, year, rest = found.groups()
    day, month = (one, two) if order == "day-first" else (two, one)
    return f"{year}-{int(month):02d}-{int(day):02d}{rest}"


def look_like_times(fields: Sequence[str]) -> bool:
    """Return whether nine in ten of the fields that are not missing look like times, and none of these is a number.

    >>> look_like_times(["31-Mar-2020", "1-Apr-2020"]), look_like_times(["3.5", "1/2"]), look_like_times(["Mars", "May"])
    (True, False, False)
    """
    there = [field.strip() for field in fields if field.strip().lower() not in MISSING]
    if not any(map(_looks_like_a_time, there[:SAMPLE])):
        return False
    alike = sum(map(_looks_like_a_time, there))
    return alike > 1 and 10 * alike >= 9 * len(there)


def _looks_like_a_time(field: str) -> bool:
    return TIME_LIKE.fullmatch(field) is not None and as_number(field) is None
