"""The Elman recurrence, the network of figure 10.3.

    a(t) = b + W h(t-1) + U x(t)                    (10.8)
    h(t) = act(a(t)), tanh by default               (10.9)

The same function as PyTorch's `nn.RNN` with b = b_ih + b_hh. In the network of figure 10.4, R y(t-1) takes the place of
W h(t-1): a(t) = b + R y(t-1) + U x(t). One step's Jacobian is diag(act'(a)) W.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unspool.cells.cell import Cell, TorchLayer
from unspool.cells.graph import Bias, GraphNode, Input, Now, Past
from unspool.cells.initialise import uniform
from unspool.kernels.arrays import Activation, Floats
from unspool.kernels.recurrence import StepTape, Width
from unspool.kernels.reference import activate, slope


class Elman(Cell):
    """h(t) = act(b + W h(t-1) + U x(t))."""

    name = "elman"
    title = "Elman"
    network_title = "Elman network"
    gates = ("a",)
    has_activation = True
    reads_output = True
    da = Width(1)
    da_over = "dh"
    torch = TorchLayer("RNN")
    nodes = (
        GraphNode("a", "inner", "affine", (Input("a"), Past("h", "a"), Bias("b", "a")), (0, 0), "a(t) = b + {past} + U {x}", 1, "10.8"),
        GraphNode("h", "state", "{act}", (Now("a"),), (0, 1), "h(t) = {act}(a(t))", 1, "10.9"),
    )  # fmt: skip

    def step(
        self, p: Floats, Wh: Floats | None, h: Floats, s: Floats | None, extra: Sequence[Floats], activation: Activation
    ) -> tuple[Floats, None, None]:  # fmt: skip
        """Return h(t)."""
        assert Wh is not None
        return activate(p + Wh, activation), None, None  # 10.8, 10.9

    def step_back(
        self, step: StepTape, dh: Floats, ds: Floats | None, extra: Sequence[Floats]
    ) -> tuple[Floats, None, None]:
        """Return da(t)."""
        return dh * slope(step.h, step.activation), None, None

    def jacobian(self, step: StepTape, W: Sequence[Floats], extra: Sequence[Floats]) -> Floats:
        """Return dh(t)/dh(t-1)."""
        found: Floats = slope(step.h, step.activation)[:, None] * W[0]
        return found


CELL = Elman()


def initialise_feedback(parameters: dict[str, Floats], rng: np.random.Generator) -> None:
    """Fill U and R evenly, the bias with zero (figure 10.4)."""
    uniform(parameters["U"], rng)
    uniform(parameters["R"], rng)
    parameters["b"][:] = 0
