"""Attention: at every step the decoder looks back at all states of the encoder, with the gradient by hand.

    general    s(t, j) = h(t)ᵀ A e(j) / √H                                                    (1)
    additive   s(t, j) = vᵀ tanh(P h(t) + A e(j))                                             (2)
    α(t, ·) = softmax(s(t, ·)),   z(t) = Σ_j α(t, j) e(j)                                     (3)
    h̃(t) = tanh(a + C [z(t); h(t)])                                                           (4)

e(j) are the encoder's states, h(t) the decoder's; the head reads h̃(t). Backwards,

    ∇α(t, j) = ∇z(t)ᵀ e(j),   ∇s = α (∇α - Σ_j α ∇α)                                          (5)

A row looks at its own steps and no others, so padding can hold anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from unspool.kernel import ops
from unspool.parameters import Parameters
from unspool.sequences.elementwise import softmax, tanh
from unspool.values import Floats, Ids


@dataclass
class AttentionWeights:
    """Attention's parameters, laid out for the kernels once an update."""

    p: Parameters

    @property
    def additive(self) -> bool:
        """Whether the score is (2) rather than (1)."""
        return "P" in self.p.shapes

    @property
    def scale(self) -> float:
        """What divides the scores of (1)."""
        return 1.0 if self.additive else float(self.p["A"].shape[0]) ** -0.5

    @cached_property
    def A(self) -> tuple[ops.Packed, ops.Packed]:
        """The encoder's side of the score, forwards and backwards."""
        return _both(self.p["A"])

    @cached_property
    def C(self) -> tuple[ops.Packed, ops.Packed]:
        """The matrix of (4), forwards and backwards."""
        return _both(self.p["C"])

    @cached_property
    def P(self) -> tuple[ops.Packed, ops.Packed]:
        """The decoder's side of (2), forwards and backwards."""
        return _both(self.p["P"])


def _both(matrix: Floats) -> tuple[ops.Packed, ops.Packed]:
    return ops.pack(matrix, transposed=True), ops.pack(matrix)


class AttentionTape(NamedTuple):
    """What attention leaves behind."""

    e: Floats  # tau_e B We
    h: Floats  # tau_d B H
    keys: Floats  # tau_e B H
    queries: Floats  # tau_d B H
    alpha: Floats  # B tau_d tau_e, zero beyond the ends of a row
    mixed: Floats | None  # where additive: tanh(P h + A e), tau_d B tau_e H
    joined: Floats  # tau_d B We+H
    out: Floats  # tau_d B H
    live: list[tuple[int, int]]  # of every row: its steps in the decoder and in the encoder


def attend(
    weights: AttentionWeights, e: Floats, h: Floats, read: Ids, written: Ids
) -> tuple[Floats, AttentionTape]:
    """Return h̃(t), tau_d B H; row b has read[b] steps in the encoder and written[b] in the decoder."""
    keys = _rows_product(e, weights.A[0])
    queries = _rows_product(h, weights.P[0]) if weights.additive else h
    live = list(zip(written.tolist(), read.tolist(), strict=True))
    scores = _additive if weights.additive else _general
    score, mixed = scores(weights, queries, keys, live)
    inside = (np.arange(h.shape[0])[:, None] < written[:, None, None]) & (
        np.arange(e.shape[0]) < read[:, None, None]
    )
    alpha = np.where(inside, softmax(np.where(inside, score, _least(score, inside))), np.float32(0))  # (3)
    rows, z = _row_first(e), np.zeros((e.shape[1], h.shape[0], e.shape[2]), np.float32)
    for b, (T, L) in enumerate(live):
        if L and T:
            z[b, :T] = ops.matmul(alpha[b, :T, :L], rows[b, :L])
    joined = np.concatenate([z.swapaxes(0, 1), h], axis=2)
    out = tanh(_rows_product(joined, weights.C[0], weights.p["a"]))  # (4)
    return out, AttentionTape(e, h, keys, queries, alpha, mixed, joined, out, live)


def _least(score: Floats, inside: Floats) -> Floats:
    """Return what stands for a step that is not there: so little that its weight is zero."""
    return np.where(inside.any(axis=2, keepdims=True), np.float32(-np.inf), np.float32(0))


def _general(
    weights: AttentionWeights, queries: Floats, keys: Floats, live: list[tuple[int, int]]
) -> tuple[Floats, None]:
    score = np.zeros((len(live), len(queries), len(keys)), np.float32)
    q, k = _row_first(queries), _row_first(keys)
    for b, (T, L) in enumerate(live):
        if T and L:
            score[b, :T, :L] = ops.matmul(q[b, :T], k[b, :L], transpose_b=True)
    return score * np.float32(weights.scale), None  # (1)


def _additive(
    weights: AttentionWeights, queries: Floats, keys: Floats, live: list[tuple[int, int]]
) -> tuple[Floats, Floats]:
    mixed = tanh(queries[:, :, None] + keys.swapaxes(0, 1)[None])  # tau_d B tau_e H
    T, B, L, H = mixed.shape
    score = ops.matmul(mixed.reshape(-1, H), weights.p["v"][:, None].copy()).reshape(T, B, L)
    return np.ascontiguousarray(score.swapaxes(0, 1)), mixed  # (2)


def attend_backward(
    weights: AttentionWeights, tape: AttentionTape, dout: Floats, gradient: Parameters
) -> tuple[Floats, Floats]:
    """Add the gradients of attention's parameters; return those of e and of h.

    Beyond a row's end in the decoder `dout` must be zero.
    """
    do = dout * (np.float32(1) - tape.out * tape.out)
    djoined = _through(tape.joined, do, weights.C[1], gradient["C"])
    ops.column_sum(_flat(do), out=gradient["a"])
    We = tape.e.shape[2]
    dz, dh = _row_first(djoined[:, :, :We]), djoined[:, :, We:].copy()
    e, dalpha = _row_first(tape.e), np.zeros_like(tape.alpha)
    de = np.zeros_like(e)
    for b, (T, L) in enumerate(tape.live):
        if T and L:
            de[b, :L] = ops.matmul(tape.alpha[b, :T, :L], dz[b, :T], transpose_a=True)
            dalpha[b, :T, :L] = ops.matmul(dz[b, :T], e[b, :L], transpose_b=True)
    inner = np.cumsum(tape.alpha.astype(np.float64) * dalpha, axis=2)[:, :, -1:]
    ds = (tape.alpha * (dalpha - inner)).astype(np.float32)  # (5)
    if weights.additive:
        dqueries, dkeys = _additive_backward(weights, tape, ds, gradient)
        dh += _through(tape.h, dqueries, weights.P[1], gradient["P"])
    else:
        dqueries, dkeys = _general_backward(weights, tape, ds)
        dh += dqueries
    return de.swapaxes(0, 1) + _through(tape.e, dkeys, weights.A[1], gradient["A"]), dh


def _general_backward(weights: AttentionWeights, tape: AttentionTape, ds: Floats) -> tuple[Floats, Floats]:
    ds = ds * np.float32(weights.scale)
    q, k = _row_first(tape.queries), _row_first(tape.keys)
    dq, dk = np.zeros_like(q), np.zeros_like(k)
    for b, (T, L) in enumerate(tape.live):
        if T and L:
            own = ds[b, :T, :L]
            dq[b, :T], dk[b, :L] = ops.matmul(own, k[b, :L]), ops.matmul(own, q[b, :T], transpose_a=True)
    return _row_first(dq), _row_first(dk)


def _additive_backward(
    weights: AttentionWeights, tape: AttentionTape, ds: Floats, gradient: Parameters
) -> tuple[Floats, Floats]:
    assert tape.mixed is not None
    T, B, L, H = tape.mixed.shape
    ds = np.ascontiguousarray(ds.swapaxes(0, 1))  # tau_d B tau_e
    ops.matmul(
        ds.reshape(-1, 1), tape.mixed.reshape(-1, H), transpose_a=True, out=gradient["v"].reshape(1, H)
    )
    da = ds[..., None] * weights.p["v"] * (np.float32(1) - tape.mixed * tape.mixed)
    over_written = ops.column_sum(da.reshape(T, -1)).reshape(B, L, H)
    over_read = ops.column_sum(np.ascontiguousarray(np.moveaxis(da, 2, 0)).reshape(L, -1)).reshape(T, B, H)
    return over_read, np.ascontiguousarray(over_written.swapaxes(0, 1))


def _row_first(x: Floats) -> Floats:
    """Swap time and row: what belongs to a row lies together."""
    return np.ascontiguousarray(x.swapaxes(0, 1))


def _rows_product(x: Floats, W: ops.Packed, start: Floats | None = None) -> Floats:
    return ops.matmul(_flat(x), W, start=start).reshape(*x.shape[:-1], -1)


def _through(x: Floats, dy: Floats, W: ops.Packed, dW: Floats) -> Floats:
    """Add Σ dy xᵀ to dW, and return Wᵀ dy."""
    ops.matmul(_flat(dy), _flat(x), transpose_a=True, out=dW)
    return ops.matmul(_flat(dy), W).reshape(x.shape)


def _flat(x: Floats) -> Floats:
    return np.ascontiguousarray(x).reshape(-1, x.shape[-1])
