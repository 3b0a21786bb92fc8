"""The gradient by lag: how much of ∇W comes from a loss now and a step so many before, and where to cut.

∇W is a double sum, over the step t of the loss and the step k at which W was used,

    ∇W = Σ_t Σ_{k ≤ t} da(k ← t) h(k-1)ᵀ,      da(k ← t) = act'(a(k)) (dh(t)/dh(k))ᵀ Vᵀ ∇o(t)

(the closed sum for dh(t)/dw: the product of Jacobians from k+1 to t meets ∂f(x(k), h(k-1), w)/∂w; common lecture
notes end it with another factor). Ordered by the lag t - k it is a sum of shares G(lag), and a gradient that
looks back K steps is the sum of the first K of them. So the bias of any truncation is known before it is tried:

    bias(K) = ‖Σ_{lag ≥ K} G(lag)‖ / ‖∇‖,   over all parameters of the recurrence (U, W, b, d of every layer).

All in float64 through the NumPy twins: every lag takes one step back for all (t, row) at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unspool.errors import InputError
from unspool.kernels import reference
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.tape import Tape
from unspool.model.network import Model
from unspool.model.parameters import prefix
from unspool.model.twin import ForwardResult, Twin, at_every_step, check_targets, refuse_feedback
from unspool.model.values import State


@dataclass(frozen=True)
class ByLag:
    """A window's gradient, ordered by lag."""

    norms: dict[str, list[float]]
    """For W of every layer, the norm of G(lag), lag from 0 on."""
    bias: list[float]
    """For K from 0 on: what is missing of the gradient when it looks back K steps, as a share of its norm."""
    full: float
    """The norm of the whole gradient, over all parameters of the recurrence."""

    def shares(self, name: str = "layer0.W") -> list[float]:
        """Return the norms of a W's parts as shares of their sum."""
        total = sum(self.norms[name]) or 1.0
        return [norm / total for norm in self.norms[name]]

    def steps_for(self, bias: float) -> int | None:
        """Return the fewest steps K to look back so that no longer look misses more than this share.

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
    twin, y = at_every_step(Twin.of(model).as_hidden, y, tau)
    seen = twin.forward(x, state)
    check_targets(seen, y)
    walk = _Walk(twin, seen, y)
    rest = walk.whole()
    full = float(np.linalg.norm(rest))
    bias, found = [1.0], []
    for lag in range(lags + 1):
        norms, flat = walk.step(lag)
        found.append(norms)
        rest -= flat
        bias.append(float(np.linalg.norm(rest)) / (full or 1.0))
    names = [prefix(layer, False) + "W" for layer in range(model.config.layers)]
    return ByLag({name: [norms[i] for norms in found] for i, name in enumerate(names)}, bias, full)


class _Walk:
    """All losses walk back together: after `lag` steps, that of step t stands at step t - lag."""

    def __init__(self, twin: Twin, seen: ForwardResult, y: Ids) -> None:
        self.twin, self.seen = twin, seen
        self.top: Floats | None = seen.do(y) @ twin.V  # tau B H
        self.dh_out = self.top
        shape = seen.tapes[0][0].h.shape
        two = twin.cell.has_cell_state
        self.carried = [
            (np.zeros(shape), np.zeros(shape) if two else None) for _ in range(twin.config.layers)
        ]

    def step(self, lag: int) -> tuple[list[float], Floats]:
        """Go one step back; return the norm of each layer's part of ∇W, and the parts of all parameters."""
        config, n = self.twin.config, len(self.seen.h) - lag  # steps 0 … n-1 are `lag` before a loss
        dh = self.top
        parts: list[Floats] = []
        norms: list[float] = []
        for layer in reversed(range(config.layers)):
            tape, at = self.seen.tapes[layer][0], prefix(layer, False)
            arriving, ds = self.carried[layer]
            arriving = arriving if dh is None else arriving + dh
            one = _as_one_step(tape, n)
            back = reference.window_backward(
                one,
                self.twin.letters.get(at + "W"),
                extra=self.twin.extra(at),
                dh_end=arriving.reshape(one.hs.shape[1:]),
                ds_end=None if ds is None else ds.reshape(one.hs.shape[1:]),
            )
            parts = [*self._parts(layer, back.da[0], n), *parts]
            norms.insert(0, float(np.linalg.norm(parts[0])))
            shape = (n, *tape.h.shape[1:])
            self.carried[layer] = (
                back.dh0.reshape(shape)[1:],
                None if back.ds0 is None else back.ds0.reshape(shape)[1:],
            )
            G = self.twin.gates * config.hidden
            dh = (back.da[0, :, :G] @ self.twin.letters[at + "U"]).reshape(n, tape.h.shape[1], -1)
        self.top = None
        return norms, np.concatenate([part.reshape(-1) for part in parts])

    def _parts(self, layer: int, da: Floats, n: int) -> list[Floats]:
        tape, x, H = self.seen.tapes[layer][0], self.seen.inputs[layer][:n], self.twin.config.hidden
        to_x = da[:, : self.twin.gates * H]
        parts = [self.twin.recurrent(da).T @ tape.h_before[:n].reshape(len(da), H)]
        if x.ndim == 3:
            parts.append(to_x.T @ x.reshape(len(da), -1))
        else:
            columns = np.zeros(self.twin.letters[prefix(layer, False) + "U"].shape)
            np.add.at(columns.T, x.reshape(-1), to_x)
            parts.append(columns)
        parts.append(to_x.sum(axis=0))
        taped = None if tape.gates is None else tape.gates[:n].reshape(len(da), -1)
        return parts + [each.gradient(da, taped, H, to_x.shape[1]) for each in self.twin.cell.extra]

    def whole(self) -> Floats:
        """Return the whole gradient, in the order of the parts."""
        n = len(self.seen.h)
        backs = self.twin.backward(self.seen, self.dh_out)
        parts = [
            part
            for layer, row in enumerate(backs)
            for part in self._parts(layer, row[0][1].da.reshape(-1, row[0][1].da.shape[2]), n)
        ]
        return np.concatenate([part.reshape(-1) for part in parts])


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
