"""Estimate the gradient of a window by full, truncated and random BPTT, and compare the estimates with the full gradient.

    bias      ‖E[g] - full‖ / ‖full‖               for random truncation: of the mean of n draws, ± spread / √n      (1)
    spread    √E‖g - E[g]‖² / ‖full‖               over the draws; 0 for fixed truncation                            (2)

The gradients are those of training (`unspool.gradients.truncation`): truncated:K cuts the window into windows of K steps, so its
first step looks back one step and its last K. Compared are the parameters of the recurrence, U, W, b and d of every layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unspool.gradients.bptt import backpropagate
from unspool.gradients.truncation import FULL, CarriedState, Truncation
from unspool.kernels.arrays import Floats, Ids, Mask, Real
from unspool.model.network import Model
from unspool.model.values import State


@dataclass(frozen=True)
class Estimate:
    """How far the estimates of a gradient are from the full one, as shares of its norm."""

    kind: str
    bias: float
    error: float | None
    """The standard error of the bias; None for an estimate that is not random."""
    spread: float
    norm: float
    """The norm of the estimate; of a random one, of the mean of its draws."""
    draws: Real | None
    """The distance of each draw from the full gradient, (n,); None for an estimate that is not random."""


@dataclass(frozen=True)
class _Window:
    x: Ids
    y: Ids
    reset: Mask


def estimated_gradient(
    model: Model, x: Ids, y: Ids, how: Truncation = FULL, *, state: State | None = None, seed: int = 0, step: int = 0
) -> Real:  # fmt: skip
    """Return the gradient of a window's mean loss as one float64 vector, over the parameters of the recurrence.

    Shapes: x, y (τ, B). `seed` and `step` choose the draw of a random truncation, as in training.
    """
    B = x.shape[1]
    gradient, weights, carried = model.gradient(), model.weights(), CarriedState(how, state)
    for segment in carried.segments([_Window(x, y, np.zeros(B, bool))]):
        result = backpropagate(
            model, segment.x, segment.y, segment.state, gradient, scale=1.0 / y.size, weights=weights,
            xi=how.xi(len(segment.x), B, seed=seed, step=step), carry_after=segment.carry_after,
        )  # fmt: skip
        gradient.begin_window()
        carried.carry(segment, result.at)
    model.fold_input_tables(gradient, weights)
    parts = [gradient.values[name] for name in gradient.values.shapes if name.startswith("layer")]
    return np.concatenate([part.reshape(-1) for part in parts]).astype(np.float64)


def compare_estimates(
    model: Model,
    x: Ids,
    y: Ids,
    kinds: list[Truncation],
    *,
    state: State | None = None,
    draws: int = 32,
    seed: int = 0,
    check: Callable[[], None] = lambda: None,
) -> list[Estimate]:
    """Compare estimates of one window's gradient with the full one, which comes first; `check` is called before each.

    >>> from unspool.model.config import ModelConfig
    >>> model = Model.initialise(ModelConfig(cell="elman", inputs=4, outputs=4, hidden=6), seed=0)
    >>> ids = np.arange(33, dtype=np.int32)[:, None] % 4
    >>> kinds = [Truncation.parse(kind) for kind in ("truncated:32", "truncated:4", "random:0.5")]
    >>> found = compare_estimates(model, ids[:-1], ids[1:], kinds)
    >>> [each.kind for each in found], found[1].bias, found[2].bias > 0, found[3].spread > 0
    (['full', 'truncated:32', 'truncated:4', 'random:0.5'], 0.0, True, True)
    """
    full = estimated_gradient(model, x, y, state=state)
    norm = float(np.linalg.norm(full))
    found = [Estimate(str(FULL), 0.0, None, 0.0, norm, None)]
    for how in kinds:
        check()
        found.append(_compared(model, x, y, how, full, norm or 1.0, state, draws, seed))
    return found


def _compared(
    model: Model, x: Ids, y: Ids, how: Truncation, full: Real, norm: float, state: State | None, draws: int, seed: int
) -> Estimate:  # fmt: skip
    if how.kind != "random":
        g = estimated_gradient(model, x, y, how, state=state)
        return Estimate(str(how), _size(g - full) / norm, None, 0.0, _size(g), None)
    total, squares, distances = np.zeros_like(full), 0.0, np.zeros(draws)
    for i in range(draws):
        g = estimated_gradient(model, x, y, how, state=state, seed=seed, step=i)
        distances[i] = _size(g - full) / norm
        total += g
        squares += float(g @ g)
    mean = total / draws
    variance = max(0.0, squares - draws * float(mean @ mean)) / max(1, draws - 1)  # (2)
    spread = float(np.sqrt(variance)) / norm
    return Estimate(str(how), _size(mean - full) / norm, spread / draws**0.5, spread, _size(mean), distances)


def _size(v: Floats) -> float:
    return float(np.linalg.norm(v))
