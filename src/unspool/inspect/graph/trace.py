"""Evaluate an unfolded network node by node: every value, and in the backward pass every gradient.

Forwards it is the loop of the kernels to the bit, for any tau; where logits are fed back (figure 10.4), R (V h) here and
(R V) h there agree to rounding. Backwards a node's gradient is the sum over all
that read it, a parameter's the sum over all steps that share it, from the last to the first.

>>> import numpy as np
>>> from unspool.model.config import ModelConfig
>>> model = Model.initialise(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=8), seed=1)
>>> x = np.array([[0], [3], [1]], np.int32)  # tau B
>>> made = trace(model, x)
>>> bool((made["layer0.h", 3] == model.forward(x).h[2]).all())
True
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unspool.cells.operations import Reads
from unspool.errors import InputError
from unspool.inspect.graph.build import fold
from unspool.inspect.graph.operations import OPERATIONS
from unspool.inspect.graph.structure import At, Unfolded
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.backend import Backend
from unspool.model.config import ModelConfig
from unspool.model.inputs import without_padding
from unspool.model.network import Model
from unspool.model.outputs.adaptive import head_matrix
from unspool.model.parameters import prefix
from unspool.model.values import State

FITS = 2**32
"""The values of a trace may take this many bytes."""


@dataclass
class Trace:
    """A graph with its values, and with its gradients where they were asked for."""

    graph: Unfolded
    parameters: dict[str, Floats]
    """By the names of the graph, blocks as blocks."""
    values: dict[At, Floats | Ids]
    backend: Backend
    gradients: dict[At, Floats] = field(default_factory=dict)
    shared: dict[str, Floats] = field(default_factory=dict)
    """The gradients of the parameters."""

    def __getitem__(self, at: tuple[str, int]) -> Floats | Ids:
        """Return the value of a node at a step, B size; `trace["layer0.h", 0]` is the start."""
        if At(*at) not in self.values:
            raise InputError(f"{At(*at)}: no such node; steps are 1 … {self.graph.tau}")
        return self.values[At(*at)]

    def reads(self, at: At) -> Reads:
        """Return what a node's operation is given."""
        links = self.graph.into(at)
        weights = [self.parameters[link.edge.parameter] if link.edge.parameter else None for link in links]
        biases = [self.parameters[name] for name in self.graph.folded.node[at.name].biases]
        blocks = [self.graph.folded.parameter.get(link.edge.parameter or "") for link in links]
        continued = {i for i, block in enumerate(blocks) if block and block.columns and block.columns[0]}
        values = [self.values[link.source] for link in links]
        return Reads(values, weights, biases, self.backend, frozenset(continued))


def trace(
    model: Model,
    x: Floats | Ids,
    y: Ids | None = None,
    state: State | None = None,
    *,
    gradients: bool = False,
) -> Trace:
    """Unfold a model for a window x and evaluate it; with y, compute the losses too, and on request the gradients.

    Shapes: x (τ, B), or (τ, B, X) for vectors; y (τ, B), or (B,) with one output at the end.
    """
    graph = fold(model.config, forced=y is not None).unfold(len(x))
    _check(model.config, graph, x, y, gradients)
    values: dict[At, Floats | Ids] = {}
    for t in range(graph.tau):
        values[At("x", t + 1)] = x[t] if model.config.dense else without_padding(x, None)[t]
        if y is not None and y.ndim == 2:
            values[At("y", t + 1)] = y[t]
    if y is not None and y.ndim == 1:
        values[At("y", graph.tau)] = y
    state = model.initial_state(x.shape[1]) if state is None else state
    _start(graph, model, state, values)
    made = Trace(graph, _blocks(graph, model), values, model.backend)
    for at in graph.nodes:
        if at not in values and not (y is None and at.name in ("y", "L")):
            values[at] = OPERATIONS[graph.folded.node[at.name].op].forward(made.reads(at))
    if gradients:
        _go_back(made)
        if model.config.feeds_logits:
            _through_start(made, model, state)
    return made


def _check(config: ModelConfig, graph: Unfolded, x: Floats | Ids, y: Ids | None, gradients: bool) -> None:
    size = sum(max(node.size, 1) for node in graph.folded.nodes) * x.shape[1] * graph.tau
    if (needed := 4 * size * (2 if gradients else 1)) > FITS:
        raise InputError(
            f"tau is {graph.tau:,}: the values of all nodes would take {needed / 2**30:.1f} GiB; "
            "choose a shorter window or fewer rows"
        )
    if x.ndim != (3 if config.dense else 2):
        raise InputError(f"x has shape {x.shape}; expected (tau, B{', X' if config.dense else ''})")
    expected = x.shape[1:2] if config.pattern == "last" else x.shape[:2]
    if y is not None and y.shape != expected:
        raise InputError(f"y has shape {y.shape}; expected {expected}, one target for each output")
    if gradients and y is None:
        raise InputError("gradients need targets: pass y")


def _start(graph: Unfolded, model: Model, state: State, values: dict[At, Floats | Ids]) -> None:
    ways = model.config.directions
    given: dict[str, Any] = {}
    for i, (h, s) in enumerate(state):
        layer = prefix(i // ways, bool(i % ways))
        given |= {layer + "h": h, layer + "s": s, "y": h, "k": h}  # figure 10.4 begins with an output
    if model.config.feeds_logits:
        given["o"] = model.weights().output(state[0][0])
    for at in graph.starts:
        values[at] = given[at.name]


def _blocks(graph: Unfolded, model: Model) -> dict[str, Floats]:
    found = {}
    for each in graph.folded.parameters:
        whole = model.parameters[each.of or each.name]
        if each.name == "V" and model.config.cutoffs:
            whole = head_matrix(model.config, model.parameters)
        rows = whole[slice(*each.rows)] if each.rows else whole
        found[each.name] = rows[:, slice(*each.columns)] if each.columns else rows
    return found


def _go_back(made: Trace) -> None:
    """Walk the nodes backwards; the loss is the sum of the L(t), so each of them begins with one."""
    nodes, gradients = made.graph.folded.node, made.gradients
    for at in reversed(made.graph.nodes):
        node, value = nodes[at.name], made.values[at]
        if node.kind == "loss":
            gradients[at] = np.ones_like(value)
        if not node.op or at not in gradients:
            continue
        reads = made.reads(at)
        back = OPERATIONS[node.op].backward(reads, value, gradients[at])
        for link, d, dW in zip(made.graph.into(at), back.values, back.weights, strict=True):
            if d is not None:
                _add(gradients, link.source, d)
            if dW is not None:
                _add(made.shared, link.edge.parameter, dW)
        for name, db in zip(node.biases, back.biases, strict=True):
            _add(made.shared, name, db)


def _through_start(made: Trace, model: Model, state: State) -> None:
    """Add to the gradients of V and c what comes through the start o(0) = c + V h(0)."""
    do = made.gradients[At("o", 0)]
    _add(made.shared, "c", do.sum(axis=0))
    _add(made.shared, model.config.output_matrix, do.T @ state[0][0])


def _add(to: dict[Any, Floats], key: Any, part: Floats) -> None:
    to[key] = to[key] + part if key in to else part
