"""Time series with a common time index: the columns of a table, or the series of a long table."""

from dataclasses import dataclass

from unspool.data.series.time_index import TimeIndex
from unspool.kernels.arrays import Mask, Real


@dataclass(frozen=True)
class LongFormat:
    """The columns of a long table that hold names and values of its series."""

    series: str
    """The column that names the series of each row."""
    values: list[str]

    def name(self, series: str, column: str) -> str:
        """Return the name of one series: that of its rows and, if there are several columns of values, the column.

        >>> LongFormat("store", ["sales"]).name("north", "sales"), LongFormat("store", ["sales", "visits"]).name("north", "sales")
        ('north', 'north.sales')
        """
        return series if len(self.values) == 1 else f"{series}.{column}"


@dataclass(frozen=True)
class Values:
    """One column: values without gaps, and a mask of the observed ones."""

    y: Real
    known: Mask
    begin: int
    """The step of its first value: the number of dropped steps before it."""

    @property
    def end(self) -> int:
        """The step after its last value, where a forecast begins."""
        return self.begin + len(self.y)

    @property
    def filled(self) -> int:
        """Number of missing values."""
        return int((~self.known).sum())


@dataclass(frozen=True)
class TimeTable:
    """Series of numbers and their common time index: the columns of a table, or the series of a long table."""

    name: str
    time: str | None
    """The column of times."""
    clock: TimeIndex | None
    columns: dict[str, Values]
    left_out: list[str]
    """Columns without a number, and an index next to the times."""
    rows: int
    """Number of steps from the first row to the last."""
    long: LongFormat | None = None
    """The columns of a long table; None: each series is a column."""

    @property
    def noun(self) -> str:
        """What a series is called in messages."""
        return "series" if self.long else "column"

    def label(self, number: int) -> str:
        """Return the label of a step, counted from 0 at the first row: its time, or its number from 1."""
        return self.clock.label(number) if self.clock else str(number + 1)
