"""Fitting, as a generator of reports: whoever runs it draws, prints or writes them down.

    examples ─▶ batches ─▶ network ─▶ loss ─▶ gradients ─▶ update ─▶ report, now and then with a validation

The number of updates is fixed before the first one, from the epochs or from a short measurement against the
minutes; given that number, a fit can be repeated to the bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from unspool.data.batches.examples import Examples, Rows, SequenceBatch
from unspool.errors import Diverged, InputError
from unspool.kernels.memory import require_memory
from unspool.kernels.tape import Loss
from unspool.model.attention import MIXED, SCORES
from unspool.model.memory import bytes_of_training
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.optimisers.base import Optimiser, OptimiserConfig
from unspool.optimisers.schedule import Cosine
from unspool.training.fit_state import FitState
from unspool.training.recipe import FitConfig
from unspool.training.timing import measure_update_rate


class Update(NamedTuple):
    """One update, seen from outside."""

    loss: float
    """The mean of the batch, before the update."""
    norm: float
    """The gradient's global norm, before clipping."""


@dataclass(frozen=True)
class FitReport:
    """Where a fit stands."""

    step: int
    steps: int
    """How many updates there will be, unless it stops early."""
    loss: float
    """The mean over about the last epoch's updates."""
    seconds: float
    """Spent on updates so far."""
    valid: float | None = None
    """The mean loss of the rows set aside, where they have just been scored."""
    best: bool = False
    """Whether that was the best so far."""


def update(network: Network, batch: SequenceBatch, optimiser: Optimiser, *, seed: int, rate: float) -> Update:
    """One step of the walk: network, loss, gradient, update."""
    step = optimiser.step
    gradient = network.gradient_to_write()
    masks = network.masks(batch.B, seed=seed, step=step)
    loss = network.loss(batch, weights=network.weights(), masks=masks, gradient=gradient)
    if not math.isfinite(loss.sum):
        raise Diverged(
            f"the loss is {loss.sum} at step {step + 1}: lower the learning rate, "
            "or look for values in the input that are not finite"
        )
    return Update(loss.mean, optimiser.update(network.parameters, gradient.values.flat, rate=rate))


def split_validation(n: int, share: float, seed: int) -> tuple[Rows, Rows]:
    """Split n rows into those to train on and those to choose by, at random by the seed.

    >>> train, valid = split_validation(10, 0.2, seed=0)
    >>> len(train), len(valid), sorted([*train, *valid]) == list(range(10))
    (8, 2, True)
    """
    order = np.random.default_rng([seed, 1]).permutation(n)
    kept = round(n * share)
    if share and not 0 < kept < n:
        raise InputError(
            f"validation: {share} of {n} sequences leaves one part empty; give more sequences, or validation=0"
        )
    return np.sort(order[kept:]), np.sort(order[:kept])


def cycle_batches(
    examples: Examples, config: FitConfig, *, aligned: bool, done: int = 0
) -> Iterator[SequenceBatch]:
    """Go through the examples again and again, each time in another order; without the batches that are done."""
    begin, skipped = divmod(done, -(-len(examples) // config.batch_size))
    for epoch in count(begin):
        rng = np.random.default_rng([config.seed, 2, epoch])
        yield from islice(examples.batches(config.batch_size, rng, aligned=aligned), skipped, None)
        skipped = 0


def plan(network: Network, examples: Examples, config: FitConfig) -> FitConfig:
    """Fix the number of updates: those of the epochs, or fewer where the minutes do not suffice."""
    refuse_what_does_not_fit(network, examples, config.batch_size)
    split_validation(
        len(examples), config.validation, config.seed
    )  # too few are refused before anything is written
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
    read, written = [len(each) for each in examples.x], examples.written()
    tau, tau_written = max(read), max(written, default=0)
    at, steps = (read.index(tau), tau) if tau >= tau_written else (written.index(tau_written), tau_written)
    require_memory(
        bytes_of_network(network.config, rows, tau, tau_written),
        f"sequence {at + 1} has {steps:,} steps, and a batch of {rows:,} such rows",
        "cut it, or choose a smaller batch",
    )


def bytes_of_network(config: SequenceConfig, B: int, tau: int, written: int) -> int:
    """Return about how much memory it takes to train on B rows of `tau` steps, with answers of `written` steps.

    Attention takes keys and queries, joined states and their gradients, and one block of weights: see `attention`.
    """
    needed = bytes_of_training(config.encoder, B, tau)
    if config.decoder is not None:
        needed += bytes_of_training(config.decoder, B, written)
    if config.attention != "none":
        needed += 4 * B * (8 * tau * config.encoder.width + 12 * written * config.hidden)
        mixed = config.hidden if config.attention == "additive" else 1
        needed += 64 * max(SCORES, B * tau) + (24 * max(MIXED, B * tau * mixed) if mixed > 1 else 0)
    return needed


def per_epoch(n: int, config: FitConfig) -> int:
    """Return how many updates go once through the rows that are trained on."""
    kept = n - round(n * config.validation)
    return -(-kept // config.batch_size)


def timed_updates(network: Network, examples: Examples, config: FitConfig) -> Iterator[Update]:
    """Train a copy, to see how long updates take."""
    copy = Network.initialise(network.config, seed=0)
    optimiser = Optimiser(OptimiserConfig())
    for batch in cycle_batches(examples, config, aligned=network.config.aligned):
        yield update(copy, batch, optimiser, seed=0, rate=1.0)


def fit(
    network: Network, examples: Examples, config: FitConfig, state: FitState | None = None
) -> Generator[FitReport]:
    """Fit the network in place, from a state on; with rows set aside, the parameters that did best on them are kept.

    After every report the state is whole: written down, it can be gone on from.
    """
    train, valid = split_validation(len(examples), config.validation, config.seed)
    chosen = examples.part(valid) if len(valid) else None
    config = plan(network, examples, config)
    assert config.steps is not None
    epoch = per_epoch(len(examples), config)
    state = state or FitState.initial(network, config)
    schedule = Cosine(config.steps, warmup=max(1, round(config.warmup_fraction * config.steps)))
    every = max(epoch, -(-config.steps // config.validations))
    batches = cycle_batches(examples.part(train), config, aligned=network.config.aligned, done=state.step)
    if state.ended(config):
        yield FitReport(state.step, config.steps, state.loss, state.seconds)
    while not state.ended(config):
        begin, rate = time.perf_counter(), schedule(state.step)
        made = update(network, next(batches), state.optimiser, seed=config.seed, rate=rate)
        state.seconds += time.perf_counter() - begin
        state.loss += (made.loss - state.loss) / min(state.step, epoch)
        now = FitReport(state.step, config.steps, state.loss, state.seconds)
        if chosen is None or (state.step % every and state.step < config.steps):
            yield now
            continue
        score = evaluate(network, chosen).mean
        if not math.isfinite(score):
            raise Diverged(f"the validation loss is {score} after step {state.step}: lower the learning rate")
        yield replace(now, valid=score, best=state.meet(score))
    if state.flat is not None:
        network.parameters.flat[:] = state.flat
    state.refuse_infinite()


def evaluate(network: Network, examples: Examples, B: int = 256) -> Loss:
    """Score examples by the network as it is: sums and counts, divided once by who asks."""
    weights = network.weights()
    rows = examples.rows_at_once(B)
    losses = [
        network.loss(batch, weights=weights)
        for batch in examples.batches(rows, aligned=network.config.aligned)
    ]
    total = math.fsum(each.sum for each in losses)
    return Loss(total, sum(each.count for each in losses), np.zeros(0), None)
