"""Writing an answer one step at a time: the most probable token, a beam of hypotheses, a draw, or numbers.

What was written is read in the next step; the state goes from step to step. A row's answer never depends on
the rows beside it, and a beam of one is greedy to the bit. <unk> and <bos> are never written: of all
sequences without them the most probable is sought, and log P is what the network gives it among all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unspool.data.batches.examples import SequenceBatch
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.elementwise import log_softmax, softmax
from unspool.model.attention import attend
from unspool.model.sequence_config import BOS, EOS, UNK
from unspool.model.sequence_network import Network, NetworkWeights
from unspool.model.values import State, rows_of

UNWRITTEN = [UNK, BOS]


class Hypothesis(NamedTuple):
    """A row's answer and log P of it, <eos> included where it came."""

    tokens: Ids
    log_prob: float


@dataclass
class StepDecoder:
    """The decoder of a batch between two steps."""

    network: Network
    weights: NetworkWeights
    e: Floats  # tau_e B We
    lengths: Ids  # B
    state: State

    @staticmethod
    def of(network: Network, batch: SequenceBatch, weights: NetworkWeights) -> StepDecoder:
        """Read the input; the decoder stands before its first step."""
        encoded = network.encode(batch, weights)
        return StepDecoder(network, weights, encoded.h, batch.lengths, network.decoder_state(encoded))

    def step(self, before: Floats | Ids) -> Floats:
        """Read what was written last, B or B O; return o, B K."""
        decoder, weights = self.network.decoder, self.weights
        assert decoder and weights.decoder
        made = decoder.forward(np.ascontiguousarray(before[None]), self.state, weights=weights.decoder)
        self.state, h = made.state, made.h
        if weights.attention is not None:
            ones = np.ones(len(self.lengths), np.int32)
            h, _ = attend(weights.attention, self.e, h, self.lengths, ones)
        return weights.output(np.ascontiguousarray(h[0]))

    def choose(self, rows: Ids) -> None:
        """Go on with these rows, each any number of times."""
        self.e, self.lengths = np.ascontiguousarray(self.e[:, rows]), self.lengths[rows]
        self.state = rows_of(self.state, rows)


def beam(
    network: Network, batch: SequenceBatch, weights: NetworkWeights, *, max_length: int, width: int = 1
) -> list[Hypothesis]:
    """Write tokens by the `width` most probable beginnings at a time; 1 is greedy."""
    B, K = batch.B, network.config.outputs
    decoder = StepDecoder.of(network, batch, weights)
    decoder.choose(np.repeat(np.arange(B), width).astype(np.int32))
    scores = np.full((B, width), -np.inf)
    scores[:, 0] = 0
    last = np.full(B * width, BOS, np.int32)
    ended = np.zeros((B, width), bool)
    tokens = np.zeros((B, width, 0), np.int32)
    for _ in range(max_length):
        log_p = log_softmax(decoder.step(last), network.backend).reshape(B, width, K)
        log_p[:, :, UNWRITTEN] = -np.inf
        log_p[ended] = -np.inf  # what has ended goes on at no cost, in one way
        log_p[ended, EOS] = 0
        total = (scores[:, :, None] + log_p).reshape(B, width * K)
        chosen = np.argsort(-total, axis=1, kind="stable")[:, :width]
        scores = np.take_along_axis(total, chosen, axis=1)
        parents, new = chosen // K, (chosen % K).astype(np.int32)
        tokens = np.concatenate(
            [np.take_along_axis(tokens, parents[:, :, None], axis=1), new[:, :, None]], axis=2
        )
        ended = np.take_along_axis(ended, parents, axis=1) | (new == EOS)
        if (ended | np.isneginf(scores)).all():
            break
        decoder.choose((np.arange(B)[:, None] * width + parents).reshape(-1).astype(np.int32))
        last = new.reshape(-1)
    return [Hypothesis(until_end(tokens[b, 0]), float(scores[b, 0])) for b in range(B)]


def sample(
    network: Network,
    batch: SequenceBatch,
    weights: NetworkWeights,
    *,
    max_length: int,
    temperature: float,
    seed: int,
) -> list[Hypothesis]:
    """Draw tokens from the distribution, made sharper by a temperature below 1; by seed and row only."""
    decoder = StepDecoder.of(network, batch, weights)
    rngs = [np.random.default_rng([seed, row]) for row in batch.rows.tolist()]
    last = np.full(batch.B, BOS, np.int32)
    tokens, scores = [last], np.zeros(batch.B)
    ended = np.zeros(batch.B, bool)
    for _ in range(max_length):
        o = decoder.step(last)
        can = o.copy()
        can[:, UNWRITTEN] = -np.inf
        p = softmax(can / o.dtype.type(temperature), network.backend).astype(np.float64)
        u = np.array([rng.random() for rng in rngs])
        sums = np.cumsum(p, axis=1)
        last = np.minimum((sums <= u[:, None] * sums[:, -1:]).sum(axis=1), o.shape[1] - 1).astype(np.int32)
        scores += np.where(
            ended, 0.0, np.take_along_axis(log_softmax(o, network.backend), last[:, None], axis=1)[:, 0]
        )
        tokens.append(np.where(ended, EOS, last).astype(np.int32))
        ended |= last == EOS
        if ended.all():
            break
    written = np.stack(tokens[1:], axis=1)
    return [Hypothesis(until_end(written[b]), float(scores[b])) for b in range(batch.B)]


def roll_out(network: Network, batch: SequenceBatch, weights: NetworkWeights, *, steps: int) -> Floats:
    """Write numbers: each step reads the mean of the one before. Return o, steps B K."""
    decoder, numbers = StepDecoder.of(network, batch, weights), network.config.outputs
    last, made = np.zeros((batch.B, numbers), network.backend.DTYPE), []
    for _ in range(steps):
        made.append(decoder.step(last))
        last = made[-1][:, :numbers]
    return np.stack(made)


def until_end(tokens: Ids) -> Ids:
    """Return the tokens before the first <eos>.

    >>> until_end(np.array([5, 7, 2, 9])).tolist()
    [5, 7]
    """
    ends = np.flatnonzero(tokens == EOS)
    return tokens[: ends[0]] if len(ends) else tokens
