"""The gradient of a window by time step: every quantity under its name, and every step's contribution.

With the letters of the book, a window gives

    a(t), h(t), o(t), ŷ(t), L(t)                                                        (10.8 to 10.14)
    ∇o(t) = ŷ(t) - 1[y(t)]                                                              (10.18)
    ∇h(t) = Wᵀ diag(1 - h(t+1)²) ∇h(t+1) + Vᵀ ∇o(t)                                     (10.21)

and step t contributes to the gradients

    ∇c: ∇o(t)    ∇b: da(t)    ∇V: ∇o(t) h(t)ᵀ    ∇W: da(t) h(t-1)ᵀ    ∇U: da(t) x(t)ᵀ    (10.22 to 10.28)

with da(t) = diag(1 - h(t)²) ∇h(t); the gates of GRU and LSTM have their own da. The sum of the contributions over t is
the gradient. Everything is computed in float64, by the network on the reference backend.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unspool.errors import InputError
from unspool.kernels import reference
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.tape import Lookup, Tape
from unspool.model.equivalent import with_output_every_step
from unspool.model.feedback import AT, add_feedback_gradient
from unspool.model.layer import add_layer_gradient, input_part, layer_backward
from unspool.model.layer_names import layer_directions
from unspool.model.network import Model
from unspool.model.packed import Weights
from unspool.model.parameters import prefix
from unspool.model.stack import LayerGradient
from unspool.model.values import Output, State

TOO_MANY = 2**27
"""The most values that `contributions` returns: 1 GiB of float64."""


@dataclass(frozen=True)
class GradientDecomposition:
    """One window of a model: names as in the book, arrays time-major."""

    model: Model
    """On the reference backend, with an output at every step."""
    weights: Weights
    output: Output
    y: Ids
    o: Floats
    """o(t), tau B K."""
    do: Floats
    """∇o(t), tau B K."""
    layers: list[LayerGradient]

    @property
    def names(self) -> list[str]:
        """The parameters whose gradient is decomposed."""
        return [name for name in self.model.parameters if not name.endswith(("h0", "s0")) and name != "E"]

    @property
    def h(self) -> Floats:
        """h(t) of the last layer, tau B width."""
        return self.output.h

    @property
    def y_hat(self) -> Floats:
        """ŷ(t) = softmax(o(t)), tau B K."""
        return softmax(self.o)

    @property
    def L(self) -> Floats:
        """L(t) in nats, tau B."""
        return self.model.loss(self.output, self.y, weights=self.weights).per_target

    def a(self, layer: int = 0, reverse: bool = False) -> Floats:
        """a(t) = b + W h(t-1) + U x(t), tau B G*H; the GRU's third block is b_n + U_n x(t) + r q; without W, b + U x(t)."""
        of, made = self.weights.layers[layer][reverse], self.output.tape[layer]
        tape, p = made.directions[reverse], input_part(of, made.x)
        from_x: Floats = p.table[p.ids] if isinstance(p, Lookup) else p
        if made.before is not None:
            R = self.model.parameters.stored(AT + "R")
            from_y: Floats = (made.before >= 0)[:, :, None] * R[np.maximum(made.before, 0)]
            return from_x + from_y
        if of.W is None:
            return from_x
        return of.cell.pre_activations(from_x, tape.h_before @ of.W.T, tape.gates)

    def da(self, layer: int = 0, reverse: bool = False) -> Floats:
        """∇a(t), tau B G*H."""
        return self.layers[layer].backs[reverse].da[:, :, : self.output.tape[layer].directions[reverse].P]

    def dh(self, layer: int = 0, reverse: bool = False) -> Floats:
        """∇h(t), tau B H: the sum of the gradients from its output and from all later steps (10.20, 10.21)."""
        arriving, made = self.layers[layer].dh[reverse], self.output.tape[layer]
        tape = made.directions[reverse]
        found = np.zeros(tape.h.shape) if arriving is None else arriving.copy()
        if made.before is not None:
            return found
        of, ds = self.weights.layers[layer][reverse], None
        for t in range(tape.tau - 1) if reverse else range(tape.tau - 1, 0, -1):
            back = layer_backward(
                of, made.x[t : t + 1], one_step(tape, t), dh=None, dh_end=found[t], ds_end=ds
            )[1]
            found[t + 1 if reverse else t - 1] += back.dh0
            ds = back.ds0
        return found

    def contribution(self, name: str, t: int) -> Floats:
        """Return step t's contribution to a parameter's gradient, in the parameter's shape."""
        if name not in self.names:
            raise InputError(f"{name!r} is not decomposed; expected one of {', '.join(self.names)}")
        tau = len(self.y)
        if not 0 <= t < tau:
            raise InputError(f"step {t} is beyond the window; expected 0 to {tau - 1}")
        gradient, here = self.model.gradient(), slice(t, t + 1)
        dV, dc = gradient.accumulator(self.model.config.output_matrix), gradient.accumulator("c")
        self.weights.linear_output.backward(self.h[here], self.do[here], dV, dc)  # 10.22, 10.24
        for layer, reverse in layer_directions(self.model.config):
            if not (name.startswith(prefix(layer, reverse)) or self.model.config.feeds_logits):
                continue
            of, made = self.weights.layers[layer][reverse], self.output.tape[layer]
            step, da = one_step(made.directions[reverse], t), self.layers[layer].backs[reverse].da[here]
            if made.before is not None:
                add_feedback_gradient(of, made.x[here], made.before[here], step, da, gradient)
            else:
                add_layer_gradient(of, made.x[here], step, da, gradient)  # 10.23, 10.26, 10.28
        self.model.fold_input_tables(gradient, self.weights)
        return gradient.values[name]

    def contributions(self, name: str) -> Floats:
        """Return every step's contribution to a parameter's gradient, tau and the parameter's shape."""
        size = len(self.y) * self.model.parameters[name].size if name in self.names else 0
        if size > TOO_MANY:
            raise InputError(
                f"{len(self.y)} contributions of {name} take {size * 8 / 2**30:.1f} GiB: call contribution(name, t) step by step"
            )
        return np.stack([self.contribution(name, t) for t in range(len(self.y))])

    def contribution_norms(self, name: str) -> Floats:
        """Return the norm of every step's contribution, tau."""
        return np.array([np.linalg.norm(self.contribution(name, t)) for t in range(len(self.y))])

    def gradient(self, name: str) -> Floats:
        """Return a parameter's gradient: the sum of its contributions, from tau to 1."""
        total = self.contribution(name, len(self.y) - 1)
        for t in range(len(self.y) - 2, -1, -1):
            total = total + self.contribution(name, t)
        return total

    def arrays(self) -> Iterator[tuple[str, Floats]]:
        """Yield every quantity of the window under its name: a, h, s, da, dh of each layer; o, y_hat, L, do."""
        for layer, reverse in layer_directions(self.model.config):
            at, tape = prefix(layer, reverse), self.output.tape[layer].directions[reverse]
            yield at + "a", self.a(layer, reverse)
            yield at + "h", tape.h
            if tape.ss is not None:
                yield at + "s", tape.ss[:-1] if reverse else tape.ss[1:]
            yield at + "da", self.da(layer, reverse)
            yield at + "dh", self.dh(layer, reverse)
        yield from (("o", self.o), ("y_hat", self.y_hat), ("L", self.L), ("do", self.do))


def softmax(o: Floats) -> Floats:
    """Return exp(o) / Σ exp(o) along the last axis."""
    e = np.exp(o - o.max(axis=-1, keepdims=True))
    y_hat: Floats = e / e.sum(axis=-1, keepdims=True)
    return y_hat


def one_step(tape: Tape, t: int) -> Tape:
    """Return the tape of step t alone."""
    return tape._replace(
        lengths=None if tape.lengths is None else np.clip(tape.lengths - t, 0, 1),
        hs=tape.hs[t : t + 2],
        ss=None if tape.ss is None else tape.ss[t : t + 2],
        gates=None if tape.gates is None else tape.gates[t : t + 1],
    )


def decompose_gradient(
    model: Model,
    x: Floats | Ids,
    y: Ids,
    state: State | None = None,
    *,
    lengths: Ids | None = None,
    scale: float = 1.0,
) -> GradientDecomposition:
    """Read a window and decompose the gradient of `scale` times the sum of its losses by time step.

    >>> from unspool.model.config import ModelConfig
    >>> model = Model.initialise(ModelConfig(cell="elman", inputs=3, outputs=3, hidden=2), seed=0)
    >>> ids = np.array([[0], [1], [2], [0]], np.int32)
    >>> found = decompose_gradient(model, ids[:-1], ids[1:])
    >>> found.contributions("layer0.W").shape, found.dh().shape, sorted(dict(found.arrays()))[:4]
    ((3, 2, 2), (3, 1, 2), ['L', 'do', 'layer0.a', 'layer0.da'])
    """
    model, y = with_output_every_step(model.on(reference), y, len(x))
    weights = model.weights()
    output = model.forward(x, state, lengths=lengths, weights=weights, y=y)
    model.head.check_targets(output.h, y)
    o = model.logits(output, weights)
    targets = np.eye(model.config.outputs)[np.maximum(y, 0)]
    do = scale * (y >= 0)[..., None] * (softmax(o) - targets)  # 10.18
    dh = model.backend.matmul(do.reshape(-1, do.shape[-1]), weights.linear_output.V[1])
    dh = dh.reshape(output.h.shape)
    layers = list(model.layer_gradients(output, dh, weights=weights))[::-1]
    return GradientDecomposition(model, weights, output, y, o, do, layers)
