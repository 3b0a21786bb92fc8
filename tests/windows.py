"""Arguments of one layer's window for any cell of the registry, for the tests that call the kernels themselves."""

from __future__ import annotations

import numpy as np

from unspool.cells.cell import Cell
from unspool.kernels.recurrence import Extra, Width
from unspool.kernels.reference import sigmoid


def layer_arguments(cell, values, *, tau, B, H, X=4):
    """Return the arguments of `window_forward` of a cell; `values` makes an array of a shape."""
    P = cell.p_columns(X, H)
    args = {"p": values(tau, B, P), "W": values(P, H) if cell.has_W else None, "h0": values(B, H)}
    if cell.has_cell_state:
        args["s0"] = values(B, H)
    return args | {"extra": [values(*each.shape(H, P)) for each in cell.extra]}


class ToyMinGRU(Cell):
    """A cell without W: z = sigmoid(p_z), h(t) = (1 - z) h(t-1) + z p_n."""

    name = title = "toy_mingru"
    gates = ("z", "n")
    has_W = False
    tape = da = Width(2)
    nodes = ()

    def step(self, p, Wh, h, s, extra, activation):
        z, n = np.split(p, 2, axis=1)
        z = sigmoid(z)
        return (1 - z) * h + z * n, None, np.concatenate([z, n], axis=1)

    def step_back(self, step, dh, ds, extra):
        z, n = np.split(step.taped, 2, axis=1)
        return np.concatenate([dh * (n - step.h_before) * z * (1 - z), dh * z], axis=1), dh * (1 - z), None

    def jacobian(self, step, W, extra):
        return np.diag(1 - np.split(step.taped, 2)[0])


class ToyMogrifier(Cell):
    """A cell that reads x(t) itself: m = 2 sigmoid(Q h(t-1)), h(t) = tanh(k + A (m x) + S h(t-1))."""

    name = title = "toy_mogrifier"
    gates = ()
    has_W = False
    tape = Width(1, 3)  # h(t-1), x, m, m x
    da = Width(1, 2)  # the gradients of x, Q h and the argument of tanh
    extra = (
        Extra("Q", rows=Width(P=1), columns=Width(1), da=Width(P=1), read_by_backward=True),
        Extra("A", rows=Width(1), columns=Width(P=1), da=Width(P=2), tape=Width(1, 2), read_by_backward=True),
        Extra("S", rows=Width(1), columns=Width(1), da=Width(P=2), read_by_backward=True),
        Extra("k", rows=Width(1), da=Width(P=2)),
    )
    nodes = ()

    def step(self, p, Wh, h, s, extra, activation):
        Q, A, S, k = extra
        m = 2 * sigmoid(h @ Q.T)
        return np.tanh(k + (m * p) @ A.T + h @ S.T), None, np.concatenate([h, p, m, m * p], axis=1)

    def _parts(self, step):
        H = step.h.shape[-1]
        return np.split(step.taped[..., H:], 3, axis=-1)

    def step_back(self, step, dh, ds, extra):
        (Q, A, S, _), (x, m, _) = extra, self._parts(step)
        da = dh * (1 - step.h**2)
        by_x = da @ A
        by_Q = by_x * x * m * (1 - m / 2)
        return np.concatenate([by_x * m, by_Q, da], axis=1), da @ S + by_Q @ Q, None

    def jacobian(self, step, W, extra):
        (Q, A, S, _), (x, m, _) = extra, self._parts(step)
        return (1 - step.h**2)[:, None] * (S + A @ ((x * m * (1 - m / 2))[:, None] * Q))
