"""Recognise and split a long table: several series below each other, with a column that names the series of each row.

store,date,sales        the times of 'date' repeat for each 'store': read as one series, the end of one store
north,2020-01,7         would be followed by the start of the next
north,2020-02,9
south,2020-01,4
"""

from collections.abc import Sequence
from itertools import groupby

from unspool.data.formats.table import Column, Table, as_number
from unspool.errors import InputError

IDS = frozenset(
    [
        "id",
        "ids",
        "series",
        "seriesid",
        "uniqueid",
        "store",
        "storeid",
        "shop",
        "shopid",
        "item",
        "itemid",
        "sku",
    ]
)
"""Names of numeric columns that name a series, in lower case and without punctuation."""


def split_series(table: Table, column: Column) -> dict[str, Table]:
    """Return the rows of each series, in the order of the file, without the column that names them."""
    at = table.find(column)
    found: dict[str, list[int]] = {}
    for row, name in enumerate(table.labels(at, "name of the series")):
        found.setdefault(name, []).append(row)
    return {name: without_column(table, at, rows) for name, rows in found.items()}


def without_column(table: Table, column: Column, rows: Sequence[int] | None = None) -> Table:
    """Return all rows of a table, or some, without a column."""
    rows = range(len(table)) if rows is None else rows
    kept = [i for i in range(len(table.names)) if i != table.find(column)]
    return Table(
        table.name,
        tuple(table.names[i] for i in kept),
        [[table.rows[row][i] for i in kept] for row in rows],
        [table.lines[row] for row in rows],
        table.delimiter,
        [row + 1 for row in rows],
    )


def refuse_long(table: Table, time: int, names: Sequence[int]) -> None:
    """Raise InputError if times repeat and one of the columns `names` distinguishes the rows of equal times."""
    times = [field.strip() for field in table.text(time)]
    if len(set(times)) == len(times):
        return
    for column in sorted(names, key=table.is_numeric):
        series = [field.strip() for field in table.text(column)]
        pairs = set(zip(series, times, strict=True))
        if 2 <= len(set(series)) <= len(times) // 2 and len(pairs) == len(times):
            raise InputError(_line(table, time, column, len(set(series))))


def refuse_restarting_count(table: Table, columns: Sequence[int]) -> None:
    """Raise InputError if a column of integers numbers the rows of each series, starting at the same number."""
    for count in columns:
        begins = _restarts(table.text(count))
        for name in (column for column in columns if begins and column != count):
            series = table.text(name)
            changes = [i for i in range(len(series)) if i == 0 or series[i] != series[i - 1]]
            if changes == begins and len(set(series)) == len(begins):
                raise InputError(_line(table, count, name, len(begins)))


def refuse_blocks(table: Table, columns: Sequence[int]) -> None:
    """Raise InputError if a column holds names of series: each in two or more adjacent rows.

    Names are texts, or integers under a heading such as id or store.
    """
    for column in columns:
        fields = [field.strip() for field in table.text(column)]
        if not _can_name(table.names[column], fields):
            continue
        blocks = [(name, len(list(rows))) for name, rows in groupby(fields)]
        names = {name for name, _ in blocks}
        if 2 <= len(names) == len(blocks) and min(rows for _, rows in blocks) >= 2:
            raise InputError(_blocks_line(table, column, len(blocks)))


def _can_name(heading: str, fields: Sequence[str]) -> bool:
    numbers = [as_number(field) for field in fields]
    if all(number is None for number in numbers):
        return True
    whole = all(number is not None and number == number // 1 for number in numbers)
    return whole and "".join(filter(str.isalnum, heading.lower())) in IDS


def _restarts(fields: Sequence[str]) -> list[int]:
    """Return the rows at which a column restarts counting at its first number; empty for other columns.

    >>> _restarts(["1", "2", "3", "1", "2"]), _restarts(["1", "2", "3"]), _restarts(["5", "3", "5"])
    ([0, 3], [], [])
    """
    numbers, begins = list[float](), list[int]()
    for row, field in enumerate(fields):
        number = as_number(field)
        if number is None or number != number // 1:
            return []
        if not numbers or number == numbers[0]:
            begins.append(row)
        elif number != numbers[-1] + 1:
            return []
        numbers.append(number)
    return begins if 2 <= len(begins) <= len(fields) // 2 else []


def _line(table: Table, time: int, column: int, count: int) -> str:
    when, name = repr(table.names[time]), repr(table.names[column])
    return (
        f"{table.name}: column {when} begins again for every one of the {count:,} values of {name}: a long table of several "
        f"series; expected one row per time, or the column that names the series: series={name}"
    )


def _blocks_line(table: Table, column: int, count: int) -> str:
    name = repr(table.names[column])
    return (
        f"{table.name}: the rows of each of the {count:,} values of {name} stand below each other: a long table of several "
        f"series; expected one series per column, or the column that names the series: series={name}; if it is one series, "
        "name its columns and its times, as columns=[…] and time=…"
    )
