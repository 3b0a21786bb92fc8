"""Plot of n-gram frequencies against rank, on logarithmic axes, with the fitted lines."""

from pathlib import Path

import numpy as np

from unspool.baselines.zipf import ZipfFit
from unspool.kernels.arrays import Whole
from unspool.plots.figure import BLUE, GREEN, ORANGE, new_axes, save

MOST_POINTS = 2000
"""Most ranks that are drawn, evenly spaced on the logarithmic axis."""
NAMES = {1: "1-grams", 2: "2-grams", 3: "3-grams"}


def draw_zipf(counts: list[Whole], fits: list[ZipfFit], path: str | Path, title: str = "") -> None:
    """Write a plot of the frequencies for n = 1, 2, … and their fitted lines."""
    figure, (axes,) = new_axes()
    for n, (frequencies, fit, colour) in enumerate(zip(counts, fits, (BLUE, ORANGE, GREEN), strict=False), 1):
        ranks = np.unique(np.geomspace(1, len(frequencies), MOST_POINTS).round().astype(np.int64))
        label = f"{NAMES[n]}: α = {fit.alpha:.2f}"
        axes.plot(ranks, frequencies[ranks - 1], ".", color=colour, markersize=3, label=label)
        ends = np.array(fit.ranks, float)
        axes.plot(ends, np.exp(fit.c) * ends**-fit.alpha, "-", color=colour, linewidth=1.2)
    axes.set(xscale="log", yscale="log", xlabel="rank i", ylabel="frequency n(i)", title=title)
    axes.legend(frameon=False)
    save(figure, path)
