"""Plot of bits per byte against the length of a prefix of a file, for a network and other compressors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unspool.plots.figure import BLUE, GREEN, GREY, ORANGE, new_axes, save

LOOKS: tuple[dict[str, Any], ...] = (
    {"color": GREEN, "linewidth": 2.4, "zorder": 3},
    {"color": GREEN, "linewidth": 1.2, "linestyle": "--", "zorder": 3},
    {"color": GREY, "linewidth": 1.2},
    {"color": ORANGE, "linewidth": 1.2},
    {"color": BLUE, "linewidth": 1.2},
)


def draw_growth(found: Mapping[str, tuple[Sequence[int], Sequence[float]]], path: str | Path) -> None:
    """Write a plot with one line per compressor: the network with and without header, and the others."""
    figure, (axes,) = new_axes(width=7.2)
    for (name, (read, bits)), look in zip(found.items(), LOOKS, strict=False):
        axes.plot(read, bits, label=name, **look)
    axes.set(
        xscale="log", ylim=(0, 8.2), xlabel="bytes of the file", ylabel="bits per byte, headers included"
    )
    axes.xaxis.set_major_formatter(lambda read, _: f"{read:,.0f}")
    axes.grid(color=GREY, alpha=0.2, linewidth=0.6)
    axes.legend(frameon=False)
    save(figure, path)
