"""Tables of powers and logarithms of two that are equal on every machine: computed with integers, not with a C library.

    powers(i)  = ⌊2^30 · 2^(-i / 2048)⌋                          i = 0 … 2047              (1)
    squash(i)  = 65536 / (1 + 2^-x),    x = (i - 4096) / 256     i = 0 … 8191              (2)
    stretch(i) = log2(p / (1 - p)),     p = (i + 1/2) / 4096     i = 0 … 4095              (3)

(2) is the logistic function to the base 2, (3) its inverse, in steps of 1/4096.

>>> float(stretch()[3072]), int(squash()[4096 + 256]) / 65536  # log2(3), 2/3
(1.585693359375, 0.666656494140625)
"""

from functools import cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.arrays import Floats

SHIFT = 11
STEPS = 1 << SHIFT
"""Steps per halving."""
UNIT = 30
"""log2 of the first power."""
HALVES = 4096
"""Entries of `stretch` and half of those of `squash`."""


@cache
def powers() -> NDArray[np.uint32]:
    """Return (1), by integer square roots."""
    precise = 128
    root = 1 << precise - 1
    for _ in range(SHIFT):
        root = isqrt(root << precise)  # at the end 2^(-1 / STEPS)
    found = [1 << precise]
    while len(found) < STEPS:
        found.append(found[-1] * root >> precise)
    return np.array([power >> precise - UNIT for power in found], np.uint32)


@cache
def squash() -> NDArray[np.uint16]:
    """Return (2), between 1 and 65535."""
    found, table = list[int](), powers().tolist()
    for i in range(2 * HALVES):
        halvings, rest = divmod(i - HALVES, 256)  # 2^-x is powers(8 rest) 2^-halvings
        power = table[8 * rest] << 16 - halvings  # 2^-x · 2^46
        found.append(min(max((1 << 62) // ((1 << 46) + power), 1), 65535))
    return np.array(found, np.uint16)


@cache
def stretch() -> Floats:
    """Return (3), float32."""
    odd = 2 * np.arange(HALVES, dtype=np.uint64) + np.uint64(1)
    logarithms = _log2(odd)
    found: Floats = ((logarithms - logarithms[::-1]) / 4096).astype(np.float32)
    return found


def _log2(n: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return ⌊4096 log2 n⌋, but for rounding: the bits of a logarithm by squaring."""
    one, half = np.uint64(1), np.uint64(31)
    exponent = np.array([int(each).bit_length() - 1 for each in n], np.uint64)
    y, found = n << (half - exponent), exponent.astype(np.int64)  # 2^31 <= y < 2^32
    for _ in range(12):
        y = y * y >> half
        carry = y >> np.uint64(32)
        found = 2 * found + carry.astype(np.int64)
        y = np.where(carry == one, y >> one, y)
    return found
