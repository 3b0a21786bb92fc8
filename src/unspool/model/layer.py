"""One layer and direction over one window, forward and backward.

    p(t) = b + U x(t)               for all steps at once, then the recurrence of the cell

With da(t) the gradient that the kernels return (equations 10.20 and 10.21), whose first columns are those of p(t),

    ∇b = Σ da(t)                    (10.23)
    ∇W = Σ da(t) h(t-1)ᵀ            (10.26)
    ∇U = Σ da(t) x(t)ᵀ              (10.28)
    ∇x(t) = Uᵀ da(t)

and the further parameters of a cell have sums of other columns of da. The sums run from tau to 1 and are added to the
gradient: a long sequence in several windows, the last one first, gives the same bits as in one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unspool.cells.cell import Cell
from unspool.kernels.arrays import Activation, Floats, Ids, cached_attribute
from unspool.kernels.backend import Backend, Packed
from unspool.kernels.recurrence import Extra
from unspool.kernels.tape import Backward, Lookup, Tape
from unspool.model.gradient import Gradient, Gradients, by_rows


@dataclass
class LayerWeights:
    """The weights of one layer and direction, packed once for the kernels and used for many windows."""

    cell: Cell
    activation: Activation
    reverse: bool
    prefix: str
    """What the names of its parameters begin with: layer0. or layer0.reverse."""
    U: Floats | None  # X G*H, transposed as it is stored; None for a cell that reads x(t) itself
    W: Floats | None  # G*H H; R (H K) in its place if only the output is fed back
    b: Floats | None  # G*H
    extra: tuple[Floats, ...]
    """The further parameters of the cell."""
    E: Floats | None  # K X, if the input is tokens with an embedding
    backend: Backend

    @cached_attribute
    def table(self) -> Floats:
        """p = b + U x for every token: a step with a one-hot or embedded input gathers a row of it. K P."""
        return self.table_of(self.E)

    def table_of(self, E: Floats | None) -> Floats:
        """Return p for every token, with this embedding or one-hot."""
        if self.U is None or self.b is None:
            assert E is not None
            return E
        backend = self.backend
        return backend.shift_rows(self.U, self.b) if E is None else backend.matmul(E, self.U, start=self.b)

    @cached_attribute
    def U_forward(self) -> Packed:
        """U packed for b + U x(t)."""
        assert self.U is not None
        return self.backend.pack(self.U)

    @cached_attribute
    def U_backward(self) -> Packed:
        """U packed for the gradient of x(t)."""
        assert self.U is not None
        return self.backend.pack(self.U, transposed=True)

    @cached_attribute
    def W_forward(self) -> Packed | None:
        """W packed for the recurrence."""
        if self.W is None:
            return None
        return self.backend.pack(self.W, transposed=True, groups=len(self.cell.gates))

    @cached_attribute
    def W_backward(self) -> Packed | None:
        """W packed for the backward pass."""
        return None if self.W is None else self.backend.pack(self.W, cut=self.cell.W_cut(self.W.shape[1]))

    @cached_attribute
    def extra_forward(self) -> list[Floats | Packed]:
        """The further parameters for the recurrence, matrices packed."""
        return [each if each.ndim == 1 else self.backend.pack(each, transposed=True) for each in self.extra]

    @cached_attribute
    def extra_backward(self) -> list[Floats | Packed]:
        """The further parameters for the backward pass, matrices packed."""
        return [each if each.ndim == 1 else self.backend.pack(each) for each in self.extra]


def input_part(weights: LayerWeights, x: Floats | Ids) -> Floats | Lookup:
    """Return p(t) = b + U x(t) of all steps, as values (tau, B, P) or as rows of a table."""
    if x.ndim == 2:
        return Lookup(weights.table, x)
    if weights.U is None:
        return x
    tau, B, X = x.shape
    p = weights.backend.matmul(x.reshape(tau * B, X), weights.U_forward, start=weights.b)
    return p.reshape(tau, B, p.shape[1])


def layer_forward(
    weights: LayerWeights,
    x: Floats | Ids,
    h0: Floats,
    s0: Floats | None,
    lengths: Ids | None,
    recurrent_mask: Floats | None,
) -> Tape:
    """Run a layer over the window x: tokens (tau, B) or values (tau, B, X)."""
    return weights.backend.window_forward(
        weights.cell,
        input_part(weights, x),
        weights.W_forward,
        h0,
        s0=s0,
        extra=weights.extra_forward if weights.extra else (),
        lengths=lengths,
        activation=weights.activation,
        reverse=weights.reverse,
        recurrent_mask=recurrent_mask,
    )


def layer_backward(
    weights: LayerWeights,
    x: Floats | Ids,
    tape: Tape,
    *,
    dh: Floats | None,
    dh_end: Floats | None = None,
    ds_end: Floats | None = None,
    xi: Floats | None = None,
    want_dx: bool = True,
    consume: bool = False,
) -> tuple[Floats | None, Backward]:
    """Return the gradient of x, if there is one, and those of the pre-activations and of the initial state."""
    back = weights.backend.window_backward(
        tape,
        weights.W_backward,
        extra=weights.extra_backward if weights.cell.read_by_backward else (),
        dh=dh,
        dh_end=dh_end,
        ds_end=ds_end,
        xi=xi,
        consume=consume,
    )
    if x.ndim == 2 or not want_dx:
        return None, back
    da = back.da.reshape(-1, back.da.shape[2])[:, : tape.P]
    dx = da if weights.U is None else weights.backend.matmul(da, weights.U_backward)
    return dx.reshape(x.shape), back


def add_layer_gradient(
    weights: LayerWeights, x: Floats | Ids, tape: Tape, da: Floats, gradient: Gradients
) -> None:
    """Add one window's gradients of the layer's parameters.

    With one gradient per row, row b adds to the b-th only, bit-identical to a batch of that one row.
    """
    if x.ndim == 3:
        x = values_without_padding(x, tape.lengths)
    for rows, each in by_rows(gradient):
        taped = tape.gates[:, rows] if weights.cell.extra and tape.gates is not None else None
        _add_sums(weights, x[:, rows], tape.h_before[:, rows], taped, da[:, rows], tape.P, each)


def _add_sums(
    weights: LayerWeights,
    x: Floats | Ids,
    h_before: Floats,
    taped: Floats | None,
    da: Floats,
    P: int,
    gradient: Gradient,
) -> None:
    """Add the sums over all steps and rows: the gradients of W, U, b and the further parameters."""
    cell, prefix, H = weights.cell, weights.prefix, h_before.shape[2]
    rows = da.shape[0] * da.shape[1]
    da = da.reshape(rows, da.shape[2])
    lookup, accumulate, fused = None, False, cell.summed_with_W
    if x.ndim == 2:
        table, accumulate = table_gradient(weights, gradient)
        lookup = Lookup(table, x.reshape(-1))
    if weights.W is not None:
        first, gap = cell.W_gap
        end = (len(cell.gates) + gap) * H
        weights.backend.sum_over_time(
            da if da.shape[1] == end else da[:, :end],
            h_before.reshape(rows, H),
            gradient.recurrent(prefix + "W"),
            accumulate=gradient.claim(prefix + "W"),
            lookup=lookup,
            accumulate_lookup=accumulate,
            gap=(first * H, gap * H),
            total=None if fused is None else gradient.values[prefix + fused.name],
            accumulate_total=fused is not None and gradient.claim(prefix + fused.name),
        )
    elif lookup is not None:
        weights.backend.scatter_add(lookup.table, lookup.ids, da[:, :P], accumulate=accumulate)
    for each in cell.extra:
        if each is not fused:
            _add_extra(weights, each, da, taped, gradient, H, P)
    if lookup is not None or weights.U is None:
        return
    add_input_gradient(weights, x, da[:, :P], gradient)


def add_input_gradient(weights: LayerWeights, x: Floats, da: Floats, gradient: Gradient) -> None:
    """Add the sums over all steps and rows of dense inputs x: ∇U and ∇b."""
    U, b = weights.prefix + "U", weights.prefix + "b"
    weights.backend.column_sum(da, out=gradient.values[b], accumulate=gradient.claim(b))
    dU, inputs = gradient.values.stored(U), x.reshape(len(da), x.shape[2])
    weights.backend.matmul(inputs, da, transpose_a=True, out=dU, accumulate=gradient.claim(U))


def _add_extra(
    weights: LayerWeights, each: Extra, da: Floats, taped: Floats | None, gradient: Gradient, H: int, P: int
) -> None:
    """Add the gradient of a further parameter: sums of columns of da, or outer products with columns of the tape."""
    own, name = each.columns_of_da(da, H, P), weights.prefix + each.name
    out, accumulate = gradient.values[name], gradient.claim(name)
    if not any(each.columns):
        weights.backend.column_sum(own, out=out, accumulate=accumulate)
        return
    assert taped is not None
    read = each.columns_of_tape(taped.reshape(len(da), taped.shape[2]), H, P)
    weights.backend.matmul(own, read, transpose_a=True, out=out, accumulate=accumulate)


def table_gradient(weights: LayerWeights, gradient: Gradient) -> tuple[Floats, bool]:
    """Return the gradient of p for every token, and whether to add to it."""
    if weights.E is None:
        name = weights.prefix + "U"
        return gradient.values.stored(name), gradient.claim(name)
    if weights.reverse not in gradient.tables:
        gradient.tables[weights.reverse] = weights.backend.zeros(weights.table.shape)
    return gradient.tables[weights.reverse], True


def values_without_padding(x: Floats, lengths: Ids | None) -> Floats:
    """Return x with zeros beyond each row's length: padding may be NaN, and zero times NaN is not zero."""
    if lengths is None:
        return x
    return np.where((np.arange(len(x))[:, None] < lengths)[:, :, None], x, x.dtype.type(0))


def fold_input_tables(gradient: Gradient, E: Floats | None, first: list[LayerWeights]) -> None:
    """Fold the gradients of input tables into those of U, b and E: table = E Uᵀ + b; zero what was never written."""
    values = gradient.values
    for weights in first:
        U, b = weights.prefix + "U", weights.prefix + "b"
        table = gradient.tables.get(weights.reverse)
        if E is None and U in gradient.written:
            table = values.stored(U)
        if table is None or not gradient.config.uses_input_table:
            continue
        if weights.U is None:
            if E is not None:
                gradient.add_to_E(table)
            continue
        weights.backend.column_sum(table, out=values[b], accumulate=gradient.claim(b))
        if E is not None:
            weights.backend.matmul(
                E, table, transpose_a=True, out=values.stored(U), accumulate=gradient.claim(U)
            )
            gradient.add_to_E(weights.backend.matmul(weights.U, table, transpose_b=True).T)
    if gradient.embedded is not None:
        gradient.add_to_E(gradient.embedded)
    for name in values.shapes.keys() - gradient.written:
        values.stored(name)[:] = 0
