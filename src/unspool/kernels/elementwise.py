"""tanh, sigmoid and softmax of any array, with the bits of the kernels on every machine.

>>> tanh(np.array([0.0, 1.0], np.float32))
array([0.       , 0.7615942], dtype=float32)
"""

from __future__ import annotations

import numpy as np

from unspool.kernels import native
from unspool.kernels.arrays import Activation, Floats


def tanh(x: Floats) -> Floats:
    """Return tanh(x)."""
    return _activated(x, "tanh")


def sigmoid(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x))."""
    return _activated(x, "sigmoid")


def _activated(x: Floats, activation: Activation) -> Floats:
    return native.activate(x.astype(np.float32) + np.float32(0), activation)  # +0: -0 becomes 0


def softmax(o: Floats) -> Floats:
    """Return exp(o) / Σ exp(o) along the last axis, summed from the first to the last.

    exp(x) = sigmoid(x) / (1 - sigmoid(x)), which loses nothing where x is not above zero.

    >>> softmax(np.zeros((1, 4), np.float32)).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    if not o.size:
        return o.astype(np.float32)
    below = sigmoid(o - o.max(axis=-1, keepdims=True)).astype(np.float64)
    e = below / (1 - below)
    result: Floats = (e / np.cumsum(e, axis=-1)[..., -1:]).astype(np.float32)
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
