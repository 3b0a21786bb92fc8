"""Project the state on its two principal components.

They are computed by subspace iteration with the native matrix products, so results are equal on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unspool.kernels import native
from unspool.kernels.arrays import Floats, Real

DIRECTIONS, ROUNDS = 8, 60
"""Number of directions and of iterations: the error decays with the ratio of the ninth to the second eigenvalue."""


@dataclass(frozen=True)
class Components:
    """Positions of the state at each token in the plane of most variance."""

    positions: Real
    """float64 (T, 2)."""
    shares: tuple[float, float]
    """Fraction of the variance in each direction."""
    mean: Real
    """The mean state, (H,)."""
    directions: Floats
    """The principal directions, (H, 2)."""

    def project(self, states: Floats) -> Real:
        """Return the positions of other states (T, H) in the same plane."""
        rows = (states.astype(np.float64) - self.mean).astype(np.float32)
        return native.matmul(rows, self.directions[: rows.shape[1]]).astype(np.float64)


def components(states: Floats) -> Components:
    """Return the projection of states (T, H) on their two principal components; the largest weight of each is positive.

    >>> t = np.linspace(0, 6, 50)
    >>> found = components(np.stack([3 * np.cos(t), np.sin(t), 0 * t], axis=1))
    >>> found.positions.shape, round(sum(found.shares), 6)
    ((50, 2), 1.0)
    """
    mean = states.mean(axis=0, dtype=np.float64)
    centred = states.astype(np.float64) - mean
    if centred.shape[1] < 2:
        centred = np.pad(centred, ((0, 0), (0, 1)))
    rows = centred.astype(np.float32)
    covariance = native.matmul(rows, rows, transpose_a=True) / np.float32(len(rows))
    basis = np.random.default_rng(0).standard_normal((len(covariance), min(DIRECTIONS, len(covariance))))
    for _ in range(ROUNDS):
        basis = _orthonormal(native.matmul(covariance, basis.astype(np.float32)).astype(np.float64))
    small = basis.T @ native.matmul(covariance, basis.astype(np.float32)).astype(np.float64)
    variances, turn = np.linalg.eigh((small + small.T) / 2)
    chosen = (basis @ turn[:, ::-1])[:, :2]  # H 2
    chosen *= np.where(np.take_along_axis(chosen, np.abs(chosen).argmax(axis=0)[None], 0) < 0, -1, 1)
    total = max(float(np.trace(covariance, dtype=np.float64)), 1e-300)
    directions = np.ascontiguousarray(chosen, np.float32)
    positions = native.matmul(rows, directions).astype(np.float64)
    first, second = (float(max(each, 0.0) / total) for each in variances[::-1][:2])
    return Components(positions, (first, second), mean, directions)


def _orthonormal(basis: Real) -> Real:
    """Return the columns orthonormalised (Gram-Schmidt)."""
    for i in range(basis.shape[1]):
        column = basis[:, i]
        for _ in range(2):  # twice, against rounding errors
            column = column - basis[:, :i] @ (basis[:, :i].T @ column)
        size = float(np.sqrt(column @ column))
        basis[:, i] = column / size if size > 1e-30 else 0.0
    return basis
