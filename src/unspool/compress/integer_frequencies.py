"""Convert the outputs of a network to integer frequencies that are equal on every machine.

Encoder and decoder need the same integer frequencies f(k). The kernels return bit-identical o on every machine, but exp() of
a library is not bit-identical. So exp() is replaced by a table with steps of 1/2048 of a power of two:

    d(k) = ⌊(max o - o(k)) · 2048 / ln 2⌋            two operations of IEEE arithmetic, and a truncation    (1)
    f(k) = 1 + ⌊2^30 · 2^(-d(k) / 2048)⌋             a table of 2048 integers, and a shift                   (2)
    P(k) = f(k) / Σ f                                                                                      (3)

The error of log P is below ln 2 / 2048 = 0.0003, which costs half of its variance, about 10^-8 nats per token. Every
frequency is at least 1, so any text can be coded.

>>> frequencies(np.float32([0.0, 0.0, -0.6931472, -100.0]))
array([1073741825, 1073741825,  536870913,          1])
"""

from math import isfinite

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Floats, Real, Whole
from unspool.kernels.byte_tables import SHIFT, STEPS, UNIT, powers

STEPS_PER_NAT = 2954.639443740597
"""2048 / ln 2."""
BEYOND = float(STEPS * (UNIT + 1))
"""Steps from which the shifted frequency is 0."""


TABLE = powers().astype(np.int64)
"""2^UNIT · 2^(-i / STEPS), rounded down."""


def frequencies_of(p: Real) -> Whole:
    """Return the frequencies, int64, of tokens with probabilities p, (K,) or (rows, K), which have the same bits at both ends.

    >>> frequencies_of(np.array([0.75, 0.25, 0.0]))
    array([805306369, 268435457,         1])
    """
    f: Whole = 1 + np.floor(p * 2.0**UNIT).astype(np.int64)
    return f


def frequencies(o: Floats) -> Whole:
    """Return the frequencies, int64, of all tokens for outputs o, (K,) or (rows, K)."""
    top = o.max(axis=-1, keepdims=True).astype(np.float64)
    if not isfinite(top.sum()):
        raise InputError("the outputs of the network are not finite; expected a model that has not diverged")
    steps = top - o
    steps *= STEPS_PER_NAT
    d = np.minimum(steps, BEYOND, out=steps).astype(np.int64)  # (1)
    f: Whole = TABLE.take(d & STEPS - 1)
    d >>= SHIFT
    f >>= d
    f += 1  # (2)
    return f
