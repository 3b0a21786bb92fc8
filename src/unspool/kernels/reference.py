"""The kernels in plain NumPy: the specification, in the precision of the arguments.

Every function has the name and the signature of its native implementation in `native`. One line per equation (numbered
as in Goodfellow, Bengio and Courville, *Deep Learning*, chapter 10). The functions also run in float64: finite differences
check them there, and the native kernels are checked against them. The steps of a recurrence are in the file of its cell.
With `bf16`, products are in bf16 (`unspool.kernels.bf16`), to the same bits as the native ones; the rest keeps its precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unspool.errors import InputError
from unspool.kernels.arrays import Activation, Floats, Ids
from unspool.kernels.bf16 import product, sum_of_outer
from unspool.kernels.philox import philox
from unspool.kernels.recurrence import Recurrence
from unspool.kernels.reference_updates import adam as adam
from unspool.kernels.reference_updates import global_norm as global_norm
from unspool.kernels.reference_updates import rmsprop as rmsprop
from unspool.kernels.reference_updates import sgd as sgd
from unspool.kernels.tape import Backward, Lookup, Loss, Tape

DTYPE = np.float64
BLOCK = 1
"""A sum over rows can go on after any row."""


class Packed(NamedTuple):
    """A matrix (K, N) for products with rows on the left."""

    values: Floats
    bf16: bool = False
    """Products are in bf16."""
    cut: int = 0
    """In bf16, the rows from here on are summed by themselves."""

    def of_rows(self, a: Floats, start: Floats | None = None) -> Floats:
        """Return start + a W."""
        if not self.bf16:
            return a @ self.values if start is None else start + a @ self.values
        for part in (slice(self.cut), slice(self.cut, None))[not self.cut :]:
            s = product(a[:, part], self.values[part]).astype(a.dtype)
            start = s if start is None else start + s
        assert start is not None
        return start


def zeros(shape: tuple[int, ...]) -> Floats:
    """Return zeros."""
    return np.zeros(shape, DTYPE)


def pack(
    W: Floats | Packed, *, transposed: bool = False, groups: int = 1, cut: int = 0, bf16: bool = False
) -> Packed:
    """Return W (K, N), or W^T of W (N, K), for products with rows on the left."""
    return W if isinstance(W, Packed) else Packed(W.T if transposed else W, bf16, cut)


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
    """Return a b, or the transpose of either side; sums begin at `start`, or go to `out`."""
    packed = pack(b, transposed=transpose_b, bf16=bf16)
    if transpose_a:
        return _add_outer(a, packed.values, out, accumulate, packed.bf16)
    return packed.of_rows(a, start)


def _add_outer(a: Floats, b: Floats, out: Floats | None, accumulate: bool, bf16: bool) -> Floats:
    """Return Σ a(r) b(r)ᵀ, added to `out` or written over it; in bf16 the sum goes on from `out`."""
    if not bf16:
        total: Floats = a.T @ b
        return total if out is None else _into(out, total, accumulate)
    s = sum_of_outer(a, b, out if accumulate else None).astype(a.dtype)
    return s if out is None else _into(out, s, accumulate=False)


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
    """Add Σ da(t) past(t)ᵀ to `out`, or write it; add each da(t) to its token's row of `lookup`.

    With a `gap` of (first, width), these columns of da are not multiplied with `past`; the table has as many columns as
    `out` has rows, and the sums of the columns after the gap go to `total`.
    """
    (first, width), M = gap, len(out)
    after = da[:, first + width :]
    of_W = np.concatenate([da[:, :first], after], axis=1) if width else da
    _add_outer(of_W, past, out, accumulate, bf16)  # 10.26
    if total is not None:
        _into(total, after.sum(axis=0), accumulate_total)
    if lookup is not None:
        scatter_add(lookup.table, lookup.ids, da[:, :M], accumulate=accumulate_lookup)


def column_sum(a: Floats, *, out: Floats | None = None, accumulate: bool = True) -> Floats:
    """Return the sum over the rows of a; added to `out` or written over it."""
    s: Floats = a.sum(axis=0)
    return s if out is None else _into(out, s, accumulate)


def _into(out: Floats, value: Floats, accumulate: bool) -> Floats:
    out[...] = out + value if accumulate else value
    return out


def gather(table: Floats, ids: Ids) -> Floats:
    """Return table[ids] as rows, one per id."""
    rows: Floats = table[ids.reshape(-1)]
    return rows


def shift_rows(x: Floats, b: Floats) -> Floats:
    """Return x with b added to each of its rows."""
    return x + b


def scatter_add(table: Floats, ids: Ids, rows: Floats, *, accumulate: bool = True) -> None:
    """Add each row to table[its id]; without `accumulate`, the table is set to zero first."""
    if not accumulate:
        table[:] = 0
    np.add.at(table, ids.reshape(-1), rows)


def sigmoid(a: Floats) -> Floats:
    """Return 1 / (1 + exp(-a))."""
    e = np.exp(-np.abs(a))
    return np.where(a < 0, e, 1.0) / (1 + e)  # type: ignore[no-any-return]


def activate(a: Floats, activation: Activation) -> Floats:
    """Apply the activation of a hidden unit."""
    values = {"tanh": np.tanh, "relu": lambda v: np.maximum(v, 0), "sigmoid": sigmoid, "identity": np.array}
    return values[activation](a)  # type: ignore[no-any-return, operator]


def slope(h: Floats, activation: Activation) -> Floats:
    """Return the derivative of the activation, from its value."""
    values = {
        "tanh": lambda v: 1 - v * v,
        "relu": lambda v: (v > 0).astype(v.dtype),
        "sigmoid": lambda v: v * (1 - v),
        "identity": np.ones_like,
    }
    return values[activation](h)  # type: ignore[no-any-return, operator]


def _input_part(p: Floats | Lookup, lengths: Ids | None) -> Floats:
    """Return b + U x(t) as values, tau B G*H; ids beyond a row's length are never looked up."""
    if not isinstance(p, Lookup):
        return p
    ids = p.ids
    if lengths is not None:
        ids = np.where(np.arange(len(ids))[:, None] < lengths, ids, 0)
    return p.table[ids]


def _alive(tau: int, B: int, lengths: Ids | None) -> NDArray[np.bool_]:
    return np.arange(tau)[:, None] < (np.full(B, tau) if lengths is None else lengths)


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
    """Run a layer over a window; p is b + U x(t), as values (tau, B, P) or as a `Lookup`."""
    x = _input_part(p, lengths)
    tau, B, H = len(x), *h0.shape
    alive = _alive(tau, B, lengths)
    W_t = None if W is None else pack(W, transposed=True, bf16=bf16)
    own = [_parameter(value, transposed=True) for value in extra]
    dtype = np.result_type(x, h0)
    hs = np.empty((tau + 1, B, H), dtype)
    ss = np.empty_like(hs) if cell.has_cell_state else None
    gates = np.zeros((tau, B, cell.tape.of(H, x.shape[2])), dtype) if any(cell.tape) else None
    h_masked = None if recurrent_mask is None else np.empty((tau, B, H), dtype)
    first = tau if reverse else 0
    hs[first] = h0
    if ss is not None and s0 is not None:
        ss[first] = s0
    for t in range(tau)[:: -1 if reverse else 1]:
        before, after = (t + 1, t) if reverse else (t, t + 1)
        h, s, live = hs[before], None if ss is None else ss[before], alive[t][:, None]
        seen = h if recurrent_mask is None else h * recurrent_mask
        if h_masked is not None:
            h_masked[t] = seen
        h_t, s_t, taped = cell.step(x[t], None if W_t is None else W_t.of_rows(seen), h, s, own, activation)
        hs[after] = np.where(live, h_t, h)
        if ss is not None and s is not None and s_t is not None:
            ss[after] = np.where(live, s_t, s)
        if gates is not None:
            gates[t] = taped
    return Tape(cell, activation, reverse, lengths, recurrent_mask, hs, ss, gates, h_masked, x.shape[2])


def _parameter(value: Floats | Packed, *, transposed: bool) -> Floats:
    """Return a further parameter in its own shape."""
    if isinstance(value, Packed):
        return value.values.T if transposed else value.values
    return value


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

    With `consume`, da is written over the array that the cell names, if it can be.
    """
    cell, hs, H = tape.cell, tape.hs, tape.hs.shape[2]
    tau, B = tape.tau, hs.shape[1]
    alive = _alive(tau, B, tape.lengths)
    packed = None if W is None else pack(W, cut=cell.W_cut(H), bf16=bf16)
    own = [_parameter(value, transposed=False) for value in extra]
    da = np.zeros((tau, B, cell.da.of(H, tape.P or cell.p_columns(0, H))), hs.dtype)
    dh_t = np.zeros((B, H), hs.dtype) if dh_end is None else dh_end.copy()
    ds_t = None
    if cell.has_cell_state:
        ds_t = np.zeros((B, H), hs.dtype) if ds_end is None else ds_end.copy()
    mask = 1 if tape.recurrent_mask is None else tape.recurrent_mask
    for t in range(tau)[:: 1 if tape.reverse else -1]:
        live = alive[t][:, None]
        if dh is not None:
            dh_t = dh_t + dh[t]
        da[t], back, ds = cell.step_back(tape.step(t), dh_t, ds_t, own)
        da[t] *= live
        if packed is not None:  # 10.21: Wᵀ diag(1 - h(t+1)²) ∇h(t+1), and not the other way round
            through_W = mask * packed.of_rows(cell.da_of_W(da[t], H))
            back = through_W if back is None else back + through_W
        assert back is not None
        chain = 1 if xi is None else xi[t][:, None]
        dh_t = np.where(live, back * chain, dh_t)
        if ds_t is not None and ds is not None:
            ds_t = np.where(live, ds * chain, ds_t)
    over = {"tape": tape.gates, "dh": dh, None: None}[cell.da_over]
    if consume and over is not None:
        over[:] = da
        da = over
    return Backward(da, dh_t, ds_t)


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
    """Score targets y (rows,) or (tau, B) under softmax(c + V h); negative targets are masked."""
    shape, h, y = h.shape, h.reshape(y.size, h.shape[-1]), y.reshape(-1)
    forward, backward = (
        V if isinstance(V, tuple) else (pack(V, transposed=True, bf16=bf16), pack(V, bf16=bf16))
    )
    o = forward.of_rows(h, c)  # 10.10
    top = o.max(axis=1, keepdims=True)
    e = np.exp(o - top)
    total = e.sum(axis=1, keepdims=True)
    scored = y >= 0
    rows, targets = np.arange(len(y)), np.maximum(y, 0)
    nats = np.where(scored, (np.log(total.astype(np.float64)) + top)[:, 0] - o[rows, targets], 0.0)  # 10.14
    count = int(scored.sum())
    if dV is None:
        return Loss(float(nats.sum()), count, nats.reshape(shape[:-1]), None)
    do = e / total  # 10.11
    do[rows, targets] -= 1  # 10.18
    do *= scale * scored[:, None]
    _add_outer(do, h, dV, accumulate, forward.bf16)
    if dc is not None:
        _into(dc, do.sum(axis=0), accumulate)
    return Loss(float(nats.sum()), count, nats.reshape(shape[:-1]), backward.of_rows(do).reshape(shape))


def log_softmax_rows(o: Floats, start: Floats) -> Floats:
    """Return start + log softmax(o) of each row: o (rows, K), start (rows,)."""
    top = o.max(axis=1, keepdims=True)
    total = np.exp(o - top).sum(axis=1, keepdims=True)
    return o + (start[:, None] - (top + np.log(total)))  # type: ignore[no-any-return]


def dropout_mask(shape: tuple[int, ...], *, seed: int, stream: int, rate: float) -> Floats:
    """Return zeros with probability `rate`, else 1/(1 - rate): a function of seed, stream and position."""
    if not 0 <= rate < 1:
        raise InputError(f"rate must be at least 0 and below 1; got {rate}")
    n = int(np.prod(shape))
    groups = np.arange((n + 3) // 4, dtype=np.uint64)
    counter = np.zeros((len(groups), 4), np.uint32)
    counter[:, 0], counter[:, 1] = groups & np.uint64(0xFFFFFFFF), groups >> np.uint64(32)
    counter[:, 2], counter[:, 3] = stream % 2**32, (stream >> 32) % 2**32
    words = philox(counter, (seed % 2**32, (seed >> 32) % 2**32)).reshape(-1)[:n]
    uniform = (words >> np.uint32(8)).astype(np.float32) * np.float32(2**-24)
    scale = np.float32(1) / (np.float32(1) - np.float32(rate))
    return np.where(uniform < np.float32(rate), np.float32(0), scale).reshape(shape)


def scale_rows(x: Floats, mask: Floats) -> Floats:
    """Return x (tau, B, H) times a mask (B, H): the same mask at every step."""
    return x * mask
