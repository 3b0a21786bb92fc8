"""The base class of cells: what differs between one recurrence and another, in one object."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from unspool.cells.graph import GraphNode
from unspool.cells.initialise import initialise_layer
from unspool.cells.operations import Operation
from unspool.kernels.arrays import Floats
from unspool.kernels.recurrence import Recurrence, StepTape

Shapes = dict[str, tuple[int, ...]]


class TorchLayer(NamedTuple):
    """The layer of PyTorch that computes the same function, with weight_ih = U, weight_hh = W, bias_ih + bias_hh = b.

    The gradients of the two biases are always equal, except where the second one stands inside a product.
    """

    name: str
    """The class in torch.nn."""
    inner_biases: Mapping[str, str] = {}
    """The parameters that are bias_hh of a gate; there, b is bias_ih alone."""


class Cell(Recurrence):
    """A recurrence: to its equations for the kernels, it adds what a model and its tools need."""

    title: ClassVar[str]
    """The name in headings."""
    network_title: ClassVar[str] = ""
    """The name of a network of such layers, if it is not the title."""
    reads_output: ClassVar[bool] = False
    """Whether R y(t-1) can take the place of W h(t-1) (figure 10.4)."""
    forget_gate: ClassVar[str] = ""
    """The gate that multiplies the old state: its bias sets the initial time constant."""
    input_gate: ClassVar[str] = ""
    """The gate that multiplies the new state, unless it is one minus the forget gate."""
    input_scale: ClassVar[float] = 0.0
    """The standard deviation of U x(t) that language models of one-hot tokens start with; 0: 1/√K, as other networks."""
    learning_rate: ClassVar[tuple[float, float]] = (0.006, 3.0)
    """The learning rate of language models is the smaller of two: the first number, and the second divided by H."""
    torch: ClassVar[TorchLayer | None] = None
    nodes: ClassVar[tuple[GraphNode, ...]]
    """The nodes of the computational graph of one layer, in topological order."""

    def shapes(self, X: int, H: int) -> Shapes:
        """Return the parameters of one layer that reads X values.

        >>> from unspool.cells import cell_named
        >>> cell_named("elman").shapes(X=3, H=5)
        {'U': (5, 3), 'W': (5, 5), 'b': (5,)}
        """
        P = self.p_columns(X, H)
        shapes: Shapes = {}
        if self.gates:
            shapes["U"] = (P, X)
        if self.has_W:
            shapes["W"] = (P, H)
        if self.gates:
            shapes["b"] = (P,)
        return shapes | {each.name: each.shape(H, P) for each in self.extra}

    def weights(self, X: int, H: int) -> int:
        """Return how many weights a step of one layer multiplies: the matrices behind h(t-1) and behind X values."""
        return sum(int(np.prod(shape)) for shape in self.shapes(X, H).values() if len(shape) == 2)

    def initialise(self, parameters: dict[str, Floats], rng: np.random.Generator) -> None:
        """Fill the parameters of one layer."""
        initialise_layer(parameters, rng)

    def block(self, gate: str, H: int) -> slice:
        """Return the rows of U, W and b that belong to a gate."""
        at = self.gates.index(gate)
        return slice(at * H, (at + 1) * H)

    def pre_activations(self, p: Floats, Wh: Floats, taped: Floats | None) -> Floats:
        """Return a(t), from p(t) = b + U x(t), W h(t-1) and the tape; any leading axes."""
        return p + Wh

    @abstractmethod
    def jacobian(self, step: StepTape, W: Sequence[Floats], extra: Sequence[Floats]) -> Floats:
        """Return the Jacobian of one row's state by the state before: H H of h, or 2H 2H of (h, s).

        W is given as blocks (H, H), one per gate, with the columns of dropped units set to zero.
        """

    def operations(self) -> dict[str, Operation]:
        """Return the operations of its nodes that other graphs do not have, by name."""
        return {}
