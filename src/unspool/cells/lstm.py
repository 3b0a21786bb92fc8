"""Long short-term memory, the same function as PyTorch's `nn.LSTM`.

    i(t) = sigmoid(b_i + W_i h(t-1) + U_i x(t))
    f(t) = sigmoid(b_f + W_f h(t-1) + U_f x(t))
    g(t) = tanh(b_g + W_g h(t-1) + U_g x(t))
    o(t) = sigmoid(b_o + W_o h(t-1) + U_o x(t))
    s(t) = f(t) s(t-1) + i(t) g(t)
    h(t) = o(t) tanh(s(t))

The cell state is s, since c is the output's bias; b = b_ih + b_hh. The forget gate begins open (b_f = 1), so
that a fresh network remembers.
"""

from __future__ import annotations

import numpy as np

from unspool.cells.cell import Cell, initialise_uniform
from unspool.kernels.arrays import Floats


def initialise(parameters: dict[str, Floats], rng: np.random.Generator) -> None:
    """Begin as the others do, with the forget gate open."""
    initialise_uniform(parameters, rng)
    H = parameters["W"].shape[1]
    parameters["b"][H : 2 * H] = 1


CELL = Cell(
    "lstm", gates=("i", "f", "g", "o"), has_cell_state=True, has_inner_bias=False, initialise=initialise
)
