"""The updates of the optimisers in plain NumPy, and the norm of a gradient: the specification of `native_updates`."""

from __future__ import annotations

import numpy as np

from unspool.kernels.arrays import Floats


def global_norm(g: Floats) -> float:
    """Return the Euclidean norm, summed in double precision."""
    return float(np.sqrt(np.sum(g.astype(np.float64) ** 2)))


def adam(
    p: Floats,
    g: Floats,
    m: Floats,
    v: Floats,
    *,
    step: int,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    decay: float = 0.0,
    scale: float = 1.0,
) -> None:
    """Update p, m and v in place: Adam, with decoupled weight decay (AdamW) if `decay` is not zero."""
    g = g * g.dtype.type(scale)
    p *= 1 - learning_rate * decay
    m += (1 - beta1) * (g - m)
    v *= beta2
    v += (1 - beta2) * g * g
    root = np.sqrt(v) / (1 - beta2**step) ** 0.5
    p -= learning_rate / (1 - beta1**step) * m / (root + epsilon)


def rmsprop(
    p: Floats,
    g: Floats,
    v: Floats,
    *,
    step: int,
    learning_rate: float,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    decay: float = 0.0,
    scale: float = 1.0,
) -> None:
    """Update p and v in place: RMSprop with Adam's bias correction, and decoupled weight decay."""
    g = g * g.dtype.type(scale)
    p *= 1 - learning_rate * decay
    v *= beta2
    v += (1 - beta2) * g * g
    p -= learning_rate * g / (np.sqrt(v) / (1 - beta2**step) ** 0.5 + epsilon)


def sgd(
    p: Floats,
    g: Floats,
    m: Floats | None = None,
    *,
    learning_rate: float,
    momentum: float = 0.0,
    decay: float = 0.0,
    scale: float = 1.0,
) -> None:
    """Update p (and the momentum m) in place: p -= learning_rate (momentum m + scale g + decay p)."""
    step = g * g.dtype.type(scale) + decay * p
    if m is not None:
        m *= momentum
        m += step
        step = m
    p -= learning_rate * step
