"""Plot of class probabilities after each step of a sequence, next to the image that is read pixel by pixel."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.plots.figure import GREY, add_colour_bar, new_axes, save


def draw_per_step(
    images: Sequence[NDArray[Any]],
    probabilities: Sequence[NDArray[Any]],
    classes: Sequence[str],
    path: str | Path,
) -> None:
    """Write a plot of the class probabilities of each image (rows, columns) against the pixels read so far."""
    n = len(images)
    figure, _ = new_axes(width=8.2, height=1.75 * n)
    figure.clear()
    grid = figure.subplots(n, 2, width_ratios=(1, 5), squeeze=False)
    for (left, right), picture, p in zip(grid, images, probabilities, strict=True):
        left.imshow(picture, cmap="Greys")
        left.set_xticks([])
        left.set_yticks([])
        left.spines[:].set_color(GREY)
        image = right.imshow(p.T, aspect="auto", cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
        right.set_yticks(range(len(classes)), labels=classes, fontsize=7)
        right.tick_params(length=0, labelsize=7)
        right.spines[:].set_visible(False)
        width = picture.shape[1]
        for at in range(width, p.shape[0], width):
            right.axvline(at - 0.5, color="white", linewidth=0.6)
        ends = np.arange(width, p.shape[0] + 1, width)
        right.set_xticks(ends - 0.5, labels=[str(end) for end in ends])
    grid[-1, 1].set_xlabel("pixels read", fontsize=9)
    add_colour_bar(figure, image, grid[:, 1].tolist(), "probability", size=7, fraction=0.02, pad=0.01)
    save(figure, path)
