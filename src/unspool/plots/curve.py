"""Plot of a learning curve with baselines."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from unspool.plots.figure import BLUE, GREY, ORANGE, new_axes, save

Curve = Sequence[tuple[float, float, float]]
"""(seconds, training loss in nats, validation loss in nats)."""

SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000)
PERPLEXITIES = (1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 3000, 10_000)


def draw_curve(curve: Curve, lines: Sequence[tuple[str, float]], path: str | Path, title: str = "") -> None:
    """Write a plot of perplexity against seconds of training; baselines are dotted lines, the best one dashed."""
    figure, (axes,) = new_axes(width=7.2)
    seconds = [point[0] for point in curve]
    for name, at, colour in (("training", 1, ORANGE), ("validation", 2, BLUE)):
        perplexities = [math.exp(point[at]) for point in curve]
        axes.plot(seconds, perplexities, "o-", color=colour, markersize=3, label=name)
    best = min((nats for _, nats in lines), default=0.0)
    for name, nats in lines:
        style, note = ("--", ", the best") if nats == best else (":", "")
        axes.axhline(math.exp(nats), color=GREY, linewidth=0.8, linestyle=style)
        axes.annotate(
            f"{name} {math.exp(nats):.2f}{note}", (1.01, math.exp(nats)), xycoords=("axes fraction", "data"),
            va="center", fontsize=8, color=GREY,
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="seconds of training", ylabel="perplexity", title=title)
    for axis, ticks in ((axes.xaxis, SECONDS), (axes.yaxis, PERPLEXITIES)):
        low, high = axis.get_view_interval()
        shown = [tick for tick in ticks if low <= tick <= high]
        axis.set_ticks(shown, labels=[f"{tick:g}" for tick in shown])
        axis.minorticks_off()
    axes.legend(frameon=False)
    save(figure, path)


def draw_curves(curves: Mapping[str, Sequence[tuple[float, float]]], path: str | Path) -> None:
    """Draw the validation losses of several runs by update: (update, loss) by the name of the run."""
    figure, (axes,) = new_axes(width=7.2)
    for name, points in curves.items():
        axes.plot(*zip(*points, strict=True), "o-", markersize=3, label=name)
    axes.set(xscale="log", xlabel="updates", ylabel="validation loss")
    axes.legend(frameon=False)
    save(figure, path)
