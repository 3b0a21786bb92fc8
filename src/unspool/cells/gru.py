"""The gated recurrent unit, the same function as PyTorch's `nn.GRU`.

    r(t) = sigmoid(b_r + W_r h(t-1) + U_r x(t))
    z(t) = sigmoid(b_z + W_z h(t-1) + U_z x(t))
    q(t) = d + W_n h(t-1)
    n(t) = tanh(b_n + U_n x(t) + r(t) q(t))
    h(t) = (1 - z(t)) n(t) + z(t) h(t-1)

b = b_ih + b_hh in the blocks r and z; in the block n, b is b_ih and d is b_hh, since d stands inside the
reset gate's product.
"""

from unspool.cells.cell import Cell, initialise_uniform

CELL = Cell(
    "gru", gates=("r", "z", "n"), has_cell_state=False, has_inner_bias=True, initialise=initialise_uniform
)
