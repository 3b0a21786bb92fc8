"""Objectives: the loss and the gradient of one update, for windows of text and for batches of sequences."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from unspool.data.batches.examples import SequenceBatch
from unspool.errors import InputError
from unspool.gradients.bptt import Recompute, WindowResult, backpropagate
from unspool.gradients.truncation import CarriedState, Segment
from unspool.kernels import native
from unspool.kernels.arrays import Floats, Mask
from unspool.kernels.tape import Loss
from unspool.model.network import Model
from unspool.model.packed import Weights
from unspool.model.parameters import Parameters
from unspool.model.sequence_network import Network
from unspool.model.values import Masks, State, join_rows
from unspool.training.hand_out import batch_message, hand_out, segment_message
from unspool.training.shards import Shards

BatchT = TypeVar("BatchT", contravariant=True)


class LossAndGradient(NamedTuple):
    """What an objective computes for one update."""

    loss: Loss
    gradient: Floats
    """The gradient of the mean loss, as long as the parameters; only complete where the loss is finite."""
    state: State | None = None


class Objective(Protocol[BatchT]):
    """A function of parameters that training makes smaller."""

    @property
    def parameters(self) -> Parameters:
        """The parameters that are trained."""

    def __call__(self, batch: BatchT, step: int, /) -> LossAndGradient:
        """Compute the loss of a batch and its gradient; random numbers depend on the seed and the update alone."""


class Drawn(NamedTuple):
    """The random numbers of an update, of some rows."""

    masks: Masks
    xi: Floats | None
    sampled: Mask | None


class TextObjective:
    """The cross-entropy of windows of text; the state is carried from one window to the next."""

    def __init__(
        self,
        model: Model,
        carried: CarriedState,
        seed: int = 0,
        recompute: Recompute = "none",
        scheduled_sampling: Callable[[int], float] | None = None,
        restart: float = 0.0,
        shards: Shards | int = 1,
    ) -> None:
        carried.truncation.check_chain(model.config.feeds_tokens)
        if scheduled_sampling is not None and not model.config.feeds_tokens:
            raise InputError(
                "own requires pattern='output' and feedback='token': other models read no output before"
            )
        self.model, self.carried, self.seed, self.recompute = model, carried, seed, recompute
        self.scheduled_sampling, self.gradient = scheduled_sampling, model.gradient()
        self.restart = restart
        self.shards = Shards(shards) if isinstance(shards, int) else shards

    @property
    def parameters(self) -> Parameters:
        """The model's parameters."""
        return self.model.parameters

    def __call__(self, segment: Segment, step: int) -> LossAndGradient:
        """Compute the loss of a segment and its gradient, shard by shard, and carry the state on."""
        tau, B = segment.x.shape[:2]
        if self.restart:
            segment = segment.with_resets(restarted_rows(B, self.restart, seed=self.seed, step=step))
        targets, sampled = int((segment.y >= 0).sum()), self._sampled_mask(tau, B, step)
        with self.shards.group.conversation():
            hand_out(self.shards, step, B, targets, partial(segment_message, segment, sampled))
            own = self.shards.rows_of_rank(B)
            sampled = None if sampled is None else np.ascontiguousarray(sampled[:, own])
            return self.compute(segment, segment.share(own), sampled, step=step, B=B, targets=targets)

    def compute(
        self, whole: Segment, own: Segment, sampled: Mask | None, *, step: int, B: int, targets: int
    ) -> LossAndGradient:
        """Compute loss and gradient of a batch of B rows from the rows of this process, and carry their state on."""
        masks = self.model.masks(B, seed=self.seed, step=step)
        xi = self.carried.truncation.xi(len(own.x), B, seed=self.seed, step=step)
        weights, scale = self.model.weights(), 1.0 / max(targets, 1)
        results: list[WindowResult] = []

        def gradient(shard: int) -> tuple[Loss, Floats]:
            rows, here = self.shards.rows(shard, B), self.shards.own_rows(shard, B)
            if rows.start == rows.stop:  # a batch of fewer rows than shards
                self.gradient.clear()
                self.gradient.flat[:] = 0
                return Loss(0.0, 0, np.zeros(0), None), self.gradient.flat
            drawn = Drawn(
                masks.rows(rows),
                None if xi is None else np.ascontiguousarray(xi[:, rows]),
                None if sampled is None else np.ascontiguousarray(sampled[:, here]),
            )
            results.append(self._backpropagate(own.rows(here), drawn, weights, scale))
            return results[-1].loss, self.gradient.flat

        loss, summed = self.shards.sum(gradient)
        nothing = self.model.initial_state(0)
        if math.isfinite(loss.sum):
            self.carried.carry(whole, join_rows([each.at for each in results] or [nothing]))
        return LossAndGradient(loss, summed, join_rows([each.state for each in results] or [nothing]))

    def _backpropagate(self, segment: Segment, drawn: Drawn, weights: Weights, scale: float) -> WindowResult:
        """Compute the loss and the gradient of some rows."""
        model, gradient = self.model, self.gradient
        gradient.clear()
        result = backpropagate(
            model,
            segment.x,
            segment.y,
            segment.state,
            gradient,
            scale=scale,
            lengths=segment.lengths,
            masks=drawn.masks,
            weights=weights,
            xi=drawn.xi,
            recompute=self.recompute,
            carry_after=segment.carry_after,
            sampled_mask=drawn.sampled,
            fresh=segment.fresh,
        )
        if math.isfinite(result.loss.sum):
            if segment.state is None:
                model.add_initial_state_gradient(result.d_initial_state, gradient)
            model.fold_input_tables(gradient, weights)
        return result

    def _sampled_mask(self, tau: int, B: int, step: int) -> NDArray[np.bool_] | None:
        """Draw which steps read the model's own output: a function of seed, update, step and row."""
        if self.scheduled_sampling is None:
            return None
        share = self.scheduled_sampling(step)
        if not 0 <= share <= 1:
            raise InputError(f"own gives {share} at update {step}; expected a share from 0 to 1")
        if share == 1:
            return np.ones((tau, B), bool)
        drawn = native.dropout_mask((tau, B), seed=self.seed, stream=(step << 16) | 0xFFFE, rate=share)
        return np.asarray(drawn == 0)


def restarted_rows(B: int, rate: float, *, seed: int, step: int) -> Mask:
    """Draw the rows whose state is reset at an update: a function of seed, update and row, whatever B is.

    >>> np.flatnonzero(restarted_rows(100, 0.05, seed=1, step=7)).tolist()
    [9, 13, 62, 63, 70, 81, 89]
    """
    # dropout takes the streams of an update from the first on, truncation and scheduled sampling the last two
    drawn = native.dropout_mask((B,), seed=seed, stream=(step << 16) | 0xFFFD, rate=rate)
    return np.asarray(drawn == 0)


class SequenceObjective:
    """The loss of batches of sequences with their targets."""

    def __init__(self, network: Network, seed: int = 0, shards: Shards | int = 1) -> None:
        self.network, self.seed, self.gradient = network, seed, network.gradient()
        self.shards = Shards(shards) if isinstance(shards, int) else shards

    @property
    def parameters(self) -> Parameters:
        """The network's parameters."""
        return self.network.parameters

    def __call__(self, batch: SequenceBatch, step: int) -> LossAndGradient:
        """Compute the loss of a batch and its gradient, shard by shard."""
        batch = self.network.without_words(batch, seed=self.seed, step=step)
        B, targets = batch.B, self.network.targets(batch)
        with self.shards.group.conversation():
            hand_out(self.shards, step, B, targets, partial(batch_message, batch))
            own = batch if self.shards.group.size == 1 else batch.part(self.shards.rows_of_rank(B))
            return self.compute(own, step=step, B=B, targets=targets)

    def compute(self, own: SequenceBatch, *, step: int, B: int, targets: int) -> LossAndGradient:
        """Compute loss and gradient of a batch of B rows from the rows of this process."""
        network = self.network
        masks, weights = network.masks(B, seed=self.seed, step=step), network.weights()

        def gradient(shard: int) -> tuple[Loss, Floats]:
            self.gradient.clear()
            rows = self.shards.rows(shard, B)
            if rows.start == rows.stop:
                return Loss(0.0, 0, np.zeros(0), None), self.gradient.values.flat
            part = own if self.shards.count == 1 else own.part(self.shards.own_rows(shard, B))
            loss = network.loss(
                part, weights=weights, masks=masks.rows(rows), gradient=self.gradient, targets=targets
            )
            return loss, self.gradient.values.flat

        return LossAndGradient(*self.shards.sum(gradient))
