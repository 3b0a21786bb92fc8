"""The arithmetic of a network without hidden state: one hidden layer, forward and backward by hand.

    a = x Uᵀ + b,      h = tanh(a)                                                      (1)
    o = h Vᵀ + c                                                                        (2)

    dV = doᵀ h,   dc = Σ do,   dh = do V                                                (3)
    da = dh ∘ (1 - h²),   dU = daᵀ x,   db = Σ da                                       (4)

x has one row for each window (N X). Where the window is of tokens, x Uᵀ is a sum of rows of tables, one
table for each place of the window, and dU adds up rows: a one-hot vector is never written out.

All arithmetic on matrices is the kernels': `unspool.kernels.native` in float32, or its twin
`unspool.kernels.reference`, which finite differences check in float64.
"""

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.kernels import native
from unspool.kernels.tape import Loss

Array = NDArray[Any]
Parameters = dict[str, Array]


def hidden(parameters: Parameters, x: Array, kernel: ModuleType = native) -> Array:
    """Compute h (N H) from x, N X numbers or N tau tokens: (1)."""
    U, b = parameters["U"], parameters["b"]
    a = _gathered(U, x, kernel) + b if U.ndim == 3 else kernel.matmul(x, U, transpose_b=True, start=b)
    return np.asarray(np.tanh(a))  # (1)


def output(parameters: Parameters, h: Array, kernel: ModuleType = native) -> Array:
    """Compute o (N K) from h: (2)."""
    return np.asarray(kernel.matmul(h, parameters["V"], transpose_b=True, start=parameters["c"]))  # (2)


def backward_output(
    parameters: Parameters, h: Array, do: Array, kernel: ModuleType = native
) -> tuple[Array, Parameters]:
    """Compute dh, and the gradients of V and c, from that of o: (3)."""
    dV = kernel.matmul(do, h, transpose_a=True)  # (3)
    dc = kernel.column_sum(do)
    return kernel.matmul(do, parameters["V"]), {"V": dV, "c": dc}


def backward_hidden(
    parameters: Parameters, x: Array, h: Array, dh: Array, kernel: ModuleType = native
) -> Parameters:
    """Compute the gradients of U and b from that of h: (4)."""
    da, U = dh * (1 - h**2), parameters["U"]  # (4)
    dU = _scattered(U, x, da, kernel) if U.ndim == 3 else kernel.matmul(da, x, transpose_a=True)
    return {"U": dU, "b": kernel.column_sum(da)}


def cross_entropy(
    parameters: Parameters, h: Array, y: Array, kernel: ModuleType = native
) -> tuple[Loss, Parameters]:
    """Score targets y under softmax(o): (2) and (3) in one pass, the gradients those of the mean."""
    gradients = {name: np.zeros_like(parameters[name]) for name in ("V", "c")}
    loss: Loss = kernel.softmax_cross_entropy(
        h, parameters["V"], parameters["c"], y, scale=1 / len(y), dV=gradients["V"], dc=gradients["c"]
    )
    return loss, gradients


def _gathered(U: Array, x: Array, kernel: ModuleType) -> Array:
    """Add up the rows of the tables U (tau K H) that the tokens x (N tau) point at."""
    a: Array = kernel.gather(U[0], x[:, 0])
    for place in range(1, len(U)):
        a += kernel.gather(U[place], x[:, place])
    return a


def _scattered(U: Array, x: Array, da: Array, kernel: ModuleType) -> Array:
    """Add each row of da to the rows of the tables that it came from."""
    dU = np.zeros_like(U)
    for place in range(len(U)):
        kernel.scatter_add(dU[place], x[:, place], da)
    return dU


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
    kernel: ModuleType = native,
) -> None:
    """Take one step of Adam, in place."""
    moments.step += 1
    for name, gradient in gradients.items():
        first = moments.first.setdefault(name, np.zeros_like(gradient))
        second = moments.second.setdefault(name, np.zeros_like(gradient))
        flat = (each.reshape(-1) for each in (parameters[name], gradient, first, second))
        kernel.adam(*flat, step=moments.step, learning_rate=learning_rate)
