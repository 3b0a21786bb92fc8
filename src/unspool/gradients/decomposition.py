"""The gradient of a window, taken apart: every quantity under its name, and every time step's share.

With the letters of the book, a window gives

    a(t), h(t), o(t), ŷ(t), L(t)                                                        (10.8 to 10.14)
    ∇o(t) = ŷ(t) - 1[y(t)]                                                              (10.18)
    ∇h(t) = Wᵀ diag(1 - h(t+1)²) ∇h(t+1) + Vᵀ ∇o(t)                                     (10.21)

and step t's share of the gradients is

    ∇c: ∇o(t)    ∇b: da(t)    ∇V: ∇o(t) h(t)ᵀ    ∇W: da(t) h(t-1)ᵀ    ∇U: da(t) x(t)ᵀ    (10.22 to 10.28)

with da(t) = diag(1 - h(t)²) ∇h(t); the gates of GRU and LSTM have their own da. The sum of the shares over t is
the gradient. All in float64, through the NumPy twins; the kernels agree to the rounding of float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.tape import Backward
from unspool.model.network import Model
from unspool.model.parameters import prefix
from unspool.model.twin import ForwardResult, Twin, at_every_step, check_targets
from unspool.model.values import State

TOO_MANY = 2**27
"""Values that `shares` returns at most: 1 GiB of float64."""


@dataclass(frozen=True)
class GradientDecomposition:
    """One window of a model: names as in the book, arrays time-major."""

    twin: Twin
    seen: ForwardResult
    y: Ids
    do: Floats  # tau B K, ∇o(t)
    backs: list[list[tuple[Floats | None, Backward]]]

    @property
    def names(self) -> list[str]:
        """The parameters that have shares."""
        return [name for name in self.twin.letters if not name.endswith(("h0", "s0")) and name != "E"]

    @property
    def h(self) -> Floats:
        """h(t) of the last layer, tau B width."""
        return self.seen.h

    @property
    def o(self) -> Floats:
        """o(t), tau B K."""
        return self.seen.o

    @property
    def y_hat(self) -> Floats:
        """ŷ(t) = softmax(o(t)), tau B K."""
        return self.seen.y_hat

    @property
    def L(self) -> Floats:
        """L(t) in nats, tau B."""
        return self.seen.nats(self.y)

    def a(self, layer: int = 0, reverse: bool = False) -> Floats:
        """a(t) = b + W h(t-1) + U x(t), tau B G*H; the GRU's third block is b_n + U_n x(t) + r q."""
        at, tape, x = prefix(layer, reverse), self.seen.tapes[layer][reverse], self.seen.inputs[layer]
        if self.seen.before is not None:
            U, R, b = (self.twin.letters[at + letter] for letter in "URb")
            back = (self.seen.before >= 0)[:, :, None] * R.T[np.maximum(self.seen.before, 0)]
            fed: Floats = b + (U.T[x] if x.ndim == 2 else x @ U.T) + back
            return fed
        U, W, b = (self.twin.as_hidden.letters[at + letter] for letter in "UWb")
        from_x = b + (U.T[x] if x.ndim == 2 else x @ U.T)
        return self.twin.cell.pre_activations(from_x, tape.h_before @ W.T, tape.gates)

    def da(self, layer: int = 0, reverse: bool = False) -> Floats:
        """∇a(t), tau B G*H."""
        return self.backs[layer][reverse][1].da[:, :, : self.twin.gates * self.twin.config.hidden]

    def dh(self, layer: int = 0, reverse: bool = False) -> Floats:
        """∇h(t), tau B H: what arrives at h(t) from its output and from all later steps (10.20, 10.21)."""
        arriving, back = self.backs[layer][reverse]
        tape = self.seen.tapes[layer][reverse]
        found = np.zeros(tape.h.shape) if arriving is None else arriving.copy()
        if self.seen.before is not None:
            return found
        alive = np.ones(found.shape[:2], bool)
        if tape.lengths is not None:
            alive = np.arange(tape.tau)[:, None] < tape.lengths
        twin, at = self.twin.as_hidden, prefix(layer, reverse)
        W, cell, extra = twin.letters[at + "W"], twin.cell, twin.extra(at)
        carried = self.twin.recurrent(back.da) @ W  # from step t to h(t-1)
        later = range(tape.tau - 1, 0, -1) if not reverse else range(tape.tau - 1)
        for t in later:
            before = t + 1 if reverse else t - 1
            direct = cell.step_back(tape.step(t), found[t], np.zeros_like(found[t]), extra)[1]
            passed = carried[t] if direct is None else carried[t] + direct
            found[before] += np.where(alive[t][:, None], passed, found[t])
        return found

    def share(self, name: str, t: int) -> Floats:
        """Return step t's share of a parameter's gradient, in the parameter's shape."""
        if name not in self.names:
            raise InputError(f"there are no shares of {name!r}; there are shares of {', '.join(self.names)}")
        tau = len(self.y)
        if not 0 <= t < tau:
            raise InputError(f"step {t} is beyond the window; expected 0 to {tau - 1}")
        found: Floats = self._share(name, t)
        return found

    def _share(self, name: str, t: int) -> Any:
        if name == "c":
            found = self.do[t].sum(axis=0)  # 10.22
            return found + self._fed_back(t).sum(axis=0) if self.twin.config.feeds_logits else found
        if name == "V":
            found = self.do[t].T @ self.h[t]  # 10.24
            if not self.twin.config.feeds_logits:
                return found
            return found + self._fed_back(t).T @ self.seen.tapes[0][0].h_before[t]
        at, letter = name.rsplit(".", 1)
        layer, reverse = int(at.split(".")[0].removeprefix("layer")), at.endswith("reverse")
        back, tape, x = (
            self.backs[layer][reverse][1],
            self.seen.tapes[layer][reverse],
            self.seen.inputs[layer],
        )
        H = self.twin.config.hidden
        if letter == "R" and self.twin.config.feeds_logits:
            return back.da[t].T @ (self.twin.letters["c"] + tape.h_before[t] @ self.twin.V.T)
        if letter == "R":
            assert self.seen.before is not None
            one_hot = (self.seen.before[t] >= 0)[:, None] * np.eye(len(self.twin.V))[self.seen.before[t]]
            return back.da[t].T @ one_hot
        if letter == "W":
            return self.twin.recurrent(back.da[t]).T @ tape.h_before[t]  # 10.26
        for each in self.twin.cell.extra:
            if letter == each.name:
                taped = None if tape.gates is None else tape.gates[t]
                return each.gradient(back.da[t], taped, H, self.twin.gates * H)
        da = back.da[t, :, : self.twin.gates * H]
        if letter == "b":
            return da.sum(axis=0)  # 10.23
        if x.ndim == 3:
            return da.T @ x[t]  # 10.28
        columns = np.zeros(self.twin.letters[name].shape)
        np.add.at(columns.T, x[t], da)
        return columns

    def _fed_back(self, t: int) -> Any:
        """Return what a(t) hands back to o(t-1) where logits are fed back, B K: Rᵀ da(t)."""
        return self.backs[0][0][1].da[t] @ self.twin.letters["layer0.R"]

    def shares(self, name: str) -> Floats:
        """Return every step's share of a parameter's gradient, tau and the parameter's shape."""
        size = len(self.y) * self.twin.letters[name].size if name in self.names else 0
        if size > TOO_MANY:
            raise InputError(
                f"{len(self.y)} shares of {name} are {size * 8 / 2**30:.1f} GiB: take share(name, t) step by step"
            )
        return np.stack([self.share(name, t) for t in range(len(self.y))])

    def share_norms(self, name: str) -> Floats:
        """Return the norm of every step's share, tau."""
        return np.array([np.linalg.norm(self.share(name, t)) for t in range(len(self.y))])

    def gradient(self, name: str) -> Floats:
        """Return a parameter's gradient: the sum of its shares, from tau to 1."""
        total = self.share(name, len(self.y) - 1)
        for t in range(len(self.y) - 2, -1, -1):
            total = total + self.share(name, t)
        return total

    def arrays(self) -> Iterator[tuple[str, Floats]]:
        """Give every quantity of the window under its name: a, h, s, da, dh of each layer; o, y_hat, L, do."""
        for layer, tapes in enumerate(self.seen.tapes):
            for i, tape in enumerate(tapes):
                at, reverse = prefix(layer, bool(i)), bool(i)
                yield at + "a", self.a(layer, reverse)
                yield at + "h", tape.h
                if tape.ss is not None:
                    yield at + "s", tape.ss[:-1] if reverse else tape.ss[1:]
                yield at + "da", self.da(layer, reverse)
                yield at + "dh", self.dh(layer, reverse)
        yield from (("o", self.o), ("y_hat", self.y_hat), ("L", self.L), ("do", self.do))


def decompose_gradient(
    model: Model,
    x: Floats | Ids,
    y: Ids,
    state: State | None = None,
    *,
    lengths: Ids | None = None,
    scale: float = 1.0,
) -> GradientDecomposition:
    """Read a window and take the gradient of `scale` times the sum of its losses apart.

    >>> from unspool.model.config import ModelConfig
    >>> model = Model.initialise(ModelConfig(cell="elman", inputs=3, outputs=3, hidden=2), seed=0)
    >>> ids = np.array([[0], [1], [2], [0]], np.int32)
    >>> apart = decompose_gradient(model, ids[:-1], ids[1:])
    >>> apart.shares("layer0.W").shape, apart.dh().shape, sorted(dict(apart.arrays()))[:4]
    ((3, 2, 2), (3, 1, 2), ['L', 'do', 'layer0.a', 'layer0.da'])
    """
    twin, y = at_every_step(Twin.of(model), y, len(x))
    seen = twin.forward(x, state, lengths, y)
    check_targets(seen, y)
    do = seen.do(y, scale)
    return GradientDecomposition(twin, seen, y, do, twin.backward(seen, do @ twin.V))
