"""What the recurrences have in common: gate blocks stacked in one U (G*H, X), one W (G*H, H), one b (G*H)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unspool.kernels import native
from unspool.kernels.arrays import CellName, Floats

Shapes = dict[str, tuple[int, ...]]
ROUNDS = 40
"""Enough for the smallest singular value that normal numbers are likely to give."""


@dataclass(frozen=True)
class Cell:
    """A recurrence. The order of `gates` is the order of the blocks in U, W and b, everywhere."""

    name: CellName
    gates: tuple[str, ...]
    has_cell_state: bool
    has_inner_bias: bool
    initialise: Callable[[dict[str, Floats], np.random.Generator], None]

    def shapes(self, X: int, H: int) -> Shapes:
        """Return the parameters of one layer that reads X values.

        >>> from unspool.cells import cell_named
        >>> cell_named("elman").shapes(X=3, H=5)
        {'U': (5, 3), 'W': (5, 5), 'b': (5,)}
        """
        G = len(self.gates)
        shapes: Shapes = {"U": (G * H, X), "W": (G * H, H), "b": (G * H,)}
        return shapes | {"d": (H,)} if self.has_inner_bias else shapes


def orthogonal(block: Floats, rng: np.random.Generator) -> None:
    """Fill a square block with a random rotation: every power of it keeps the length of a vector.

    The rotation nearest to a matrix of normal numbers, by X ← (3 X - X Xᵀ X) / 2, which brings every singular
    value to 1. With our own products, since those of a linear algebra library differ between machines.

    >>> block = np.empty((3, 3), np.float32)
    >>> orthogonal(block, np.random.default_rng(0))
    >>> bool(np.abs(block @ block.T - np.eye(3)).max() < 1e-6)
    True
    """
    far = True
    while far:  # numbers so large or so near to singular that the rounds end elsewhere are drawn again
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


def initialise_uniform(parameters: dict[str, Floats], rng: np.random.Generator) -> None:
    """Fill U evenly within ±sqrt(3/X) gains of one, W with rotations a gate, biases with zero."""
    U, W = parameters["U"], parameters["W"]
    bound = np.sqrt(3.0 / U.shape[1]) if U.shape[1] else 0.0
    U[:] = rng.uniform(-bound, bound, U.shape)
    H = W.shape[1]
    for g in range(len(W) // H):
        orthogonal(W[g * H : (g + 1) * H], rng)
    for name in ("b", "d"):
        if name in parameters:
            parameters[name][:] = 0
