"""The arithmetic of a network without hidden state: one hidden layer, forward and backward by hand.

    a = x Uᵀ + b,      h = tanh(a)                                                      (1)
    o = h Vᵀ + c                                                                        (2)

    dV = doᵀ h,   dc = Σ do,   dh = do V                                                (3)
    da = dh ∘ (1 - h²),   dU = daᵀ x,   db = Σ da                                       (4)

x has one row for each window (N X). Where the window is of tokens, x Uᵀ is a sum of rows of tables, one
table for each place of the window, and dU adds up rows: a one-hot vector is never written out.
All products of matrices go through ``product``, all steps of the optimiser through ``adam``.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Parameters = dict[str, Array]


def product(a: Array, b: Array, *, transpose_a: bool = False, transpose_b: bool = False) -> Array:
    """Multiply two matrices, each as it is or transposed."""
    return np.asarray((a.T if transpose_a else a) @ (b.T if transpose_b else b))


@dataclass(frozen=True)
class Tape:
    """What the way back needs of the way forward."""

    x: Array  # N X numbers, or N tau tokens
    h: Array  # N H


def forward(parameters: Parameters, x: Array) -> tuple[Array, Tape]:
    """Compute o from x: (1) and (2)."""
    U, V = parameters["U"], parameters["V"]
    a = _gathered(U, x) if U.ndim == 3 else product(x, U, transpose_b=True)
    h = np.tanh(a + parameters["b"])  # (1)
    o = product(h, V, transpose_b=True) + parameters["c"]  # (2)
    return o, Tape(x, h)


def backward(parameters: Parameters, tape: Tape, do: Array) -> Parameters:
    """Compute all gradients from that of o: (3) and (4)."""
    dV = product(do, tape.h, transpose_a=True)  # (3)
    dh = product(do, parameters["V"])
    da = dh * (1 - tape.h**2)  # (4)
    U = parameters["U"]
    dU = _scattered(U, tape.x, da) if U.ndim == 3 else product(da, tape.x, transpose_a=True)
    return {"U": dU, "b": da.sum(0), "V": dV, "c": do.sum(0)}


def _gathered(U: Array, x: Array) -> Array:
    """Add up the rows of the tables U (tau K H) that the tokens x (N tau) point at."""
    a: Array = U[0][x[:, 0]]
    for place in range(1, len(U)):
        a += U[place][x[:, place]]
    return a


def _scattered(U: Array, x: Array, da: Array) -> Array:
    """Add each row of da to the rows of the tables that it came from."""
    dU = np.zeros_like(U)
    for place in range(len(U)):
        order = np.argsort(x[:, place], kind="stable")
        tokens, first = np.unique(x[order, place], return_index=True)
        dU[place][tokens] = np.add.reduceat(da[order], first)
    return dU


def softmax_cross_entropy(o: Array, y: Array) -> tuple[Array, Array]:
    """Give log P of the targets y, and the gradient of their mean negative by o."""
    shifted = o - o.max(1, keepdims=True)
    log_sum = np.log(np.exp(shifted).sum(1, keepdims=True))
    log_p = shifted - log_sum
    rows = np.arange(len(y))
    do = np.exp(log_p)
    do[rows, y] -= 1
    return log_p[rows, y], do / o.dtype.type(len(y))


@dataclass
class Moments:
    """What Adam remembers."""

    first: Parameters = field(default_factory=dict)
    second: Parameters = field(default_factory=dict)
    step: int = 0


def adam(
    parameters: Parameters,
    gradients: Parameters,
    moments: Moments,
    learning_rate: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> None:
    """Take one step of Adam, in place."""
    moments.step += 1
    corrections = [1 - beta**moments.step for beta in betas]
    for name, gradient in gradients.items():
        first = moments.first.setdefault(name, np.zeros_like(gradient))
        second = moments.second.setdefault(name, np.zeros_like(gradient))
        first += (1 - betas[0]) * (gradient - first)
        second += (1 - betas[1]) * (gradient**2 - second)
        parameters[name] -= (
            learning_rate * (first / corrections[0]) / (np.sqrt(second / corrections[1]) + eps)
        )
