"""Where a decoder looked: its steps from top to bottom, the input's from left to right."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.plots.figure import new_axes, save


def draw_weights(alpha: NDArray[Any], read: Sequence[str], written: Sequence[str], path: str | Path) -> None:
    """Draw the weights of attention, a row a written token."""
    T, L = alpha.shape
    figure, (axes,) = new_axes(width=1.6 + 0.26 * L, height=0.9 + 0.26 * T)
    axes.imshow(alpha, cmap="Blues", vmin=0, vmax=max(1e-9, float(np.max(alpha))), aspect="equal")
    axes.set_xticks(range(L), labels=[_shown(token) for token in read])
    axes.set_yticks(range(T), labels=[_shown(token) for token in written])
    axes.tick_params(length=0, labelsize=9)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set(xlabel="read", ylabel="written")
    axes.spines[:].set_visible(False)
    save(figure, path)


def _shown(token: str) -> str:
    return {" ": "␣", "\n": "↵", "<eos>": "end"}.get(token, token)
