"""A learning curve against the baselines that a network has to cross."""

import math
from collections.abc import Sequence
from pathlib import Path

from unspool.draw.figure import BLUE, GREY, ORANGE, new_axes, save

Curve = Sequence[tuple[float, float, float]]
"""(seconds, nats in training, nats of the validation part)."""


def draw_curve(curve: Curve, lines: Sequence[tuple[str, float]], path: str | Path, title: str = "") -> None:
    """Draw perplexity by seconds of training, and each baseline as a dotted line with its name."""
    figure, (axes,) = new_axes(width=7.2)
    seconds = [point[0] for point in curve]
    for name, at, colour in (("training", 1, ORANGE), ("validation", 2, BLUE)):
        perplexities = [math.exp(point[at]) for point in curve]
        axes.plot(seconds, perplexities, "o-", color=colour, markersize=3, label=name)
    for name, nats in lines:
        axes.axhline(math.exp(nats), color=GREY, linewidth=0.8, linestyle=":")
        axes.annotate(
            f"{name} {math.exp(nats):.2f}", (1.01, math.exp(nats)), xycoords=("axes fraction", "data"),
            va="center", fontsize=8, color=GREY,
        )  # fmt: skip
    axes.set(yscale="log", xlabel="seconds of training", ylabel="perplexity", title=title)
    axes.legend(frameon=False)
    save(figure, path)
