"""One layer through one window, forwards: b + U x(t) for all steps at once, then the recurrence."""

from __future__ import annotations

from dataclasses import dataclass

from unspool.cells import cell_named
from unspool.kernels.arrays import Activation, CellName, Floats, Ids, cached_attribute
from unspool.kernels.backend import Backend, Packed
from unspool.kernels.tape import Lookup, Tape


@dataclass
class LayerWeights:
    """The weights of one layer and direction, laid out for the kernels once and used for many windows."""

    cell: CellName
    activation: Activation
    reverse: bool
    U: Floats  # X G*H, transposed as it is stored
    W: Floats  # G*H H; R (H K) in its place where only the output comes back
    b: Floats  # G*H
    d: Floats | None  # H
    E: Floats | None  # K X, where the input is tokens with an embedding
    backend: Backend

    @cached_attribute
    def table(self) -> Floats:
        """b + U x for every token: a step of one-hot or embedded input is a row of it. K G*H."""
        if self.E is not None:
            return self.backend.matmul(self.E, self.U, start=self.b)
        return self.backend.shift_rows(self.U, self.b)

    @cached_attribute
    def U_forward(self) -> Packed:
        """U as b + U x(t) needs it."""
        return self.backend.pack(self.U)

    @cached_attribute
    def U_backward(self) -> Packed:
        """U as the gradient of x(t) needs it."""
        return self.backend.pack(self.U, transposed=True)

    @cached_attribute
    def W_forward(self) -> Packed:
        """W as the recurrence needs it."""
        return self.backend.pack(self.W, transposed=True, groups=len(cell_named(self.cell).gates))

    @cached_attribute
    def W_backward(self) -> Packed:
        """W as BPTT needs it."""
        return self.backend.pack(self.W)


def unroll(
    weights: LayerWeights,
    x: Floats | Ids,
    h0: Floats,
    s0: Floats | None,
    lengths: Ids | None,
    keep: Floats | None,
) -> Tape:
    """Take the state through the window x: tokens (tau, B) or values (tau, B, X)."""
    p: Floats | Lookup
    if x.ndim == 2:
        p = Lookup(weights.table, x)
    else:
        tau, B, X = x.shape
        p = weights.backend.matmul(x.reshape(tau * B, X), weights.U_forward, start=weights.b)
        p = p.reshape(tau, B, len(weights.b))
    return weights.backend.window_forward(
        weights.cell,
        p,
        weights.W_forward,
        h0,
        s0=s0,
        d=weights.d,
        lengths=lengths,
        activation=weights.activation,
        reverse=weights.reverse,
        keep=keep,
    )
