"""The kernels in plain NumPy: the specification, in whatever precision the arguments have.

Every function has the name and the signature of its twin in `ops`. It is written to be read, one line an
equation (numbered as in Goodfellow, Bengio and Courville, *Deep Learning*, chapter 10), and runs in float64
too: finite differences check it there, and the native kernels are checked against it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unspool.errors import InputError
from unspool.kernels.arrays import Activation, CellName, Floats, Ids
from unspool.kernels.tape import Backward, Lookup, Loss, Tape

DTYPE = np.float64


class Packed(NamedTuple):
    """A matrix and the side from which a product reads it."""

    matrix: Floats
    """W as it was given."""
    transposed: bool

    @property
    def right(self) -> Floats:
        """The right side of a product."""
        return self.matrix.T if self.transposed else self.matrix


GATES = {"elman": 1, "lstm": 4, "gru": 3}


def zeros(shape: tuple[int, ...]) -> Floats:
    """Return zeros."""
    return np.zeros(shape, DTYPE)


def pack(W: Floats | Packed, *, transposed: bool = False, groups: int = 1) -> Packed:
    """Return W (K, N), or W^T of W (N, K), for products with rows on the left: nothing is moved."""
    return W if isinstance(W, Packed) else Packed(W, transposed)


def _matrix(W: Floats | Packed) -> Floats:
    return W.matrix if isinstance(W, Packed) else W


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
    """Return a b, or of either side its transpose; sums begin at `start`, or go to `out`."""
    b = b.right if isinstance(b, Packed) else b.T if transpose_b else b
    c: Floats = (a.T if transpose_a else a) @ b
    if start is not None:
        c = start + c
    return c if out is None else _into(out, c, accumulate)


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
    """Add Σ da(t) past(t)ᵀ to `out`, or write it; and each da(t) to its token's row of `lookup`.

    With `d`, da holds the GRU's r z n q: r z q meet `past`, r z n belong to the table, and q adds up to `d`.
    """
    inputs = inner = da
    if d is not None:
        H = da.shape[1] // 4
        inputs, inner = da[:, : 3 * H], np.delete(da, slice(2 * H, 3 * H), axis=1)
        _into(d, da[:, 3 * H :].sum(axis=0), accumulate_d)
    _into(out, inner.T @ past, accumulate)  # 10.26
    if lookup is not None:
        scatter_add(lookup.table, lookup.ids, inputs, accumulate=accumulate_lookup)


def column_sum(a: Floats, *, out: Floats | None = None, accumulate: bool = True) -> Floats:
    """Return the sum over the rows of a; added to `out` or written over it."""
    s: Floats = a.sum(axis=0)
    return s if out is None else _into(out, s, accumulate)


def _into(out: Floats, value: Floats, accumulate: bool) -> Floats:
    out[...] = out + value if accumulate else value
    return out


def gather(table: Floats, ids: Ids) -> Floats:
    """Return table[ids] as rows, one for each id."""
    rows: Floats = table[ids.reshape(-1)]
    return rows


def shift_rows(x: Floats, b: Floats) -> Floats:
    """Return x with b added to each of its rows."""
    return x + b


def scatter_add(table: Floats, ids: Ids, rows: Floats, *, accumulate: bool = True) -> None:
    """Add each row to table[its id]; to zero without `accumulate`."""
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
    values: Floats = p.table[ids]
    return values


def _alive(tau: int, B: int, lengths: Ids | None) -> NDArray[np.bool_]:
    return np.arange(tau)[:, None] < (np.full(B, tau) if lengths is None else lengths)


def _order(tau: int, reverse: bool) -> list[tuple[int, int, int]]:
    """(t, where the state before step t lies, where the state after it lies), in the order of computation."""
    if reverse:
        return [(t, t + 1, t) for t in range(tau - 1, -1, -1)]
    return [(t, t, t + 1) for t in range(tau)]


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
    """Take h0 (B, H) through a window; p is b + U x(t), as values (tau, B, G H) or as a `Lookup`."""
    if cell not in GATES:
        raise InputError(f"cell is {cell!r}; expected one of {', '.join(GATES)}")
    x, W = _input_part(p, lengths), _matrix(W)
    tau, B, H = len(x), *h0.shape
    alive = _alive(tau, B, lengths)
    dtype = np.result_type(x, h0)
    hs = np.empty((tau + 1, B, H), dtype)
    ss = None if s0 is None or cell != "lstm" else np.empty_like(hs)
    gates = None if cell == "elman" else np.zeros((tau, B, 4 * H), dtype)
    kept = None if keep is None else np.empty((tau, B, H), dtype)
    first = tau if reverse else 0
    hs[first] = h0
    if ss is not None and s0 is not None:
        ss[first] = s0
    for t, before, after in _order(tau, reverse):
        h, live = hs[before], alive[t][:, None]
        seen = h if keep is None else h * keep
        if kept is not None:
            kept[t] = seen
        if cell == "elman":
            new = activate(x[t] + seen @ W.T, activation)  # 10.8, 10.9
        elif cell == "lstm":
            assert ss is not None and gates is not None
            new, s, gates[t] = lstm_step(x[t] + seen @ W.T, ss[before])
            ss[after] = np.where(live, s, ss[before])
        else:
            assert gates is not None and d is not None
            new, gates[t] = gru_step(x[t], seen @ W.T, d, h)
        hs[after] = np.where(live, new, h)
    return Tape(cell, activation, reverse, lengths, keep, hs, ss, gates, kept)


def lstm_step(a: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
    """Return h(t), s(t) and the gates i f g o from the pre-activations a(t) and s(t-1)."""
    i, f, g, o = np.split(a, 4, axis=1)
    i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
    s = f * s + i * g
    return o * np.tanh(s), s, np.concatenate([i, f, g, o], axis=1)


def gru_step(x: Floats, wh: Floats, d: Floats, h: Floats) -> tuple[Floats, Floats]:
    """Return h(t) and r z n q from b + U x(t), W h(t-1), d and h(t-1)."""
    x_r, x_z, x_n = np.split(x, 3, axis=1)
    w_r, w_z, w_n = np.split(wh, 3, axis=1)
    r, z, q = sigmoid(x_r + w_r), sigmoid(x_z + w_z), d + w_n
    n = np.tanh(x_n + r * q)
    return (1 - z) * n + z * h, np.concatenate([r, z, n, q], axis=1)


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

    With `consume`, da is written over the tape's gates, or over dh where there are none.
    """
    hs, H, W = tape.hs, tape.hs.shape[2], _matrix(W)
    tau, B = tape.tau, hs.shape[1]
    alive = _alive(tau, B, tape.lengths)
    da = np.zeros((tau, B, H if tape.cell == "elman" else 4 * H), hs.dtype)
    dh_t = np.zeros((B, H), hs.dtype) if dh_end is None else dh_end.copy()
    ds_t = np.zeros((B, H), hs.dtype) if ds_end is None else ds_end.copy()
    keep = 1 if tape.keep is None else tape.keep
    for t, before, after in reversed(_order(tau, tape.reverse)):
        live = alive[t][:, None]
        if dh is not None:
            dh_t = dh_t + dh[t]
        if tape.cell == "elman":
            da[t] = live * dh_t * slope(hs[after], tape.activation)
            back = keep * (da[t] @ W)  # 10.21: Wᵀ diag(1 - h(t+1)²) ∇h(t+1), and not the other way round
        elif tape.cell == "lstm":
            assert tape.ss is not None and tape.gates is not None
            da[t], ds = _lstm_step_back(tape.gates[t], tape.ss[before], tape.ss[after], dh_t, ds_t)
            da[t] *= live
            ds_t = np.where(live, ds, ds_t)
            back = keep * (da[t] @ W)
        else:
            assert tape.gates is not None
            da[t], past = _gru_step_back(tape.gates[t], hs[before], dh_t)
            da[t] *= live
            back = past + keep * (np.delete(da[t], slice(2 * H, 3 * H), axis=1) @ W)
        if xi is not None:
            back, ds_t = back * xi[t][:, None], np.where(live, ds_t * xi[t][:, None], ds_t)
        dh_t = np.where(live, back, dh_t)
    over = dh if tape.gates is None else tape.gates
    if consume and over is not None:
        over[:] = da
        da = over
    return Backward(da, dh_t, ds_t if tape.cell == "lstm" else None)


def _lstm_step_back(
    gates: Floats, s_before: Floats, s: Floats, dh: Floats, ds: Floats
) -> tuple[Floats, Floats]:
    i, f, g, o = np.split(gates, 4, axis=1)
    squashed = np.tanh(s)
    ds = ds + dh * o * (1 - squashed**2)
    di, df, dg, do = ds * g, ds * s_before, ds * i, dh * squashed
    da = [di * i * (1 - i), df * f * (1 - f), dg * (1 - g * g), do * o * (1 - o)]
    return np.concatenate(da, axis=1), ds * f


def _gru_step_back(gates: Floats, h_before: Floats, dh: Floats) -> tuple[Floats, Floats]:
    r, z, n, q = np.split(gates, 4, axis=1)
    dn = dh * (1 - z) * (1 - n * n)
    dz = dh * (h_before - n)
    da = [dn * q * r * (1 - r), dz * z * (1 - z), dn, dn * r]
    return np.concatenate(da, axis=1), dh * z


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
    """Score targets y (rows,) or (tau, B) under softmax(c + V h); negative targets are masked."""
    V = V[0].matrix if isinstance(V, tuple) else V
    shape, h, y = h.shape, h.reshape(y.size, h.shape[-1]), y.reshape(-1)
    o = h @ V.T + (0 if c is None else c)  # 10.10
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
    _into(dV, do.T @ h, accumulate)
    if dc is not None:
        _into(dc, do.sum(axis=0), accumulate)
    return Loss(float(nats.sum()), count, nats.reshape(shape[:-1]), (do @ V).reshape(shape))


def global_norm(g: Floats) -> float:
    """Return the Euclidean norm, summed in double precision."""
    return float(np.sqrt(np.sum(g.astype(np.float64) ** 2)))


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
    """Update p, m and v in place: Adam, with decoupled weight decay (AdamW) where `decay` is not zero."""
    g = g * g.dtype.type(scale)
    p *= 1 - learning_rate * decay
    m += (1 - beta1) * (g - m)
    v *= beta2
    v += (1 - beta2) * g * g
    root = np.sqrt(v) / (1 - beta2**step) ** 0.5
    p -= learning_rate / (1 - beta1**step) * m / (root + epsilon)


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
    step = g * g.dtype.type(scale) + decay * p
    if m is not None:
        m *= momentum
        m += step
        step = m
    p -= learning_rate * step


def philox(counter: NDArray[np.uint32], key: tuple[int, int]) -> NDArray[np.uint32]:
    """Return four random words for each row of counters: Philox 4x32-10 (Salmon et al. 2011).

    >>> [hex(word) for word in philox(np.zeros((1, 4), np.uint32), (0, 0))[0]]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    c = [counter[:, i].astype(np.uint64) for i in range(4)]
    k0, k1 = np.uint64(key[0]), np.uint64(key[1])
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        x, y = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(y >> half) ^ c[1] ^ k0, y & low, (x >> half) ^ c[3] ^ k1, x & low]
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return np.stack(c, axis=1).astype(np.uint32)


def dropout_mask(shape: tuple[int, ...], *, seed: int, stream: int, rate: float) -> Floats:
    """Return zeros with probability `rate`, else 1/(1 - rate): by seed, stream and position only."""
    if not 0 <= rate < 1:
        raise InputError(f"rate must be at least 0 and below 1; got {rate}")
    n = int(np.prod(shape))
    groups = np.arange((n + 3) // 4, dtype=np.uint64)
    counter = np.zeros((len(groups), 4), np.uint32)
    counter[:, 0], counter[:, 1] = groups & np.uint64(0xFFFFFFFF), groups >> np.uint64(32)
    counter[:, 2], counter[:, 3] = stream % 2**32, (stream >> 32) % 2**32
    words = philox(counter, (seed % 2**32, (seed >> 32) % 2**32)).reshape(-1)[:n]
    uniform = (words >> np.uint32(8)).astype(np.float32) * np.float32(2**-24)
    kept = np.float32(1) / (np.float32(1) - np.float32(rate))
    return np.where(uniform < np.float32(rate), np.float32(0), kept).reshape(shape)


def scale_rows(x: Floats, mask: Floats) -> Floats:
    """Return x (tau, B, H) times a mask (B, H): the same mask at every step."""
    return x * mask
