"""Ridge regression on features of the sequences, a baseline for regression.

    w = (ZᵀZ + λI)⁻¹ Zᵀ(y - ȳ)                                                          (1)
    GCV(λ) = n RSS(λ) / (n - 1 - dof(λ))²,   dof(λ) = Σ d / (d + λ)                     (2)

Z holds the features of each sequence, standardised on the training split, and d the eigenvalues of ZᵀZ. λ is the value of
`GRID` with the least generalised cross-validation score (2). The features are the values themselves if all sequences have
the same length and few values; otherwise mean, standard deviation, minimum, maximum, first and last value of each channel,
and the length. For tokens they are the relative frequency of each token, and the length.

>>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
>>> Ridge.fit(X, 2 * X + 1).predict(np.array([[10.0]])).round(2).tolist()
[[21.0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unspool.kernels.arrays import Real

GRID = tuple(10.0**k for k in range(-6, 4))
"""Values of λ, divided by the number of rows."""
MOST = 256
"""Most values that are features themselves, and most tokens whose frequencies are features."""


@dataclass(frozen=True)
class Ridge:
    """The fitted equation (1), for one or more targets."""

    mean: Real  # F
    std: Real  # F
    w: Real  # F O
    intercept: Real  # O

    @staticmethod
    def fit(X: Real, y: Real) -> Ridge:
        """Return the regression of targets (n, O) on features (n, F)."""
        n, mean, std = len(X), X.mean(axis=0), X.std(axis=0)
        std = np.where(std > 1e-12 * np.abs(mean) + 1e-300, std, np.inf)  # a constant feature gets weight 0
        Z, centred = (X - mean) / std, y - y.mean(axis=0)
        d, Q = np.linalg.eigh(Z.T @ Z)
        d = np.maximum(d, 0.0)
        b, total = Q.T @ (Z.T @ centred), (centred**2).sum()
        best, least = GRID[-1] * n, np.inf
        for ratio in GRID:
            at = ratio * n
            rest = total - ((d + 2 * at)[:, None] / ((d + at) ** 2)[:, None] * b**2).sum()
            free = n - 1 - (d / (d + at)).sum()
            if free > 0 and (found := n * max(rest, 0.0) / free**2) < least:
                best, least = at, found
        return Ridge(mean, std, Q @ (b / (d + best)[:, None]), y.mean(axis=0))

    def predict(self, X: Real) -> Real:
        """Return the predictions (n, O) for features (n, F)."""
        return np.asarray((X - self.mean) / self.std @ self.w + self.intercept)


def features(sequences: Any, size: int | None, like: Any = None) -> Real:
    """Return the features (n, F) of encoded sequences; `size` is the vocabulary of tokens, None for numbers.

    `like` are the training sequences, which determine the features [default: these].
    """
    like = sequences if like is None else like
    if size is not None:
        return _token_fractions(sequences, like, size)
    shapes = {np.shape(each) for each in like}
    values = int(np.prod(next(iter(shapes)))) if len(shapes) == 1 else MOST + 1
    if 0 < values <= min(MOST, len(like) // 2) and {np.shape(each) for each in sequences} == shapes:
        return np.stack([np.ravel(each) for each in sequences]).astype(np.float64)
    return np.stack([_summary(each) for each in sequences])


def _token_fractions(sequences: Sequence[Any], like: Sequence[Any], size: int) -> Real:
    counts = sum((np.bincount(each, minlength=size) for each in like), np.zeros(size, np.int64))
    frequent = np.argsort(-counts, kind="stable")[:MOST]
    fractions = [np.bincount(each, minlength=size)[frequent] / max(1, len(each)) for each in sequences]
    return np.column_stack([np.stack(fractions), [len(each) for each in sequences]])


def _summary(sequence: Any) -> Real:
    x = np.asarray(sequence, np.float64)
    if not len(x):
        return np.zeros(6 * x.shape[1] + 1)
    parts = (x.mean(axis=0), x.std(axis=0), x.min(axis=0), x.max(axis=0), x[0], x[-1], [len(x)])
    return np.concatenate(parts)
