"""Fit a network of sequences: plan the number of updates, train, validate on rows that are set aside.

    examples ─▶ batches ─▶ network ─▶ loss ─▶ gradients ─▶ update ─▶ event, now and then with a validation

The number of updates is fixed before the first one, from the epochs or from a short measurement against the
minutes; given that number, a fit can be repeated to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from unspool.cluster.cost import measure_cost
from unspool.cluster.group import current
from unspool.data.batches.examples import Examples, cycle_batches
from unspool.data.split import split_validation
from unspool.kernels.backend import PRECISIONS
from unspool.kernels.memory import require_memory
from unspool.kernels.tape import Loss
from unspool.model.attention import MIXED, SCORES
from unspool.model.memory import bytes_of_training
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.optimisers import make_optimiser
from unspool.optimisers.adam import Adam
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.deadline import StepBudget
from unspool.training.events import StepDone
from unspool.training.fit import fit, has_ended
from unspool.training.loop import Report, updates
from unspool.training.objectives import SequenceObjective
from unspool.training.recipe import FitConfig
from unspool.training.state import TrainingState
from unspool.training.store import RunWriter
from unspool.training.timing import measure_update_rate


def initial_state(network: Network, config: FitConfig) -> TrainingState[Network]:
    """Return the state before the first update."""
    optimiser = make_optimiser(
        config.optimiser, learning_rate=config.learning_rate, clip=config.clip, decay=config.decay
    )
    return TrainingState(network, optimiser)


def fit_network(
    network: Network,
    examples: Examples,
    config: FitConfig,
    state: TrainingState[Network] | None = None,
    writer: RunWriter | None = None,
    policy: CheckpointPolicy | None = None,
) -> Generator[StepDone]:
    """Fit the network in place, from a state on; with rows set aside, it ends with the parameters that were best on them."""
    train, valid = split_validation(len(examples), config.validation, config.seed)
    config = plan(network, examples, config)
    assert config.steps is not None
    steps, epoch, state = (
        config.steps,
        per_epoch(len(examples), config),
        state or initial_state(network, config),
    )
    every = max(epoch, -(-steps // config.validations))
    budget = StepBudget(
        steps,
        warmup=round(config.warmup_fraction * steps),
        schedule=config.schedule,
        validations=lambda steps: {*range(every, steps, every), steps},
    )
    batches = cycle_batches(
        examples.part(train),
        config.batch_size,
        config.seed,
        per_step=network.config.per_step,
        done=state.step,
    )
    reports = updates(
        SequenceObjective(network, config.seed, config.shards),
        batches,
        state.optimiser,
        schedule=budget.schedule,
    )
    if has_ended(state, steps, config.patience):  # resumed after its last update
        yield StepDone(Report(state.step, state.train, 0.0, 0, None), state.seconds, state.train, steps=steps)
    yield from fit(  # type: ignore[misc]  # without a deadline and a stop there are only updates
        state,
        reports,
        budget,
        validate=partial(mean_loss, network, examples.part(valid)) if len(valid) else None,
        smooth=epoch,
        patience=config.patience,
        writer=writer,
        policy=policy,
    )


def plan(network: Network, examples: Examples, config: FitConfig) -> FitConfig:
    """Return the config with its number of updates: those of the epochs, or fewer where the minutes do not suffice."""
    refuse_what_does_not_fit(network, examples, config.batch_size)
    split_validation(
        len(examples), config.validation, config.seed
    )  # refuse too few rows before anything is written
    if config.steps is not None:
        return config
    steps = config.epochs * per_epoch(len(examples), config)
    if config.minutes is not None:
        seconds = 60 * config.minutes
        rate = measure_update_rate(timed_updates(network, examples, config), seconds=min(1.5, seconds / 20))
        steps = max(1, min(steps, int(seconds * rate)))
    return replace(config, steps=steps)


def refuse_what_does_not_fit(network: Network, examples: Examples, B: int) -> None:
    """Raise where a batch of rows as long as the longest sequence would need more memory than is free."""
    rows = min(B, len(examples))
    lengths, target_lengths = [len(each) for each in examples.x], examples.target_lengths()
    tau, tau_target = max(lengths), max(target_lengths, default=0)
    at, steps = (
        (lengths.index(tau), tau) if tau >= tau_target else (target_lengths.index(tau_target), tau_target)
    )
    require_memory(
        bytes_of_network(network.config, rows, tau, tau_target),
        f"sequence {at + 1} has {steps:,} steps, and a batch of {rows:,} such rows",
        "cut it, or choose a smaller batch",
    )


def bytes_of_network(config: SequenceConfig, B: int, tau: int, tau_target: int) -> int:
    """Estimate the memory in bytes to train on B rows of `tau` steps, with outputs of `tau_target` steps.

    Attention takes keys and queries, joined states and their gradients, and one block of weights: see `attention`.
    """
    needed = bytes_of_training(config.encoder, B, tau)
    if config.decoder is not None:
        needed += bytes_of_training(config.decoder, B, tau_target)
    if config.attention != "none":
        needed += 4 * B * (8 * tau * config.encoder.width + 12 * tau_target * config.hidden)
        mixed = config.hidden if config.attention == "additive" else 1
        needed += 64 * max(SCORES, PRECISIONS[config.precision].BLOCK * B * tau) + (
            24 * max(MIXED, B * tau * mixed) if mixed > 1 else 0
        )
    return needed


def per_epoch(n: int, config: FitConfig) -> int:
    """Return the number of updates per epoch."""
    kept = n - round(n * config.validation)
    return -(-kept // config.batch_size)


def timed_updates(network: Network, examples: Examples, config: FitConfig) -> Iterator[Report]:
    """Train a copy of the network, to measure how long updates take."""
    copy = Network.initialise(network.config, seed=0)
    batches = cycle_batches(examples, config.batch_size, config.seed, per_step=network.config.per_step)
    return updates(SequenceObjective(copy, shards=config.shards), batches, Adam())


def note_cost(network: Network, examples: Examples, config: FitConfig) -> None:
    """Measure what an update costs, where several processes train."""
    if (group := current()).size > 1:
        S, B, N = config.shards, config.batch_size, network.parameters.count
        group.cost = measure_cost(timed_updates(network, examples, config), group, S=S, B=B, N=N)


def evaluate(network: Network, examples: Examples, B: int = 256) -> Loss:
    """Return the loss of examples, as sum and count."""
    weights = network.weights()
    rows = examples.rows_at_once(B)
    losses = [
        network.loss(batch, weights=weights)
        for batch in examples.batches(rows, per_step=network.config.per_step)
    ]
    total = math.fsum(each.sum for each in losses)
    return Loss(total, sum(each.count for each in losses), np.zeros(0), None)


def mean_loss(network: Network, examples: Examples) -> float:
    """Return the mean loss of examples."""
    return evaluate(network, examples).mean
