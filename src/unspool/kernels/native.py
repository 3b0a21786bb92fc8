"""The native kernels, called from Python.

Every function has a reference implementation of the same name and signature in `reference`, in plain NumPy: that is
the specification. Here arrays are float32 and ids int32; other types are refused, since a silent conversion would be a
silent copy.

Every element of a product is one chain of fused multiply-adds in rising k; sums over rows run from the last row to
the first. So a result never depends on threads, other rows of a batch, cuts between windows, or the instruction set.
With `bf16`, the operands of products are rounded to bf16 and summed in another order (`unspool.kernels.bf16`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from unspool.errors import InputError
from unspool.kernels import _native
from unspool.kernels.arrays import Activation, Floats, Ids
from unspool.kernels.checks import (
    as_floats,
    as_ids,
    as_matrix,
    as_rows,
    as_written,
    as_written_table,
    chosen,
    maybe_floats,
)
from unspool.kernels.machine import choose_isa as choose_isa
from unspool.kernels.machine import heed_environment as heed_environment
from unspool.kernels.machine import kernel_info as kernel_info
from unspool.kernels.machine import set_alone as set_alone
from unspool.kernels.machine import set_threads as set_threads
from unspool.kernels.native_updates import adam as adam
from unspool.kernels.native_updates import global_norm as global_norm
from unspool.kernels.native_updates import rmsprop as rmsprop
from unspool.kernels.native_updates import sgd as sgd
from unspool.kernels.recurrence import Extra, Recurrence
from unspool.kernels.tape import Backward, Lookup, Loss, Tape

DTYPE = np.float32
BLOCK = 1
"""A sum over rows can go on after any row."""
Packed = _native.Panels
Stream = _native.Stream
ByteEncoder = _native.ByteEncoder
ByteDecoder = _native.ByteDecoder
uniform = _native.uniform
"""The number of [0, 1) at an index of a seed's sequence, which `Stream.advance` draws with."""
ACTIVATIONS: dict[str, int] = {"tanh": 0, "relu": 1, "sigmoid": 2, "identity": 3}


def zeros(shape: tuple[int, ...]) -> Floats:
    """Return zeros that begin on a cache line."""
    size = int(np.prod(shape, dtype=object))
    if size >= 2**44:
        raise InputError(f"{size} values do not fit in memory; choose smaller sizes")
    zeroed: Floats = _native.zeros(size).reshape(shape)
    return zeroed


def pack(
    W: Floats | Packed, *, transposed: bool = False, groups: int = 1, cut: int = 0, bf16: bool = False
) -> Packed:
    """Lay out W (K, N), or W^T of W (N, K), for products with rows on the left; reusable until W changes.

    With `bf16`, W is rounded, and products with it are in bf16; the rows of W^T or W from `cut` on are summed by themselves.
    """
    return (
        W if isinstance(W, Packed) else Packed(as_rows(W, "W"), transposed, groups, bf16, cut if bf16 else 0)
    )


def matmul(
    a: Floats,
    b: Floats | Packed,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    start: Floats | None = None,
    out: Floats | None = None,
    accumulate: bool = True,
    bf16: bool = False,
) -> Floats:
    """Return a b, or the transpose of either side; sums begin at `start`, or go to `out` with `transpose_a`.

    With `accumulate`, the product is added to `out`; else it overwrites `out`.

    >>> import numpy as np
    >>> a = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> matmul(a, a, transpose_b=True).tolist()
    [[5.0, 14.0], [14.0, 50.0]]
    """
    if transpose_a:
        if isinstance(b, Packed) or transpose_b or start is not None:
            raise InputError("with transpose_a, b must be a plain array, and sums go to `out`")
        onto = None if out is None else as_written(out, "out")
        c = _native.outer_product(
            as_rows(a, "a"), as_rows(b, "b"), onto, accumulate, None, None, True, 0, 0, None, True, bf16
        )
        return c if onto is None else onto
    if out is not None:
        raise InputError("`out` requires transpose_a; pass `start` to begin a product from values")
    packed = pack(b, transposed=transpose_b, bf16=bf16)
    return _native.rows_product(as_rows(a, "a"), packed, maybe_floats(start, "start"))


def sum_over_time(
    da: Floats,
    past: Floats,
    out: Floats,
    *,
    accumulate: bool,
    lookup: Lookup | None = None,
    accumulate_lookup: bool = True,
    gap: tuple[int, int] = (0, 0),
    total: Floats | None = None,
    accumulate_total: bool = True,
    bf16: bool = False,
) -> None:
    """Add Σ da(t) past(t)ᵀ to `out`, or write it; add each da(t) to its token's row of `lookup`, in one pass.

    Without `accumulate_lookup`, the table is set to zero first. With a `gap` of (first, width), these columns of da are
    not multiplied with `past`; the table has as many columns as `out` has rows, and the sums of the columns after the
    gap go to `total`.
    """
    table = ids = None
    if lookup is not None:
        table, ids = as_written_table(lookup.table), as_ids(lookup.ids, "ids")
    _native.outer_product(
        as_rows(da, "da"), as_rows(past, "past"), as_written(out, "out"), accumulate, table, ids, accumulate_lookup,
        *gap, None if total is None else as_written(total, "total"), accumulate_total, bf16,
    )  # fmt: skip


def column_sum(a: Floats, *, out: Floats | None = None, accumulate: bool = True) -> Floats:
    """Return the sum over the rows of a, from the last to the first; added to `out` or written over it."""
    onto = None if out is None else as_written(out, "out")
    s = _native.column_sum(as_rows(a, "a"), onto, accumulate)
    return s if onto is None else onto


def gather(table: Floats, ids: Ids) -> Floats:
    """Return table[ids] as rows, one per id."""
    return _native.gather(as_matrix(as_floats(table, "table"), "table"), as_ids(ids, "ids"))


def shift_rows(x: Floats, b: Floats) -> Floats:
    """Return x with b added to each of its rows."""
    return _native.shift_rows(as_rows(x, "x"), as_floats(b, "b"))


def scatter_add(table: Floats, ids: Ids, rows: Floats, *, accumulate: bool = True) -> None:
    """Add each row to table[its id], from the last row to the first; without `accumulate`, set the table to zero first."""
    _native.scatter_add(as_written_table(table), as_ids(ids, "ids"), as_rows(rows, "rows"), accumulate)


def window_forward(
    cell: Recurrence,
    p: Floats | Lookup,
    W: Floats | Packed | None,
    h0: Floats,
    *,
    s0: Floats | None = None,
    extra: Sequence[Floats | Packed] = (),
    lengths: Ids | None = None,
    activation: Activation = "tanh",
    reverse: bool = False,
    recurrent_mask: Floats | None = None,
    bf16: bool = False,
) -> Tape:
    """Run a layer over a window of tau steps; return the tape for `window_backward`.

    p               (tau, B, P): b + U x(t), or a `Lookup` that gathers it by token id
    W               (G*H, H) or `Packed`: gate blocks in the order of the cell; None for a cell without W
    h0, s0          (B, H): initial hidden state; initial cell state of a cell that has one
    extra           the further parameters of the cell, in its order
    lengths         (B,): valid steps per row; the state is held constant after the last one
    reverse         time runs from tau to 1
    recurrent_mask  (B, H): dropout mask on h(t-1) in front of W
    """
    act = chosen(activation, ACTIVATIONS, "activation")
    table = ids = values = None
    if isinstance(p, Lookup):
        table, ids = as_floats(p.table, "table"), as_ids(p.ids, "ids")
    else:
        values = as_floats(p, "p")
    lengths = None if lengths is None else as_ids(lengths, "lengths")
    recurrent_mask = maybe_floats(recurrent_mask, "recurrent_mask")
    hs, ss, gates, h_masked = _native.window_forward(
        cell.name, act, values, table, ids, None if W is None else pack(W, transposed=True, groups=len(cell.gates), bf16=bf16),
        as_floats(h0, "h0"), maybe_floats(s0, "s0"), _own(cell, extra, bf16, forward=True), lengths, reverse, recurrent_mask,
    )  # fmt: skip
    P = p.table.shape[1] if isinstance(p, Lookup) else p.shape[2]
    return Tape(cell, activation, reverse, lengths, recurrent_mask, hs, ss, gates, h_masked, P)


def _own(
    cell: Recurrence, extra: Sequence[Floats | Packed], bf16: bool, *, forward: bool
) -> list[Floats | Packed | None]:
    """Return the further parameters of a cell for the native module: vectors as arrays, matrices packed."""
    if not cell.extra and not extra:
        return []
    needed = forward or cell.read_by_backward
    if len(extra) != len(cell.extra) and (extra or needed):
        names = ", ".join(each.name for each in cell.extra) or "none"
        raise InputError(f"extra has {len(extra)} parameters; {cell.name} needs {len(cell.extra)}: {names}")
    if not needed:
        return [None] * len(cell.extra)
    return [_parameter(*pair, forward, bf16) for pair in zip(cell.extra, extra, strict=True)]


def _parameter(each: Extra, value: Floats | Packed, forward: bool, bf16: bool) -> Floats | Packed | None:
    if not (forward or each.read_by_backward):
        return None
    packed = any(each.columns) or isinstance(value, Packed)
    return pack(value, transposed=forward, bf16=bf16) if packed else as_floats(value, each.name)


def window_backward(
    tape: Tape,
    W: Floats | Packed | None,
    *,
    extra: Sequence[Floats | Packed] = (),
    dh: Floats | None = None,
    dh_end: Floats | None = None,
    ds_end: Floats | None = None,
    xi: Floats | None = None,
    consume: bool = False,
    bf16: bool = False,
) -> Backward:
    """Backpropagate gradients of every h(t) (tau, B, H) and of the final state through the window.

    The gradient that step t passes to step t-1 is multiplied by xi(t) of its row (tau, B): zero detaches step t-1. With
    `consume`, da overwrites an array that is not needed any more (the tape's gates, or dh): this saves a third of the
    memory traffic, and the tape cannot be used again.
    """
    cell, dh, gates = tape.cell, maybe_floats(dh, "dh"), maybe_floats(tape.gates, "gates")
    over, name = (gates, "gates") if cell.da_over == "tape" else (dh, "dh")
    over = as_written(over, name) if consume and cell.da_over and over is not None else None
    da, dh0, ds0 = _native.window_backward(
        cell.name, chosen(tape.activation, ACTIVATIONS, "activation"), None if W is None else _pack_back(W, cell, bf16),
        as_floats(tape.hs, "hs"), maybe_floats(tape.ss, "ss"), gates, _own(cell, extra, bf16, forward=False), tape.P,
        None if tape.lengths is None else as_ids(tape.lengths, "lengths"), tape.reverse,
        maybe_floats(tape.recurrent_mask, "recurrent_mask"), dh, maybe_floats(dh_end, "dh_end"),
        maybe_floats(ds_end, "ds_end"), maybe_floats(xi, "xi"), over,
    )  # fmt: skip
    if da is None:
        assert over is not None
        da = over
    return Backward(da, dh0, ds0)


def _pack_back(W: Floats | Packed, cell: Recurrence, bf16: bool) -> Packed:
    """Pack W (G*H, H) for the backward pass."""
    if isinstance(W, Packed):
        return W
    rows = as_rows(W, "W")
    return pack(rows, cut=cell.W_cut(rows.shape[1]), bf16=bf16)


def softmax_cross_entropy(
    h: Floats,
    V: Floats | tuple[Packed, Packed],
    c: Floats | None,
    y: Ids,
    *,
    scale: float = 1.0,
    dV: Floats | None = None,
    dc: Floats | None = None,
    accumulate: bool = True,
    bf16: bool = False,
) -> Loss:
    """Score targets y (rows,) or (tau, B) under softmax(c + V h); negative targets are masked.

    With `dV` (and `dc`), the gradients of `scale` times the sum are added to them (without `accumulate`, they are
    overwritten), and the gradient of h is returned. No array of rows by K is made. V may be packed, as
    (pack(V, transposed=True), pack(V)).
    """
    forward, backward = V if isinstance(V, tuple) else (pack(V, transposed=True, bf16=bf16), None)
    if dV is not None and backward is None:
        backward = pack(V, bf16=bf16)  # type: ignore[arg-type]
    h, y = as_floats(h, "h"), as_ids(y, "y")
    if h.shape[:-1] != y.shape or h.ndim not in (2, 3):
        raise InputError(
            f"h has shape {h.shape} and y {y.shape}; expected (rows, H) and (rows,), or (tau, B, H) and (tau, B)"
        )
    total, count, each, dh = _native.softmax_cross_entropy(
        h.reshape(y.size, h.shape[-1]),
        forward,
        backward if dV is not None else None,
        maybe_floats(c, "c"),
        y.reshape(-1),
        y.shape[1] if y.ndim == 2 else 0,
        scale,
        None if dV is None else as_written(dV, "dV"),
        None if dV is None or dc is None else as_written(dc, "dc"),
        accumulate,
    )
    return Loss(total, count, each.reshape(y.shape), None if dh is None else dh.reshape(h.shape))


def log_softmax_rows(o: Floats, start: Floats) -> Floats:
    """Return start + log softmax(o) of each row: o (rows, K), start (rows,)."""
    return _native.log_softmax_rows(as_rows(o, "o"), as_floats(start, "start"))


def dropout_mask(shape: tuple[int, ...], *, seed: int, stream: int, rate: float) -> Floats:
    """Return zeros with probability `rate`, else 1/(1 - rate): a function of seed, stream and position."""
    if any(n < 0 for n in shape):
        raise InputError(f"shape is {shape}; expected sizes of 0 or more")
    n = math.prod(int(n) for n in shape)
    if n > 2**44:
        raise InputError(f"shape is {shape}; the mask would not fit in memory")
    mask: Floats = _native.dropout_mask(n, seed % 2**64, stream % 2**64, rate).reshape(shape)
    return mask


def scale_rows(x: Floats, mask: Floats) -> Floats:
    """Return x (tau, B, H) times a mask (B, H): the same mask at every step."""
    return _native.scale_rows(as_floats(x, "x"), as_floats(mask, "mask"))


def activate(a: Floats, activation: Activation) -> Floats:
    """Apply the activation of a hidden unit to every value, for a layer without a recurrence."""
    return _native.activate(as_floats(a, "a"), chosen(activation, ACTIVATIONS, "activation"), False)


def slope(h: Floats, activation: Activation) -> Floats:
    """Return the derivative of the activation, from its value."""
    return _native.activate(as_floats(h, "h"), chosen(activation, ACTIVATIONS, "activation"), True)
