"""One layer and direction in PyTorch's own operators, step by step: for gradients of higher order.

The gradients of first order of a layer are functions of its inputs and of the gradients from above. Their derivatives are
found by computing the layer again with PyTorch's cells, whose gradients can be differentiated any number of times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import _VF, Tensor

CELLS: dict[str, Any] = {"RNN_TANH": _VF.rnn_tanh_cell, "RNN_RELU": _VF.rnn_relu_cell, "GRU": _VF.gru_cell}
"""PyTorch's cells with one state; that of the LSTM has two."""


def layer(inputs: Sequence[Tensor | None], mode: str, reverse: bool) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return y and the final h and s of a layer: the inputs are those of `recurrent_layer`."""
    x, h, s, U, W, b_ih, b_hh, batch_sizes = inputs
    assert x is not None and h is not None and U is not None and W is not None
    steps = list(x if batch_sizes is None else torch.split(x, batch_sizes.tolist()))
    y: list[Tensor] = []
    for now in reversed(steps) if reverse else steps:
        n = len(now)  # rows that have this step
        past, past_s = h[:n], None if s is None else s[:n]
        if past_s is None:
            new, new_s = CELLS[mode](now, past, U, W, b_ih, b_hh), None
        else:
            new, new_s = _VF.lstm_cell(now, (past, past_s), U, W, b_ih, b_hh)
        y.append(new)
        h = torch.cat([new, h[n:]])
        s = None if s is None or new_s is None else torch.cat([new_s, s[n:]])
    y = y[::-1] if reverse else y
    return torch.stack(y) if batch_sizes is None else torch.cat(y), h, s


def second_order(
    saved: Sequence[Tensor | None],
    d_gradients: Sequence[Tensor | None],
    needed: Sequence[bool],
    mode: str,
    reverse: bool,
) -> list[Tensor | None]:
    """Return the gradients of (dy, dh_end, ds_end, x, h0, s0, U, W, b_ih, b_hh).

    `saved` has these and batch_sizes; `d_gradients` are those of the gradients of x, h0, s0, U, W, b_ih, b_hh.
    """
    higher = torch.is_grad_enabled()
    with torch.enable_grad():
        parts = [_alias(each) for each in saved[:10]]
        above, inputs = parts[:3], parts[3:]
        outputs = layer((*inputs, saved[10]), mode, reverse)
        pairs = [(o, d) for o, d in zip(outputs, above, strict=True) if o is not None and d is not None]
        asked = [(i, d) for i, d in zip(inputs, d_gradients, strict=True) if i is not None and d is not None]
        first = torch.autograd.grad(
            [o for o, _ in pairs],
            [i for i, _ in asked],
            [d for _, d in pairs],
            create_graph=True,
            allow_unused=True,
        )
        sums = [(g, d) for g, (_, d) in zip(first, asked, strict=True) if g is not None and g.requires_grad]
        wanted = {i: each for i, each in enumerate(parts) if each is not None and needed[i]}
        found: list[Tensor | None] = [None] * 10
        if sums and wanted:
            second = torch.autograd.grad(
                [g for g, _ in sums],
                list(wanted.values()),
                [d for _, d in sums],
                create_graph=higher,
                allow_unused=True,
            )
            for i, gradient in zip(wanted, second, strict=True):
                found[i] = gradient
    return found


def _alias(tensor: Tensor | None) -> Tensor | None:
    """Return the same values with a place of their own in the graph."""
    if tensor is None:
        return None
    return tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
