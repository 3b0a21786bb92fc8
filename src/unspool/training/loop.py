"""The training loop: one objective, one optimiser, one report per update.

    batch ─▶ objective (model, loss, gradient) ─▶ optimiser ─▶ report

`updates` is a generator: the caller decides what happens between two updates. `train` is the same for a model of text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from unspool.errors import Diverged
from unspool.gradients.bptt import Recompute
from unspool.gradients.truncation import FULL, CarriedState, Truncation, Window
from unspool.model.network import Model
from unspool.model.values import State
from unspool.optimisers.base import Optimiser
from unspool.training.follow import lead
from unspool.training.objectives import BatchT, Objective, TextObjective


class Report(NamedTuple):
    """One update."""

    step: int
    """The number of updates so far."""
    loss: float
    """The mean over the targets, before the update; of a model of text in nats."""
    norm: float
    """The gradient's global norm, before clipping."""
    targets: int
    state: State | None
    """The model's state after the batch, where the objective carries one."""


def constant(step: int) -> float:
    """Return 1: the learning rate as it was set."""
    return 1.0


def updates(
    objective: Objective[BatchT],
    batches: Iterable[BatchT],
    optimiser: Optimiser,
    *,
    schedule: Callable[[int], float] = constant,
) -> Iterator[Report]:
    """Update the parameters of an objective once per batch."""
    lead(objective, optimiser, schedule)
    for batch in batches:
        step = optimiser.step
        loss, gradient, state = objective(batch, step)
        if not math.isfinite(loss.sum):
            raise Diverged(
                f"the loss is {loss.sum} at step {step + 1}: lower the learning rate or the clipping norm, "
                "or look for values in the input that are not finite"
            )
        norm = optimiser.update(objective.parameters, gradient, rate=schedule(step))
        yield Report(step + 1, loss.mean, norm, loss.count, state)


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
    restart: float = 0.0,
    shards: int = 1,
) -> Iterator[Report]:
    """Update a model once per window; the state is carried to the next window, without its gradient.

    A window holds x (τ, B), or (τ, B, X) for vectors, and its targets. `bptt` sets how far back gradients reach; with truncated:K1,K2, an update reads K1 steps. `recompute` sets which states are
    stored for the backward pass. `carried` holds what one update leaves for the next: pass one to save it between two
    reports, to continue from a saved one or with more windows. At the end of the windows, fewer than K1 steps that are left
    over stay in a `carried` that was passed; without one they get an update. Where tokens are fed back (figure 10.4),
    `scheduled_sampling` returns, by update, the share of steps that read the model's own output instead of the target.
    At every update, the state of each row is reset to h(0) with probability `restart`, before the first step that it scores.
    The gradients of so many `shards` of the rows are added in a fixed tree.
    """
    last, carried = carried is None, CarriedState(bptt, state) if carried is None else carried
    objective = TextObjective(model, carried, seed, recompute, scheduled_sampling, restart, shards)
    yield from updates(objective, carried.segments(windows, last=last), optimiser, schedule=schedule)
