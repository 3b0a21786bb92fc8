"""The LSTM with layer normalisation of its cell state, after Ba, Kiros and Hinton (2016).

    i(t), f(t), g(t), o(t) and s(t) as in the LSTM
    n(t) = (s(t) - mean s(t)) / sqrt(var s(t) + 1e-5)          over the H units of a row
    h(t) = o(t) tanh(alpha n(t) + beta)

The paper normalises U x(t) and W h(t-1) as well; here b + U x(t) stays a row of a table that is made once per update. alpha begins at one,
beta at zero. With σ the root above and N = (I - 1/H - n nᵀ/H) / σ, one step's Jacobian has the LSTM's ∂s/∂· and

    ∂h/∂· = diag(o (1 - tanh²(alpha n + beta)) alpha) N ∂s/∂·  and, by h(t-1) alone, + diag(tanh(alpha n + beta) o(1-o)) W_o
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unspool.cells.cell import Cell
from unspool.cells.graph import Bias, GraphNode, Now
from unspool.cells.lstm import LSTM
from unspool.cells.operations import Gradients, Operation, Reads, fma
from unspool.kernels import native
from unspool.kernels.arrays import Activation, Floats
from unspool.kernels.recurrence import Extra, StepTape, Width

EPSILON = 1e-5
LANES = 16


class LNLSTM(LSTM):
    """h(t) = o tanh(alpha n + beta). The tape holds i f g o, n and the tanh; da the gradients of i f g o, alpha and beta."""

    name = "lnlstm"
    title = "LN-LSTM"
    input_scale = Cell.input_scale
    learning_rate = Cell.learning_rate
    tape = da = Width(6)
    extra = (
        Extra("alpha", rows=Width(1), da=Width(4), read_by_backward=True),
        Extra("beta", rows=Width(1), da=Width(5)),
    )
    torch = None
    nodes = (
        *LSTM.nodes[:-1],
        GraphNode("n", "inner", "lnlstm.n", (Now("s"),), (-0.55, 3), "n(t) = (s(t) - mean) / deviation"),
        GraphNode("h", "state", "lnlstm.h", (Now("o"), Now("n"), Bias("alpha"), Bias("beta")), (0.9, 4), "h(t) = o(t) tanh(alpha n(t) + beta)"),
    )  # fmt: skip

    def initialise(self, parameters: dict[str, Floats], rng: np.random.Generator) -> None:
        """Fill the parameters of one layer; alpha is one."""
        super().initialise(parameters, rng)
        parameters["alpha"][:] = 1

    def step(
        self, p: Floats, Wh: Floats | None, h: Floats, s: Floats | None, extra: Sequence[Floats], activation: Activation
    ) -> tuple[Floats, Floats, Floats]:  # fmt: skip
        """Return h(t), s(t) and i f g o n tanh(alpha n + beta)."""
        _, s, gates = super().step(p, Wh, h, s, (), activation)
        n = (s - s.mean(axis=1, keepdims=True)) * _over_deviation(s)
        squashed = np.tanh(extra[0] * n + extra[1])
        o = np.split(gates, 4, axis=1)[3]
        return o * squashed, s, np.concatenate([gates, n, squashed], axis=1)

    def step_back(
        self, step: StepTape, dh: Floats, ds: Floats | None, extra: Sequence[Floats]
    ) -> tuple[Floats, None, Floats]:
        """Return the gradients of the pre-activations of i f g o, of alpha and beta, and of s(t-1)."""
        assert step.taped is not None and step.s is not None and ds is not None
        _, _, _, o, n, squashed = np.split(step.taped, 6, axis=1)
        inner = dh * o * (1 - squashed**2)
        dn = inner * extra[0]
        dn = dn - dn.mean(axis=1, keepdims=True) - n * (dn * n).mean(axis=1, keepdims=True)
        ds = ds + dn * _over_deviation(step.s)
        da, _, ds = super().step_back(_without_norm(step), np.zeros_like(dh), ds, ())
        gates = da[:, : 3 * o.shape[1]]
        return np.concatenate([gates, dh * squashed * o * (1 - o), inner * n, inner], axis=1), None, ds

    def jacobian(self, step: StepTape, W: Sequence[Floats], extra: Sequence[Floats]) -> Floats:
        """Return d(h, s)(t)/d(h, s)(t-1)."""
        assert step.taped is not None and step.s is not None
        _, _, _, o, n, squashed = np.split(step.taped, 6)
        H = len(o)
        by_state = super().jacobian(_without_norm(step), W, ())[H:]
        N = (np.eye(H) - 1 / H - np.outer(n, n) / H) * _over_deviation(step.s)
        h_by_state = (o * (1 - squashed**2) * extra[0])[:, None] * N @ by_state
        h_by_state[:, :H] += (squashed * o * (1 - o))[:, None] * W[3]
        return np.concatenate([h_by_state, by_state])

    def operations(self) -> dict[str, Operation]:
        """Return the operations of n and h."""
        return {"lnlstm.n": Operation(_n, _n_back), "lnlstm.h": Operation(_h, _h_back)}


def _over_deviation(s: Floats) -> Floats:
    """Return 1 / sqrt(var + epsilon) of every row."""
    over: Floats = 1 / np.sqrt(s.var(axis=-1, keepdims=True) + EPSILON)
    return over


def _without_norm(step: StepTape) -> StepTape:
    """Return the step with the tape of the LSTM: i f g o."""
    assert step.taped is not None
    return step._replace(taped=step.taped[..., : 4 * step.h.shape[-1]])


def _row_mean(values: Floats) -> Floats:
    """Return the mean of every row (B, 1), added in the order of the kernel: vectors of 16 lanes, then a tree."""
    B, H = values.shape
    sums = np.zeros((B, LANES), np.float32)
    for part in np.split(np.pad(values, ((0, 0), (0, -H % LANES))), -(-H // LANES), axis=1):
        sums = sums + part
    while sums.shape[1] > 1:
        sums = np.add(*np.split(sums, 2, axis=1))
    return sums / np.float32(H)


def _normalised(s: Floats) -> tuple[Floats, Floats]:
    """Return n and 1 / deviation, with the bits of the kernel."""
    centred = s - _row_mean(s)
    over = np.float32(1) / np.sqrt(_row_mean(centred * centred) + np.float32(EPSILON))
    return centred * over, over


def _n(reads: Reads) -> Floats:
    return _normalised(reads.values[0])[0]


def _n_back(reads: Reads, n: Floats, dn: Floats) -> Gradients:
    over = _normalised(reads.values[0])[1]
    centred = dn - dn.mean(axis=1, keepdims=True) - n * (dn * n).mean(axis=1, keepdims=True)
    return Gradients([centred * over], [None], [])


def _squashed(reads: Reads) -> Floats:
    alpha, beta = (np.broadcast_to(each, reads.values[1].shape) for each in reads.biases)
    return native.activate(fma(alpha, reads.values[1], beta), "tanh")


def _h(reads: Reads) -> Floats:
    h: Floats = reads.values[0] * _squashed(reads)
    return h


def _h_back(reads: Reads, _: Floats, dh: Floats) -> Gradients:
    (o, n), squashed = reads.values, _squashed(reads)
    inner = dh * o * (1 - squashed * squashed)
    sums = [native.column_sum(np.ascontiguousarray(part)) for part in (inner * n, inner)]
    return Gradients([dh * squashed, inner * reads.biases[0]], [None] * 2, sums)


CELL = LNLSTM()
