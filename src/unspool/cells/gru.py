"""The gated recurrent unit, the same function as PyTorch's `nn.GRU`.

    r(t) = sigmoid(b_r + W_r h(t-1) + U_r x(t))
    z(t) = sigmoid(b_z + W_z h(t-1) + U_z x(t))
    q(t) = d + W_n h(t-1)
    n(t) = tanh(b_n + U_n x(t) + r(t) q(t))
    h(t) = (1 - z(t)) n(t) + z(t) h(t-1)

b = b_ih + b_hh in the blocks r and z; in the block n, b is b_ih and d is b_hh, since d stands inside the
reset gate's product. With h' = h(t-1), one step's Jacobian is

    diag(z) + diag((h' - n) z(1-z)) W_z + diag((1-z)(1-n²)) (diag(q r(1-r)) W_r + diag(r) W_n)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unspool.cells.cell import Cell, TorchLayer
from unspool.cells.graph import Bias, GraphNode, Input, Now, Past
from unspool.cells.operations import Gradients, Operation, Reads, affine, affine_back, fma, gate
from unspool.kernels import native
from unspool.kernels.arrays import Activation, Floats
from unspool.kernels.recurrence import Extra, StepTape, Width
from unspool.kernels.reference import sigmoid


class GRU(Cell):
    """h(t) = (1 - z) n + z h(t-1). The tape holds r z n q, and da the gradients of the same four."""

    name = "gru"
    title = "GRU"
    gates = ("r", "z", "n")
    forget_gate = "z"
    tape = Width(4)
    da = Width(4)
    W_gap = (2, 1)  # r z q are multiplied with W, r z n with U
    da_over = "tape"
    extra = (Extra("d", rows=Width(1), da=Width(3)),)
    torch = TorchLayer("GRU", inner_biases={"n": "d"})
    nodes = (
        GraphNode("a", "inner", "affine", (Input("rz"), Past("h", "rz"), Bias("b", "rz")), (0, 0), "a(t) = b + {past} + U {x}, of r and z", 2),
        GraphNode("r", "gate", "gru.r", (Now("a"),), (-0.2, 1), "r(t) = sigmoid(a_r(t))", 1, "10.47"),
        GraphNode("z", "gate", "gru.z", (Now("a"),), (1.4, 1), "z(t) = sigmoid(a_z(t))", 1, "10.46"),
        GraphNode("q", "inner", "affine", (Bias("d"), Past("h", "n")), (-1.4, 1), "q(t) = d + W_n h({before})"),
        GraphNode("n", "inner", "gru.n", (Input("n"), Now("r"), Now("q"), Bias("b", "n")), (-0.7, 2), "n(t) = tanh(b_n + U_n {x} + r(t) q(t))", 1, "10.45"),
        GraphNode("h", "state", "gru.h", (Now("z"), Now("n"), Past("h")), (0.5, 3), "h(t) = (1 - z(t)) n(t) + z(t) h({before})", 1, "10.45"),
    )  # fmt: skip

    def step(
        self, p: Floats, Wh: Floats | None, h: Floats, s: Floats | None, extra: Sequence[Floats], activation: Activation
    ) -> tuple[Floats, None, Floats]:  # fmt: skip
        """Return h(t) and r z n q."""
        assert Wh is not None
        (x_r, x_z, x_n), (w_r, w_z, w_n), (d,) = np.split(p, 3, axis=1), np.split(Wh, 3, axis=1), extra
        r, z, q = sigmoid(x_r + w_r), sigmoid(x_z + w_z), d + w_n
        n = np.tanh(x_n + r * q)
        return (1 - z) * n + z * h, None, np.concatenate([r, z, n, q], axis=1)

    def step_back(
        self, step: StepTape, dh: Floats, ds: Floats | None, extra: Sequence[Floats]
    ) -> tuple[Floats, Floats, None]:
        """Return the gradients of r z n q and the direct part of that of h(t-1)."""
        assert step.taped is not None
        r, z, n, q = np.split(step.taped, 4, axis=1)
        dn = dh * (1 - z) * (1 - n * n)
        dz = dh * (step.h_before - n)
        da = [dn * q * r * (1 - r), dz * z * (1 - z), dn, dn * r]
        return np.concatenate(da, axis=1), dh * z, None

    def jacobian(self, step: StepTape, W: Sequence[Floats], extra: Sequence[Floats]) -> Floats:
        """Return dh(t)/dh(t-1)."""
        assert step.taped is not None
        (r, z, n, q), (W_r, W_z, W_n) = np.split(step.taped, 4), W
        inner = (q * r * (1 - r))[:, None] * W_r + r[:, None] * W_n
        by_z = ((step.h_before - n) * z * (1 - z))[:, None] * W_z
        found: Floats = np.diag(z) + by_z + ((1 - z) * (1 - n * n))[:, None] * inner
        return found

    def pre_activations(self, p: Floats, Wh: Floats, taped: Floats | None) -> Floats:
        """Return a(t); its block n is b_n + U_n x(t) + r q."""
        assert taped is not None
        r, _, _, q = np.split(taped, 4, axis=-1)
        a: Floats = p + np.concatenate([Wh[..., : 2 * r.shape[-1]], r * q], axis=-1)
        return a

    def operations(self) -> dict[str, Operation]:
        """Return the operations of r, z, n and h."""
        return {
            "gru.r": gate(self, "r", blocks=2),
            "gru.z": gate(self, "z", blocks=2),
            "gru.n": Operation(_n, _n_back),
            "gru.h": Operation(_h, _h_back),
        }


def _n(reads: Reads) -> Floats:
    *inputs, r, q = reads.values
    p = affine(replace(reads, values=inputs, weights=reads.weights[:-2]))
    return native.activate(fma(r, q, p), "tanh")


def _n_back(reads: Reads, n: Floats, d: Floats) -> Gradients:
    *inputs, r, q = reads.values
    da = d * (1 - n * n)
    part = affine_back(replace(reads, values=inputs, weights=reads.weights[:-2]), n, da)
    return Gradients([*part.values, da * q, da * r], [*part.weights, None, None], part.biases)


def _h(reads: Reads) -> Floats:
    z, n, h = reads.values
    return fma(z, h - n, n)


def _h_back(reads: Reads, _: Floats, dh: Floats) -> Gradients:
    z, n, h = reads.values
    return Gradients([dh * (h - n), dh * (1 - z), dh * z], [None] * 3, [])


CELL = GRU()
