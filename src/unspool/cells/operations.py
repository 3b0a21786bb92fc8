"""Operations of a computational graph, forward and backward, with the arithmetic of the kernels.

    affine     b + Σ W v              the bias, then the products of the edges in order, each added to what is there
    gate       sigmoid or tanh        of one block of the pre-activations a

An operation takes the values on its edges, the matrices on its edges and its own biases. The forward pass is
bit-identical to the kernels. Gates share a division there, so that one step of the kernel computes them, with W = -0,
which adds nothing. The backward pass is written in NumPy and agrees to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unspool.kernels import native
from unspool.kernels.arrays import Activation, Floats, Ids
from unspool.kernels.backend import Backend
from unspool.kernels.recurrence import Recurrence
from unspool.kernels.reference import slope

Values = list[Any]
"""Values on the edges of a node: floats (B, size), or tokens (B,)."""


@dataclass
class Reads:
    """The arguments of an operation."""

    values: Values
    weights: list[Floats | None]
    biases: list[Floats]
    backend: Backend = native
    """What multiplies matrices, in the precision of the network."""
    continued: frozenset[int] = frozenset()
    """The edges whose matrix goes on with further columns of the one before: the two make one product."""


@dataclass
class Gradients:
    """The result of an operation's backward pass: a gradient of everything it read, None for tokens."""

    values: list[Floats | None]
    weights: list[Floats | None]
    biases: list[Floats]


@dataclass(frozen=True)
class Operation:
    """A node's computation and its backward pass."""

    forward: Callable[[Reads], Floats]
    backward: Callable[[Reads, Floats, Floats], Gradients]
    """Called with the arguments, the result and the gradient of the result."""


def fma(a: Floats, b: Floats, c: Floats) -> Floats:
    """Return a b + c in float32, rounded once.

    In float64 the product is exact and the sum is rounded to odd; rounding that to float32 is then as if the
    sum had been exact.

    >>> a, c = np.float32([1 + 2**-23]), np.float32([-1])
    >>> bool(fma(a, a, c) == np.float32(2**-22 + 2**-46)), bool(a * a + c == np.float32(2**-22))
    (True, True)
    """
    product, c = a.astype(np.float64) * b, c.astype(np.float64)
    total = product + c
    part = total - product
    error = (product - (total - part)) + (c - part)  # what the sum lost, exactly
    even = (total.view(np.int64) & 1) == 0
    odd = np.where((error != 0) & even, np.nextafter(total, np.copysign(np.inf, error)), total)
    return odd.astype(np.float32)


NOTHING = np.full((1, 1), -0.0, np.float32)
"""A W that changes no sum, not even the sign of a zero."""


def _tape(cell: Recurrence, p: Floats) -> Floats:
    """Run pre-activations (B, G, H) through one step of the kernel; return its tape, B H T."""
    B, G, H = p.shape
    rows = np.ascontiguousarray(p.transpose(0, 2, 1)).reshape(1, B * H, G)
    zero = np.zeros((B * H, 1), np.float32)
    tape = native.window_forward(
        cell,
        rows,
        np.repeat(NOTHING, G, axis=0) if cell.has_W else None,
        zero,
        s0=zero if cell.has_cell_state else None,
        extra=[np.zeros(each.shape(1, G), np.float32) for each in cell.extra],
    )
    assert tape.gates is not None
    taped: Floats = tape.gates.reshape(B, H, -1)
    return taped


def affine(reads: Reads) -> Floats:
    """Return b + Σ W v as one chain; a token selects a column of its matrix."""
    total: Floats | None = reads.biases[0] if reads.biases else None
    for value, W in _products(reads):
        if value.ndim == 1:
            total = _with_columns(total, W, value)
        else:
            total = reads.backend.matmul(np.ascontiguousarray(value), np.ascontiguousarray(W.T), start=total)
    assert total is not None
    return total


def _products(reads: Reads) -> list[tuple[Any, Floats]]:
    """Return the value and the matrix of every product."""
    found: list[tuple[Any, Floats]] = []
    for i, (value, W) in enumerate(zip(reads.values, reads.weights, strict=True)):
        assert W is not None
        if i in reads.continued:
            value, W = (np.concatenate(pair, axis=1) for pair in zip(found.pop(), (value, W), strict=True))
        found.append((value, W))
    return found


def _with_columns(total: Floats | None, W: Floats, tokens: Ids) -> Floats:
    """Add each row's column of W; a token below zero adds nothing."""
    if total is None or total.ndim == 1:
        zero = np.zeros(len(W), np.float32) if total is None else total
        total = np.repeat(zero[None], len(tokens), axis=0)
    seen = tokens >= 0
    return np.where(seen[:, None], W.T[np.maximum(tokens, 0)] + total, total)


def affine_back(reads: Reads, _: Floats, d: Floats) -> Gradients:
    """Return the gradients of the values, the matrices and the bias."""
    values: list[Floats | None] = []
    weights: list[Floats | None] = []
    for value, W in zip(reads.values, reads.weights, strict=True):
        assert W is not None
        if value.ndim == 1:
            values.append(None)
            seen = value >= 0
            weights.append(scattered(value[seen], d[seen], W.shape[::-1]).T)
        else:
            values.append(reads.backend.matmul(d, np.ascontiguousarray(W)))
            weights.append(reads.backend.matmul(d, np.ascontiguousarray(value), transpose_a=True))
    return Gradients(values, weights, [native.column_sum(d)] if reads.biases else [])


def scattered(ids: Ids, rows: Floats, shape: tuple[int, ...]) -> Floats:
    """Return zeros of a shape with each row added to the row of its id."""
    table = native.zeros(shape)
    native.scatter_add(table, np.ascontiguousarray(ids), np.ascontiguousarray(rows))
    return table


def gate(cell: Recurrence, name: str, *, blocks: int, activation: Activation = "sigmoid") -> Operation:
    """Return the operation of one gate, which reads the first `blocks` blocks of the pre-activations.

    The kernel must store the gates in the first columns of its tape. All of them are computed, and one is taken.
    """
    at = cell.gates.index(name)

    def forward(reads: Reads) -> Floats:
        a = reads.values[0].reshape(len(reads.values[0]), blocks, -1)
        missing = np.zeros((len(a), len(cell.gates) - blocks, a.shape[2]), np.float32)
        return np.ascontiguousarray(_tape(cell, np.concatenate([a, missing], axis=1))[:, :, at])

    def backward(reads: Reads, value: Floats, d: Floats) -> Gradients:
        da = np.zeros((len(value), blocks, value.shape[1]), np.float32)
        da[:, at] = d * slope(value, activation)
        return Gradients([da.reshape(len(value), -1)], [None], [])

    return Operation(forward, backward)
