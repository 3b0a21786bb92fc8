"""Plots of forecasts, backtests, and errors by horizon."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unspool.baselines.multi_step import WindowModel, error_by_steps, predict_ahead
from unspool.kernels.arrays import Real
from unspool.plots.figure import BLUE, GREEN, GREY, ORANGE, new_axes, save

INK = "#333333"
APART = (1, 2, 3, 4, 6, 12, 24, 48, 72, 96, 168, 336, 672)
"""Candidates for the number of steps between two ticks."""
OF_MODELS = (BLUE, GREY, ORANGE, GREEN, "#762a83", "#b8860b", "#8c510a", INK)
COLOURS = (BLUE, ORANGE, GREEN, "#762a83", "#b8860b")


def draw_ahead(
    models: Mapping[str, WindowModel],
    x: Real,
    path: str | Path,
    shown: Sequence[int] = (1, 4, 16, 64),
    noise: float | None = None,
) -> None:
    """Write a plot of the predictions of the first model k steps ahead (left) and of the errors of all models by k (right).

    x (n,) is the series. ``noise``, the standard deviation of the unpredictable part, is a dotted line.
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


def draw_forecast(
    history: Real,
    forecast: Real,
    low: Real | None,
    high: Real | None,
    path: str | Path,
    *,
    labels: Sequence[str],
    level: float = 0.8,
    title: str = "",
) -> None:
    """Write a plot of the end of a series, its forecast and the prediction interval.

    ``labels`` are the times of the history and of the forecast together.
    """
    figure, (axes,) = new_axes(width=8.4, height=3.9)
    past, ahead = np.arange(len(history)), len(history) + np.arange(len(forecast))
    joined = np.concatenate([past[-1:], ahead])
    axes.plot(past, history, color=INK, linewidth=1.1)
    if low is not None and high is not None:
        ends = [np.concatenate([history[-1:], end]) for end in (low, high)]
        axes.fill_between(joined, *ends, color=BLUE, alpha=0.18, linewidth=0, label=f"{level:.0%} interval")
    axes.plot(joined, np.concatenate([history[-1:], forecast]), color=BLUE, linewidth=1.8, label="forecast")
    axes.axvline(len(history) - 0.5, color=GREY, linewidth=0.8, linestyle=":")
    _times(axes, labels)
    axes.set(title=title)
    axes.margins(x=0.01)
    axes.legend(frameon=False, loc="upper left")
    save(figure, path)


def draw_backtest(found: Any, y: Real, path: str | Path, *, labels: Sequence[str], title: str = "") -> None:
    """Write a plot of forecasts from origins one horizon apart (left) and of the errors by step (right).

    ``found`` is a `unspool.tasks.forecast.backtest.Backtest`; ``labels`` are the times of y.
    """
    figure, (left, right) = new_axes(columns=2, width=6.6, height=4.2)
    first, H = int(found.origins[0]), found.horizon
    begin = max(0, first - (len(y) - first))
    left.plot(np.arange(begin, len(y)), y[begin:], color=INK, linewidth=1.0, label="truth")
    shown = [i for i, origin in enumerate(found.origins.tolist()) if (origin - first) % H == 0][-12:]
    for number, i in enumerate(shown):
        ahead = int(found.origins[i]) + np.arange(H)
        if found.low is not None:
            name = f"{found.level:.0%} interval" if not number else None
            left.fill_between(
                ahead, found.low[i], found.high[i], color=BLUE, alpha=0.18, linewidth=0, label=name
            )
        name = found.answer if not number else None
        left.plot(ahead, found.forecasts[found.answer][i], color=BLUE, linewidth=1.6, label=name)
    left.set_xlim(max(begin, int(found.origins[shown[0]]) - len(shown) * H), len(y))
    _times(left, labels)
    left.set(title=title)
    left.legend(frameon=False, loc="upper left")
    others = [name for name in found.forecasts if name not in (found.answer, "last value")]
    for name, colour in zip([found.answer, *others], OF_MODELS, strict=False):
        style = "-" if name == found.answer else "--"
        right.plot(np.arange(1, H + 1), found.by_step(name), style, color=colour, label=name, linewidth=1.5)
    right.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
    right.set(xlabel="steps ahead", ylabel="mean absolute error / scale", ylim=(0, None))
    right.set_xlim(0.5, H + 0.5)
    right.grid(axis="y", color="#eeeeee", linewidth=0.8)
    right.legend(frameon=False, fontsize=8, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    save(figure, path)


def _times(axes: Any, labels: Sequence[str]) -> None:
    """Label an axis of steps with a few times, at distances that fit calendars."""
    low, high = (int(np.clip(end, 0, len(labels) - 1)) for end in axes.get_xlim())
    apart = next((step for step in APART if (high - low) / step <= 8), (high - low) // 8 + 1)
    ticks = list(range(low, high + 1, apart))
    axes.set_xticks(ticks, labels=[labels[tick] for tick in ticks], rotation=25, ha="right", fontsize=8)
    axes.grid(axis="y", color="#eeeeee", linewidth=0.8)
    axes.set_axisbelow(True)
