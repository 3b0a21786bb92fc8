"""From the network's outputs to whole numbers that are the same on every machine.

The coder needs whole frequencies f(k), and both sides need the same ones. The engine gives the same bits of o
everywhere; the exponential of a library does not. So there is none: with steps of 1/2048 of a power of two,

    d(k) = ⌊(max o - o(k)) · 2048 / ln 2⌋            two operations of IEEE arithmetic, and a truncation    (1)
    f(k) = 1 + ⌊2^30 · 2^(-d(k) / 2048)⌋             a table of 2048 whole numbers, and a shift             (2)
    P(k) = f(k) / Σ f                                                                                      (3)

A logarithm is off by less than ln 2 / 2048 = 0.0003, which costs half of its variance, some 10^-8 nats a token. No
token has a frequency of zero, so any text can be coded.

>>> frequencies(np.float32([0.0, 0.0, -0.6931472, -100.0]))
array([1073741825, 1073741825,  536870913,          1])
"""

from math import isfinite, isqrt

import numpy as np
from numpy.typing import NDArray

from unspool.errors import InputError
from unspool.kernels.arrays import Floats

Whole = NDArray[np.int64]

SHIFT = 11
STEPS = 1 << SHIFT
"""Steps of the exponent between a frequency and half of it."""
UNIT = 30
"""The most probable token has the frequency 2^UNIT + 1."""
STEPS_A_NAT = 2954.639443740597
"""2048 / ln 2."""
BEYOND = float(STEPS * (UNIT + 1))
"""From here on a shift leaves nothing."""


def _table() -> Whole:
    """Give 2^UNIT · 2^(-i / STEPS), rounded down, from square roots of whole numbers."""
    precise = 128
    root = 1 << precise - 1
    for _ in range(SHIFT):
        root = isqrt(root << precise)  # at the end 2^(-1 / STEPS)
    powers = [1 << precise]
    while len(powers) < STEPS:
        powers.append(powers[-1] * root >> precise)
    return np.array([power >> precise - UNIT for power in powers], np.int64)


TABLE = _table()


def frequencies(o: Floats) -> Whole:
    """Give the frequencies of all tokens for outputs o, (K,) or (rows, K)."""
    top = o.max(axis=-1, keepdims=True).astype(np.float64)
    if not isfinite(top.sum()):
        raise InputError("the network's outputs are not finite numbers: nothing can be coded with it")
    steps = top - o
    steps *= STEPS_A_NAT
    d = np.minimum(steps, BEYOND, out=steps).astype(np.int64)  # (1)
    f: Whole = TABLE.take(d & STEPS - 1)
    d >>= SHIFT
    f >>= d
    f += 1  # (2)
    return f
