"""The view Unfold: a network folded and unfolded, every node with its value and gradient; one weight by three computations."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np

from unspool.cells import CELLS, PLAIN, cell_named
from unspool.errors import InputError
from unspool.evaluation.language import in_reading_order
from unspool.gradients.check import EPSILON, by_backend, by_differences
from unspool.gradients.decomposition import decompose_gradient
from unspool.inspect.graph.picture import draw_graph
from unspool.inspect.graph.structure import At
from unspool.inspect.graph.trace import Trace, trace
from unspool.inspect.reading import visible
from unspool.inspect.report import read_with
from unspool.kernels import native
from unspool.kernels.arrays import Ids
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.options import build
from unspool.studio.asked import TEXT_TOKENS, Unfold, Weight, within
from unspool.studio.models import asked, check_index
from unspool.studio.payload import Table, array, clean
from unspool.studio.reading_view import Answer
from unspool.studio.session import Session
from unspool.studio.worker import Job

TAU, HIDDEN, KEPT = 12, 16, 16
OUTPUT = {"o": "10.10", "y_hat": "10.11", "L": "10.14"}
"""The equations of the nodes behind the cells."""
GRADIENT = {"L": "10.17", "o": "10.18"}
PARAMETER = {"c": "10.22", "b": "10.23", "V": "10.24", "W": "10.26", "U": "10.28", "R": "10.26"}
FORMULA = {
    "c": "∇c = Σ ∇o(t)", "V": "∇V = Σ ∇o(t) h(t)ᵀ", "b": "∇b = Σ ∇a(t)", "W": "∇W = Σ ∇a(t) h(t-1)ᵀ",
    "U": "∇U = Σ ∇a(t) x(t)ᵀ", "R": "∇R = Σ ∇a(t) o(t-1)ᵀ", "d": "∇d = Σ ∇q(t)",
}  # fmt: skip


@dataclass
class Unfolded:
    """A graph that later requests can name."""

    model: Model
    x: Ids
    y: Ids
    made: Trace


class Unfoldings:
    """The last graphs, by name."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, Unfolded] = OrderedDict()
        self._count = 0

    def add(self, held: Unfolded) -> str:
        """Keep a graph; return its name."""
        self._count += 1
        self._held[f"u{self._count}"] = held
        while len(self._held) > KEPT:
            self._held.popitem(last=False)
        return f"u{self._count}"

    def __getitem__(self, name: str) -> Unfolded:
        if name not in self._held:
            raise LookupError(f"unfolding {clean(name)[:20]!r} is not held any more; unfold again")
        return self._held[name]


def unfold_answer(session: Session, held: Unfoldings, request: Unfold, job: Job) -> Answer:
    """Return the graph of a model on the beginning of a text, with its values and gradients."""
    within("tau", request.tau, 1, TAU)
    version: dict[str, Any] | None = None
    if request.of == "run":
        found = asked(session, request, job.check)
        version, model = found.version, found.source.model
        _, reading = read_with(found.source, request.text, most=TEXT_TOKENS)
        pieces = in_reading_order(np.array(reading.pieces, object), found.source.backward).tolist()
        ids = in_reading_order(reading.ids, found.source.backward)
    else:
        model, ids, pieces = _demo(request)
    tau = min(request.tau, len(ids) - 1)
    x, y = (np.ascontiguousarray(ids[at : at + tau, None], np.int32) for at in (0, 1))
    y = y[-1] if model.config.pattern == "last" else y
    made = trace(model, x, y, gradients=True)
    shown = [clean(visible(piece)[:6]) for piece in pieces[: tau + 1]]
    labels = {At("x", t + 1): shown[t] for t in range(tau)} | {
        At("y", t + 1): shown[t + 1] for t in range(tau)
    }
    labels = {at: label for at, label in labels.items() if at in made.values}
    losses = [value for at, value in made.values.items() if at.name == "L"]
    return {
        "unfolding": held.add(Unfolded(model, x, y, made)), "version": version, "title": made.graph.folded.title, "tau": tau,
        "pieces": [clean(piece) for piece in pieces[: tau + 1]],
        "svg": draw_graph(made, labels=labels, columns=TAU).inline(), "folded": made.graph.folded.to_json(),
        "nodes": [_node(made, at, model.config) for at in (*made.graph.starts, *made.graph.nodes)],
        "edges": [{"from": str(a), "to": str(b), "parameter": edge.parameter} for a, b, edge in made.graph.links],
        "parameters": [_parameter(made, name) for name in made.parameters],
        "loss": float(sum(float(np.sum(value)) for value in losses)),
    }  # fmt: skip


def _demo(request: Unfold) -> tuple[Model, Ids, list[str]]:
    """Return a small network with new parameters, and the characters of a text as its tokens."""
    within("hidden", request.hidden, 1, HIDDEN)
    pieces = list(request.text[: TAU + 1])
    if len(pieces) < 2:
        raise InputError(f"the text has {len(pieces)} characters; expected two or more")
    known = list(dict.fromkeys(pieces))
    cell = PLAIN if request.cell is None else request.cell
    if cell not in CELLS:
        raise InputError(f"cell is {clean(cell)!r}; expected one of {', '.join(CELLS)}")
    feedback = request.feedback if request.pattern == "10.4" else "token"
    sizes = {"inputs": len(known), "outputs": len(known), "cell": cell, "feedback": feedback}
    config = build(ModelConfig, request, **sizes)
    ids = np.array([known.index(piece) for piece in pieces], np.int32)
    return Model.initialise(config, request.seed), ids, pieces


def _node(made: Trace, at: At, config: ModelConfig) -> dict[str, Any]:
    node, value, gradient = made.graph.folded.node[at.name], made.values.get(at), made.gradients.get(at)
    inside = made.graph.inside(at)
    row = None if value is None else np.atleast_1d(np.asarray(value)[0])
    return {
        "id": str(at), "name": at.name, "t": at.t, "symbol": node.symbol, "kind": node.kind,
        "equation": node.equation if inside else "", "number": equation_number(config, at.name) if inside else None,
        "shape": [] if row is None else list(row.shape),
        "value": None if row is None else row.astype(float).tolist(),
        "gradient": None if gradient is None else np.atleast_1d(gradient[0]).astype(float).tolist(),
        "gradient_number": gradient_number(made, at, config) if gradient is not None else None,
    }  # fmt: skip


def equation_number(config: ModelConfig, name: str) -> str | None:
    """Return the number of the equation of a node in *Deep Learning*, or None.

    >>> config = ModelConfig(cell="elman", inputs=4, outputs=4, hidden=6)
    >>> [equation_number(config, name) for name in ("x", "layer0.a", "layer0.h", "o")]
    [None, '10.8', '10.9', '10.10']
    """
    layer, _, letter = name.rpartition(".")
    if not layer:
        return OUTPUT.get(name)
    numbers = {node.letter: node.number for node in cell_named(config.cell).nodes}
    return numbers.get(letter) or None


def gradient_number(made: Trace, at: At, config: ModelConfig) -> str | None:
    """Return the number of the equation of a node's gradient: of the network of figure 10.3, and of every output."""
    layer, _, letter = at.name.rpartition(".")
    if not layer:
        return GRADIENT.get(at.name)
    if config.cell == PLAIN and config.pattern == "hidden" and letter == "h":
        return "10.19" if at.t == made.graph.tau else "10.21"
    return None


def _letter(name: str) -> str:
    return name.rpartition(".")[2].partition("_")[0]


def _parameter(made: Trace, name: str) -> dict[str, Any]:
    described, value = made.graph.folded.parameter[name], made.parameters[name]
    gradient = made.shared.get(name)
    return {
        "name": name, "of": described.of or name, "rows": described.rows, "symbol": described.symbol, "shape": list(value.shape),
        "number": PARAMETER.get(_letter(name)), "value": array(value),
        "gradient": array(np.zeros_like(value) if gradient is None else gradient),
    }  # fmt: skip


def weight_answer(session: Session, held: Unfoldings, request: Weight, job: Job) -> Answer:
    """Return the gradient of one weight by the hand formula, by differences and by the engine."""
    found = held[request.unfolding]
    if request.name not in found.made.parameters:
        raise InputError(
            f"name is {clean(request.name)!r}; expected one of {', '.join(found.made.parameters)}"
        )
    described = found.made.graph.folded.parameter[request.name]
    index = check_index(found.made.parameters[request.name].shape, request.index)
    whole = described.of or request.name
    first, column = (described.rows or (0, 0))[0], (described.columns or (0, 0))[0]
    at = (first + index[0], *(each + column for each in index[1:]))
    model, scale = found.model, float(found.y.size)
    if whole not in model.parameters.shapes:
        raise InputError(f"{request.name}: this parameter is put together from others; choose another one")
    place = np.array([np.ravel_multi_index(at, model.parameters.shapes[whole])], np.int32)
    difference = by_differences(model, found.x, found.y, whole, place)[0] * scale
    engine = by_backend(model, found.x, found.y, native)[whole][at] * scale
    steps: np.ndarray[Any, Any] | None = None
    if not model.config.feeds_logits and whole != "E":
        parts = decompose_gradient(model, found.x, found.y)
        steps = np.array([parts.contribution(whole, t)[at] for t in range(found.made.graph.tau)])
        formula = float(steps[::-1].cumsum()[-1])
    else:
        formula = float(found.made.shared[request.name][index])
    letter = _letter(whole)
    return {
        "name": request.name, "index": list(index), "value": float(model.parameters[whole][at]), "formula": formula,
        "steps": None if steps is None else array(steps, "f8"), "difference": float(difference), "epsilon": EPSILON,
        "engine": float(engine), "equation": FORMULA.get(letter, ""), "number": PARAMETER.get(letter),
    }  # fmt: skip


def unfold_tables(answer: Answer) -> dict[str, Table]:
    """Return the numbers of Unfold as tables."""
    found: dict[str, Table] = {
        "nodes": (
            ("node", "number", "unit", "value", "gradient"),
            [
                (node["id"], node["number"], i, value, None if node["gradient"] is None else node["gradient"][i])
                for node in answer["nodes"] if node["value"] is not None
                for i, value in enumerate(node["value"])
            ],
        ),
        "parameters": (
            ("parameter", "number", "place", "value", "gradient"),
            [
                (each["name"], each["number"], i, *pair)
                for each in answer["parameters"]
                for i, pair in enumerate(zip(*(each[key].reshape(-1) for key in ("value", "gradient")), strict=True))
            ],
        ),
    }  # fmt: skip
    return found


def weight_tables(answer: Answer) -> dict[str, Table]:
    """Return the three numbers of a weight as a table."""
    names = ("name", "value", "formula", "difference", "engine")
    return {"weight": (names, [[answer[name] for name in names]])}
