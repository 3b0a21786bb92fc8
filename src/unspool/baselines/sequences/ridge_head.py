"""Ridge regression with more features than rows, λ chosen by leaving out each row in turn; a linear head of dense features.

    Z: features, standardised on the training rows; y: targets, or +1 for the class of a row and -1 for the others
    G = Z Zᵀ = Q diag(g) Qᵀ,   H(λ) = 1 1ᵀ / n + Q diag(g / (g + λ)) Qᵀ                                (1)
    error of row i left out = (y(i) - (H y)(i)) / (1 - H(i, i))                                        (2)
    (G + λ I) s = y - ȳ,   W = Zᵀ s,   o = Z W + ȳ                                                     (3)

G and (3) are computed by sums whose order does not matter (`exact_product`) or is fixed, so W has the same bits on every machine; (1) and (2)
only choose λ among a few values. Of classes, o is multiplied by the factor with the lowest cross-entropy of the rows left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unspool.kernels import native
from unspool.kernels.arrays import Array, Floats, Real
from unspool.kernels.elementwise import log_softmax

GRID = tuple(10.0**k for k in (-4, -3.5, -3, -2.5, -2, -1.5, -1, -0.5, 0, 0.5, 1))
"""Values of λ, divided by the number of features."""
FACTORS = tuple(2.0 ** (k / 2) for k in range(-2, 15))
MOST_ROWS = 1500
"""Of more rows, the linear system takes too long."""


@dataclass(frozen=True)
class RidgeHead:
    """A linear head of dense features."""

    mean: Floats  # F
    scale: Floats  # F: 1 / standard deviation
    W: Floats  # F K
    c: Floats  # K

    @staticmethod
    def fit(features: Floats, y: Array, K: int, is_discrete: bool) -> RidgeHead:
        """Fit (3) to features (n F) and targets: class ids (n,) or numbers (n, K)."""
        mean, scale = statistics(features)
        Z = (features - mean) * scale
        targets = 2.0 * (y[:, None] == np.arange(K)) - 1 if is_discrete else y.astype(np.float64)
        n, average = len(Z), targets.mean(axis=0)
        G = exact_product(Z.astype(np.float64), Z.T.astype(np.float64))
        ratio, left_out = _choose(G, targets - average, Z.shape[1])
        s = _solve(G + ratio * Z.shape[1] * np.eye(n), targets - average)
        W = native.matmul(np.ascontiguousarray(Z.T), s.astype(np.float32))
        c = average.astype(np.float32)
        if is_discrete:
            factor = np.float32(_factor(left_out + average, y))
            W, c = W * factor, c * factor
        return RidgeHead(mean, scale, W, c)

    def __call__(self, features: Floats) -> Floats:
        """Return o (n K) of features (n F)."""
        return native.matmul((features - self.mean) * self.scale, self.W, start=self.c)


def statistics(features: Floats) -> tuple[Floats, Floats]:
    """Return mean and 1 / standard deviation of features, summed from the last row to the first; 0 where a feature is constant."""
    n = np.float32(len(features))
    mean = native.column_sum(features) / n
    std = np.sqrt(native.column_sum((features - mean) ** 2) / n)
    return mean, np.where(std > 1e-6, 1 / np.maximum(std, np.float32(1e-6)), np.float32(0)).astype(np.float32)


def exact_product(a: Real, b: Real) -> Real:
    """Return a b in float64, the same bits whatever the order of the sums is.

    Both are cut into slices of so few bits that all sums of products of two slices are exact.

    >>> exact_product(np.array([[1.0, 2.0]]), np.array([[3.0], [0.5]])).tolist()
    [[4.0]]
    """
    bits = (52 - int(np.ceil(np.log2(max(2, a.shape[1]))))) // 2
    rows, columns = _slices(a, bits, 1), _slices(b, bits, 0)
    return rows[1] @ columns[0] + rows[0] @ columns[1] + rows[0] @ columns[0]


def _slices(a: Real, bits: int, axis: int) -> tuple[Real, Real]:
    """Return two parts of a that add up to nearly a: multiples of a power of two per row (axis 1) or column."""
    largest = np.abs(a).max(axis=axis, keepdims=True)
    unit = np.exp2(np.ceil(np.log2(np.where(largest > 0, largest, 1))) - bits)
    first = np.rint(a / unit) * unit
    unit = unit * 2.0**-bits
    return first, np.rint((a - first) / unit) * unit


def _choose(G: Real, y: Real, F: int) -> tuple[float, Real]:
    """Return the value of GRID with the smallest error (2), and the predictions of the rows left out."""
    g, Q = np.linalg.eigh(G)
    g, turned, squares, found = np.maximum(g, 0), Q.T @ y, Q**2, []
    for ratio in GRID:
        kept = g / (g + ratio * F)
        leverage = np.minimum(squares @ kept + 1 / len(y), 1 - 1e-9)
        error = (y - Q @ (kept[:, None] * turned)) / (1 - leverage)[:, None]  # (2)
        found.append(((error**2).mean(), ratio, y - error))
    best = min(found, key=lambda each: each[0])
    return best[1], best[2]


def _solve(A: Real, y: Real) -> Real:
    """Solve A s = y for a positive definite A by elimination, in a fixed order."""
    A, s = A.copy(), y.copy()
    n = len(A)
    for k in range(n - 1):
        factor = (A[k + 1 :, k] / A[k, k])[:, None]
        A[k + 1 :, k + 1 :] -= factor * A[k, k + 1 :]
        s[k + 1 :] -= factor * s[k]
    for k in range(n - 1, -1, -1):
        s[k] /= A[k, k]
        s[:k] -= A[:k, k, None] * s[k]
    return s


def _factor(o: Real, y: Array) -> float:
    """Return the factor of FACTORS with the lowest cross-entropy."""
    rows = np.arange(len(y))

    def loss(factor: float) -> float:
        return float(-log_softmax((factor * o).astype(np.float32))[rows, y].mean())

    best: float = min(FACTORS, key=loss)
    return best
