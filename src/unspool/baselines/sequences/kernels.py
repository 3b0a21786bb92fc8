"""Features of series of numbers: how often fixed convolutions exceed a threshold, as in MiniRocket (Dempster, Schmidt, Webb 2021).

    a_k(t) = Σ_j w_k(j) Σ_{c ∈ S} x_c(t + (j - 4) d),   j = 0 … 8,   w_k: three weights 2, six weights -1          (1)
    z = share of t with a_k(t) > b                                                                                (2)

There are 84 kernels k. Each is used with dilations d = 2⁰, 2¹ … as long as 8 d is shorter than the series, on one set S of channels per k and d, and with
several thresholds b: quantiles of (1) on training series. Steps outside a series count as zero. A row depends on nothing
but itself; sums run in a fixed order, so z is the same number on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from unspool.kernels.arrays import Floats, Ids, Whole

KERNELS = np.array(list(combinations(range(9), 3)))
"""Where the weights 2 are."""
MOST = 9996
"""The number of features, or less of many rows."""
VALUES = 1 << 26
"""The most values of the features of all rows."""
DILATIONS = 16
"""The most dilations."""
BLOCK = 1 << 18
"""The steps of rows that are convolved at once."""
GOLDEN = 0.6180339887498949
"""Quantiles are multiples of it, modulo 1: they fill the interval evenly."""


@dataclass(frozen=True)
class Convolutions:
    """The drawn part: dilations, channels of every kernel and dilation, thresholds."""

    dilations: Ids  # D
    channels: Floats  # D 84 X: 1 where a channel is summed
    thresholds: Floats  # D 84 P

    @staticmethod
    def fit(x: list[Floats], seed: int) -> Convolutions:
        """Draw channels, and take thresholds from training series."""
        rng = np.random.default_rng([seed, 5])
        longest, X = max(1, max(map(len, x))), x[0].shape[1]
        top = max(0, int(np.log2(max(1, (longest - 1) / 8))))
        dilations = np.unique(np.round(2.0 ** np.linspace(0, top, min(DILATIONS, top + 1))).astype(np.int32))
        D = len(dilations)
        P = max(1, min(MOST, VALUES // len(x)) // (84 * D))
        channels = np.stack([np.stack([_subset(rng, X) for _ in range(84)]) for _ in range(D)])
        filled = [row for row in x if len(row)] or [np.zeros((1, X), np.float32)]
        q = (np.arange(1, 84 * P + 1) * GOLDEN % 1).reshape(84, P)
        thresholds = np.zeros((D, 84, P), np.float32)
        for at, d in enumerate(dilations.tolist()):
            rows = [filled[i] for i in rng.integers(len(filled), size=84)]
            for k, row in enumerate(rows):
                a = next(_convolved(row[None], d, channels[at, k : k + 1], [k]))
                thresholds[at, k] = np.sort(a[0])[(q[k] * len(row)).astype(np.int64)]
        return Convolutions(dilations, channels, thresholds)

    @property
    def size(self) -> int:
        """The number of features."""
        return self.thresholds.size

    def features(self, x: list[Floats]) -> Floats:
        """Return z (2) of every row, n features."""
        z = np.zeros((len(x), *self.thresholds.shape), np.float32)
        for rows in _blocks(np.array([len(row) for row in x])):
            lengths = np.array([len(x[i]) for i in rows])
            padded = np.zeros((len(rows), max(1, int(lengths.max())), self.channels.shape[2]), np.float32)
            for b, i in enumerate(rows.tolist()):
                padded[b, : len(x[i])] = x[i]
            inverse = (1 / np.maximum(lengths, 1)).astype(np.float32)
            beyond = np.arange(padded.shape[1]) >= lengths[:, None]
            for at, d in enumerate(self.dilations.tolist()):
                for k, a in enumerate(_convolved(padded, d, self.channels[at], range(84))):
                    a[beyond] = -np.inf
                    for p, threshold in enumerate(self.thresholds[at, k].tolist()):
                        z[rows, at, k, p] = (a > np.float32(threshold)).sum(axis=1) * inverse
        return z.reshape(len(x), -1)


def _subset(rng: np.random.Generator, X: int) -> Floats:
    """Draw a set of channels: its size first, small ones more often."""
    size = min(X, int(2 ** rng.uniform(0, np.log2(min(X, 9) + 1))))
    found = np.zeros(X, np.float32)
    found[rng.permutation(X)[: max(1, size)]] = 1
    return found


def _convolved(x: Floats, d: int, channels: Floats, kernels: range | list[int]) -> Iterator[Floats]:
    """Yield (1), n tau, of series x (n tau X) for each kernel and its channels."""
    n, tau, X = x.shape
    padded = np.zeros((X, n, tau + 8 * d), np.float32)
    padded[:, :, 4 * d : 4 * d + tau] = x.transpose(2, 0, 1)
    shifted = [padded[:, :, j * d : j * d + tau] for j in range(9)]
    whole = -(sum(shifted[1:], shifted[0]))
    for k, chosen in zip(kernels, channels, strict=True):
        first, second, third = (shifted[j] for j in KERNELS[k].tolist())
        a = np.zeros((n, tau), np.float32)
        for c in np.flatnonzero(chosen).tolist():
            a += whole[c] + np.float32(3) * (first[c] + second[c] + third[c])
        yield a


def _blocks(lengths: Whole) -> Iterator[Whole]:
    """Yield rows of about the same length, a few at a time."""
    order = np.argsort(lengths, kind="stable")
    at = len(order)
    while at:
        rows = max(1, BLOCK // max(1, int(lengths[order[at - 1]])))
        yield order[max(0, at - rows) : at]
        at = max(0, at - rows)
