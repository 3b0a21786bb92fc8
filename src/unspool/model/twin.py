"""A model in double precision, through the NumPy twins of the kernels: what checks and looks inside.

The same layers, in the same order, as `unspool.model.network`; slow, plain, and as exact as float64 is. Finite differences
need that, and so does a look at single numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from unspool.cells import cell_named
from unspool.cells.cell import Cell
from unspool.errors import InputError
from unspool.kernels import reference
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.tape import Backward, Tape
from unspool.model.config import ModelConfig
from unspool.model.feedback import AT, NOTHING, shift_right
from unspool.model.inputs import without_padding
from unspool.model.network import Model
from unspool.model.packed import recurrence
from unspool.model.parameters import Parameters, prefix, shapes_of
from unspool.model.values import State


@dataclass(frozen=True)
class ForwardResult:
    """A window, read: what every layer saw and left, and the outputs."""

    inputs: list[Floats | Ids]  # a layer: tokens tau B, or values tau B X
    tapes: list[list[Tape]]  # a layer, a direction
    h: Floats  # tau B width, of the last layer; B width where only the end is read
    o: Floats  # tau B K, or B K
    before: Ids | None = None  # tau B, the outputs before, where they are the only way back

    @property
    def y_hat(self) -> Floats:
        """softmax(o), tau B K."""
        e = np.exp(self.o - self.o.max(axis=-1, keepdims=True))
        shares: Floats = e / e.sum(axis=-1, keepdims=True)
        return shares

    def nats(self, y: Ids) -> Floats:
        """-log ŷ(t)[y(t)] of every target, zero where it is negative."""
        top = self.o.max(axis=-1)
        total = np.log(np.exp(self.o - top[..., None]).sum(axis=-1)) + top
        picked = np.take_along_axis(self.o, np.maximum(y, 0)[..., None], axis=-1)[..., 0]
        found: Floats = np.where(y >= 0, total - picked, 0.0)
        return found

    def do(self, y: Ids, scale: float = 1.0) -> Floats:
        """∇o(t) = ŷ(t) - 1[y(t)] (10.18), zero where the target is negative."""
        found: Floats = (
            scale * (y >= 0)[..., None] * (self.y_hat - np.eye(self.o.shape[-1])[np.maximum(y, 0)])
        )
        return found


@dataclass(frozen=True)
class Twin:
    """The parameters of a model as float64, under their names.

    >>> model = Model.initialise(ModelConfig(cell="elman", inputs=5, outputs=5, hidden=8), seed=1)
    >>> x = np.array([[0], [3], [1]], np.int32)
    >>> bool(np.abs(Twin.of(model).forward(x).h - model.forward(x).h).max() < 1e-6)
    True
    """

    config: ModelConfig
    letters: Mapping[str, Floats]

    @staticmethod
    def of(model: Model) -> Twin:
        """Return a copy of a model's parameters."""
        return Twin(
            model.config, {name: value.astype(np.float64) for name, value in model.parameters.items()}
        )

    def moved(self, name: str, value: Floats) -> Twin:
        """Return the same twin with one parameter in place of another."""
        return replace(self, letters={**self.letters, name: value})

    @property
    def V(self) -> Floats:
        """The output's matrix, K width."""
        return self.letters["E" if self.config.tied else "V"]

    @property
    def as_hidden(self) -> Twin:
        """The twin of figure 10.3 with the same states: W = R V and b + R c where o(t-1) is fed back; else this one."""
        if not self.config.feeds_logits:
            return self
        letters = dict(self.letters)
        R, b = letters.pop(AT + "R"), letters[AT + "b"]
        letters |= {AT + "W": R @ self.V, AT + "b": b + R @ letters["c"]}
        return replace(self, config=hidden_config(self.config), letters=letters)

    def forward(
        self,
        x: Floats | Ids,
        state: State | None = None,
        lengths: Ids | None = None,
        y: Ids | None = None,
    ) -> ForwardResult:
        """Read a window: tokens (tau, B) or values (tau, B, X); `y` is what comes back in figure 10.4."""
        config = self.config
        here: Floats | Ids = x.astype(np.float64) if config.dense else without_padding(x, lengths)
        if config.dense and lengths is not None:
            here = np.where((np.arange(len(x))[:, None] < lengths)[:, :, None], here, 0.0)
        if config.embedding:
            here = self.letters["E"][here]
        if config.feeds_tokens:
            return self._forward_feedback(here, state, lengths, y)
        if config.feeds_logits:
            return self.as_hidden.forward(x, state, lengths)
        inputs: list[Floats | Ids] = []
        tapes: list[list[Tape]] = []
        for layer in range(config.layers):
            inputs.append(here)
            tapes.append([self._unroll(here, layer, i, state, lengths) for i in range(config.directions)])
            here = np.concatenate([tape.h for tape in tapes[-1]], axis=2)
        if config.pattern == "last":
            here = np.concatenate([tape.h_end for tape in tapes[-1]], axis=1)
        return ForwardResult(inputs, tapes, here, here @ self.V.T + self.letters["c"])  # 10.10

    def _forward_feedback(
        self, x: Floats | Ids, state: State | None, lengths: Ids | None, y: Ids | None
    ) -> ForwardResult:
        if y is None:
            raise InputError("pattern='output' needs the targets y: they stand for the outputs before")
        first = np.full(x.shape[1], NOTHING, np.int32) if state is None else state[0][0]
        before = shift_right(y, first)
        U, R, b = (self.letters[AT + letter] for letter in "URb")
        a = b + (U.T[x] if x.ndim == 2 else x @ U.T)
        a = a + (before >= 0)[:, :, None] * R.T[np.maximum(before, 0)]
        h = reference.activate(a, self.config.activation)
        hs = np.concatenate([np.zeros((1, *h.shape[1:])), h])
        tape = Tape(self.cell, self.config.activation, False, lengths, None, hs, None, None, None)
        return ForwardResult([x], [[tape]], h, h @ self.V.T + self.letters["c"], before)

    def _unroll(
        self, x: Floats | Ids, layer: int, direction: int, state: State | None, lengths: Ids | None
    ) -> Tape:
        config, B = self.config, x.shape[1]
        at = prefix(layer, bool(direction))
        h0, s0 = self.start(at, B) if state is None else state[layer * config.directions + direction]
        U, b = self.letters[at + "U"], self.letters[at + "b"]
        p = b + (U.T[x] if x.ndim == 2 else x @ U.T)
        return reference.window_forward(
            self.cell,
            p,
            self.letters.get(at + "W"),
            h0.astype(np.float64),
            s0=None if s0 is None else s0.astype(np.float64),
            extra=self.extra(at),
            lengths=lengths,
            activation=config.activation,
            reverse=bool(direction),
        )

    def start(self, at: str, B: int) -> tuple[Floats, Floats | None]:
        """Return the state of a layer before the first step."""
        zero = np.zeros(self.config.hidden)
        h0 = np.tile(self.letters.get(at + "h0", zero), (B, 1))
        return h0, np.tile(self.letters.get(at + "s0", zero), (B, 1)) if self.cell.has_cell_state else None

    def backward(
        self, seen: ForwardResult, dh: Floats | None, d_final_state: State | None = None
    ) -> list[list[tuple[Floats | None, Backward]]]:
        """Take ∇h (tau, B, width) of the last layer back; return a layer and direction's ∇h and what it found."""
        config, H = self.config, self.config.hidden
        if config.feeds_logits:
            return self.as_hidden.backward(seen, dh, d_final_state)
        if config.feeds_tokens:
            assert dh is not None
            da = dh * reference.slope(seen.h, config.activation)
            return [[(dh, Backward(da, np.zeros(dh.shape[1:]), None))]]
        if config.pattern == "last" and dh is not None:
            d_final_state, dh = self._at_the_end(dh), None
        found: list[list[tuple[Floats | None, Backward]]] = []
        for layer in reversed(range(config.layers)):
            row = []
            below: Floats | None = None
            for i, tape in enumerate(seen.tapes[layer]):
                at = prefix(layer, bool(i))
                part = None if dh is None else dh[:, :, i * H : (i + 1) * H]
                dh_end, ds_end = (
                    (None, None) if d_final_state is None else d_final_state[layer * config.directions + i]
                )
                back = reference.window_backward(
                    tape,
                    self.letters.get(at + "W"),
                    extra=self.extra(at),
                    dh=part,
                    dh_end=dh_end,
                    ds_end=ds_end,
                )
                row.append((part, back))
                dx = back.da[:, :, : self.gates * H] @ self.letters[at + "U"]
                below = dx if below is None else below + dx
            found.insert(0, row)
            dh = below
        return found

    def _at_the_end(self, dh: Floats) -> State:
        H, parts = self.config.hidden, self.config.layers * self.config.directions
        arriving: State = [(np.zeros((len(dh), H)), None)] * parts
        for i in range(self.config.directions):
            arriving[parts - self.config.directions + i] = (dh[:, i * H : (i + 1) * H], None)
        return arriving

    @property
    def cell(self) -> Cell:
        """The recurrence of its layers."""
        return cell_named(self.config.cell)

    def extra(self, at: str) -> list[Floats]:
        """Return the further parameters of a layer."""
        return [self.letters[at + each.name] for each in self.cell.extra]

    @property
    def gates(self) -> int:
        """G, the gate blocks of the cell."""
        return len(self.cell.gates)

    def recurrent(self, da: Floats) -> Floats:
        """Return the columns of da that are multiplied with W."""
        return self.cell.da_of_W(da, self.config.hidden)


def hidden_config(config: ModelConfig) -> ModelConfig:
    """Return the config of figure 10.3 with the same sizes."""
    return replace(config, pattern="hidden", feedback="token")


def as_hidden(model: Model) -> Model:
    """Return the model of figure 10.3 with the same states and outputs, bit for bit, where o(t-1) is fed back.

    Any other model is returned as it is.

    >>> model = Model.initialise(ModelConfig(cell="elman", inputs=5, outputs=5, pattern="10.4", feedback="logits"), seed=1)
    >>> x = np.array([[0], [3], [1]], np.int32)
    >>> bool((as_hidden(model).forward(x).h == model.forward(x).h).all())
    True
    """
    if not model.config.feeds_logits:
        return model
    config = hidden_config(model.config)
    parameters = Parameters(shapes_of(config))
    W, b = recurrence(model.config, model.parameters)
    for name, value in (dict(model.parameters) | {AT + "W": W, AT + "b": b}).items():
        if name in parameters.shapes:
            parameters[name][:] = value
    return Model(config, parameters)


def at_every_step(twin: Twin, y: Ids, tau: int) -> tuple[Twin, Ids]:
    """Return the same loss with a target at every step: one output at the end is all but the last step masked.

    A row that ends before keeps its state from there on, so that its end stands at the last step, too.
    """
    if twin.config.pattern != "last":
        return twin, y
    if twin.config.bidirectional:
        raise InputError("one output after both directions cannot be taken apart step by step")
    every = np.full((tau, *y.shape), -1, np.int32)
    every[-1:] = y
    return replace(twin, config=replace(twin.config, pattern="hidden")), every


def refuse_feedback(config: ModelConfig) -> None:
    """Refuse to look for a chain of states where there is none."""
    if config.feeds_tokens:
        raise InputError(
            "pattern='output' has no chain of states: nothing reaches back further than one step"
        )


def check_targets(seen: ForwardResult, y: Ids) -> None:
    """Refuse targets of another shape than the window's."""
    if y.shape != seen.o.shape[:-1]:
        raise InputError(
            f"y has shape {y.shape}; expected {seen.o.shape[:-1]}, one target for each step and row"
        )
