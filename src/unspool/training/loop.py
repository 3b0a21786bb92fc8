"""Training, as a generator of step reports: whoever runs it decides what happens between steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unspool.errors import Diverged, InputError
from unspool.gradients.backpropagate import Recompute, WindowResult, backpropagate
from unspool.gradients.truncation import FULL, CarriedState, Segment, Truncation, Window
from unspool.kernels import native
from unspool.model.gradient import Gradient
from unspool.model.network import Model
from unspool.model.values import State
from unspool.optimisers.base import Optimiser


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
    bptt: Truncation = FULL,
    recompute: Recompute = "none",
    carried: CarriedState | None = None,
    scheduled_sampling: Callable[[int], float] | None = None,
) -> Iterator[Report]:
    """Update the model once a window; the state is carried on and cut from the gradient.

    `bptt` says how far back gradients reach (truncated:K1,K2 also says how many steps an update reads), `recompute`
    whether all states are kept for the way back. `carried` is what one update leaves for the next: pass one to
    save it between two reports, or to go on from a saved one or with more windows. So at the end of the windows, steps
    left over (fewer than K1) wait in a `carried` that was passed; without one they get an update. Where tokens are fed back (figure 10.4),
    `scheduled_sampling` gives by update the share of steps that see the model's own output before, and not the target.
    """
    gradient, last = model.gradient(), carried is None
    carried = CarriedState(bptt, state) if carried is None else carried
    carried.truncation.check_chain(model.config.feeds_tokens)
    if scheduled_sampling is not None and not model.config.feeds_tokens:
        raise InputError(
            "own goes with pattern='output' and feedback='token': other models read no output before"
        )
    for segment in carried.segments(windows, last=last):
        passed, report = _update(
            model,
            segment,
            gradient,
            optimiser,
            seed,
            schedule,
            carried.truncation,
            recompute,
            scheduled_sampling,
        )
        carried.carry(segment, passed.at)
        yield report


def update(
    model: Model,
    window: Window,
    state: State | None,
    gradient: Gradient,
    optimiser: Optimiser,
    *,
    seed: int = 0,
    schedule: Callable[[int], float] = constant,
    bptt: Truncation = FULL,
    recompute: Recompute = "none",
) -> Report:
    """Make one update: model, loss, gradients, optimiser. A window that `bptt` would cut is refused."""
    if bptt.kind == "truncated" and len(window.x) > bptt.K1:
        raise InputError(
            f"bptt: {bptt} makes an update every {bptt.K1} steps, and the window has {len(window.x)} steps for "
            "one update; use train, or shorten the window"
        )
    segment = Segment(window.x, window.y, getattr(window, "lengths", None), state, len(window.x))
    return _update(model, segment, gradient, optimiser, seed, schedule, bptt, recompute, None)[1]


def _update(
    model: Model,
    segment: Segment,
    gradient: Gradient,
    optimiser: Optimiser,
    seed: int,
    schedule: Callable[[int], float],
    bptt: Truncation,
    recompute: Recompute,
    scheduled_sampling: Callable[[int], float] | None,
) -> tuple[WindowResult, Report]:
    step = optimiser.step
    weights = model.weights()
    gradient.clear()
    tau, B = segment.x.shape[:2]
    targets = int((segment.y >= 0).sum())
    passed = backpropagate(
        model,
        segment.x,
        segment.y,
        segment.state,
        gradient,
        scale=1.0 / max(targets, 1),
        lengths=segment.lengths,
        masks=model.masks(B, seed=seed, step=step),
        weights=weights,
        xi=bptt.xi(tau, B, seed=seed, step=step),
        recompute=recompute,
        carry_after=segment.carry_after,
        sampled_mask=None
        if scheduled_sampling is None
        else _own(scheduled_sampling(step), tau, B, seed, step),
    )
    loss = passed.loss
    if not math.isfinite(loss.sum):
        raise Diverged(
            f"the loss is {loss.sum} at step {step + 1}: lower the learning rate or the clipping norm, "
            "or look for values in the input that are not finite"
        )
    if segment.state is None:
        model.add_initial_state_gradient(passed.d_initial_state, gradient)
    model.fold_input_tables(gradient, weights)
    norm = optimiser.update(model.parameters, gradient.flat, rate=schedule(step))
    return passed, Report(step + 1, loss.mean, norm, loss.count, passed.state)


def _own(share: float, tau: int, B: int, seed: int, step: int) -> NDArray[np.bool_]:
    """Draw which steps see the model's own output before: by seed, update, step and row only."""
    if not 0 <= share <= 1:
        raise InputError(f"own gives {share} at update {step}; expected a share from 0 to 1")
    if share == 1:
        return np.ones((tau, B), bool)
    drawn: NDArray[np.bool_] = (
        native.dropout_mask((tau, B), seed=seed, stream=(step << 16) | 0xFFFE, rate=share) == 0
    )
    return drawn
