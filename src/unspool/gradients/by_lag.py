"""The gradient by lag: the part of ∇W from losses at t and uses of W at t - lag, and the bias of truncation.

∇W is a double sum, over the step t of the loss and the step k at which W was used,

    ∇W = Σ_t Σ_{k ≤ t} da(k ← t) h(k-1)ᵀ,      da(k ← t) = act'(a(k)) (dh(t)/dh(k))ᵀ Vᵀ ∇o(t)

(the closed sum for dh(t)/dw: the product of Jacobians from k+1 to t multiplies ∂f(x(k), h(k-1), w)/∂w; common lecture
notes end it with another factor). Ordered by the lag t - k it is a sum of contributions G(lag), and a gradient
truncated after K steps is the sum of the first K of them. So the bias of any truncation can be computed in advance:

    bias(K) = ‖Σ_{lag ≥ K} G(lag)‖ / ‖∇‖,   over all parameters of the recurrence (U, W, b, d of every layer).

Everything is computed in float64 on the reference backend; one lag is one backward step for all (t, row) at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unspool.cells import cell_named
from unspool.errors import InputError
from unspool.kernels import reference
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.tape import Tape
from unspool.model.equivalent import as_hidden, refuse_feedback, with_output_every_step
from unspool.model.gradient import Gradient
from unspool.model.layer import add_layer_gradient, layer_backward
from unspool.model.network import Model
from unspool.model.parameters import prefix
from unspool.model.values import State


@dataclass(frozen=True)
class Arrivals:
    """The norms of the gradient of each loss L(t) where it arrives, of the last layer: row t, column k; zero for k > t.

    h(k) and s(k) count as two variables, so that of s is 0 at k = t, where L(t) reads h(t) alone.
    """

    h: Floats
    """‖∂L(t)/∂h(k)‖, (τ, τ)."""
    s: Floats | None
    """‖∂L(t)/∂s(k)‖, (τ, τ); None for a cell without a cell state."""


@dataclass(frozen=True)
class ByLag:
    """A window's gradient, ordered by lag."""

    norms: dict[str, list[float]]
    """For W of every layer, or U of a cell without W, the norm of G(lag), lag from 0 on."""
    bias: list[float]
    """For K from 0 on: the norm of the missing part when the gradient looks back K steps, divided by its norm."""
    full: float
    """The norm of the whole gradient, over all parameters of the recurrence."""

    @property
    def letter(self) -> str:
        """W, or U of a cell without W: the matrix of `norms`."""
        return next(iter(self.norms))[-1]

    @property
    def parts(self) -> list[float]:
        """The norms of G(lag), summed over the layers, lag from 0 on."""
        return [sum(norms) for norms in zip(*self.norms.values(), strict=True)]

    def contributions(self, name: str | None = None) -> list[float]:
        """Return the norms of the parts of one of these matrices, by default layer 0's, as fractions of their sum."""
        norms = next(iter(self.norms.values())) if name is None else self.norms[name]
        total = sum(norms) or 1.0
        return [norm / total for norm in norms]

    def steps_for(self, bias: float) -> int | None:
        """Return the fewest steps K to look back from which on the bias stays at or below this fraction.

        None: not within the lags that were measured.
        """
        if not 0 < bias < 1:
            raise InputError(f"bias is {bias}; expected a share above 0 and below 1")
        over = [steps for steps, missing in enumerate(self.bias) if missing > bias]
        enough = over[-1] + 1 if over else 1
        return enough if enough < len(self.bias) else None


def gradient_by_lag(
    model: Model, x: Floats | Ids, y: Ids, *, lags: int | None = None, state: State | None = None
) -> ByLag:
    """Order the gradient of a window's loss by lag, from 0 to `lags`; all that the window holds unless given.

    Shapes: x (τ, B), or (τ, B, X) for vectors; y (τ, B).

    >>> from unspool.model.config import ModelConfig
    >>> model = Model.initialise(ModelConfig(cell="elman", inputs=4, outputs=4, hidden=6), seed=0)
    >>> ids = np.arange(31, dtype=np.int32)[:, None] % 4
    >>> by_lag = gradient_by_lag(model, ids[:-1], ids[1:])
    >>> len(by_lag.bias), by_lag.bias[0], by_lag.bias[30] < 1e-12, by_lag.steps_for(0.1)
    (31, 1.0, True, 6)
    """
    tau = len(x)
    lags = tau - 1 if lags is None else lags
    if not 0 <= lags < tau:
        raise InputError(
            f"a lag of {lags} is beyond the window of {tau} steps; give a longer text or a shorter lag"
        )
    if model.config.bidirectional:
        raise InputError("gradients by lag need a model that reads in one direction")
    refuse_feedback(model.config)
    model, y = with_output_every_step(as_hidden(model.on(reference)), y, tau)
    window = _LagWindow(model, x, y, state)
    rest = window.whole()
    full = float(np.linalg.norm(rest))
    bias, found = [1.0], []
    for lag in range(lags + 1):
        norms, flat = window.step(lag)
        found.append(norms)
        rest -= flat
        bias.append(float(np.linalg.norm(rest)) / (full or 1.0))
    return ByLag({name: [norms[name] for norms in found] for name in found[0]}, bias, full)


def arrivals(model: Model, x: Floats | Ids, y: Ids, *, state: State | None = None, row: int = 0) -> Arrivals:
    """Return how much of the gradient of each loss of a window arrives at every earlier state, for one row.

    >>> from unspool.model.config import ModelConfig
    >>> model = Model.initialise(ModelConfig(cell="lstm", inputs=4, outputs=4, hidden=6), seed=0)
    >>> ids = np.arange(31, dtype=np.int32)[:, None] % 4
    >>> found = arrivals(model, ids[:-1], ids[1:])
    >>> found.h.shape, bool(found.h[29, 0] < found.h[29, 29]), bool((np.triu(found.h, 1) == 0).all()), float(found.s[5, 5])
    ((30, 30), True, True, 0.0)
    """
    tau = len(x)
    refuse_feedback(model.config)
    model, y = with_output_every_step(as_hidden(model.on(reference)), y, tau)
    window, last = _LagWindow(model, x, y, state), model.config.layers - 1
    assert window.dh is not None
    h = np.diag(np.linalg.norm(window.dh[:, row], axis=1))
    s = np.zeros_like(h)
    for lag in range(tau - 1):
        window.step(lag, gradients=False)
        t = np.arange(lag + 1, tau)
        for found, arrived in zip((h, s), window.carried[last], strict=True):
            if arrived is not None:
                found[t, t - lag - 1] = np.linalg.norm(arrived[:, row], axis=1)
    return Arrivals(h, s if cell_named(model.config.cell).has_cell_state else None)


class _LagWindow:
    """The losses of all steps, backpropagated in parallel: after `lag` steps the gradient of L(t) is at h(t - lag)."""

    def __init__(self, model: Model, x: Floats | Ids, y: Ids, state: State | None) -> None:
        self.model, self.weights = model, model.weights()
        self.output = model.forward(x, state, weights=self.weights)
        self.dh = model.loss(self.output, y, weights=self.weights, gradient=model.gradient()).dh  # tau B H
        B, layers = x.shape[1], range(model.config.layers)
        self.carried: list[tuple[Floats, Floats | None]] = [
            (np.zeros((len(x), *h.shape)), None if s is None else np.zeros((len(x), *s.shape)))
            for h, s in model.initial_state(B)
        ]
        self.names = [
            name for layer in layers for name in model.parameters if name.startswith(prefix(layer, False))
        ]
        self.names = [name for name in self.names if not name.endswith(("h0", "s0"))]
        self.matrix = ".W" if cell_named(model.config.cell).has_W else ".U"

    def step(self, lag: int, *, gradients: bool = True) -> tuple[dict[str, float], Floats]:
        """Go one step back; return the norm of each layer's part of ∇W (or ∇U), and the parts of all parameters."""
        n, gradient = len(self.output.h) - lag, self.model.gradient()  # steps 0 … n-1 are `lag` before a loss
        dh = self.dh if lag == 0 else None
        for layer in reversed(range(self.model.config.layers)):
            made, of = self.output.tape[layer], self.weights.layers[layer][0]
            shape = (n, *made.directions[0].h.shape[1:])
            one, x = _as_one_step(made.directions[0], n), _in_one_row(made.x[:n])
            dh_end, ds_end = self.carried[layer]
            dh_end = dh_end if dh is None else dh_end + dh
            dx, back = layer_backward(
                of,
                x,
                one,
                dh=None,
                dh_end=_in_one_row(dh_end)[0],
                ds_end=None if ds_end is None else _in_one_row(ds_end)[0],
            )
            if gradients:
                add_layer_gradient(of, x, one, back.da, gradient)
            self.carried[layer] = (
                back.dh0.reshape(shape)[1:],
                None if back.ds0 is None else back.ds0.reshape(shape)[1:],
            )
            dh = None if dx is None else dx.reshape(*shape[:2], -1)
        if not gradients:
            return {}, np.zeros(0)
        self.model.fold_input_tables(gradient, self.weights)
        matrices = (name for name in self.names if name.endswith(self.matrix))
        norms = {name: float(np.linalg.norm(gradient.values[name])) for name in matrices}
        return norms, self._flat(gradient)

    def whole(self) -> Floats:
        """Return the whole gradient, in the order of the parts."""
        gradient = self.model.gradient()
        self.model.backward(self.output, self.dh, gradient, weights=self.weights)
        self.model.fold_input_tables(gradient, self.weights)
        return self._flat(gradient)

    def _flat(self, gradient: Gradient) -> Floats:
        return np.concatenate([gradient.values[name].reshape(-1) for name in self.names])


def _in_one_row(values: Floats | Ids) -> Floats | Ids:
    """Return all steps side by side, as rows of one step."""
    return values.reshape(1, values.shape[0] * values.shape[1], *values.shape[2:])


def _as_one_step(tape: Tape, n: int) -> Tape:
    """Return the first n steps of a tape as one step of n times as many rows."""
    rows = n * tape.hs.shape[1]

    def pairs(states: Floats) -> Floats:
        H = states.shape[2]
        return np.stack([states[:n].reshape(rows, H), states[1 : n + 1].reshape(rows, H)])

    return Tape(
        tape.cell,
        tape.activation,
        False,
        None,
        None,
        pairs(tape.hs),
        None if tape.ss is None else pairs(tape.ss),
        None if tape.gates is None else tape.gates[:n].reshape(1, rows, -1),
        None,
        tape.P,
    )
