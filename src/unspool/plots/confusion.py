"""Plot of a confusion matrix: colours are fractions of the true class, cells contain counts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unspool.kernels.arrays import Whole
from unspool.plots.figure import add_colour_bar, new_axes, save

MOST_COUNTS = 30
"""Most classes for which the counts are written into the cells."""


def draw_confusion(confusion: Whole, names: Sequence[str], path: str | Path) -> None:
    """Write a plot with true classes in rows and predictions in columns; colours are fractions of the row."""
    K = len(names)
    side = min(11.0, 2.2 + 0.42 * K)
    figure, (axes,) = new_axes(width=side + 0.6, height=side)
    fraction = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(fraction, cmap="Blues", vmin=0, vmax=1)
    slanted = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if max(map(len, names)) > 3 else {}
    axes.set_xticks(range(K), labels=names, fontsize=8, **slanted)
    axes.set_yticks(range(K), labels=names, fontsize=8)
    axes.set(xlabel="answer", ylabel="truth")
    right = float(np.trace(confusion) / max(1, confusion.sum()))
    axes.set_title(f"{int(confusion.sum()):,} sequences, accuracy {right:.3f}", fontsize=10)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_xticks(np.arange(K + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(K + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="minor", length=0)
    if K <= MOST_COUNTS:
        for (i, j), count in np.ndenumerate(confusion):
            if count:
                colour = "white" if fraction[i, j] > 0.5 else "#222222"
                axes.text(j, i, f"{count:,}", ha="center", va="center", fontsize=7, color=colour)
    add_colour_bar(figure, image, axes, "share of the true class", size=8, fraction=0.04, pad=0.02)
    save(figure, path)
