"""One step of a module at a time, with weights that are packed once: for streams of values and for generation.

Weights are packed by `freeze`. They do not follow the parameters: freeze again after a change. Nothing here has gradients.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from torch import nn
from unspool.cells.cell import Cell
from unspool.errors import InputError
from unspool.kernels import native
from unspool.kernels.arrays import Activation, Floats
from unspool.torch.layer import MODES, Weights
from unspool.torch.operator import array


class StepLayer(NamedTuple):
    """A layer with packed weights."""

    cell: Cell
    activation: Activation
    U: native.Packed
    W: native.Packed
    b: Floats
    inner: list[Floats]
    """The biases inside products."""


class Steps(NamedTuple):
    """The layers of a module that reads in one direction."""

    layers: list[StepLayer]

    def step(self, x: Floats, h: Floats, s: Floats | None) -> tuple[Floats, Floats | None]:
        """Return h and s (layers, B, H) after one step with x (B, X); s is None in a cell without a cell state."""
        if len(h) != len(self.layers):
            raise InputError(f"state: h has {len(h)} layers; expected {len(self.layers)}")
        h = h.copy()
        s = None if s is None else s.copy()
        for i, (cell, activation, U, W, b, inner) in enumerate(self.layers):
            p = native.matmul(x, U, start=b)
            tape = native.window_forward(
                cell, p[None], W, h[i], s0=None if s is None else s[i], extra=inner, activation=activation
            )
            x = h[i] = tape.hs[1]
            if s is not None and tape.ss is not None:
                s[i] = tape.ss[1]
        return h, s


def packed_steps(module: nn.RNNBase) -> Steps:
    """Return the layers of a module, packed; raise where it cannot read step by step."""
    if module.bidirectional:
        raise InputError("step: not available with bidirectional=True, which reads from the end")
    cell, activation = MODES[module.mode]
    layers = []
    for names in module._all_weights:
        U, W, *biases = (array(getattr(module, name)).copy() for name in names)
        b, inner = Weights(module.mode, False, False, U, W, *(biases or (None, None))).biases()
        packed = native.pack(U, transposed=True), native.pack(W, transposed=True, groups=len(cell.gates))
        layers.append(StepLayer(cell, activation, *packed, b, inner))
    return Steps(layers)


def zero_state(module: nn.RNNBase, B: int) -> Floats:
    """Return h(0) of all layers, zeros (layers, B, H)."""
    return np.zeros((module.num_layers, B, module.hidden_size), np.float32)
