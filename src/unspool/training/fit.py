"""The outer loop of training: updates, validation, checkpoints, an early stop and a deadline, for every task.

updates (`training.loop`) ─▶ validate ─▶ keep the best ─▶ event ─▶ save ─▶ next update
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from unspool.errors import Diverged
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.deadline import StepBudget
from unspool.training.events import Replanned, StepDone
from unspool.training.loop import Report
from unspool.training.state import TrainingState
from unspool.training.store import RunWriter, Stopwatch


def has_ended(state: TrainingState[Any], steps: int, patience: int) -> bool:
    """Return whether all updates have been made, or the last validations have all been worse than the best."""
    return state.step >= steps or bool(patience and state.validations_since_best >= patience)


def fit(
    state: TrainingState[Any],
    reports: Iterator[Report],
    budget: StepBudget,
    *,
    validate: Callable[[], float] | None = None,
    smooth: int = 50,
    patience: int = 0,
    writer: RunWriter | None = None,
    policy: CheckpointPolicy | None = None,
) -> Generator[StepDone | Replanned]:
    """Train to the last update; in the end the model has the parameters with the lowest validation loss.

    `smooth` is the number of updates that the running mean of the training loss goes over. The state is complete after
    every event, and closing the generator saves it.
    """
    writer, policy = writer or RunWriter(), policy or CheckpointPolicy()
    clock = Stopwatch(state.seconds)
    with _naming_the_best(state, writer, validate is not None), _saving_when_closed(state, writer):
        while not has_ended(state, budget.steps, patience):
            report = next(reports)
            state.train += (report.loss - state.train) / min(report.step, smooth)
            valid, best = None, False
            if validate is not None and report.step in budget.validation_steps:
                valid = budget.timed(validate)
                best = _update_best(state, valid, writer)
            state.seconds = clock()
            yield StepDone(report, state.seconds, state.train, valid, steps=budget.steps, best=best)
            if budget.should_replan(state.seconds) and budget.replan(state.step, state.seconds):
                yield Replanned(budget.steps, budget.plans)
            due = policy.due(state.before + state.step, state.saved)
            if due or (policy.at_end and has_ended(state, budget.steps, patience)):
                save_checkpoint(state, writer)
    state.restore_best()
    state.refuse_infinite()


def _update_best(state: TrainingState[Any], valid: float, writer: RunWriter) -> bool:
    if not math.isfinite(valid):
        raise Diverged(
            f"the validation loss is {valid} after step {state.step}: lower the learning rate or the clipping norm"
        )
    best = state.update_best(valid)
    if best:
        writer.save_model(state.model, state.step, valid)
    return best


def save_checkpoint(state: TrainingState[Any], writer: RunWriter) -> None:
    """Save the training state; before the first validation, the model of the run is the one of now."""
    state.refuse_infinite()
    writer.save_state(state)
    if not math.isfinite(state.best):
        writer.save_model(state.model, state.step)
    state.saved = time.monotonic()


@contextmanager
def _saving_when_closed(state: TrainingState[Any], writer: RunWriter) -> Iterator[None]:
    """Save the state where the caller closes the generator."""
    try:
        yield
    except GeneratorExit:
        if writer.out is not None:
            save_checkpoint(state, writer)
        raise


@contextmanager
def ending(events: Generator[Any]) -> Iterator[None]:
    """End a generator as the block that reads it ends: closed, which saves the state, or with an error, which does not."""
    try:
        yield
    except BaseException as error:
        events.throw(error)
        raise


@contextmanager
def _naming_the_best(state: TrainingState[Any], writer: RunWriter, validated: bool) -> Iterator[None]:
    """Say in an error of divergence where the best model is."""
    try:
        yield
    except Diverged as error:
        if writer.out is None or not validated:
            raise
        best = f"the best model so far (step {state.best_step}) is in {writer.out}"
        raise Diverged(f"{error}; {best}") from error
