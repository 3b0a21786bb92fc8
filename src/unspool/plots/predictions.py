"""Scatter plot of predictions against true values; on the line they are equal."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unspool.kernels.arrays import Real
from unspool.plots.figure import BLUE, GREY, new_axes, save

MOST = 4
"""Most targets that are drawn."""


def draw_predictions(truth: Real, found: Real, names: Sequence[str], path: str | Path) -> None:
    """Write a plot of predictions against true values, each (n, O), with one panel per target."""
    shown = list(names)[:MOST]
    figure, every = new_axes(columns=len(shown), width=4.4, height=4.4)
    for k, (name, axes) in enumerate(zip(shown, every, strict=True)):
        both = np.concatenate([truth[:, k], found[:, k]])
        low, high = float(both.min()), float(both.max())
        room = 0.04 * (high - low) or 1.0
        axes.plot([low, high], [low, high], color=GREY, linewidth=1)
        axes.scatter(truth[:, k], found[:, k], s=12, color=BLUE, alpha=0.6, linewidths=0)
        axes.set(xlabel="truth", ylabel="predicted", title=name)
        axes.set(xlim=(low - room, high + room), ylim=(low - room, high + room), aspect="equal")
    save(figure, path)
