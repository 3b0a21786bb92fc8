"""Attention: at every step the decoder looks back at all states of the encoder, with the gradient by hand.

    general    s(t, j) = h(t)ᵀ A e(j) / √H                                                    (1)
    additive   s(t, j) = vᵀ tanh(P h(t) + A e(j))                                             (2)
    α(t, ·) = softmax(s(t, ·)),   z(t) = Σ_j α(t, j) e(j)                                     (3)
    h̃(t) = tanh(a + C [z(t); h(t)])                                                           (4)

e(j) are the encoder's states, h(t) the decoder's; the head reads h̃(t). Backwards,

    ∇α(t, j) = ∇z(t)ᵀ e(j),   ∇s = α (∇α - Σ_j α ∇α)                                          (5)

A row looks at its own steps and no others, so padding can hold anything.

All weights α take tau_d · tau_e values per row. They are computed for one block of decoder steps at a time; where there are
several blocks, the backward pass computes them again. So memory is linear in tau_d + tau_e. The bits are those of one
block: sums over decoder steps run from the last block to the first. In bf16, where such a sum can go on only after 32 steps,
blocks have a multiple of 32 steps; there the gradient of v alone depends on the sizes of the pieces that it is summed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.backend import Backend
from unspool.kernels.elementwise import softmax, tanh
from unspool.model.linear import Linear
from unspool.model.parameters import Parameters


class AttentionWeights:
    """Attention's parameters, laid out for the kernels once an update."""

    def __init__(self, p: Parameters, backend: Backend) -> None:
        self.backend, self.additive = backend, "P" in p.shapes
        self.A, self.C = Linear.of(p["A"], None, backend), Linear.of(p["C"], p["a"], backend)
        self.scale = 1.0
        """What the scores are multiplied by: 1/√H in (1)."""
        if self.additive:
            self.P, self.v = Linear.of(p["P"], None, backend), p["v"]
        else:
            self.scale = float(p["A"].shape[0]) ** -0.5


SCORES, MIXED = 2**21, 2**24
"""About so many weights α are made at once, and so many values tanh(P h + A e)."""


class Block(NamedTuple):
    """Attention of the decoder steps `begin` to `end`."""

    begin: int
    end: int
    live: list[tuple[int, int]]  # of every row: its steps in this block and in the encoder
    alpha: Floats  # B end-begin tau_e, zero beyond the ends of a row
    mixed: Floats | None  # where additive and small enough: tanh(P h + A e), end-begin B tau_e H


class AttentionTape(NamedTuple):
    """What the backward pass needs: states, keys and queries, and the weights where they are one block."""

    e: Floats  # tau_e B We
    h: Floats  # tau_d B H
    keys: Floats  # tau_e B H
    queries: Floats  # tau_d B H
    joined: Floats  # tau_d B We+H
    out: Floats  # tau_d B H
    lengths: Ids  # B, the steps of every row in the encoder
    target_lengths: Ids  # B, and in the decoder
    only: Block | None  # where there is just one


def attend(
    weights: AttentionWeights, e: Floats, h: Floats, lengths: Ids, target_lengths: Ids
) -> tuple[Floats, AttentionTape]:
    """Return h̃(t), tau_d B H; row b has lengths[b] steps in the encoder and target_lengths[b] in the decoder."""
    backend = weights.backend
    keys, queries = weights.A(e), weights.P(h) if weights.additive else h
    rows, z = _row_first(e), np.zeros((e.shape[1], h.shape[0], e.shape[2]), e.dtype)
    edges, block = _edges(weights, queries, keys), None
    for begin, end in edges:
        block = _block(weights, queries, keys, lengths, target_lengths, begin, end)
        for b, (T, L) in enumerate(block.live):
            if L and T:
                z[b, begin : begin + T] = backend.matmul(block.alpha[b, :T, :L], rows[b, :L])
    joined = np.concatenate([z.swapaxes(0, 1), h], axis=2)
    out = tanh(weights.C(joined), backend)  # (4)
    only = block if len(edges) == 1 else None
    return out, AttentionTape(e, h, keys, queries, joined, out, lengths, target_lengths, only)


def attention_weights(weights: AttentionWeights, tape: AttentionTape) -> Floats:
    """Return all α, B tau_d tau_e."""
    return np.concatenate([block.alpha for block in _blocks(weights, tape)][::-1], axis=1)


def _edges(weights: AttentionWeights, queries: Floats, keys: Floats) -> list[tuple[int, int]]:
    """Cut the decoder's steps into blocks that are small enough, or as small as can be."""
    (T, B), least = queries.shape[:2], weights.backend.BLOCK
    steps = max(1, SCORES // max(1, B * len(keys)) // least) * least
    return [(begin, min(T, begin + steps)) for begin in range(0, T, steps)]


def _blocks(weights: AttentionWeights, tape: AttentionTape) -> Iterator[Block]:
    """Yield the blocks, the last first; computed again unless there is only one."""
    if tape.only is not None:
        yield tape.only
        return
    for begin, end in reversed(_edges(weights, tape.queries, tape.keys)):
        yield _block(weights, tape.queries, tape.keys, tape.lengths, tape.target_lengths, begin, end)


def _block(
    weights: AttentionWeights,
    queries: Floats,
    keys: Floats,
    lengths: Ids,
    target_lengths: Ids,
    begin: int,
    end: int,
) -> Block:
    """Compute the scores and weights of some decoder steps."""
    steps = np.clip(target_lengths - begin, 0, end - begin)
    live = list(zip(steps.tolist(), lengths.tolist(), strict=True))
    scores = _additive if weights.additive else _general
    score, mixed = scores(weights, queries[begin:end], keys, live)
    inside = (np.arange(end - begin)[:, None] < steps[:, None, None]) & (
        np.arange(len(keys)) < lengths[:, None, None]
    )
    # What stands for a step that is not there: so little that its weight is zero.
    least = np.where(inside.any(axis=2, keepdims=True), -np.inf, 0).astype(score.dtype)
    alpha = np.where(inside, softmax(np.where(inside, score, least), weights.backend), 0)  # (3)
    return Block(begin, end, live, alpha, mixed)


def _general(
    weights: AttentionWeights, queries: Floats, keys: Floats, live: list[tuple[int, int]]
) -> tuple[Floats, None]:
    score = np.zeros((len(live), len(queries), len(keys)), keys.dtype)
    q, k = _row_first(queries), _row_first(keys)
    for b, (T, L) in enumerate(live):
        if T and L:
            score[b, :T, :L] = weights.backend.matmul(q[b, :T], k[b, :L], transpose_b=True)
    return score * weights.scale, None  # (1)


def _additive(
    weights: AttentionWeights, queries: Floats, keys: Floats, live: list[tuple[int, int]]
) -> tuple[Floats, Floats | None]:
    (T, B, H), L = queries.shape, len(keys)
    score, pieces = np.empty((T, B, L), keys.dtype), _pieces(queries, keys)
    for piece in pieces:
        mixed = _mix(weights, queries[piece], keys)
        score[piece] = weights.backend.matmul(mixed.reshape(-1, H), weights.v[:, None].copy()).reshape(
            -1, B, L
        )
    return np.ascontiguousarray(score.swapaxes(0, 1)), mixed if len(pieces) == 1 else None  # (2)


def _pieces(queries: Floats, keys: Floats) -> list[slice]:
    """Cut the steps of a block so that tanh(P h + A e) of each piece is small enough."""
    T, B, H = queries.shape
    steps = max(1, MIXED // max(1, B * len(keys) * H))
    return [slice(begin, min(T, begin + steps)) for begin in range(0, T, steps)]


def _mix(weights: AttentionWeights, queries: Floats, keys: Floats) -> Floats:
    """Return tanh(P h + A e), tau_d B tau_e H."""
    return tanh(queries[:, :, None] + keys.swapaxes(0, 1)[None], weights.backend)


def attend_backward(
    weights: AttentionWeights, tape: AttentionTape, dout: Floats, gradient: Parameters
) -> tuple[Floats, Floats]:
    """Add the gradients of attention's parameters; return those of e and of h.

    Beyond a row's end in the decoder `dout` must be zero.
    """
    do = dout * (1 - tape.out * tape.out)
    djoined = weights.C.backward(tape.joined, do, gradient["C"], gradient["a"])
    We = tape.e.shape[2]
    dz, dh = _row_first(djoined[:, :, :We]), djoined[:, :, We:].copy()
    e, de = _row_first(tape.e), np.zeros((tape.e.shape[1], tape.e.shape[0], We), tape.e.dtype)
    dqueries, dkeys = np.zeros_like(tape.queries), np.zeros_like(tape.keys)
    for block in _blocks(weights, tape):
        ds = _scores_backward(weights.backend, block, e, dz, de)
        if weights.additive:
            _additive_backward(weights, tape, block, ds, dqueries, dkeys, gradient)
        else:
            _general_backward(weights, tape, block, ds, dqueries, dkeys)
    if weights.additive:
        dh += weights.P.backward(tape.h, dqueries, gradient["P"])
    else:
        dh += dqueries
    return de.swapaxes(0, 1) + weights.A.backward(tape.e, dkeys, gradient["A"]), dh


def _scores_backward(backend: Backend, block: Block, e: Floats, dz: Floats, de: Floats) -> Floats:
    """Add a block's part of the gradient of e through (3) to `de`; return that of its scores, B end-begin tau_e."""
    dalpha = np.zeros_like(block.alpha)
    for b, (T, L) in enumerate(block.live):
        if T and L:
            own = np.ascontiguousarray(dz[b, block.begin : block.begin + T])
            _add_over_steps(backend, block.alpha[b, :T, :L], own, de[b, :L])
            dalpha[b, :T, :L] = backend.matmul(own, e[b, :L], transpose_b=True)
    inner = np.cumsum(block.alpha.astype(np.float64) * dalpha, axis=2)[:, :, -1:]
    return (block.alpha * (dalpha - inner)).astype(dalpha.dtype)  # (5)


def _add_over_steps(backend: Backend, a: Floats, b: Floats, out: Floats) -> None:
    """Add Σ a(t) b(t)ᵀ to `out`, the steps after the last multiple of `Backend.BLOCK` first: a sum can go on only there."""
    whole = len(a) // backend.BLOCK * backend.BLOCK
    for steps in (slice(whole, None), slice(whole)):
        if len(a[steps]):
            backend.matmul(a[steps], b[steps], transpose_a=True, out=out)


def _general_backward(
    weights: AttentionWeights, tape: AttentionTape, block: Block, ds: Floats, dqueries: Floats, dkeys: Floats
) -> None:
    ds = ds * weights.scale
    for b, (T, L) in enumerate(block.live):
        if T and L:
            own, steps = ds[b, :T, :L], slice(block.begin, block.begin + T)
            queries, keys = (
                np.ascontiguousarray(tape.queries[steps, b]),
                np.ascontiguousarray(tape.keys[:L, b]),
            )
            dqueries[steps, b] = weights.backend.matmul(own, keys)
            so_far = np.ascontiguousarray(dkeys[:L, b])
            _add_over_steps(weights.backend, own, queries, so_far)
            dkeys[:L, b] = so_far


def _additive_backward(
    weights: AttentionWeights,
    tape: AttentionTape,
    block: Block,
    ds: Floats,
    dqueries: Floats,
    dkeys: Floats,
    gradient: Parameters,
) -> None:
    backend, dv = weights.backend, gradient["v"].reshape(1, -1)
    ds = np.ascontiguousarray(ds.swapaxes(0, 1))  # end-begin B tau_e
    queries, dqueries = (each[block.begin : block.end] for each in (tape.queries, dqueries))
    so_far = _row_first(dkeys)  # B tau_e H
    for piece in reversed(_pieces(queries, tape.keys)):
        mixed = _mix(weights, queries[piece], tape.keys) if block.mixed is None else block.mixed
        T, B, L, H = mixed.shape
        backend.matmul(ds[piece].reshape(-1, 1), mixed.reshape(-1, H), transpose_a=True, out=dv)
        da = ds[piece][..., None] * weights.v * (1 - mixed * mixed)
        backend.column_sum(da.reshape(T, -1), out=so_far.reshape(-1))
        over_read = backend.column_sum(np.ascontiguousarray(np.moveaxis(da, 2, 0)).reshape(L, -1))
        dqueries[piece] = over_read.reshape(T, B, H)
    dkeys[:] = so_far.swapaxes(0, 1)


def _row_first(x: Floats) -> Floats:
    """Swap time and row: what belongs to a row lies together."""
    return np.ascontiguousarray(x.swapaxes(0, 1))
