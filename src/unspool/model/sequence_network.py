"""A network from sequences to outputs: encoder, optional decoder and attention, head; and its gradient.

    x(1) … x(τ) ─▶ encoder ─▶ h(1) … h(τ) ─▶ pool ─▶ head            one output
                                        └──▶ head at every h(t)       an output per step
                                        └──▶ decoder ─▶ attention ─▶ head     a sequence of another length

A row's state is frozen after its last step, so the final state is the state at the row's end. Encoder and decoder are
models of `unspool.model.network`; head, loss and pooling are shared with language models.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from unspool.data.batches.examples import SequenceBatch
from unspool.errors import InputError
from unspool.kernels import native
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.backend import Backend, OnBackend
from unspool.kernels.tape import Loss
from unspool.model.attention import AttentionTape, AttentionWeights, attend, attend_backward
from unspool.model.network import Model
from unspool.model.output_layer import OutputGradient, OutputLayer
from unspool.model.parameters import Parameters
from unspool.model.pooling import POOLS
from unspool.model.sequence_config import BOS, SequenceConfig
from unspool.model.sequence_layout import Part, initialise_network
from unspool.model.values import Masks, Output, State
from unspool.options import at_least


class NetworkWeights:
    """All parameters in the layout of the kernels: made once per update, stale when the parameters change."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.encoder = network.encoder.weights()
        self.decoder = network.decoder.weights() if network.decoder else None
        self.attention = (
            AttentionWeights(Part(network.parameters, "attention."), network.backend)
            if network.config.attention != "none"
            else None
        )

    @cached_property
    def output(self) -> OutputLayer:
        """The output layer, V packed for both passes."""
        p = self._network.parameters
        return OutputLayer.of(p["V"], p["c"], self._network.backend)


class NetworkGradient:
    """The gradient of all parameters, in one flat vector."""

    def __init__(self, network: Network) -> None:
        self.values = network.parameters.like()
        self.encoder = network.encoder.gradient(Part(self.values, "encoder."))
        self.decoder = network.decoder.gradient(Part(self.values, "decoder.")) if network.decoder else None
        self.attention = Part(self.values, "attention.")

    def clear(self) -> None:
        """Set the gradient to zero, for the next update."""
        for value in (self.values["V"], self.values["c"], *self.attention.values()):
            value[:] = 0
        for part in (self.encoder, self.decoder):
            if part is not None:
                part.clear()


class NetworkMasks(NamedTuple):
    """Dropout for one batch."""

    encoder: Masks
    decoder: Masks | None


class Read(NamedTuple):
    """The output of the encoder, and the number of steps of each row."""

    output: Output
    lengths: Ids


@dataclass(frozen=True)
class Forward:
    """The forward pass of a batch: the input of the head, and all that the backward pass needs."""

    read: Read
    h: Floats  # B width, or tau B width
    written: Output | None = None
    attended: AttentionTape | None = None


class Network(OnBackend):
    """A config and parameters, and the forward and backward pass through them.

    >>> config = SequenceConfig("many-to-one", "classes", inputs=2, dense=True, outputs=3, hidden=8)
    >>> network = Network.initialise(config, seed=0)
    >>> x = np.ones((5, 4, 2), np.float32)  # tau B X
    >>> batch = SequenceBatch(x, np.array([5, 1, 3, 0], np.int32), None, None, np.arange(4))
    >>> network.outputs(batch).shape
    (4, 3)
    """

    def __init__(self, config: SequenceConfig, parameters: Parameters, backend: Backend = native) -> None:
        self.config, self.parameters, self.backend = config, parameters, backend
        self.head, self.pooling = config.output_head, POOLS[config.pool]
        self.encoder = Model(config.encoder, Part(parameters, "encoder."), backend)
        self.decoder = (
            Model(config.decoder, Part(parameters, "decoder."), backend) if config.decoder else None
        )

    @staticmethod
    def initialise(config: SequenceConfig, seed: int) -> Network:
        """Return a network with new parameters: the same for the same seed."""
        at_least("seed", seed, 0)
        return Network(config, initialise_network(config, np.random.default_rng(seed)))

    def on(self, backend: Backend) -> Network:
        """Return a network with a copy of the parameters on another backend, in its precision."""
        return Network(self.config, self.parameters.astype(backend.DTYPE), backend)

    def weights(self) -> NetworkWeights:
        """Return the current parameters in the layout of the kernels."""
        return NetworkWeights(self)

    def gradient(self) -> NetworkGradient:
        """Return a gradient of zero."""
        return NetworkGradient(self)

    @cached_property
    def _written(self) -> NetworkGradient:
        return self.gradient()

    def gradient_to_write(self) -> NetworkGradient:
        """Return a gradient of zero, the same one for every update."""
        self._written.clear()
        return self._written

    def masks(self, B: int, *, seed: int, step: int) -> NetworkMasks | None:
        """Draw the dropout masks of an update: a function of seed and step only."""
        if not (self.config.dropout or self.config.recurrent_dropout):
            return None
        decoder = self.decoder.masks(B, seed=seed, step=2 * step + 1) if self.decoder else None
        return NetworkMasks(self.encoder.masks(B, seed=seed, step=2 * step), decoder)

    def read(self, batch: SequenceBatch, weights: NetworkWeights, masks: NetworkMasks | None = None) -> Read:
        """Run the encoder."""
        lengths = None if bool((batch.lengths == len(batch.x)).all()) else batch.lengths
        mask = masks.encoder if masks else None
        made = self.encoder.forward(batch.x, lengths=lengths, masks=mask, weights=weights.encoder)
        return Read(made, batch.lengths)

    def initial_state(self, read: Read) -> State:
        """Return the decoder's initial state: the encoder's final states, summed over directions."""
        D, ends = self.encoder.config.directions, read.output.state
        parts = [ends[layer * D : (layer + 1) * D] for layer in range(self.config.layers)]
        return [(_sum([h for h, _ in part]), _sum([s for _, s in part])) for part in parts]  # type: ignore[misc]

    def forward(
        self, batch: SequenceBatch, weights: NetworkWeights, masks: NetworkMasks | None = None
    ) -> Forward:
        """Compute the input of the head; a decoder reads the targets before (teacher forcing)."""
        read = self.read(batch, weights, masks)
        if self.config.per_step:
            return Forward(read, np.ascontiguousarray(read.output.h))
        if not self.config.has_decoder:
            pooled = self.pooling.forward(read.output, read.lengths, self.backend)
            return Forward(read, np.ascontiguousarray(pooled))
        assert self.decoder and weights.decoder
        if batch.y is None or batch.target_lengths is None:
            raise InputError("a decoder needs targets to be trained on: sequences, one for each input")
        made = self.decoder.forward(
            self.shift_right(batch.y),
            self.initial_state(read),
            lengths=batch.target_lengths,
            masks=masks.decoder if masks else None,
            weights=weights.decoder,
        )
        if weights.attention is None:
            return Forward(read, np.ascontiguousarray(made.h), made)
        h, tape = attend(weights.attention, read.output.h, made.h, batch.lengths, batch.target_lengths)
        return Forward(read, h, made, tape)

    def shift_right(self, y: Floats | Ids) -> Floats | Ids:
        """Return the decoder's input: the targets one step later, after <bos> or zeros."""
        if self.config.tokens_out:
            return np.concatenate([np.full((1, y.shape[1]), BOS, np.int32), np.maximum(y[:-1], 0)])
        first = np.zeros((1, *y.shape[1:]), self.backend.DTYPE)
        return np.concatenate([first, np.nan_to_num(y[:-1], nan=0.0)]).astype(self.backend.DTYPE)

    def loss(
        self,
        batch: SequenceBatch,
        *,
        weights: NetworkWeights | None = None,
        masks: NetworkMasks | None = None,
        gradient: NetworkGradient | None = None,
    ) -> Loss:
        """Return the loss of a batch; with `gradient`, write the gradient of the mean loss into it."""
        weights = weights or self.weights()
        made = self.forward(batch, weights, masks)
        assert batch.y is not None
        self.head.check_targets(made.h, batch.y)
        if gradient is None:
            return self.head.loss(weights.output, made.h, batch.y)
        scale = 1.0 / max(1, int(self.head.loss.is_scored(batch.y).sum()))
        into = OutputGradient(gradient.values["V"], gradient.values["c"], scale)
        loss = self.head.loss(weights.output, made.h, batch.y, into)
        if math.isfinite(loss.sum):
            assert loss.dh is not None
            self.backward(made, loss.dh, weights, gradient)
        return loss

    def backward(
        self, made: Forward, dh: Floats, weights: NetworkWeights, gradient: NetworkGradient
    ) -> Floats | None:
        """Add the gradients of all parameters but V and c from that of the head's input; return that of dense x."""
        read, config = made.read, self.config
        d_final_state: Any = None
        below: Floats | None = None
        if config.per_step:
            below = dh
        elif config.has_decoder:
            below, d_final_state = self._through_decoder(made, dh, weights, gradient)
        else:
            below, d_ends = self.pooling.backward(read.output, read.lengths, dh)
            lower = [(None, None)] * (self.encoder.config.directions * (config.layers - 1))
            d_final_state = d_ends and [*lower, *((d_end, None) for d_end in d_ends)]
        dx, _ = self.encoder.backward(
            read.output,
            below,
            gradient.encoder,
            d_final_state=d_final_state,
            weights=weights.encoder,
            want_dx=config.dense,
        )
        self.encoder.fold_input_tables(gradient.encoder, weights.encoder)
        return dx

    def _through_decoder(
        self, made: Forward, dh: Floats, weights: NetworkWeights, gradient: NetworkGradient
    ) -> tuple[Floats | None, Any]:
        assert self.decoder and made.written and gradient.decoder and weights.decoder
        de: Floats | None = None
        if made.attended is not None:
            assert weights.attention
            de, dh = attend_backward(weights.attention, made.attended, dh, gradient.attention)
        _, starts = self.decoder.backward(made.written, dh, gradient.decoder, weights=weights.decoder)
        self.decoder.fold_input_tables(gradient.decoder, weights.decoder)
        return de, [part for part in starts for _ in range(self.encoder.config.directions)]

    def outputs(self, batch: SequenceBatch, weights: NetworkWeights | None = None) -> Floats:
        """Return o (B, K) or (tau, B, K) of a network without a decoder."""
        weights = weights or self.weights()
        return weights.output(self.forward(batch, weights).h)


def _sum(parts: list[Floats | None]) -> Floats | None:
    total = parts[0]
    for part in parts[1:]:
        total = None if total is None or part is None else total + part
    return total
