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
    alpha: list[Floats]  # a row of the batch: its steps of the decoder by its steps of the encoder
    mixed: list[Floats]  # where additive: tanh(P h + A e), the same by H
    joined: Floats  # tau_d B We+H
    out: Floats  # tau_d B H


def attend(
    weights: AttentionWeights, e: Floats, h: Floats, read: Ids, written: Ids
) -> tuple[Floats, AttentionTape]:
    """Return h̃(t), tau_d B H; row b has read[b] steps in the encoder and written[b] in the decoder."""
    keys = _rows_product(e, weights.A[0])
    queries = _rows_product(h, weights.P[0]) if weights.additive else h
    z = np.zeros((*h.shape[:2], e.shape[2]), np.float32)
    alpha, mixed = list[Floats](), list[Floats]()
    for b, (L, T) in enumerate(zip(read.tolist(), written.tolist(), strict=True)):
        score, inside = _score(weights, queries[:T, b], keys[:L, b])
        alpha.append(softmax(score))  # (3)
        mixed.append(inside)
        if L and T:
            z[:T, b] = ops.matmul(alpha[-1], np.ascontiguousarray(e[:L, b]))
    joined = np.concatenate([z, h], axis=2)
    out = tanh(_rows_product(joined, weights.C[0], weights.p["a"]))  # (4)
    return out, AttentionTape(e, h, keys, queries, alpha, mixed, joined, out)


def _score(weights: AttentionWeights, q: Floats, k: Floats) -> tuple[Floats, Floats]:
    if not weights.additive:
        if not (len(q) and len(k)):
            return np.zeros((len(q), len(k)), np.float32), q[:0]
        raw = ops.matmul(np.ascontiguousarray(q), np.ascontiguousarray(k), transpose_b=True)
        return raw * np.float32(weights.scale), q[:0]  # (1)
    inside = tanh(q[:, None] + k[None])  # T L H
    T, L, H = inside.shape
    if not (T and L):
        return np.zeros((T, L), np.float32), inside
    return ops.matmul(inside.reshape(T * L, H), weights.p["v"][:, None].copy()).reshape(T, L), inside  # (2)


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
    dz, dh = djoined[:, :, :We], djoined[:, :, We:].copy()
    de, dkeys, dqueries = np.zeros_like(tape.e), np.zeros_like(tape.keys), np.zeros_like(tape.queries)
    for b, alpha in enumerate(tape.alpha):
        T, L = alpha.shape
        if not (T and L):
            continue
        e, dzb = np.ascontiguousarray(tape.e[:L, b]), np.ascontiguousarray(dz[:T, b])
        de[:L, b] = ops.matmul(alpha, dzb, transpose_a=True)
        dalpha = ops.matmul(dzb, e, transpose_b=True)
        inner = np.cumsum(alpha.astype(np.float64) * dalpha, axis=1)[:, -1:]
        ds = (alpha * (dalpha - inner)).astype(np.float32)  # (5)
        dqueries[:T, b], dkeys[:L, b] = _score_backward(weights, tape, b, ds, gradient)
    if weights.additive:
        dh += _through(tape.h, dqueries, weights.P[1], gradient["P"])
    else:
        dh += dqueries
    de += _through(tape.e, dkeys, weights.A[1], gradient["A"])
    return de, dh


def _score_backward(
    weights: AttentionWeights, tape: AttentionTape, b: int, ds: Floats, gradient: Parameters
) -> tuple[Floats, Floats]:
    T, L = ds.shape
    if not weights.additive:
        ds = ds * np.float32(weights.scale)
        q, k = np.ascontiguousarray(tape.queries[:T, b]), np.ascontiguousarray(tape.keys[:L, b])
        return ops.matmul(ds, k), ops.matmul(ds, q, transpose_a=True)
    inside, H = tape.mixed[b], tape.h.shape[2]
    ops.matmul(ds.reshape(-1, 1), inside.reshape(-1, H), transpose_a=True, out=gradient["v"].reshape(1, H))
    da = ds[:, :, None] * weights.p["v"] * (np.float32(1) - inside * inside)  # T L H
    over_steps = ops.column_sum(da.reshape(T, L * H)).reshape(L, H)
    over_read = ops.column_sum(np.ascontiguousarray(da.swapaxes(0, 1)).reshape(L, T * H)).reshape(T, H)
    return over_read, over_steps


def _rows_product(x: Floats, W: ops.Packed, start: Floats | None = None) -> Floats:
    return ops.matmul(_flat(x), W, start=start).reshape(*x.shape[:-1], -1)


def _through(x: Floats, dy: Floats, W: ops.Packed, dW: Floats) -> Floats:
    """Add Σ dy xᵀ to dW, and return Wᵀ dy."""
    ops.matmul(_flat(dy), _flat(x), transpose_a=True, out=dW)
    return ops.matmul(_flat(dy), W).reshape(x.shape)


def _flat(x: Floats) -> Floats:
    return np.ascontiguousarray(x).reshape(-1, x.shape[-1])
