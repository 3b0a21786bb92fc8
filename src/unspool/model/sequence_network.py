"""A network from sequences to answers: encoder, perhaps decoder and attention, head; with its gradient.

    x(1) … x(τ) ─▶ encoder ─▶ h(1) … h(τ) ─▶ pool ─▶ head            one answer
                                        └──▶ head at every h(t)       an answer a step
                                        └──▶ decoder ─▶ attention ─▶ head     a sequence of another length

Rows stop at their own lengths: the state is frozen there, so the last state is the state at the row's end.
The gradient on one answer may come from any module behind it: the head hands back ∇h, BPTT takes it from there.
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
from unspool.kernels.tape import Loss
from unspool.model.attention import AttentionTape, AttentionWeights, attend, attend_backward
from unspool.model.gradient import Gradient
from unspool.model.heads import head_loss, output
from unspool.model.network import Model
from unspool.model.parameters import Parameters
from unspool.model.sequence_config import BOS, SequenceConfig
from unspool.model.sequence_layout import Part, initialise_network
from unspool.model.values import Masks, Output, State
from unspool.options import at_least


class NetworkWeights:
    """All parameters laid out for the kernels. Made once an update; stale when the parameters change."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.encoder = network.encoder.weights()
        self.decoder = network.decoder.weights() if network.decoder else None
        self.attention = (
            AttentionWeights(Part(network.parameters, "attention."))
            if network.config.attention != "none"
            else None
        )

    @cached_property
    def V(self) -> tuple[native.Packed, native.Packed]:
        """The head's matrix, for o and for the gradient of h."""
        V = self._network.parameters["V"]
        return native.pack(V, transposed=True), native.pack(V)


class NetworkGradient:
    """The gradient of all parameters, in one flat vector."""

    def __init__(self, network: Network) -> None:
        self.values = network.parameters.like()
        self.encoder = _gradient(network.encoder, Part(self.values, "encoder."))
        self.decoder = _gradient(network.decoder, Part(self.values, "decoder.")) if network.decoder else None
        self.attention = Part(self.values, "attention.")

    def clear(self) -> None:
        """Back to zero, for the next update."""
        for name in ("V", "c"):
            self.values[name][:] = 0
        for value in self.attention.values():
            value[:] = 0
        for part in (self.encoder, self.decoder):
            if part is not None:
                part.clear()


def _gradient(model: Model, values: Parameters) -> Gradient:
    gradient = Gradient(model.config, values)
    if model.config.embedding and not model.config.uses_input_table:
        gradient.embedded = native.zeros(model.parameters["E"].shape)
    return gradient


class NetworkMasks(NamedTuple):
    """Dropout for one batch."""

    encoder: Masks
    decoder: Masks | None


class Read(NamedTuple):
    """What the encoder leaves: all its outputs, and what the head or the decoder takes from it."""

    output: Output
    lengths: Ids
    mask: Floats | None  # B width, the last layer's dropout


@dataclass(frozen=True)
class Forward:
    """A batch on its way: what the head reads, and all that its gradient needs."""

    read: Read
    h: Floats  # B width, or tau B width
    written: Output | None = None
    attended: AttentionTape | None = None


class Network:
    """Parameters and what to do with them.

    >>> config = SequenceConfig("many-to-one", "classes", inputs=2, dense=True, outputs=3, hidden=8)
    >>> network = Network.initialise(config, seed=0)
    >>> x = np.ones((5, 4, 2), np.float32)  # tau B X
    >>> batch = SequenceBatch(x, np.array([5, 1, 3, 0], np.int32), None, None, np.arange(4))
    >>> network.outputs(batch).shape
    (4, 3)
    """

    def __init__(self, config: SequenceConfig, parameters: Parameters) -> None:
        self.config, self.parameters = config, parameters
        self.encoder = Model(config.encoder, Part(parameters, "encoder."))
        self.decoder = Model(config.decoder, Part(parameters, "decoder.")) if config.decoder else None

    @staticmethod
    def initialise(config: SequenceConfig, seed: int) -> Network:
        """Return a network with new parameters: the same for the same seed."""
        at_least("seed", seed, 0)
        return Network(config, initialise_network(config, np.random.default_rng(seed)))

    def weights(self) -> NetworkWeights:
        """Lay the parameters out for the kernels, as they are now."""
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
        """Take the input through the encoder."""
        lengths = None if bool((batch.lengths == len(batch.x)).all()) else batch.lengths
        mask = masks.encoder if masks else None
        made = self.encoder.forward(batch.x, lengths=lengths, masks=mask, weights=weights.encoder)
        last = mask.outputs[-1] if mask and mask.outputs else None
        return Read(made, batch.lengths, last)

    def summary(self, read: Read) -> Floats:
        """Return what one answer is made from, B width: the last layer's end, or the mean of its steps."""
        if self.config.pool == "mean":
            h = np.where(_live(read)[:, :, None], read.output.h, np.float32(0))
            tau, B, width = h.shape
            return native.column_sum(h.reshape(tau, B * width)).reshape(B, width) * _share(read)
        ends = [tape.h_end for tape in read.output.tape[-1].directions]
        h = ends[0] if len(ends) == 1 else np.concatenate(ends, axis=1)
        return h if read.mask is None else h * read.mask

    def start(self, read: Read) -> State:
        """Return the decoder's state before its first step: the encoder's ends, both directions added."""
        D, ends = self.encoder.config.directions, read.output.state
        parts = [ends[layer * D : (layer + 1) * D] for layer in range(self.config.layers)]
        return [(_sum([h for h, _ in part]), _sum([s for _, s in part])) for part in parts]  # type: ignore[misc]

    def forward(
        self, batch: SequenceBatch, weights: NetworkWeights, masks: NetworkMasks | None = None
    ) -> Forward:
        """Take a batch to where the head reads; a decoder reads the targets before (teacher forcing)."""
        read = self.read(batch, weights, masks)
        if self.config.aligned:
            return Forward(read, np.ascontiguousarray(read.output.h))
        if not self.config.decodes:
            return Forward(read, np.ascontiguousarray(self.summary(read)))
        assert self.decoder and weights.decoder
        if batch.y is None or batch.written is None:
            raise InputError("a decoder needs targets to be trained on: sequences, one for each input")
        made = self.decoder.forward(
            self.before(batch.y),
            self.start(read),
            lengths=batch.written,
            masks=masks.decoder if masks else None,
            weights=weights.decoder,
        )
        if weights.attention is None:
            return Forward(read, np.ascontiguousarray(made.h), made)
        h, tape = attend(weights.attention, read.output.h, made.h, batch.lengths, batch.written)
        return Forward(read, h, made, tape)

    def before(self, y: Floats | Ids) -> Floats | Ids:
        """Return what the decoder reads: the targets, one step late, behind <bos> or zeros."""
        if self.config.tokens_out:
            return np.concatenate([np.full((1, y.shape[1]), BOS, np.int32), np.maximum(y[:-1], 0)])
        first = np.zeros((1, *y.shape[1:]), np.float32)
        return np.concatenate([first, np.nan_to_num(y[:-1], nan=0.0)]).astype(np.float32)

    def loss(
        self,
        batch: SequenceBatch,
        *,
        weights: NetworkWeights | None = None,
        masks: NetworkMasks | None = None,
        gradient: NetworkGradient | None = None,
    ) -> Loss:
        """Score a batch; with `gradient`, that of the mean loss is written into it."""
        weights = weights or self.weights()
        made = self.forward(batch, weights, masks)
        assert batch.y is not None
        scale = 1.0 / max(1, _targets(self.config, batch.y))
        if gradient is None:
            return head_loss(self.config, made.h, batch.y, weights.V, self.parameters["c"])
        dV, dc = gradient.values["V"], gradient.values["c"]
        loss = head_loss(
            self.config, made.h, batch.y, weights.V, self.parameters["c"], scale=scale, dV=dV, dc=dc
        )
        if math.isfinite(loss.sum):
            assert loss.dh is not None
            self.backward(made, loss.dh, weights, gradient)
        return loss

    def backward(
        self, made: Forward, dh: Floats, weights: NetworkWeights, gradient: NetworkGradient
    ) -> Floats | None:
        """Take the gradient of what the head reads back to all parameters; return that of values read."""
        read, config = made.read, self.config
        d_final_state: Any = None
        below: Floats | None = None
        if config.aligned:
            below = dh
        elif config.decodes:
            below, d_final_state = self._through_decoder(made, dh, weights, gradient)
        elif config.pool == "mean":
            below = np.where(_live(read)[:, :, None], dh * _share(read), np.float32(0))
        else:
            d_final_state = self._to_ends(dh if read.mask is None else dh * read.mask)
        dx, _ = self.encoder.backward(
            read.output,
            below,
            gradient.encoder,
            d_final_state=d_final_state,
            weights=weights.encoder,
            want_dx=config.dense,
        )
        self.encoder.finish(gradient.encoder, weights.encoder)
        return dx

    def _to_ends(self, dh: Floats) -> list[tuple[Floats | None, None]]:
        """Hand the gradient of the summary to the ends of the last layer's directions."""
        D, H = self.encoder.config.directions, self.config.hidden
        below: list[tuple[Floats | None, None]] = [(None, None)] * (D * (self.config.layers - 1))
        return below + [(np.ascontiguousarray(dh[:, i * H : (i + 1) * H]), None) for i in range(D)]

    def _through_decoder(
        self, made: Forward, dh: Floats, weights: NetworkWeights, gradient: NetworkGradient
    ) -> tuple[Floats | None, Any]:
        assert self.decoder and made.written and gradient.decoder and weights.decoder
        de: Floats | None = None
        if made.attended is not None:
            assert weights.attention
            de, dh = attend_backward(weights.attention, made.attended, dh, gradient.attention)
        _, starts = self.decoder.backward(made.written, dh, gradient.decoder, weights=weights.decoder)
        self.decoder.finish(gradient.decoder, weights.decoder)
        return de, [part for part in starts for _ in range(self.encoder.config.directions)]

    def outputs(self, batch: SequenceBatch, weights: NetworkWeights | None = None) -> Floats:
        """Return o, B K or tau B K, of a shape without a decoder."""
        weights = weights or self.weights()
        return output(self.forward(batch, weights).h, weights.V, self.parameters["c"])


def _targets(config: SequenceConfig, y: Floats | Ids) -> int:
    return int((y >= 0).sum() if config.head == "classes" else (~np.isnan(y)).sum())


def _live(read: Read) -> Any:
    return np.arange(len(read.output.h))[:, None] < read.lengths  # tau B


def _share(read: Read) -> Floats:
    """Return 1 / length of every row, B 1."""
    share: Floats = (1 / np.maximum(read.lengths, 1)).astype(np.float32)[:, None]
    return share


def _sum(parts: list[Floats | None]) -> Floats | None:
    total = parts[0]
    for part in parts[1:]:
        total = None if total is None or part is None else total + part
    return total
