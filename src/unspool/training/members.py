"""Fit several networks on few rows: network k learns from all rows but those of fold k, and their mean answers.

    fold(i): the rows of each class in random order, dealt out to K folds one after the other                      (1)

So every row is judged by a network that did not learn from it, and no row is lost to validation. The networks are trained one after the other
from one state, so a fit that was interrupted continues to the same bits.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np

from unspool.data.batches.examples import Examples
from unspool.kernels.arrays import Floats, Whole
from unspool.model.sequence_network import Network
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.events import StepDone
from unspool.training.fit import ending
from unspool.training.recipe import FitConfig
from unspool.training.sequence_fit import fit_network, initial_state
from unspool.training.state import TrainingState
from unspool.training.store import RunWriter


def fold_of(n: int, K: int, seed: int, y: Any = None) -> Whole:
    """Return the fold of each of n rows; with class ids y, every class is spread evenly: (1).

    >>> fold_of(6, 2, 0, np.array([0, 0, 1, 1, 1, 1])).tolist()
    [1, 0, 0, 1, 0, 1]
    """
    order = np.random.default_rng([seed, 1]).permutation(n)
    if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "iu":
        order = order[np.argsort(y[order], kind="stable")]
    found = np.zeros(n, np.int64)
    found[order] = np.arange(n) % K
    return found


def folds_of(examples: Examples, config: FitConfig) -> Whole:
    """Return the fold of each row of a fit."""
    return fold_of(len(examples), config.members, config.seed, examples.y)


def fit_members(
    network: Network,
    examples: Examples,
    config: FitConfig,
    fitted: list[Floats],
    state: TrainingState[Network] | None = None,
    writer: RunWriter | None = None,
    policy: CheckpointPolicy | None = None,
) -> Generator[StepDone]:
    """Fit all networks in turn, from a state on; put their parameters into `fitted`, those of the first into `network`.

    Events count the updates of all networks. With one member, this is `fit_network`, and `fitted` stays empty.
    """
    if config.members == 1:
        yield from fit_network(network, examples, config, state, writer, policy)
        return
    assert config.steps is not None
    folds, state = folds_of(examples, config), state or initial_state(network, config)
    for k in range(len(state.finished), config.members):
        begin, end = (config.steps * each // config.members for each in (k, k + 1))
        if k and not state.step:
            network.parameters.flat[:] = Network.initialise(network.config, config.seed + k).parameters.flat
        own = replace(
            config, steps=max(1, end - begin), seed=config.seed + k, members=1, validation=0.0, patience=0
        )
        rows = np.flatnonzero(folds != k)
        events = fit_network(network, examples, own, state, writer, policy, rows=rows)
        with ending(events):
            for event in events:
                counted = event.report._replace(step=begin + event.report.step)
                yield replace(event, report=counted, steps=config.steps)
        state = _next(state, network, config, k)
    fitted[:] = [state.finished[str(k)] for k in range(config.members)]
    network.parameters.flat[:] = fitted[0]


def _next(
    before: TrainingState[Network], network: Network, config: FitConfig, k: int
) -> TrainingState[Network]:
    """Return the state of the network after k."""
    state = initial_state(network, config)
    state.seconds, state.saved = before.seconds, before.saved
    state.before = before.before + before.step
    state.finished = before.finished | {str(k): network.parameters.flat.copy()}
    return state
