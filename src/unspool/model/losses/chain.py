"""A linear-chain conditional random field: labels of a sequence are predicted together.

    score(y) = Σ_t o(t)[y(t)] + Σ_{t>1} A[y(t-1), y(t)],   log P(y | x) = score(y) - log Z,   L = -log P           (1)
    α(1) = e(1) / c(1),   α(t) = (α(t-1) M) ∘ e(t) / c(t),   M = exp(A - max A),   e(t) = exp(o(t) - max o(t))     (2)
    β(τ) = 1,             β(t-1) = M (e(t) ∘ β(t)) / c(t),   c(t) so that α(t) sums to 1                           (3)
    log Z = Σ_t (log c(t) + max o(t)) + (τ-1) max A,   P(y(t) | x) = α(t) ∘ β(t)                                   (4)
    ∇o(t) = P(y(t) | x) - 1[y(t)]                                                                                  (5)
    ∇A = Σ_{t>1} (M ∘ α(t-1) (e(t) ∘ β(t) / c(t))ᵀ - 1[y(t-1), y(t)])                                              (6)

The products are those of the backend's kernels: a row does not depend on its batch. Rows shorter than the batch end earlier.
The most probable labels are found by Viterbi's algorithm, exactly: ties take the first label.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.backend import Backend
from unspool.kernels.elementwise import exp, log
from unspool.kernels.tape import Loss
from unspool.model.linear import Linear, OutputGradient

TINY = 1e-300


class Chain(NamedTuple):
    """The sums over all label sequences of a batch."""

    log_Z: Floats  # B
    p: Floats  # tau B K, the probability of each label at each step
    pairs: Floats  # K K, the expected number of each pair of neighbours in the whole batch


def forward_backward(o: Floats, A: Floats, lengths: Ids, backend: Backend) -> Chain:
    """Compute (2), (3) and (4) for o (tau, B, K), A (K, K) and lengths (B,)."""
    tau, B, K = o.shape
    top, most = float(A.max()), o.max(axis=2).astype(np.float64)
    M = exp(A - top, backend).astype(backend.DTYPE)
    e = exp(o - o.max(axis=2, keepdims=True), backend)
    alive = np.arange(tau)[:, None] < lengths
    alpha, c = np.zeros((tau, B, K)), np.ones((tau, B))
    for t in range(tau):
        here = e[t] if t == 0 else _product(alpha[t - 1], M, backend) * e[t]
        c[t] = np.where(alive[t], np.maximum(np.cumsum(here, axis=1)[:, -1], TINY), 1.0)
        alpha[t] = np.where(alive[t][:, None], here / c[t][:, None], 0.0)  # (2)
    beta, right = np.ones((tau, B, K)), np.zeros((tau, B, K))
    for t in range(tau - 1, 0, -1):
        right[t] = np.where(alive[t][:, None], e[t] * beta[t] / c[t][:, None], 0.0)
        back = _product(right[t], np.ascontiguousarray(M.T), backend)
        beta[t - 1] = np.where(alive[t][:, None], back, 1.0)  # (3)
    log_Z = (
        np.cumsum(np.where(alive, log(c) + most, 0.0), axis=0)[-1] + np.maximum(lengths - 1, 0) * top
    )  # (4)
    left = np.ascontiguousarray(alpha[:-1].reshape(-1, K).astype(backend.DTYPE))
    after = np.ascontiguousarray(right[1:].reshape(-1, K).astype(backend.DTYPE))
    pairs = M * backend.matmul(left, after, transpose_a=True) if len(left) else np.zeros((K, K))
    return Chain(log_Z, np.where(alive[..., None], alpha * beta, 0.0), pairs)


def _product(a: Floats, M: Floats, backend: Backend) -> Floats:
    return backend.matmul(np.ascontiguousarray(a.astype(backend.DTYPE)), M).astype(np.float64)


def score_of(o: Floats, A: Floats, y: Ids, lengths: Ids) -> Floats:
    """Return the score (1) of labels y (tau, B), one number per row."""
    at = np.maximum(y, 0)[..., None].astype(np.int64)
    alive = np.arange(len(o))[:, None] < lengths
    own = np.where(alive, np.take_along_axis(o, at, 2)[..., 0].astype(np.float64), 0.0)
    own[1:] += np.where(alive[1:], A[at[:-1, :, 0], at[1:, :, 0]], 0.0)
    return np.asarray(np.cumsum(own, axis=0)[-1])


def chain_loss(
    layer: Linear, A: Floats, h: Floats, y: Ids, lengths: Ids,
    into: OutputGradient | None = None, dA: Floats | None = None,
) -> Loss:  # fmt: skip
    """Return the sum of (1) over the rows and the number of labels; with `into` and `dA`, the gradients as well."""
    o = layer(h)
    chain = forward_backward(o, A, lengths, layer.backend)
    each, scored = chain.log_Z - score_of(o, A, y, lengths), y >= 0
    dh = None
    if into is not None:
        assert dA is not None
        do = chain.p.copy()
        at = np.maximum(y, 0)[..., None].astype(np.int64)
        np.put_along_axis(do, at, np.take_along_axis(do, at, 2) - scored[..., None], 2)  # (5)
        counts = np.zeros(A.shape)
        np.add.at(counts, (y[:-1][scored[1:]], y[1:][scored[1:]]), 1)
        dA += ((chain.pairs - counts) * into.scale).astype(dA.dtype)  # (6)
        if not into.accumulate:
            into.dV[:], into.dc[:] = 0, 0
        do = np.ascontiguousarray((do * into.scale).astype(layer.backend.DTYPE))
        dh = layer.backward(h, do, into.dV, into.dc)
    return Loss(math.fsum(each.tolist()), int(scored.sum()), each, dh)


def viterbi(o: Floats, A: Floats) -> Ids:
    """Return the labels with the highest score (1), for o (tau, K) of one row.

    >>> viterbi(np.array([[1.0, 0.0], [0.4, 0.6]]), np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [0, 0]
    """
    best, came = o.astype(np.float64), np.zeros(o.shape, np.int64)
    for t in range(1, len(o)):
        through = best[t - 1][:, None] + A
        came[t] = through.argmax(axis=0)
        best[t] = best[t] + through.max(axis=0)
    path = [int(best[-1].argmax())] if len(o) else []
    for t in range(len(o) - 1, 0, -1):
        path.append(int(came[t, path[-1]]))
    return np.array(path[::-1], np.int32)
