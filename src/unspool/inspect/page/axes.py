"""Axes on a canvas: ticks at round numbers, a grid, lines and labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from unspool.plots.svg import Canvas


class Axes:
    """Maps values to positions on a canvas; the y axis may be logarithmic."""

    def __init__(
        self,
        canvas: Canvas,
        box: tuple[float, float, float, float],
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        log_y: bool = False,
    ) -> None:
        self.canvas, self.box, self.log_y = canvas, box, log_y
        self.x_limits, self.y_limits = x, y

    def x(self, value: float) -> float:
        """Return the position of a value on the x axis."""
        left, _, width, _ = self.box
        return left + width * _share(value, *self.x_limits)

    def y(self, value: float) -> float:
        """Return the position of a value on the y axis."""
        _, top, _, height = self.box
        return top + height * (1 - _share(value, *self.y_limits, self.log_y))

    def frame(self, x_label: str, y_label: str) -> None:
        """Draw the grid, the ticks and the labels of the axes."""
        left, top, width, height = self.box
        for value in ticks(*self.y_limits, 5, self.log_y):
            y = self.y(value)
            self.canvas.line(left, y, left + width, y, class_="grid")
            note(self.canvas, left - 7, y + 4, format_tick(value), "end")
        for value in ticks(*self.x_limits, 6):
            x = self.x(value)
            self.canvas.line(x, top + height, x, top + height + 4, class_="axis")
            note(self.canvas, x, top + height + 18, format_tick(value), "middle")
        self.canvas.line(left, top + height, left + width, top + height, class_="axis")
        self.canvas.text(left + width, top + height + 34, x_label, text_anchor="end", font_size=12)
        self.canvas.text(left - 7, top - 10, y_label, text_anchor="start", font_size=12)

    def line(self, xs: Sequence[float], ys: Sequence[float], colour: str, **more: object) -> None:
        """Draw a line through points, without those that are not finite."""
        points = [(self.x(x), self.y(y)) for x, y in zip(xs, ys, strict=True) if math.isfinite(y)]
        if len(points) > 1:
            self.canvas.path(points, fill="none", style=f"stroke:var(--{colour})", **more)


def note(canvas: Canvas, x: float, y: float, text: str, anchor: str | None = None) -> None:
    """Write a small soft text."""
    canvas.text(x, y, text, text_anchor=anchor, class_="soft", font_size=11.5)


def _share(value: float, low: float, high: float, log: bool = False) -> float:
    if log:
        value, low, high = (math.log(max(each, 1e-300)) for each in (value, low, high))
    return min(max((value - low) / ((high - low) or 1), 0.0), 1.0)


def ticks(low: float, high: float, count: int, log: bool = False) -> list[float]:
    """Return round numbers between two values.

    >>> ticks(0, 2000, 5), ticks(1e-4, 1, 9, log=True)
    ([0.0, 500.0, 1000.0, 1500.0, 2000.0], [0.0001, 0.001, 0.01, 0.1, 1.0])
    """
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        step = max(1, math.ceil((last - first) / count))
        found = [10.0**k for k in range(last, first - 1, -step)][::-1]
        if len(found) > 2:
            return found
        return [
            value
            for k in range(first - 1, last + 1)
            for m in (1, 2, 5)
            if low <= (value := m * 10.0**k) <= high
        ]
    rough = (high - low) / max(count, 1) or 1.0
    scale = 10.0 ** math.floor(math.log10(rough))
    apart = next(m * scale for m in (1, 2, 2.5, 5, 10) if m * scale >= rough * (1 - 1e-9))
    first, last = math.ceil(low / apart - 1e-9), math.floor(high / apart + 1e-9)
    return [k * apart + 0.0 for k in range(first, last + 1)]


def format_tick(value: float) -> str:
    """Return a short text for a number."""
    if value and abs(value) < 1e-3:
        return f"10{str(round(math.log10(abs(value)))).translate(RAISED)}"
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
