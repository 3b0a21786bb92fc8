"""Backpropagation through time, by hand: one layer through one window, backwards.

With da(t) the gradient of the pre-activations (from the kernels, equations 10.20 and 10.21),

    ∇b = Σ da(t)                    (10.23)
    ∇W = Σ da(t) h(t-1)ᵀ            (10.26)
    ∇U = Σ da(t) x(t)ᵀ              (10.28)
    ∇x(t) = Uᵀ da(t)

The sums run from tau to 1. Gradients are added to what is there: a long sequence in several windows, the last
one first, gives the same bits as in one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unspool.config import ModelConfig
from unspool.kernel import ops
from unspool.parameters import Parameters, prefix
from unspool.unroll import LayerWeights
from unspool.values import Backward, Floats, Ids, Tape


@dataclass
class Gradient:
    """The gradient of all parameters, and the sums that are folded into it at the end."""

    config: ModelConfig
    values: Parameters
    tables: dict[bool, Floats] = field(default_factory=dict)
    """Where tokens are looked up in E Uᵀ + b: the gradient of that table, by direction. K G*H."""
    embedded: Floats | None = None
    """Where rows of E are read: the gradient of those rows. K X."""

    @property
    def flat(self) -> Floats:
        """The flat vector."""
        return self.values.flat

    def clear(self) -> None:
        """Back to zero, for the next update."""
        self.values.flat[:] = 0
        for table in self.tables.values():
            table[:] = 0
        if self.embedded is not None:
            self.embedded[:] = 0

    def finish(self, E: Floats | None, first: list[LayerWeights]) -> None:
        """Fold the gradients of tables into those of U, b and E: table = E Uᵀ + b."""
        for weights in first:
            at = prefix(0, weights.reverse)
            if E is None:
                if self.config.looks_up:
                    ops.column_sum(self.values.stored(at + "U"), out=self.values[at + "b"])
            elif weights.reverse in self.tables:
                table = self.tables[weights.reverse]
                ops.column_sum(table, out=self.values[at + "b"])
                ops.matmul(E, table, transpose_a=True, out=self.values.stored(at + "U"))
                self.values["E"][:] += ops.matmul(table, weights.U_backward)
        if self.embedded is not None:
            self.values["E"][:] += self.embedded


def bptt(
    weights: LayerWeights,
    layer: int,
    x: Floats | Ids,
    tape: Tape,
    gradient: Gradient,
    *,
    dh: Floats | None,
    dh_end: Floats | None = None,
    ds_end: Floats | None = None,
    want_dx: bool = True,
) -> tuple[Floats | None, Backward]:
    """Add one window's gradients of U, W, b and d; return that of x and those of the starting state."""
    back = ops.window_backward(tape, weights.W_backward, dh=dh, dh_end=dh_end, ds_end=ds_end)
    at = prefix(layer, weights.reverse)
    tau, B, H = tape.h.shape
    rows = tau * B
    da = back.da.reshape(rows, back.da.shape[2])
    recurrent_gradient(tape, da, gradient.values[at + "W"])
    if weights.d is not None:
        ops.column_sum(da[:, 3 * H :], out=gradient.values[at + "d"])
    da = da[:, : len(weights.b)]
    if x.ndim == 2:
        ops.scatter_add(_table_gradient(weights, gradient, at), x.reshape(-1), da)
        return None, back
    inputs = _without_padding(x, tape.lengths).reshape(rows, x.shape[2])
    ops.column_sum(da, out=gradient.values[at + "b"])
    ops.matmul(inputs, da, transpose_a=True, out=gradient.values.stored(at + "U"))
    if not want_dx:
        return None, back
    return ops.matmul(da, weights.U_backward).reshape(x.shape), back


def recurrent_gradient(tape: Tape, da: Floats, dW: Floats) -> None:
    """Add Σ da(t) h(t-1)ᵀ to dW; the GRU's third block has its own gradient, that of q."""
    H = dW.shape[1]
    past = tape.h_before.reshape(len(da), H)
    if tape.cell != "gru":
        ops.matmul(da, past, transpose_a=True, out=dW)
        return
    ops.matmul(da[:, : 2 * H], past, transpose_a=True, out=dW[: 2 * H])
    ops.matmul(da[:, 3 * H :], past, transpose_a=True, out=dW[2 * H :])


def _table_gradient(weights: LayerWeights, gradient: Gradient, at: str) -> Floats:
    if weights.E is None:
        return gradient.values.stored(at + "U")
    if weights.reverse not in gradient.tables:
        gradient.tables[weights.reverse] = ops.zeros((len(weights.E), len(weights.b)))
    return gradient.tables[weights.reverse]


def _without_padding(x: Floats, lengths: Ids | None) -> Floats:
    """Beyond a row's length there may be anything, NaN included; zero times NaN would not be zero."""
    if lengths is None:
        return x
    return np.where((np.arange(len(x))[:, None] < lengths)[:, :, None], x, np.float32(0))
