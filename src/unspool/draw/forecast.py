"""Predictions of a series against its truth, and how their errors grow with the steps ahead."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unspool.counting.ahead import WindowModel, error_by_steps, predict_ahead
from unspool.data.arrays import Real
from unspool.draw.figure import BLUE, GREEN, GREY, ORANGE, new_axes, save

COLOURS = (BLUE, ORANGE, GREEN, "#762a83", "#b8860b")


def draw_ahead(
    models: Mapping[str, WindowModel],
    x: Real,
    path: str | Path,
    shown: Sequence[int] = (1, 4, 16, 64),
    noise: float | None = None,
) -> None:
    """Draw, at the left, the first model's predictions k steps ahead, at the right every model's error by k.

    ``noise``, the standard deviation of what no model can know, becomes a dotted line.
    """
    figure, (left, right) = new_axes(columns=2)
    _draw_predictions(left, *next(iter(models.items())), x, shown)
    steps = np.unique(np.geomspace(1, max(shown), 30).round().astype(int)).tolist()
    for (name, model), colour in zip(models.items(), COLOURS, strict=False):
        right.plot(steps, error_by_steps(model, x, steps), "-", color=colour, label=name)
    if noise is not None:
        right.axhline(noise, color=GREY, linestyle=":", label="the noise alone")
    right.set(xscale="log", xlabel="steps ahead k", ylabel="root mean squared error", ylim=(0, None))
    right.legend(frameon=False)
    save(figure, path)


def _draw_predictions(axes: Any, name: str, model: WindowModel, x: Real, shown: Sequence[int]) -> None:
    axes.plot(x, ".", color=GREY, markersize=2, alpha=0.5, label="observed")
    for k, colour in zip(shown, COLOURS, strict=False):
        times = np.arange(model.tau + k - 1, len(x))
        axes.plot(times, predict_ahead(model, x, k), color=colour, linewidth=1, label=f"k = {k}")
    axes.set(xlabel="t", ylabel="x(t)", title=name)
    axes.legend(frameon=False, ncols=2)
