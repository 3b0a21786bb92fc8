"""What the nodes of a network compute, forwards and backwards, with the engine's own arithmetic.

    affine     b + Σ W v              one chain of fused multiply-adds, begun at the bias, edges in order
    tanh …     act(a)                 the kernels' polynomials
    lookup     E[x]                   a row of the token table
    i f g o    of the LSTM's a        s = f s(t-1) + i g,  h = o tanh(s)
    r z n      of the GRU's a         n = tanh(b + U x + r q),  h = (1 - z) n + z h(t-1)
    softmax    ŷ = softmax(o)         (10.11)
    argmax     k = the largest of o   what is seen of an output where it is the only way back (figure 10.4)
    loss       L = -log ŷ[y]          (10.14), and ∇o = ŷ - 1[y] (10.18)

An operation takes the values on its edges, the matrices on its edges and its own biases. Forwards every bit is
that of the kernels: gates, which share a division, come from one step with a W of -0, which adds nothing.
Backwards the formulas are written out in NumPy, and agree to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unspool.kernels import native
from unspool.kernels.arrays import Activation, CellName, Floats, Ids
from unspool.kernels.reference import slope

Values = list[Any]
"""Values on the edges of a node: floats B size, or tokens B."""


@dataclass
class Reads:
    """What an operation is given."""

    values: Values
    weights: list[Floats | None]
    biases: list[Floats]


@dataclass
class Gives:
    """What an operation gives on the way back: a gradient for everything it read, None where there is none."""

    values: list[Floats | None]
    weights: list[Floats | None]
    biases: list[Floats]


@dataclass(frozen=True)
class Operation:
    """A node's computation and its transpose."""

    forward: Callable[[Reads], Floats]
    backward: Callable[[Reads, Floats, Floats], Gives]
    """What was read, what came out, and the gradient of that."""


def fma(a: Floats, b: Floats, c: Floats) -> Floats:
    """Return a b + c in float32, rounded once.

    In float64 the product is exact and the sum is rounded to odd; rounding that to float32 is then as if the
    sum had been exact.

    >>> a, c = np.float32([1 + 2**-23]), np.float32([-1])
    >>> bool(fma(a, a, c) == np.float32(2**-22 + 2**-46)), bool(a * a + c == np.float32(2**-22))
    (True, True)
    """
    product, c = a.astype(np.float64) * b, c.astype(np.float64)
    total = product + c
    part = total - product
    error = (product - (total - part)) + (c - part)  # what the sum lost, exactly
    even = (total.view(np.int64) & 1) == 0
    odd = np.where((error != 0) & even, np.nextafter(total, np.copysign(np.inf, error)), total)
    return odd.astype(np.float32)


NOTHING = np.full((1, 1), -0.0, np.float32)
"""A W that changes no sum, not even the sign of a zero."""


def _gates(cell: CellName, p: Floats) -> Floats:
    """Take pre-activations (B, G, H) through one step of a kernel; return its gates, B H 4."""
    B, G, H = p.shape
    rows = np.ascontiguousarray(p.transpose(0, 2, 1)).reshape(1, B * H, G)
    none = np.zeros((B * H, 1), np.float32)
    tape = native.window_forward(
        cell,
        rows,
        np.repeat(NOTHING, G, axis=0),
        none,
        s0=none if cell == "lstm" else None,
        d=np.zeros(1, np.float32) if cell == "gru" else None,
    )
    assert tape.gates is not None
    gates: Floats = tape.gates.reshape(B, H, 4)
    return gates


def activate(a: Floats, activation: Activation) -> Floats:
    """Apply an activation as the kernels do."""
    return native.activate(np.ascontiguousarray(a), activation)


def affine(reads: Reads) -> Floats:
    """Return b + Σ W v: one chain; a token picks a column of its matrix."""
    total: Floats | None = reads.biases[0] if reads.biases else None
    for value, W in zip(reads.values, reads.weights, strict=True):
        assert W is not None
        if value.ndim == 1:
            total = _with_columns(total, W, value)
        else:
            total = native.matmul(np.ascontiguousarray(value), np.ascontiguousarray(W.T), start=total)
    assert total is not None
    return total


def _with_columns(total: Floats | None, W: Floats, tokens: Ids) -> Floats:
    """Add each row's column of W; a token below zero stands for nothing."""
    if total is None or total.ndim == 1:
        zero = np.zeros(len(W), np.float32) if total is None else total
        total = np.repeat(zero[None], len(tokens), axis=0)
    seen = tokens >= 0
    return np.where(seen[:, None], W.T[np.maximum(tokens, 0)] + total, total)


def _affine_back(reads: Reads, _: Floats, d: Floats) -> Gives:
    values: list[Floats | None] = []
    weights: list[Floats | None] = []
    for value, W in zip(reads.values, reads.weights, strict=True):
        assert W is not None
        if value.ndim == 1:
            values.append(None)
            seen = value >= 0
            weights.append(_scattered(value[seen], d[seen], W.shape[::-1]).T)
        else:
            values.append(native.matmul(d, np.ascontiguousarray(W)))
            weights.append(native.matmul(d, np.ascontiguousarray(value), transpose_a=True))
    return Gives(values, weights, [native.column_sum(d)] if reads.biases else [])


def _scattered(ids: Ids, rows: Floats, shape: tuple[int, ...]) -> Floats:
    table = native.zeros(shape)
    native.scatter_add(table, np.ascontiguousarray(ids), np.ascontiguousarray(rows))
    return table


def _activation(name: Activation) -> Operation:
    return Operation(
        lambda reads: activate(reads.values[0], name),
        lambda reads, h, d: Gives([d * slope(h, name)], [None], []),
    )


def _lookup_back(reads: Reads, _: Floats, d: Floats) -> Gives:
    E = reads.weights[0]
    assert E is not None
    return Gives([None], [_scattered(reads.values[0], d, E.shape)], [])


def _gate(cell: CellName, at: int, blocks: int, curve: Activation) -> Operation:
    """One gate of a cell: all gates of a share a division in the kernels, so all are computed, one is kept."""

    def forward(reads: Reads) -> Floats:
        a = reads.values[0].reshape(len(reads.values[0]), blocks, -1)
        padded = a if cell == "lstm" else np.concatenate([a, np.zeros_like(a[:, :1])], axis=1)
        return np.ascontiguousarray(_gates(cell, padded)[:, :, at])

    def backward(reads: Reads, gate: Floats, d: Floats) -> Gives:
        da = np.zeros((len(gate), blocks, gate.shape[1]), np.float32)
        da[:, at] = d * slope(gate, curve)
        return Gives([da.reshape(len(gate), -1)], [None], [])

    return Operation(forward, backward)


def _lstm_s(reads: Reads) -> Floats:
    f, s, i, g = reads.values
    return fma(f, s, i * g)


def _lstm_s_back(reads: Reads, _: Floats, ds: Floats) -> Gives:
    f, s, i, g = reads.values
    return Gives([ds * s, ds * f, ds * g, ds * i], [None] * 4, [])


def _lstm_h(reads: Reads) -> Floats:
    o, s = reads.values
    h: Floats = o * activate(s, "tanh")
    return h


def _lstm_h_back(reads: Reads, _: Floats, dh: Floats) -> Gives:
    o, s = reads.values
    squashed = activate(s, "tanh")
    return Gives([dh * squashed, dh * o * (1 - squashed * squashed)], [None] * 2, [])


def _gru_n(reads: Reads) -> Floats:
    *inputs, r, q = reads.values
    p = affine(Reads(inputs, reads.weights[:-2], reads.biases))
    return activate(fma(r, q, p), "tanh")


def _gru_n_back(reads: Reads, n: Floats, d: Floats) -> Gives:
    *inputs, r, q = reads.values
    da = d * (1 - n * n)
    part = _affine_back(Reads(inputs, reads.weights[:-2], reads.biases), n, da)
    return Gives([*part.values, da * q, da * r], [*part.weights, None, None], part.biases)


def _gru_h(reads: Reads) -> Floats:
    z, n, h = reads.values
    return fma(z, h - n, n)


def _gru_h_back(reads: Reads, _: Floats, dh: Floats) -> Gives:
    z, n, h = reads.values
    return Gives([dh * (h - n), dh * (1 - z), dh * z], [None] * 3, [])


def _scored(o: Floats, y: Ids) -> tuple[Floats, Floats]:
    """Return L and ∇o of every row, by the kernel: o stands in for V, and the state is a single 1."""
    one, nats, do = np.ones((1, 1), np.float32), np.zeros(len(o)), np.zeros_like(o)
    for row, target in enumerate(y):
        dV = np.zeros((o.shape[1], 1), np.float32)
        scored = native.softmax_cross_entropy(
            one, np.ascontiguousarray(o[row][:, None]), None, np.array([target], np.int32), dV=dV
        )
        nats[row], do[row] = scored.sum, dV[:, 0]
    return nats[:, None], do


def softmax(reads: Reads) -> Floats:
    """Return ŷ: ∇o but where the target is, taken from two targets."""
    o = reads.values[0]
    if o.shape[1] == 1:
        return np.ones_like(o)
    y_hat, other = (_scored(o, np.full(len(o), y, np.int32))[1] for y in (0, 1))
    y_hat[:, 0] = other[:, 0]
    return y_hat


def _softmax_back(reads: Reads, y_hat: Floats, d: Floats) -> Gives:
    return Gives([y_hat * (d - (d * y_hat).sum(1, keepdims=True))], [None], [])


OPERATIONS: dict[str, Operation] = {
    "affine": Operation(affine, _affine_back),
    "lookup": Operation(
        lambda r: native.gather(np.ascontiguousarray(r.weights[0]), r.values[0]), _lookup_back
    ),
    "tanh": _activation("tanh"),
    "relu": _activation("relu"),
    "sigmoid": _activation("sigmoid"),
    "identity": _activation("identity"),
    "lstm.i": _gate("lstm", 0, 4, "sigmoid"),
    "lstm.f": _gate("lstm", 1, 4, "sigmoid"),
    "lstm.g": _gate("lstm", 2, 4, "tanh"),
    "lstm.o": _gate("lstm", 3, 4, "sigmoid"),
    "lstm.s": Operation(_lstm_s, _lstm_s_back),
    "lstm.h": Operation(_lstm_h, _lstm_h_back),
    "gru.r": _gate("gru", 0, 2, "sigmoid"),
    "gru.z": _gate("gru", 1, 2, "sigmoid"),
    "gru.n": Operation(_gru_n, _gru_n_back),
    "gru.h": Operation(_gru_h, _gru_h_back),
    "softmax": Operation(softmax, _softmax_back),
    "argmax": Operation(
        lambda r: r.values[0].argmax(axis=1).astype(np.int32), lambda r, _, d: Gives([None], [None], [])
    ),
    "loss": Operation(
        lambda r: _scored(*r.values)[0],
        lambda r, _, d: Gives([(d * _scored(*r.values)[1]).astype(np.float32), None], [None, None], []),
    ),
}
"""By the name that a node carries."""
