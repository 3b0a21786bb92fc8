"""Colours and axes for the pictures of the examples."""

from __future__ import annotations

from typing import Any

BLUE, ORANGE, GREEN, GREY = "#2166ac", "#d6604d", "#1b7837", "#888888"


def new_axes(columns: int, width: float, height: float) -> tuple[Any, Any]:
    """Return a figure with axes side by side, without top and right borders."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height), layout="constrained")
    axes = figure.subplots(1, columns)
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes
