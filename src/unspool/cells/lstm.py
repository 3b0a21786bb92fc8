"""Long short-term memory, the same function as PyTorch's `nn.LSTM`.

    i(t) = sigmoid(b_i + W_i h(t-1) + U_i x(t))
    f(t) = sigmoid(b_f + W_f h(t-1) + U_f x(t))
    g(t) = tanh(b_g + W_g h(t-1) + U_g x(t))
    o(t) = sigmoid(b_o + W_o h(t-1) + U_o x(t))
    s(t) = f(t) s(t-1) + i(t) g(t)
    h(t) = o(t) tanh(s(t))

The cell state is s, since c is the output's bias; b = b_ih + b_hh. The forget gate is initialised open (b_f = 1), so
that an untrained network remembers. With h' = h(t-1) and s' = s(t-1), one step's Jacobian of (h, s) is

    ∂s/∂s' = diag(f),   ∂s/∂h' = diag(s' f(1-f)) W_f + diag(g i(1-i)) W_i + diag(i (1-g²)) W_g
    ∂h/∂·  = diag(o (1 - tanh²s)) ∂s/∂·  and, by h' alone, + diag(tanh(s) o(1-o)) W_o
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from unspool.cells.cell import Cell, TorchLayer
from unspool.cells.graph import Bias, GraphNode, Input, Now, Past
from unspool.cells.operations import Gradients, Operation, Reads, fma, gate
from unspool.kernels import native
from unspool.kernels.arrays import Activation, Floats
from unspool.kernels.recurrence import StepTape, Width
from unspool.kernels.reference import sigmoid


class LSTM(Cell):
    """s(t) = f s(t-1) + i g, h(t) = o tanh(s(t)). The tape holds i f g o."""

    name = "lstm"
    title = "LSTM"
    gates = ("i", "f", "g", "o")
    has_cell_state = True
    forget_gate = "f"
    input_gate = "i"
    input_scale = 0.5
    learning_rate = (0.03, 4.0)
    tape = Width(4)
    da = Width(4)
    da_over = "tape"
    torch: ClassVar[TorchLayer | None] = TorchLayer("LSTM")
    nodes: ClassVar[tuple[GraphNode, ...]] = (
        GraphNode("a", "inner", "affine", (Input("ifgo"), Past("h", "ifgo"), Bias("b", "ifgo")), (0, 0), "a(t) = b + {past} + U {x}", 4),
        GraphNode("i", "gate", "lstm.i", (Now("a"),), (-0.55, 1), "i(t) = sigmoid(a_i(t))", 1, "10.42"),
        GraphNode("f", "gate", "lstm.f", (Now("a"),), (-1.65, 1), "f(t) = sigmoid(a_f(t))", 1, "10.40"),
        GraphNode("g", "gate", "lstm.g", (Now("a"),), (0.55, 1), "g(t) = tanh(a_g(t))", 1, "10.41"),
        GraphNode("o", "gate", "lstm.o", (Now("a"),), (1.65, 1), "o(t) = sigmoid(a_o(t))", 1, "10.44"),
        GraphNode("s", "state", "lstm.s", (Now("f"), Past("s"), Now("i"), Now("g")), (-0.55, 2), "s(t) = f(t) s({before}) + i(t) g(t)", 1, "10.41"),
        GraphNode("h", "state", "lstm.h", (Now("o"), Now("s")), (0.9, 3), "h(t) = o(t) tanh(s(t))", 1, "10.43"),
    )  # fmt: skip

    def initialise(self, parameters: dict[str, Floats], rng: np.random.Generator) -> None:
        """Fill the parameters of one layer, with an open forget gate."""
        super().initialise(parameters, rng)
        parameters["b"][self.block("f", parameters["W"].shape[1])] = 1

    def step(
        self, p: Floats, Wh: Floats | None, h: Floats, s: Floats | None, extra: Sequence[Floats], activation: Activation
    ) -> tuple[Floats, Floats, Floats]:  # fmt: skip
        """Return h(t), s(t) and i f g o."""
        assert Wh is not None and s is not None
        i, f, g, o = np.split(p + Wh, 4, axis=1)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        s = f * s + i * g
        return o * np.tanh(s), s, np.concatenate([i, f, g, o], axis=1)

    def step_back(
        self, step: StepTape, dh: Floats, ds: Floats | None, extra: Sequence[Floats]
    ) -> tuple[Floats, None, Floats]:
        """Return the gradients of the pre-activations of i f g o, and of s(t-1)."""
        assert step.taped is not None and step.s is not None and step.s_before is not None and ds is not None
        i, f, g, o = np.split(step.taped, 4, axis=1)
        squashed = np.tanh(step.s)
        ds = ds + dh * o * (1 - squashed**2)
        di, df, dg, do = ds * g, ds * step.s_before, ds * i, dh * squashed
        da = [di * i * (1 - i), df * f * (1 - f), dg * (1 - g * g), do * o * (1 - o)]
        return np.concatenate(da, axis=1), None, ds * f

    def jacobian(self, step: StepTape, W: Sequence[Floats], extra: Sequence[Floats]) -> Floats:
        """Return d(h, s)(t)/d(h, s)(t-1)."""
        assert step.taped is not None and step.s is not None and step.s_before is not None
        (i, f, g, o), (W_i, W_f, W_g, W_o) = np.split(step.taped, 4), W
        squashed = np.tanh(step.s)
        s_by_h = (
            (g * i * (1 - i))[:, None] * W_i
            + (step.s_before * f * (1 - f))[:, None] * W_f
            + (i * (1 - g * g))[:, None] * W_g
        )
        out = (o * (1 - squashed**2))[:, None]
        h_by_h = out * s_by_h + (squashed * o * (1 - o))[:, None] * W_o
        return np.block([[h_by_h, out * np.diag(f)], [s_by_h, np.diag(f)]])

    def operations(self) -> dict[str, Operation]:
        """Return the operations of i, f, g, o, s and h."""
        gates = {
            f"lstm.{letter}": gate(self, letter, blocks=4, activation="tanh" if letter == "g" else "sigmoid")
            for letter in self.gates
        }
        return gates | {"lstm.s": Operation(_s, _s_back), "lstm.h": Operation(_h, _h_back)}


def _s(reads: Reads) -> Floats:
    f, s, i, g = reads.values
    return fma(f, s, i * g)


def _s_back(reads: Reads, _: Floats, ds: Floats) -> Gradients:
    f, s, i, g = reads.values
    return Gradients([ds * s, ds * f, ds * g, ds * i], [None] * 4, [])


def _h(reads: Reads) -> Floats:
    o, s = reads.values
    h: Floats = o * native.activate(np.ascontiguousarray(s), "tanh")
    return h


def _h_back(reads: Reads, _: Floats, dh: Floats) -> Gradients:
    o, s = reads.values
    squashed = native.activate(np.ascontiguousarray(s), "tanh")
    return Gradients([dh * squashed, dh * o * (1 - squashed * squashed)], [None] * 2, [])


CELL = LSTM()
