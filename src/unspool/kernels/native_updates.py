"""The native kernels that change parameters: the updates of the optimisers, and the norm of a gradient."""

from __future__ import annotations

import math

from unspool.errors import InputError
from unspool.kernels import _native
from unspool.kernels.arrays import Floats
from unspool.kernels.checks import as_flat, as_floats, as_written


def global_norm(g: Floats) -> float:
    """Return the Euclidean norm, summed in double precision in a fixed order."""
    return _native.global_norm(as_flat(as_floats(g, "g"), "g"))


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
    """Update p, m and v in place: Adam, with decoupled weight decay (AdamW) if `decay` is not zero.

    `step` counts from 1. The gradient is multiplied by `scale` first, for clipping.
    """
    if step < 1:
        raise InputError(f"step is {step}; expected 1 or more")
    corrections = 1.0 - _power(beta1, step), math.sqrt(1.0 - _power(beta2, step))
    _native.update(
        "adam", as_flat(as_written(p, "p"), "p"), as_flat(as_floats(g, "g"), "g"),
        [as_flat(as_written(m, "m"), "m"), as_flat(as_written(v, "v"), "v")], scale,
        [learning_rate, beta1, beta2, epsilon, decay, *corrections],
    )  # fmt: skip


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
    """Update p and v in place: RMSprop with Adam's bias correction, and decoupled weight decay.

    `step` counts from 1. The gradient is multiplied by `scale` first, for clipping.
    """
    if step < 1:
        raise InputError(f"step is {step}; expected 1 or more")
    _native.update(
        "rmsprop", as_flat(as_written(p, "p"), "p"), as_flat(as_floats(g, "g"), "g"), [as_flat(as_written(v, "v"), "v")], scale,
        [learning_rate, beta2, epsilon, decay, math.sqrt(1.0 - _power(beta2, step))],
    )  # fmt: skip


def _power(base: float, exponent: int) -> float:
    """Return base to a whole exponent of 0 or more, by products alone: pow() of a library differs between machines.

    >>> _power(0.5, 10) == 0.5**10
    True
    """
    found = 1.0
    while exponent:
        found *= base if exponent & 1 else 1.0
        base *= base
        exponent >>= 1
    return found


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
    flat_m = None if m is None else as_flat(as_written(m, "m"), "m")
    flat_p, flat_g = as_flat(as_written(p, "p"), "p"), as_flat(as_floats(g, "g"), "g")
    _native.update("sgd", flat_p, flat_g, [flat_m], scale, [learning_rate, momentum, decay])
