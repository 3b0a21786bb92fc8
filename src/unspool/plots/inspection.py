"""Plots of an inspection: surprise along a text, units, the path and the heat map of the state, influence, bias, gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.arrays import Real
from unspool.plots.figure import BLUE, GREEN, GREY, ORANGE, add_colour_bar, new_axes, save

SMOOTH = 25
"""Number of tokens in the moving average of the surprise."""
COLUMNS, ROWS = 96, 2
"""Tokens per line and lines of a span of `draw_units`."""
LAYERS = (BLUE, GREEN, "#762a83", "#b8860b")
FLOOR = 3.0
"""Powers of ten below the largest gradient that are distinguished."""


def draw_surprise(surprise: Real, path: str | Path) -> None:
    """Write a plot of the surprise of each token after the first, its moving average and its mean."""
    values, span = surprise[1:], min(SMOOTH, len(surprise) - 1)
    figure, (axes,) = new_axes(width=10, height=2.6)
    axes.vlines(np.arange(2, len(surprise) + 1), 0, values, color=ORANGE, alpha=0.35, linewidth=0.7)
    smooth = np.convolve(values, np.ones(span) / span, "valid")
    axes.plot(
        2 + span // 2 + np.arange(len(smooth)),
        smooth,
        color="black",
        linewidth=1.2,
        label=f"mean of {span} tokens",
    )
    axes.axhline(values.mean(), color=GREY, linestyle="--", linewidth=0.9, label=f"mean {values.mean():.3f}")
    axes.set(xlabel="token t", ylabel="surprise, nats", ylim=(0, max(1.0, float(np.quantile(values, 0.998)))))
    axes.legend(frameon=False, ncols=2, loc="upper right")
    save(figure, path)


def draw_path(positions: Real, shares: Sequence[float], pieces: Sequence[str], path: str | Path) -> None:
    """Write a plot of the positions (T, 2) of the state in the plane of two components, each marked by its token."""
    figure, (axes,) = new_axes(width=7, height=5.6)
    axes.plot(*positions.T, color=GREY, linewidth=0.25, alpha=0.5)
    for piece, (x, y) in zip(pieces, positions, strict=True):
        axes.text(
            x, y, _plain(piece), fontsize=7, color=BLUE, alpha=0.7, ha="center", va="center", in_layout=False
        )
    axes.set(xlabel=f"component 1: {shares[0]:.0%} of the variance", ylabel=f"component 2: {shares[1]:.0%}")
    save(figure, path)


def draw_units(spans: Sequence[tuple[str, NDArray[Any], Sequence[str]]], path: str | Path) -> None:
    """Write a plot with a span of the text per unit, coloured by its activation: (title, activations from -1 to 1, pieces)."""
    figure, _ = new_axes(width=11.5, height=0.95 * max(1, len(spans)))
    figure.clear()
    for axes, (title, values, pieces) in zip(
        figure.subplots(max(1, len(spans)), squeeze=False)[:, 0], spans, strict=False
    ):
        filled = np.full(COLUMNS * ROWS, np.nan)
        filled[: len(values)] = values[: len(filled)]
        axes.imshow(filled.reshape(ROWS, COLUMNS), cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", alpha=0.75)
        for i, piece in enumerate(pieces[: len(filled)]):
            axes.text(
                i % COLUMNS,
                i // COLUMNS,
                _plain(piece[:1]),
                fontsize=7,
                ha="center",
                va="center",
                in_layout=False,
            )
        axes.set_title(_plain(title), fontsize=8, loc="left")
        axes.set_axis_off()
    save(figure, path)


def draw_states(h: NDArray[Any], path: str | Path) -> None:
    """Write a heat map of states (T, H): one row per unit, one column per token."""
    figure, (axes,) = new_axes(width=10, height=4)
    most = max(float(np.quantile(np.abs(h), 0.99)), 1e-12)
    image = axes.imshow(h.T, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto", interpolation="nearest")
    axes.set(xlabel="token t", ylabel="unit")
    add_colour_bar(figure, image, axes, "h(t)", size=8, fraction=0.02, pad=0.01)
    save(figure, path)


def draw_influence(
    lags: Sequence[int],
    trained: Sequence[Sequence[float]],
    untrained: Sequence[float],
    reaches: Sequence[int | None],
    path: str | Path,
) -> None:
    """Write a plot of the norm of dh(t)/dh(t-k) by lag k, a line per layer, and of an untrained network; points mark the memory length."""
    figure, (axes,) = new_axes()
    first = trained[-1][0] or 1.0
    for layer, (norms, reach) in enumerate(zip(trained, reaches, strict=True)):
        name, colour = "trained" if len(trained) == 1 else f"layer {layer + 1}", LAYERS[layer % len(LAYERS)]
        length = "" if reach is None else f", memory length {reach}"
        axes.plot(lags, norms, color=colour, linewidth=2, label=name + length)
        if reach is not None:
            axes.plot([reach], [0.01 * first], "o", color=colour)
    axes.plot(lags, untrained, color=GREY, label="untrained")
    axes.axhline(0.01 * first, color=GREY, linestyle=":", linewidth=1)
    axes.set(yscale="log", ylim=(1e-4 * first, None), xlabel="lag k", ylabel="‖dh(t) / dh(t−k)‖")
    axes.legend(frameon=False)
    save(figure, path)


def draw_bias(
    parts: Sequence[float],
    missed: Sequence[float],
    steps: Mapping[float, int | None],
    letter: str,
    path: str | Path,
) -> None:
    """Write a plot of the norms of the parts of ∇W (or ∇U) by lag, scaled to the largest, and of what looking back K steps misses."""
    figure, (axes,) = new_axes()
    axes.bar(
        range(len(parts)),
        np.array(parts) / (max(parts) or 1.0),
        color=ORANGE,
        alpha=0.5,
        label=f"‖part of ∇{letter}‖, scaled",
    )
    axes.plot(range(len(missed)), missed, color=BLUE, linewidth=2, label="missed when looking back K steps")
    for bias, step in steps.items():
        if step is not None:
            axes.plot([step], [missed[step]], "o", color=BLUE)
            axes.annotate(
                f"{bias:.0%}: K = {step}",
                (step, missed[step]),
                (4, 6),
                textcoords="offset points",
                fontsize=8,
            )
    axes.set(xlabel="lag k, or K steps looked back", ylabel="share", ylim=(0, 1.02))
    axes.legend(frameon=False)
    save(figure, path)


def draw_gradients(
    shares: Mapping[str, NDArray[Any]], arrived: NDArray[Any], letters: Sequence[str], path: str | Path
) -> None:
    """Write a plot of each step's contributions to gradients, and of the norms of the gradient of L(t) (rows) at h(k) (columns).

    `shares` are norms by step, one array per parameter; `arrived` (τ, τ) is a field of `unspool.gradients.arrivals`.
    """
    figure, (left, right) = new_axes(columns=2, width=5.0, height=3.9)
    steps, width = np.arange(len(letters)), 0.8 / max(1, len(shares))
    for i, ((name, norms), colour) in enumerate(zip(shares.items(), (GREEN, BLUE, ORANGE), strict=False)):
        left.bar(steps + (i - (len(shares) - 1) / 2) * width, norms, width, color=colour, label=f"∇{name}")
    left.set(
        xlabel="token read at step t", ylabel="norm of the step's share", title="shares of the gradients"
    )
    left.legend(frameon=False)
    with np.errstate(divide="ignore"):
        powers = np.log10(np.where(arrived > 0, arrived, np.nan))
    high = float(np.nanmax(powers)) if np.isfinite(powers).any() else 0.0
    image = right.imshow(powers, cmap="viridis", vmin=high - FLOOR, vmax=high)
    right.set(xlabel="arrives at step k", ylabel="loss at step t", title="log₁₀ ‖∂L(t)/∂h(k)‖")
    add_colour_bar(figure, image, right, "", size=8, shrink=0.8)
    for axis in (left.xaxis, right.xaxis, right.yaxis):
        axis.set_ticks(steps, labels=[_plain(each) if each != " " else "·" for each in letters])
    save(figure, path)


def _plain(piece: str) -> str:
    r"""Return a token without what matplotlib would read as mathematics or could not draw.

    >>> _plain("a$b\x1b")
    'a\\$b·'
    """
    return "".join(char if char.isprintable() else "·" for char in piece).replace("$", r"\$")
