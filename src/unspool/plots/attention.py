"""Plot of attention weights: decoder steps from top to bottom, input steps from left to right."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.plots.figure import new_axes, save


def draw_attention(
    alpha: NDArray[Any], read: Sequence[str], written: Sequence[str], path: str | Path
) -> None:
    """Write a plot of attention weights (T, L), one row per output token."""
    T, L = alpha.shape
    figure, (axes,) = new_axes(width=1.6 + 0.26 * L, height=0.9 + 0.26 * T)
    axes.imshow(alpha, cmap="Blues", vmin=0, vmax=max(1e-9, float(np.max(alpha))), aspect="equal")
    axes.set_xticks(range(L), labels=[_visible(token) for token in read])
    axes.set_yticks(range(T), labels=[_visible(token) for token in written])
    axes.tick_params(length=0, labelsize=9)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set(xlabel="read", ylabel="written")
    axes.spines[:].set_visible(False)
    save(figure, path)


def _visible(token: str) -> str:
    return {" ": "␣", "\n": "↵", "<eos>": "end"}.get(token, token)
