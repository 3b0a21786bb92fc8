"""The native kernels, as Python sees them.

Every function has a twin of the same name and signature in `reference`, in plain NumPy: that is the
specification. Here arrays are float32 and ids int32; anything else is refused rather than converted, since a
silent conversion would be a silent copy.

Every element of a product is one chain of fused multiply-adds in rising k; sums over rows run from the last
row to the first. So a result never depends on the number of threads, the batch that a row sits in, the window
that a step sits in, or the instruction set.
"""

from __future__ import annotations

import math

import numpy as np

from unspool.errors import InputError
from unspool.kernels import _native
from unspool.kernels.arrays import Activation, CellName, Floats, Ids
from unspool.kernels.checks import (
    as_flat,
    as_floats,
    as_ids,
    as_matrix,
    as_rows,
    as_written,
    as_written_rows,
    chosen,
    maybe_floats,
)
from unspool.kernels.machine import choose_isa as choose_isa
from unspool.kernels.machine import heed_environment as heed_environment
from unspool.kernels.machine import kernel_info as kernel_info
from unspool.kernels.machine import set_threads as set_threads
from unspool.kernels.tape import Backward, Lookup, Loss, Tape

DTYPE = np.float32
Packed = _native.Panels
Stream = _native.Stream
CELLS: dict[str, int] = {"elman": 0, "lstm": 1, "gru": 2}
GATES: dict[str, int] = {"elman": 1, "lstm": 4, "gru": 3}
ACTIVATIONS: dict[str, int] = {"tanh": 0, "relu": 1, "sigmoid": 2, "identity": 3}


def zeros(shape: tuple[int, ...]) -> Floats:
    """Return zeros that begin on a cache line, where vectors are loaded and stored whole."""
    size = int(np.prod(shape, dtype=object))
    if size >= 2**44:
        raise InputError(f"{size} values do not fit in memory; choose smaller sizes")
    zeroed: Floats = _native.zeros(size).reshape(shape)
    return zeroed


def pack(W: Floats | Packed, *, transposed: bool = False, groups: int = 1) -> Packed:
    """Lay out W (K, N), or W^T of W (N, K), for products with rows on the left; reusable until W changes."""
    return W if isinstance(W, Packed) else Packed(as_rows(W, "W"), transposed, groups)


def matmul(
    a: Floats,
    b: Floats | Packed,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    start: Floats | None = None,
    out: Floats | None = None,
    accumulate: bool = True,
) -> Floats:
    """Return a b, or of either side its transpose; sums begin at `start`, or go to `out` with `transpose_a`.

    What `out` holds is added to, or written over without `accumulate`.

    >>> import numpy as np
    >>> a = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> matmul(a, a, transpose_b=True).tolist()
    [[5.0, 14.0], [14.0, 50.0]]
    """
    if transpose_a:
        if isinstance(b, Packed) or transpose_b or start is not None:
            raise InputError("with transpose_a, b must be an array as it is, and sums go to `out`")
        onto = None if out is None else as_written(out, "out")
        c = _native.outer_product(
            as_rows(a, "a"), as_rows(b, "b"), onto, accumulate, None, None, True, None, True
        )
        return c if onto is None else onto
    if out is not None:
        raise InputError("`out` goes with transpose_a; pass `start` to begin a product from values")
    return _native.rows_product(
        as_rows(a, "a"), pack(b, transposed=transpose_b), maybe_floats(start, "start")
    )


def sum_over_time(
    da: Floats,
    past: Floats,
    out: Floats,
    *,
    accumulate: bool,
    lookup: Lookup | None = None,
    accumulate_lookup: bool = True,
    d: Floats | None = None,
    accumulate_d: bool = True,
) -> None:
    """Add Σ da(t) past(t)ᵀ to `out`, or write it; and each da(t) to its token's row of `lookup`, in one pass.

    Without `accumulate_lookup` its table is set to zero first. With `d`, da holds the GRU's r z n q: r z q meet `past`,
    r z n belong to the table, and q adds up to `d`.
    """
    table = ids = None
    if lookup is not None:
        table, ids = as_written_rows(lookup.table, "table"), as_ids(lookup.ids, "ids")
    onto = as_written(out, "out")
    _native.outer_product(
        as_rows(da, "da"),
        as_rows(past, "past"),
        onto,
        accumulate,
        table,
        ids,
        accumulate_lookup,
        None if d is None else as_written(d, "d"),
        accumulate_d,
    )


def column_sum(a: Floats, *, out: Floats | None = None, accumulate: bool = True) -> Floats:
    """Return the sum over the rows of a, from the last to the first; added to `out` or written over it."""
    onto = None if out is None else as_written(out, "out")
    s = _native.column_sum(as_rows(a, "a"), onto, accumulate)
    return s if onto is None else onto


def gather(table: Floats, ids: Ids) -> Floats:
    """Return table[ids] as rows, one for each id."""
    return _native.gather(as_matrix(as_floats(table, "table"), "table"), as_ids(ids, "ids"))


def shift_rows(x: Floats, b: Floats) -> Floats:
    """Return x with b added to each of its rows."""
    return _native.shift_rows(as_rows(x, "x"), as_floats(b, "b"))


def scatter_add(table: Floats, ids: Ids, rows: Floats, *, accumulate: bool = True) -> None:
    """Add each row to table[its id], from the last row to the first; to zero without `accumulate`."""
    _native.scatter_add(
        as_written_rows(table, "table"), as_ids(ids, "ids"), as_rows(rows, "rows"), accumulate
    )


def window_forward(
    cell: CellName,
    p: Floats | Lookup,
    W: Floats | Packed,
    h0: Floats,
    *,
    s0: Floats | None = None,
    d: Floats | None = None,
    lengths: Ids | None = None,
    activation: Activation = "tanh",
    reverse: bool = False,
    keep: Floats | None = None,
) -> Tape:
    """Take h0 (B, H) through a window; p is b + U x(t), as values (tau, B, G H) or as a `Lookup`.

    Row b lives for lengths[b] steps, then its state is frozen. With `reverse`, time runs from tau to 1.
    """
    kind = chosen(cell, CELLS, "cell")
    act = chosen(activation, ACTIVATIONS, "activation")
    looked_up = isinstance(p, Lookup)
    lengths = None if lengths is None else as_ids(lengths, "lengths")
    keep = maybe_floats(keep, "keep")
    hs, ss, gates, kept = _native.window_forward(
        kind,
        act,
        None if looked_up else as_floats(p, "p"),
        as_floats(p.table, "table") if isinstance(p, Lookup) else None,
        as_ids(p.ids, "ids") if isinstance(p, Lookup) else None,
        pack(W, transposed=True, groups=GATES[cell]),
        as_floats(h0, "h0"),
        maybe_floats(s0, "s0"),
        maybe_floats(d, "d"),
        lengths,
        reverse,
        keep,
    )
    return Tape(cell, activation, reverse, lengths, keep, hs, ss, gates, kept)


def window_backward(
    tape: Tape,
    W: Floats | Packed,
    *,
    dh: Floats | None = None,
    dh_end: Floats | None = None,
    ds_end: Floats | None = None,
    xi: Floats | None = None,
    consume: bool = False,
) -> Backward:
    """Take gradients of every h(t) (tau, B, H) and of the final state back through the window.

    What step t hands back to step t-1 is multiplied by xi(t) of its row (tau, B): zero cuts the chain. With
    `consume`, da is written over the tape's gates (an Elman network's over dh): a third of the memory less to
    pass through, and the tape has been used up.
    """
    dh, gates = maybe_floats(dh, "dh"), maybe_floats(tape.gates, "gates")
    over = dh if gates is None else gates
    if consume and over is not None:
        over = as_written(over, "dh" if gates is None else "gates")
    da, dh0, ds0 = _native.window_backward(
        chosen(tape.cell, CELLS, "cell"),
        chosen(tape.activation, ACTIVATIONS, "activation"),
        pack(W),
        as_floats(tape.hs, "hs"),
        maybe_floats(tape.ss, "ss"),
        gates,
        None if tape.lengths is None else as_ids(tape.lengths, "lengths"),
        tape.reverse,
        maybe_floats(tape.keep, "keep"),
        dh,
        maybe_floats(dh_end, "dh_end"),
        maybe_floats(ds_end, "ds_end"),
        maybe_floats(xi, "xi"),
        consume,
    )
    if da is None:
        assert over is not None
        da = over
    return Backward(da, dh0, ds0)


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
) -> Loss:
    """Score targets y (rows,) or (tau, B) under softmax(c + V h); negative targets are masked.

    With `dV` (and `dc`), gradients of `scale` times the sum are added to them, or written over them without
    `accumulate`, and that of h is returned. No
    array of rows by K is ever made. V may be packed, as (pack(V, transposed=True), pack(V)).
    """
    forward, backward = V if isinstance(V, tuple) else (pack(V, transposed=True), None)
    if dV is not None and backward is None:
        backward = pack(V)  # type: ignore[arg-type]
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


def global_norm(g: Floats) -> float:
    """Return the Euclidean norm, summed in double precision in a fixed order."""
    return _native.global_norm(as_flat(as_floats(g, "g"), "g"))


def adam(
    p: Floats,
    g: Floats,
    m: Floats,
    v: Floats,
    *,
    step: int,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    decay: float = 0.0,
    scale: float = 1.0,
) -> None:
    """Update p, m and v in place: Adam, with decoupled weight decay (AdamW) where `decay` is not zero.

    `step` counts from 1. The gradient is multiplied by `scale` first, which is where clipping comes in.
    """
    if step < 1:
        raise InputError(f"step is {step}; expected 1 or more")
    _native.adam(
        as_flat(as_written(p, "p"), "p"), as_flat(as_floats(g, "g"), "g"), as_flat(as_written(m, "m"), "m"),
        as_flat(as_written(v, "v"), "v"), scale, learning_rate, beta1, beta2, epsilon, decay, 1.0 - beta1**step,
        (1.0 - beta2**step) ** 0.5,
    )  # fmt: skip


def sgd(
    p: Floats,
    g: Floats,
    m: Floats | None = None,
    *,
    learning_rate: float,
    momentum: float = 0.0,
    decay: float = 0.0,
    scale: float = 1.0,
) -> None:
    """Update p (and the momentum m) in place: p -= learning_rate (momentum m + scale g + decay p)."""
    flat_m = None if m is None else as_flat(as_written(m, "m"), "m")
    flat_p, flat_g = as_flat(as_written(p, "p"), "p"), as_flat(as_floats(g, "g"), "g")
    _native.sgd(flat_p, flat_g, flat_m, scale, learning_rate, momentum, decay)


def dropout_mask(shape: tuple[int, ...], *, seed: int, stream: int, rate: float) -> Floats:
    """Return zeros with probability `rate`, else 1/(1 - rate): by seed, stream and position only."""
    if any(n < 0 for n in shape):
        raise InputError(f"shape is {shape}; expected sizes of 0 or more")
    n = math.prod(int(n) for n in shape)
    if n > 2**44:
        raise InputError(f"shape is {shape}; the mask would not fit in memory")
    mask: Floats = _native.dropout_mask(n, seed % 2**64, stream % 2**64, rate)
    shaped: Floats = mask.reshape(shape)
    return shaped


def scale_rows(x: Floats, mask: Floats) -> Floats:
    """Return x (tau, B, H) times a mask (B, H): the same mask at every step."""
    return _native.scale_rows(as_floats(x, "x"), as_floats(mask, "mask"))


def activate(a: Floats, activation: Activation) -> Floats:
    """Apply the activation of a hidden unit to every value, for a layer without a recurrence."""
    return _native.activate(as_floats(a, "a"), chosen(activation, ACTIVATIONS, "activation"), False)


def slope(h: Floats, activation: Activation) -> Floats:
    """Return the derivative of the activation, from its value."""
    return _native.activate(as_floats(h, "h"), chosen(activation, ACTIVATIONS, "activation"), True)
