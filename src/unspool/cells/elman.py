"""The Elman recurrence, the network of figure 10.3.

    a(t) = b + W h(t-1) + U x(t)                    (10.8)
    h(t) = act(a(t)), tanh unless said otherwise    (10.9)

The same as PyTorch's `nn.RNN` with b = b_ih + b_hh. In the network of figure 10.4 the output before takes the
place of the state before: a(t) = b + R y(t-1) + U x(t).
"""

from __future__ import annotations

import numpy as np

from unspool.cells.cell import Cell, initialise_uniform
from unspool.kernels.arrays import Floats

CELL = Cell("elman", gates=("a",), has_cell_state=False, has_inner_bias=False, initialise=initialise_uniform)


def initialise_feedback(parameters: dict[str, Floats], rng: np.random.Generator) -> None:
    """Fill U and R evenly, so that each gives a hidden unit a variance of one; the bias with zero."""
    for name in ("U", "R"):
        bound = np.sqrt(3.0 / parameters[name].shape[1])
        parameters[name][:] = rng.uniform(-bound, bound, parameters[name].shape)
    parameters["b"][:] = 0
