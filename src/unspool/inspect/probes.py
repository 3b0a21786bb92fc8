"""How much of the past a state still holds: linear probes, one for each of the last n symbols.

The state h(τ) after a sequence is a summary of it, and must lose something. A probe for lag k is the best
linear map, by least squares with a little ridge, from h(τ) to the one-hot symbol x(τ - k):

    P_k = argmin Σ ‖P [h; 1] - 1[x(τ - k)]‖² + ridge ‖P‖²

It is fitted on some sequences and judged on others. What a linear map can read off, the state holds; the
first lag that it cannot says how many of the last symbols are still there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unspool.data.batches.examples import Examples
from unspool.errors import InputError
from unspool.kernels.arrays import Ids, Real
from unspool.model.sequence_network import Network

RIDGE = 1e-4


@dataclass(frozen=True)
class Probe:
    """What linear maps read off the last state."""

    accuracy: Real
    """Of lag 0 (the last symbol), 1, … on sequences that the maps were not fitted on."""
    chance: float
    """The share that the most frequent symbol has: what a map of nothing gets right."""

    @property
    def amount(self) -> float:
        """How many symbols' worth is read off in all: 1 for a lag always right, 0 for one by chance.

        >>> Probe(np.array([1.0, 0.55, 0.1]), 0.1).amount
        1.5
        """
        return float(((self.accuracy - self.chance) / (1 - self.chance)).clip(0).sum())

    def held(self, least: float = 0.9) -> int:
        """Return how many of the last symbols are right at least this often, without a gap.

        >>> Probe(np.array([1.0, 0.95, 0.5, 0.92]), 0.1).held()
        2
        """
        below = np.flatnonzero(self.accuracy < least)
        return int(below[0]) if len(below) else len(self.accuracy)


def probe(network: Network, sequences: list[Ids], *, lags: int) -> Probe:
    """Fit probes on half of the sequences, judge them on the other half; a sequence is an array of ids (steps,)."""
    if min(map(len, sequences)) < lags:
        raise InputError(f"a probe of {lags} lags needs sequences of at least as many symbols")
    H = last_states(network, sequences)
    half = len(sequences) // 2
    symbols = np.array([row[::-1][:lags] for row in sequences])  # n lags, the last symbol first
    K = int(symbols.max()) + 1
    if half < K:
        raise InputError(f"a probe of {K} symbols needs more sequences than {len(sequences)}")
    design = np.column_stack([H, np.ones(len(H))])
    gram = design[:half].T @ design[:half] + RIDGE * half * np.eye(design.shape[1])
    accuracy = []
    for lag in range(lags):
        target = np.eye(K)[symbols[:half, lag]]
        P = np.linalg.solve(gram, design[:half].T @ target)
        accuracy.append(((design[half:] @ P).argmax(axis=1) == symbols[half:, lag]).mean())
    return Probe(np.array(accuracy), float(np.bincount(symbols.reshape(-1)).max() / symbols.size))


def last_states(network: Network, sequences: list[Ids]) -> Real:
    """Return the last layer's state after each sequence, n width; the LSTM's cell state stands behind h."""
    weights = network.weights()
    found: list[Real | None] = [None] * len(sequences)
    for batch in Examples(sequences).batches(256, per_step=False):
        encoded = network.encode(batch, weights)
        D = network.encoder.config.directions
        parts = [part for state in encoded.state[-D:] for part in state if part is not None]
        for b, row in enumerate(batch.rows.tolist()):
            found[row] = np.concatenate([part[b] for part in parts]).astype(np.float64)
    return np.stack([each for each in found if each is not None])
