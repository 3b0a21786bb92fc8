"""A curve against horizontal lines, in characters: a picture for a terminal.

>>> for row in chart([(0, 4.0), (5, 2.5), (10, 1.0)], [("high", 4.0), ("low", 2.0)], end=10, width=11, height=4):
...     print(row.rstrip())
 4.00 ••┈┈┈┈┈┈┈┈┈ high
 3.00   •••
 2.00 ┈┈┈┈┈••••┈┈ low
 1.00          ••
"""

from collections.abc import Sequence

import numpy as np
from rich.text import Text

Point = tuple[float, float]
Line = tuple[str, float]


def chart(
    points: Sequence[Point], lines: Sequence[Line], *, end: float, width: int = 60, height: int = 12
) -> list[str]:
    """Draw a curve from 0 to ``end`` along the width, and named lines at their heights."""
    values = [y for _, y in points] + [y for _, y in lines]
    low, high = min(values), max(values)
    step = (high - low) / (height - 1) or 1.0
    rows = [[" "] * width for _ in range(height)]
    names = [""] * height
    for name, y in lines:
        at = round((high - y) / step)
        rows[at] = ["┈"] * width
        names[at] = f"{names[at]}, {name}".lstrip(", ")
    for column, row in _curve(points, end, width, high, step):
        rows[row][column] = "•"
    return [
        f"{high - at * step:5.2f} {''.join(row)} {name}"
        for at, (row, name) in enumerate(zip(rows, names, strict=True))
    ]


def _curve(
    points: Sequence[Point], end: float, width: int, high: float, step: float
) -> list[tuple[int, int]]:
    """Give the places (column, row) of the curve: every column up to its last point, steep falls filled up."""
    if not points:
        return []
    x, y = np.array(points, float).T
    last = round(min(1.0, x[-1] / end) * (width - 1))
    heights = np.interp(np.arange(last + 1) * end / (width - 1), x, y)
    rows = np.rint((high - heights) / step).astype(int).tolist()
    places = list[tuple[int, int]]()
    for column, (before, row) in enumerate(zip([rows[0], *rows[:-1]], rows, strict=True)):
        way = 1 if row >= before else -1
        places += [(column, each) for each in range(before + way, row, way)] + [(column, row)]
    return places


def coloured(row: str) -> Text:
    """Return a row of a chart with its points highlighted."""
    text = Text(row, "dim")
    text.highlight_regex("•+", "bold green not dim")
    return text
