"""Products in bf16, in NumPy: the specification. The native kernels give the same bits on every machine.

Operands are rounded to bf16, a float32 with 8 significant bits, and summed in float32 as the instruction TDPBF16PS of AMX sums:

    q(x) = +0 where |x| < 2⁻⁵⁶, else the nearest bf16, ties to even; every NaN is one NaN
    k in blocks of 32 from 0; in a block, E = the chain of multiply-adds over even k from +0, O = the same over odd k
    s = s + (E + O), from +0

A product of two bf16 numbers has at most 16 significant bits, so multiplying and adding in float32 equals a fused multiply-add;
every product is a multiple of 2⁻¹²⁶, so no sum is denormal.
"""

from __future__ import annotations

import numpy as np

from unspool.kernels.arrays import Floats

BLOCK = 32
"""The numbers of one step of the sum."""
LEAST = np.float32(2.0**-56)
"""Smaller numbers become +0."""


def round_bf16(x: Floats) -> Floats:
    """Return q(x) as float32.

    >>> round_bf16(np.array([1.0, 1.005, 1e-20])).tolist()
    [1.0, 1.0078125, 0.0]
    """
    x = np.ascontiguousarray(x, np.float32)
    bits = x.view(np.uint32).astype(np.uint64)
    nearest = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    nearest = np.where(np.abs(x) < LEAST, np.float32(0), nearest)
    rounded: Floats = np.where(np.isfinite(x), nearest, np.where(np.isnan(x), np.float32(np.nan), x))
    return rounded


def product(A: Floats, B: Floats, s: Floats | None = None) -> Floats:
    """Return s + A B, in blocks of 32 from s or +0.

    >>> product(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0], [1.0], [1.005]])).tolist()
    [[6.0234375]]
    """
    A, B = round_bf16(A), round_bf16(B)
    s = np.zeros((len(A), B.shape[1]), np.float32) if s is None else s.astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        for first in range(0, A.shape[1], BLOCK):
            chains = np.zeros((2, *s.shape), np.float32)  # E and O
            for k in range(first, min(first + BLOCK, A.shape[1])):
                chains[k % 2] += A[:, k, None] * B[k]
            s = s + (chains[0] + chains[1])
    return s


def sum_of_outer(A: Floats, B: Floats, s: Floats | None = None) -> Floats:
    """Return s + Aᵀ B: blocks of 32 rows, counted from the last row, from s or +0."""
    return product(A[::-1].T, B[::-1], s)
