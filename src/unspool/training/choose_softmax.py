"""Choose the output layer for a vocabulary: a full softmax, or the clusters of an adaptive one that cost least.

With H hidden units, an output of d inputs costs about d + OVERHEAD multiply-adds per row, for the product and its exponential. A
token with probability p(w), numbered by falling frequency, is in the head or in one of the clusters i with d_i = H / 4^i:

    full        K (H + OVERHEAD)                                                                  (1)
    adaptive    (n + C) (H + OVERHEAD) + Σ_i p_i (K_i (d_i + OVERHEAD) + H d_i)                    (2)

n tokens are in the shortlist, C is the number of clusters, K_i the size of cluster i and p_i its probability. The cutoffs
minimise (2) over a grid.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from unspool.kernels.arrays import Real
from unspool.model.cutoffs import ADAPTIVE, AUTO, FULL, write_cutoffs
from unspool.model.outputs.adaptive import tail_width

OVERHEAD = 18
"""Measured: exponential, sum and memory of one output, in multiply-adds of its product."""
WIDTH = 256
"""The H of the comparison: the choice hardly depends on it."""
GRID = 28
"""Cutoffs that are tried, at equal ratios."""
MOST = 3
"""The largest number of clusters that are tried."""
FROM = 2000
"""The smallest vocabulary for which auto takes an adaptive softmax."""


def choose_softmax(setting: str, counts: Real) -> str:
    """Return full, or adaptive with its clusters, for tokens with these counts (K,), in the order of their ids.

    >>> zipf = 1 / np.arange(1, 33_001)
    >>> choose_softmax("adaptive", zipf), choose_softmax("full", zipf), choose_softmax("adaptive:5000", zipf)
    ('adaptive:1024,4635', 'full', 'adaptive:5000')
    """
    if setting not in (ADAPTIVE, AUTO) or len(counts) < 2 or (setting == AUTO and len(counts) < FROM):
        return FULL if setting == AUTO or len(counts) < 2 else setting
    return write_cutoffs(cheapest_cutoffs(counts))


def cheapest_cutoffs(counts: Real) -> tuple[int, ...]:
    """Return the cutoffs that minimise (2)."""
    K = len(counts)
    below = np.concatenate([[0.0], np.cumsum(counts / counts.sum())])
    grid = sorted({round(K ** (i / GRID)) for i in range(GRID // 3, GRID)} - {K} | {max(1, K // 2)})
    tried = (each for C in range(1, MOST + 1) for each in combinations(grid, C))
    return min(tried, key=lambda cutoffs: expected_cost(cutoffs, below))


def expected_cost(cutoffs: tuple[int, ...], below: Real, H: int = WIDTH) -> float:
    """Return (2), or (1) without cutoffs; below[n] is the probability of the first n tokens, (K + 1,)."""
    K = len(below) - 1
    if not cutoffs:
        return float(K * (H + OVERHEAD))
    cost = 1.0 * (cutoffs[0] + len(cutoffs)) * (H + OVERHEAD)
    for i, (first, end) in enumerate(zip(cutoffs, (*cutoffs[1:], K), strict=True), 1):
        d = tail_width(H, i)
        cost += float(below[end] - below[first]) * ((end - first) * (d + OVERHEAD) + H * d)
    return cost
