"""Initial values of a layer's parameters."""

from __future__ import annotations

import numpy as np

from unspool.kernels import native
from unspool.kernels.arrays import Floats

ROUNDS = 40
"""Enough for the smallest singular value that normal numbers are likely to give."""


def orthogonal(block: Floats, rng: np.random.Generator) -> None:
    """Fill a square block with a random orthogonal matrix: multiplying by its powers preserves norms.

    It is the orthogonal matrix nearest to a matrix of normal numbers, by X ← (3 X - X Xᵀ X) / 2, which moves every
    singular value to 1. Uses the native products, since those of a linear algebra library differ between machines.

    >>> block = np.empty((3, 3), np.float32)
    >>> orthogonal(block, np.random.default_rng(0))
    >>> bool(np.abs(block @ block.T - np.eye(3)).max() < 1e-6)
    True
    """
    far = True
    while (
        far
    ):  # draw again if the numbers are so large or so near to singular that the rounds do not converge
        X = (rng.standard_normal(block.shape) / (2 * np.sqrt(len(block)))).astype(np.float32)
        with np.errstate(all="ignore"):
            for _ in range(ROUNDS):
                X = np.float32(1.5) * X - np.float32(0.5) * native.matmul(
                    native.matmul(X, X, transpose_b=True), X
                )
            far = (
                not np.abs(native.matmul(X, X, transpose_b=True) - np.eye(len(X), dtype=np.float32)).max()
                < 1e-4
            )
    block[:] = X


def uniform(matrix: Floats, rng: np.random.Generator) -> None:
    """Fill a matrix (rows, X) evenly within ±sqrt(3/X): inputs of variance one give outputs of variance one."""
    bound = np.sqrt(3.0 / matrix.shape[1]) if matrix.shape[1] else 0.0
    matrix[:] = rng.uniform(-bound, bound, matrix.shape)


def initialise_layer(parameters: dict[str, Floats], rng: np.random.Generator) -> None:
    """Fill the blocks of W with orthogonal matrices, all other matrices evenly, vectors with zero."""
    for name, value in parameters.items():
        if value.ndim == 1:
            value[:] = 0
        elif name != "W":
            uniform(value, rng)
        else:
            for block in np.split(value, len(value) // value.shape[1]):
                orthogonal(block, rng)
