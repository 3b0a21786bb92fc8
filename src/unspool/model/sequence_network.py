"""A network from sequences to outputs: encoder, optional decoder and attention, head; and its gradient.

    x(1) … x(τ) ─▶ encoder ─▶ h(1) … h(τ) ─▶ pool ─▶ head            one output
                                        └──▶ head at every h(t)       an output per step
                                        └──▶ decoder ─▶ attention ─▶ head     a sequence of another length

A row's state is frozen after its last step, so the final state is the state at the row's end. Encoder and decoder are
models of `unspool.model.network`; head, loss and pooling are shared with language models.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from unspool.data.batches.examples import SequenceBatch
from unspool.errors import InputError
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.backend import PRECISIONS, Backend, OnBackend
from unspool.kernels.tape import Loss
from unspool.model.attention import AttentionTape, AttentionWeights, attend, attend_backward
from unspool.model.feedback import shift_right
from unspool.model.gradient import Gradient
from unspool.model.linear import Linear, OutputGradient
from unspool.model.losses.chain import chain_loss
from unspool.model.losses.weighted import weighted_loss
from unspool.model.network import Model
from unspool.model.packed import Weights
from unspool.model.parameters import Parameters
from unspool.model.pooling import POOLS
from unspool.model.sequence_config import BOS, NAMES, UNK, SequenceConfig
from unspool.model.sequence_layout import ParameterPart, initialise_network
from unspool.model.values import Masks, Output, State
from unspool.options import at_least


class NetworkWeights(NamedTuple):
    """All parameters in the layout of the kernels: made once per update, stale when the parameters change."""

    encoder: Weights
    decoder: Weights | None
    attention: AttentionWeights | None
    output: Linear


class NetworkGradient(NamedTuple):
    """The gradient of all parameters, in one flat vector, and its parts."""

    values: Parameters
    encoder: Gradient
    decoder: Gradient | None
    attention: Parameters

    def clear(self) -> None:
        """Set the gradient to zero, for the next update."""
        self.values.flat[:] = 0
        self.encoder.clear()
        if self.decoder:
            self.decoder.clear()


class NetworkMasks(NamedTuple):
    """Dropout for one batch."""

    encoder: Masks
    decoder: Masks | None

    def rows(self, rows: slice) -> NetworkMasks:
        """Return the masks of some rows."""
        return NetworkMasks(
            self.encoder.rows(rows), None if self.decoder is None else self.decoder.rows(rows)
        )


class Forward(NamedTuple):
    """The forward pass of a batch: the input of the head, and all that the backward pass needs."""

    h: Floats  # B width, or tau B width
    encoded: Output
    decoded: Output | None = None
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

    def __init__(
        self, config: SequenceConfig, parameters: Parameters, backend: Backend | None = None
    ) -> None:
        self.config, self.parameters, self.head = config, parameters, config.output_head
        self.backend = backend = backend or PRECISIONS[config.precision]
        pooling = None if config.per_step or config.has_decoder else POOLS[config.pool]
        self.encoder = Model(config.encoder, ParameterPart(parameters, "encoder."), backend, pooling)
        self.decoder: Model | None = None
        if config.decoder:
            self.decoder = Model(config.decoder, ParameterPart(parameters, "decoder."), backend)

    @staticmethod
    def initialise(config: SequenceConfig, seed: int) -> Network:
        """Return a network with new parameters: the same for the same seed."""
        return Network(config, initialise_network(config, np.random.default_rng(at_least("seed", seed, 0))))

    def on(self, backend: Backend) -> Network:
        """Return a network with a copy of the parameters on another backend, in its precision."""
        return Network(self.config, self.parameters.astype(backend.DTYPE), backend)

    def weights(self) -> NetworkWeights:
        """Return the current parameters in the layout of the kernels."""
        p, attention = self.parameters, None
        if self.config.attention != "none":
            attention = AttentionWeights(ParameterPart(p, "attention."), self.backend)
        output = Linear.of(p["V"], p["c"], self.backend)
        decoder = self.decoder.weights() if self.decoder else None
        return NetworkWeights(self.encoder.weights(), decoder, attention, output)

    def gradient(self) -> NetworkGradient:
        """Return a gradient of zero."""
        values = self.parameters.like()
        encoder = self.encoder.gradient(ParameterPart(values, "encoder."))
        decoder = self.decoder.gradient(ParameterPart(values, "decoder.")) if self.decoder else None
        return NetworkGradient(values, encoder, decoder, ParameterPart(values, "attention."))

    def masks(self, B: int, *, seed: int, step: int) -> NetworkMasks:
        """Draw the dropout masks of an update: a function of seed and step only."""
        decoder = self.decoder.masks(B, seed=seed, step=2 * step + 1) if self.decoder else None
        return NetworkMasks(self.encoder.masks(B, seed=seed, step=2 * step), decoder)

    def without_words(self, batch: SequenceBatch, *, seed: int, step: int) -> SequenceBatch:
        """Return the batch of an update in which some words are unknown: drawn as a function of seed and step only."""
        rate = self.config.word_dropout
        if not rate or self.config.features <= NAMES:
            return batch
        kept = self.backend.dropout_mask(
            batch.x.shape[:2], seed=seed, stream=(step << 16) | 0xFFFC, rate=rate
        )
        x = batch.x.copy()
        x[..., :NAMES][kept == 0] = UNK
        return replace(batch, x=x)

    def encode(
        self, batch: SequenceBatch, weights: NetworkWeights, masks: NetworkMasks | None = None
    ) -> Output:
        """Run the encoder."""
        lengths = None if bool((batch.lengths == len(batch.x)).all()) else batch.lengths
        mask = masks.encoder if masks else None
        return self.encoder.forward(batch.x, lengths=lengths, masks=mask, weights=weights.encoder)

    def decoder_state(self, encoded: Output) -> State:
        """Return the decoder's initial state: the encoder's final states, summed over directions."""
        if not self.config.bidirectional:
            return encoded.state
        pairs = zip(encoded.state[::2], encoded.state[1::2], strict=True)
        return [(h + other, None if s is None else s + t) for (h, s), (other, t) in pairs]

    def forward(
        self, batch: SequenceBatch, weights: NetworkWeights, masks: NetworkMasks | None = None
    ) -> Forward:
        """Compute the input of the head; a decoder reads the targets before (teacher forcing)."""
        encoded = self.encode(batch, weights, masks)
        if self.decoder is None:
            return Forward(np.ascontiguousarray(self.encoder.head_input(encoded)), encoded)
        if batch.y is None or batch.target_lengths is None:
            raise InputError("a decoder needs targets to be trained on: sequences, one for each input")
        decoded = self.decoder.forward(
            self.decoder_input(batch.y),
            self.decoder_state(encoded),
            lengths=batch.target_lengths,
            masks=masks.decoder if masks else None,
            weights=weights.decoder,
        )
        if weights.attention is None:
            return Forward(np.ascontiguousarray(decoded.h), encoded, decoded)
        h, tape = attend(weights.attention, encoded.h, decoded.h, batch.lengths, batch.target_lengths)
        return Forward(h, encoded, decoded, tape)

    def decoder_input(self, y: Floats | Ids) -> Floats | Ids:
        """Return the targets one step later, after <bos> or zeros."""
        if self.config.tokens_out:
            return shift_right(np.maximum(y, 0), np.full(y.shape[1], BOS, np.int32))
        return shift_right(np.nan_to_num(y, nan=0.0), np.zeros(y.shape[1:], self.backend.DTYPE))

    def loss(
        self,
        batch: SequenceBatch,
        *,
        weights: NetworkWeights | None = None,
        masks: NetworkMasks | None = None,
        gradient: NetworkGradient | None = None,
        targets: int | None = None,
    ) -> Loss:
        """Return the loss of a batch; with `gradient`, write the gradient of the mean loss into it.

        The mean is over `targets`, where the batch is a part of a larger one.
        """
        weights = weights or self.weights()
        made = self.forward(batch, weights, masks)
        assert batch.y is not None
        self.head.check_targets(made.h, batch.y)
        if gradient is None:
            return self._head_loss(weights, made.h, batch)
        scale = 1.0 / max(1, self.targets(batch) if targets is None else targets)
        into = OutputGradient(gradient.values["V"], gradient.values["c"], scale)
        loss = self._head_loss(weights, made.h, batch, into, gradient)
        if math.isfinite(loss.sum):
            assert loss.dh is not None
            self.backward(made, loss.dh, weights, gradient)
        return loss

    def _head_loss(
        self,
        weights: NetworkWeights,
        h: Floats,
        batch: SequenceBatch,
        into: OutputGradient | None = None,
        gradient: NetworkGradient | None = None,
    ) -> Loss:
        assert batch.y is not None
        if self.config.crf:
            dA = None if gradient is None else gradient.values["A"]
            return chain_loss(weights.output, self.parameters["A"], h, batch.y, batch.lengths, into, dA)
        if batch.weights is None:
            return self.head.loss(weights.output, h, batch.y, into)
        return weighted_loss(self.head, weights.output, h, batch.y, batch.weights, into)

    def targets(self, batch: SequenceBatch) -> int:
        """Return the number of targets that are scored."""
        assert batch.y is not None
        return int(self.head.loss.is_scored(batch.y).sum())

    def backward(
        self, made: Forward, dh: Floats | None, weights: NetworkWeights, gradient: NetworkGradient
    ) -> Floats | None:
        """Add the gradients of all parameters but V and c from that of the head's input; return that of dense x."""
        d_final_state: State | None = None
        if self.decoder is not None:
            assert made.decoded and gradient.decoder and dh is not None
            d_encoded: Floats | None = None
            if made.attended is not None:
                assert weights.attention
                d_encoded, dh = attend_backward(weights.attention, made.attended, dh, gradient.attention)
            _, d_initial = self.decoder.backward(made.decoded, dh, gradient.decoder, weights=weights.decoder)
            self.decoder.fold_input_tables(gradient.decoder, weights.decoder)
            dh, d_final_state = (
                d_encoded,
                [part for part in d_initial for _ in range(self.encoder.config.directions)],
            )
        dx, _ = self.encoder.backward(
            made.encoded, dh, gradient.encoder, d_final_state=d_final_state, weights=weights.encoder,
            want_dx=self.config.dense,
        )  # fmt: skip
        self.encoder.fold_input_tables(gradient.encoder, weights.encoder)
        return dx

    def outputs(self, batch: SequenceBatch, weights: NetworkWeights | None = None) -> Floats:
        """Return o (B, K) or (tau, B, K); a decoder reads the targets."""
        weights = weights or self.weights()
        return weights.output(self.forward(batch, weights).h)
