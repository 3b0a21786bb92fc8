"""One layer and direction of `nn.RNN`, `nn.GRU` or `nn.LSTM` on arrays: rows of equal length, or packed rows.

With PyTorch's weights U = weight_ih, W = weight_hh and the biases b_ih and b_hh,

    p(t) = b + U x(t),   b = b_ih + b_hh                                      (1)
    h(t), s(t) = step(p(t), W h(t-1), s(t-1))                                 (2)

In block n of the GRU, b is b_ih alone, and b_hh is d, the bias inside the reset gate's product. Backward, with da(t) from the
kernels, whose first columns are those of p(t),

    ∇U = Σ da(t) x(t)ᵀ,   ∇W = Σ da(t) h(t-1)ᵀ,   ∇b = Σ da(t),   ∇x(t) = Uᵀ da(t)      (3)

Packed rows are those of `PackedSequence`: step t has the first batch_sizes[t] rows, which lie one after the other. (1) and (3)
multiply these rows only; (2) reads p through an index (`Lookup`), so that nothing is padded in between.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unspool.cells import CELLS
from unspool.cells.cell import Cell
from unspool.kernels import native, native_bf16
from unspool.kernels.arrays import Activation, Floats, Ids, Whole
from unspool.kernels.backend import Backend
from unspool.kernels.tape import Lookup, Tape


def _modes() -> dict[str, tuple[Cell, Activation]]:
    found: dict[str, tuple[Cell, Activation]] = {}
    for cell in CELLS.values():
        if cell.torch is not None and cell.has_activation:
            found[f"{cell.torch.name}_TANH"], found[f"{cell.torch.name}_RELU"] = (
                (cell, "tanh"),
                (cell, "relu"),
            )
        elif cell.torch is not None:
            found[cell.torch.name] = cell, "tanh"
    return found


MODES = _modes()
"""The cell and the activation of each of PyTorch's modes."""


class Weights(NamedTuple):
    """One layer and direction of a module: how it computes, and PyTorch's parameters, float32."""

    mode: str
    reverse: bool
    bf16: bool
    U: Floats  # G*H X
    W: Floats  # G*H H
    b_ih: Floats | None  # G*H
    b_hh: Floats | None  # G*H

    @property
    def cell(self) -> Cell:
        """The cell of this mode."""
        return MODES[self.mode][0]

    @property
    def backend(self) -> Backend:
        """The kernels."""
        return native_bf16 if self.bf16 else native

    def biases(self) -> tuple[Floats, list[Floats]]:
        """Return b and the biases inside products (1)."""
        cell, H = self.cell, self.W.shape[1]
        inner = [cell.block(gate, H) for gate in cell.torch.inner_biases] if cell.torch else []
        if self.b_ih is None or self.b_hh is None:
            return np.zeros(len(self.W), np.float32), [np.zeros(H, np.float32) for _ in inner]
        b: Floats = self.b_ih + self.b_hh
        for block in inner:
            b[block] = self.b_ih[block]
        return b, [self.b_hh[block].copy() for block in inner]


class Rows(NamedTuple):
    """Where the rows of a packed sequence lie in a window (tau, B)."""

    lengths: Ids  # B
    at: Ids  # N, the place t B + b of each packed row
    beyond: Ids  # tau B - N, the places without a row
    reads: Ids  # tau B, the packed row of each step; 0 beyond the end

    @staticmethod
    def of(batch_sizes: Whole) -> Rows:
        """Return the places for the numbers of rows of each step, which never rise.

        >>> Rows.of(np.array([2, 1, 1])).lengths.tolist(), Rows.of(np.array([2, 1, 1])).at.tolist()
        ([3, 1], [0, 1, 2, 4])
        """
        valid = np.arange(batch_sizes[0]) < batch_sizes[:, None]
        at, beyond = (np.flatnonzero(each).astype(np.int32) for each in (valid, ~valid))
        reads = np.zeros(valid.shape, np.int32)
        reads.reshape(-1)[at] = np.arange(len(at), dtype=np.int32)
        return Rows(valid.sum(axis=0, dtype=np.int32), at, beyond, reads)


def layer_forward(weights: Weights, x: Floats, h0: Floats, s0: Floats | None, rows: Rows | None) -> Tape:
    """Run one layer over x (tau, B, X), or packed rows (N, X); return the tape, whose states are never packed."""
    backend, cell = weights.backend, weights.cell
    b, inner = weights.biases()
    inputs = x.reshape(-1, x.shape[-1])
    p = backend.matmul(inputs, backend.pack(weights.U, transposed=True), start=b)  # 1
    tape = backend.window_forward(  # 2
        cell,
        p.reshape(*x.shape[:2], -1) if rows is None else Lookup(p, rows.reads),
        weights.W,
        h0,
        s0=s0,
        extra=inner,
        lengths=None if rows is None else rows.lengths,
        activation=MODES[weights.mode][1],
        reverse=weights.reverse,
    )
    if rows is not None and tape.gates is not None:  # not read, but part of the operator's result
        tape.gates.reshape(-1, tape.gates.shape[2])[rows.beyond] = 0
    return tape


class Wanted(NamedTuple):
    """Which gradients a backward pass computes."""

    x: bool
    weights: bool


class LayerGradients(NamedTuple):
    """The gradients of x, of the initial state and of the parameters; None where they are not wanted."""

    x: Floats | None
    h0: Floats
    s0: Floats | None
    U: Floats | None
    W: Floats | None
    b_ih: Floats | None
    b_hh: Floats | None


def layer_backward(
    weights: Weights,
    x: Floats,
    tape: Tape,
    rows: Rows | None,
    gradients: tuple[Floats | None, Floats | None, Floats | None],
    wanted: Wanted,
) -> LayerGradients:
    """Backpropagate the gradients of y, shaped as the layer's output, and of the final h and s."""
    backend, cell, (dy, dh_end, ds_end) = weights.backend, weights.cell, gradients
    tau, B, H = tape.h.shape
    if dy is not None and rows is not None:
        spread = native.zeros((tau * B, H))
        backend.scatter_add(spread, rows.at, dy)
        dy = spread.reshape(tau, B, H)
    extra = weights.biases()[1] if cell.read_by_backward else ()
    back = backend.window_backward(tape, weights.W, extra=extra, dh=dy, dh_end=dh_end, ds_end=ds_end)
    da, h_before = back.da.reshape(tau * B, -1), tape.h_before.reshape(tau * B, H)
    if rows is not None:
        da = backend.gather(da, rows.at)
        h_before = backend.gather(h_before, rows.at) if wanted.weights else h_before
    da_p = da[:, : len(weights.W)]
    dx = backend.matmul(da_p, backend.pack(weights.U)).reshape(x.shape) if wanted.x else None
    if not wanted.weights:
        return LayerGradients(dx, back.dh0, back.ds0, None, None, None, None)
    dU = backend.matmul(da_p, x.reshape(-1, x.shape[-1]), transpose_a=True)
    dW, inner = _recurrent_sums(weights, da, h_before)
    if weights.b_ih is None:
        return LayerGradients(dx, back.dh0, back.ds0, dU, dW, None, None)
    b_ih = backend.column_sum(da_p)
    b_hh = b_ih.copy()
    for gate, total in inner.items():
        b_hh[cell.block(gate, H)] = total
    return LayerGradients(dx, back.dh0, back.ds0, dU, dW, b_ih, b_hh)


def _recurrent_sums(weights: Weights, da: Floats, h_before: Floats) -> tuple[Floats, dict[str, Floats]]:
    """Return the gradient of W, and those of the biases inside products, by gate."""
    cell, H = weights.cell, h_before.shape[1]
    dW, (first, gap) = native.zeros(weights.W.shape), cell.W_gap
    if not gap:
        weights.backend.sum_over_time(da, h_before, dW, accumulate=False)
        return dW, {}
    assert cell.torch is not None
    (gate,) = cell.torch.inner_biases
    total = native.zeros((H,))
    weights.backend.sum_over_time(
        da, h_before, dW, accumulate=False, gap=(first * H, gap * H), total=total, accumulate_total=False
    )
    return dW, {gate: total}
