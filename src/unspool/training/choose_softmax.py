"""Choose the output layer for a vocabulary: a full softmax, or an adaptive one with the best clusters.

With H hidden units, an output of d inputs costs about d + OVERHEAD multiply-adds per row, for the product and its exponential. With
p_i the probability of cluster i, K_i its size and d_i = H / 4^i its width, one token costs

    full        K (H + OVERHEAD)                                                                  (1)
    adaptive    (n + C) (H + OVERHEAD) + Σ_i p_i (K_i (d_i + OVERHEAD) + H d_i)                    (2)

beside the RECURRENT part, n tokens in the shortlist and C clusters. A faster update reads more text in the same time, and a
token in a narrow tail is predicted a little worse. The choice minimises the loss that both make, up to a constant:

    SPEED · log(RECURRENT + cost) + NARROW · Σ_i i p_i + CLUSTER · C                              (3)

`docs/log.md` has the measurements behind the constants.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from unspool.kernels.arrays import Real
from unspool.model.cutoffs import ADAPTIVE, AUTO, write_cutoffs
from unspool.model.outputs.adaptive import tail_width

H = 256
"""The hidden units of the comparison: the choice hardly depends on them."""
OVERHEAD = 18
"""Exponential, sum and memory of one output, in multiply-adds of its product."""
RECURRENT = 10 * H * H
"""The weights of a GRU that reads embeddings, and as much again for the rest of an update."""
SPEED = 0.2
"""Nats per token that an e-fold of the updates gains."""
NARROW = 0.4
"""Nats that a token loses in the first tail."""
CLUSTER = 0.02
"""Nats that one more cluster has to gain."""
GRID = 40
"""Cutoffs that are tried, at equal ratios."""
MOST = 2
"""The largest number of clusters that are tried."""


def choose_softmax(setting: str, counts: Real) -> str:
    """Return the output layer for tokens with these counts (K,), in the order of their ids; keep one that is fixed.

    >>> zipf = 1 / np.arange(1, 33_001)
    >>> choose_softmax("auto", zipf), choose_softmax("auto", zipf[:500]), choose_softmax("adaptive:5000", zipf)
    ('adaptive:1455,15123', 'full', 'adaptive:5000')
    """
    if setting not in (ADAPTIVE, AUTO) or len(counts) < 2:
        return setting if setting not in (ADAPTIVE, AUTO) else write_cutoffs(())
    K = len(counts)
    below = np.concatenate([[0.0], np.cumsum(counts / counts.sum())])
    grid = sorted({round(K ** (i / GRID)) for i in range(GRID // 3, GRID)} - {K} | {max(1, K // 2)})
    tried = [each for C in range(1, MOST + 1) for each in combinations(grid, C)]
    return write_cutoffs(min([()] * (setting == AUTO) + tried, key=lambda each: expected_loss(each, below)))


def expected_loss(cutoffs: tuple[int, ...], below: Real) -> float:
    """Return (3); below[n] is the probability of the first n tokens, (K + 1,)."""
    K = len(below) - 1
    ends = (*cutoffs[1:], K)
    shares = [float(below[end] - below[first]) for first, end in zip(cutoffs, ends, strict=False)]
    cost = float(((cutoffs[0] if cutoffs else K) + len(cutoffs)) * (H + OVERHEAD))  # (1), and the head of (2)
    for i, (first, share) in enumerate(zip(cutoffs, shares, strict=True), 1):
        d = tail_width(H, i)
        cost += share * ((ends[i - 1] - first) * (d + OVERHEAD) + H * d)  # the tails of (2)
    narrow = sum(i * share for i, share in enumerate(shares, 1))
    return SPEED * math.log(RECURRENT + cost) + NARROW * narrow + CLUSTER * len(cutoffs)  # (3)
