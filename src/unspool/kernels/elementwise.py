"""tanh, softmax, logarithms of any array, in the precision of a backend: native has the same bits on every machine.

>>> tanh(np.array([0.0, 1.0], np.float32))
array([0.       , 0.7615942], dtype=float32)
"""

from __future__ import annotations

import numpy as np

from unspool.kernels import native
from unspool.kernels.arrays import Activation, Floats
from unspool.kernels.backend import Backend


def tanh(x: Floats, backend: Backend = native) -> Floats:
    """Return tanh(x)."""
    return _activated(x, "tanh", backend)


def _activated(x: Floats, activation: Activation, backend: Backend) -> Floats:
    return backend.activate(x.astype(backend.DTYPE) + backend.DTYPE(0), activation)  # +0: -0 becomes 0


def exp(x: Floats, backend: Backend = native) -> Floats:
    """Return exp(x) = sigmoid(x) / (1 - sigmoid(x)), which loses nothing where x is not above zero."""
    s = _activated(x, "sigmoid", backend).astype(np.float64)
    return s / (1 - s)


def softmax(o: Floats, backend: Backend = native) -> Floats:
    """Return exp(o) / Σ exp(o) along the last axis, summed from the first to the last.

    >>> softmax(np.zeros((1, 4), np.float32)).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    if not o.size:
        return o.astype(backend.DTYPE)
    e = exp(o - o.max(axis=-1, keepdims=True), backend)
    result: Floats = (e / np.cumsum(e, axis=-1)[..., -1:]).astype(backend.DTYPE)
    return result


def log_softmax(o: Floats, backend: Backend = native) -> Floats:
    """Return log softmax(o) along the last axis, in float64.

    >>> log_softmax(np.zeros((1, 4), np.float32)).round(4).tolist()
    [[-1.3863, -1.3863, -1.3863, -1.3863]]
    """
    below = o.astype(np.float64) - o.max(axis=-1, keepdims=True)
    result: Floats = below - np.log(np.cumsum(exp(below, backend), axis=-1)[..., -1:])
    return result


def log(x: Floats) -> Floats:
    """Return log x of float64 from 0 on, to about one part in 10¹⁵, from basic operations: the same number on every machine.

    x = 2ⁿ m with 1/√2 ≤ m < √2, and log m = 2 artanh s = 2 (s + s³/3 + s⁵/5 + …) with s = (m - 1) / (m + 1).

    >>> log(np.array([1.0, 0.5, 0.0])).round(6).tolist()
    [0.0, -0.693147, -inf]
    """
    m, n = np.frexp(x)
    low = m < 0.7071067811865476
    m, n = np.where(low, 2 * m, m), n - low
    s = (m - 1) / (m + 1)
    square = s * s
    series = np.full_like(s, 1 / 23)
    for odd in range(21, 0, -2):
        series = series * square + 1 / odd
    result: Floats = np.where(x > 0, n * 0.6931471805599453 + 2 * s * series, -np.inf)
    return result


def squareplus(x: Floats) -> tuple[Floats, Floats]:
    """Return (x + √(x² + 4)) / 2, which is above zero and one at zero, and its derivative.

    Like log(1 + exp(x)), with a square root alone: that is the same number on every machine.

    >>> [float(part[0]) for part in squareplus(np.array([0.0]))]
    [1.0, 0.5]
    """
    x = x.astype(np.float64)
    root = np.sqrt(x * x + 4)
    value = np.where(x > 0, (root + x) / 2, 2 / (root + np.abs(x)))
    return value, value / root
