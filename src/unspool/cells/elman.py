"""The Elman recurrence, the network of figure 10.3.

    a(t) = b + W h(t-1) + U x(t)                    (10.8)
    h(t) = act(a(t)), tanh unless said otherwise    (10.9)

The same as PyTorch's `nn.RNN` with b = b_ih + b_hh.
"""

from unspool.cells.cell import Cell, begin_uniform

CELL = Cell("elman", gates=("a",), has_cell_state=False, has_inner_bias=False, begin=begin_uniform)
