"""Training, as a generator of step reports: whoever runs it decides what happens between steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from unspool.bptt import Gradient
from unspool.errors import Diverged, InputError
from unspool.model import Model, State
from unspool.optimise import Optimiser
from unspool.values import Ids


class Window(Protocol):
    """A minibatch: tokens, the tokens that follow them, and whether the state starts anew."""

    @property
    def x(self) -> Ids:
        """The tokens read, tau B."""

    @property
    def y(self) -> Ids:
        """The tokens that follow, tau B."""

    @property
    def fresh(self) -> bool | NDArray[np.bool_]:
        """Whether the state must start anew before this window: of all rows, or row by row."""


class Report(NamedTuple):
    """One update, seen from outside."""

    step: int
    loss: float
    """Mean nats a target, before the update."""
    norm: float
    """The gradient's global norm, before clipping."""
    targets: int
    state: State


def constant(step: int) -> float:
    """Keep the learning rate as it is."""
    return 1.0


def train(
    model: Model,
    windows: Iterable[Window],
    optimiser: Optimiser,
    *,
    seed: int = 0,
    schedule: Callable[[int], float] = constant,
    state: State | None = None,
) -> Iterator[Report]:
    """Update the model once a window; the state is carried on and cut from the gradient."""
    gradient = model.gradient()
    for window in windows:
        state = None if _begins_anew(window) else state
        yield (report := update(model, window, state, gradient, optimiser, seed=seed, schedule=schedule))
        state = report.state


def _begins_anew(window: Window) -> bool:
    fresh = np.asarray(window.fresh)
    if fresh.any() != fresh.all():
        raise InputError("fresh: the rows of a window begin anew together or not at all")
    return bool(fresh.all())


def update(
    model: Model,
    window: Window,
    state: State | None,
    gradient: Gradient,
    optimiser: Optimiser,
    *,
    seed: int = 0,
    schedule: Callable[[int], float] = constant,
) -> Report:
    """One step of the walk: model, loss, gradients, update."""
    step = optimiser.step
    weights = model.weights()
    gradient.clear()
    masks = model.masks(window.x.shape[1], seed=seed, step=step)
    output = model.forward(window.x, state, masks=masks, weights=weights)
    targets = int((window.y >= 0).sum())
    loss = model.loss(output, window.y, scale=1.0 / max(targets, 1), weights=weights, gradient=gradient)
    if not math.isfinite(loss.sum):
        raise Diverged(
            f"the loss is {loss.sum} at step {step + 1}: lower the learning rate or the clipping norm, "
            "or look for values in the input that are not finite"
        )
    _, starts = model.backward(output, loss.dh, gradient, weights=weights)
    if state is None:
        model.add_start(starts, gradient)
    model.finish(gradient, weights)
    norm = optimiser.update(model.parameters, gradient.flat, rate=schedule(step))
    return Report(step + 1, loss.mean, norm, loss.count, output.state)
