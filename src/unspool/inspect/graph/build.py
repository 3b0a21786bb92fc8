"""The graph of a network: the nodes of its cells, one layer on the other, between the input and the loss.

    x ─▶ e ─▶ layer ─▶ … ─▶ layer ─▶ o ─▶ ŷ          o, y ─▶ L

A second direction is a layer whose edges have a delay of -1; its symbols carry a prime. In figure 10.4 the edge with
the delay begins at the output o, as in the book, if logits are fed back. If tokens are fed back, it begins at the
target y (teacher forcing), or at the most probable output k when the network runs freely. In figure 10.5 there is one
output, at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unspool.cells import cell_named
from unspool.cells.cell import Cell
from unspool.cells.graph import Bias, GraphNode, Input, Now
from unspool.inspect.graph.structure import Edge, Folded, Node, Parameter
from unspool.model.config import ModelConfig
from unspool.model.outputs.adaptive import clusters_of, tail_name
from unspool.model.parameters import prefix


@dataclass
class _Draft:
    """A graph that is being put together."""

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    parameters: dict[str, Parameter] = field(default_factory=dict)

    def add(self, node: Node, *reads: Edge) -> None:
        self.nodes.append(node)
        self.edges.extend(reads)

    def share(
        self, name: str, symbol: str, shape: tuple[int, ...], of: str = "", **block: tuple[int, int]
    ) -> str:
        self.parameters[name] = Parameter(name, symbol, shape, of, **block)
        return name


@dataclass(frozen=True)
class _Source:
    """What a layer reads: a node, and which columns of U belong to it."""

    name: str
    width: int
    columns: tuple[int, int] | None = None


def fold(config: ModelConfig, *, forced: bool = True) -> Folded:
    """Return the folded graph of a network; where tokens are fed back, the targets are, unless not `forced`.

    >>> graph = fold(ModelConfig(cell="elman", inputs=5, outputs=5, hidden=8))
    >>> [node.name for node in graph.nodes]
    ['x', 'layer0.a', 'layer0.h', 'o', 'y_hat', 'y', 'L']
    >>> [parameter.symbol for parameter in graph.parameters]
    ['U', 'W', 'b', 'V', 'c']
    """
    draft = _Draft()
    sources = _input(draft, config)
    for layer in range(config.layers):
        outputs = [
            _layer(draft, config, layer, bool(way), sources, forced) for way in range(config.directions)
        ]
        sources = _side_by_side(outputs, config.hidden)
    _output(draft, config, sources, forced)
    layers = f", {config.layers} layers" if config.layers > 1 else ""
    ways = ", both directions" if config.bidirectional else ""
    fed = "output" if config.feeds_logits else "target" if forced else "most probable output"
    figure = {"hidden": "", "output": f", figure 10.4, {fed} fed back", "last": ", figure 10.5"}[
        config.pattern
    ]
    cell = cell_named(config.cell)
    title = f"{cell.network_title or cell.title}, H = {config.hidden}{layers}{ways}{figure}"
    return Folded(title, tuple(draft.nodes), tuple(draft.edges), tuple(draft.parameters.values()))


def _side_by_side(names: list[str], H: int) -> list[_Source]:
    """Two directions stand beside each other: the matrix that reads them has columns for each."""
    if len(names) == 1:
        return [_Source(names[0], H)]
    return [_Source(name, H, (i * H, (i + 1) * H)) for i, name in enumerate(names)]


def _input(draft: _Draft, config: ModelConfig) -> list[_Source]:
    draft.add(Node("x", "x", "input", config.inputs if config.dense else 0))
    if not config.embedding:
        return [_Source("x", config.inputs)]
    draft.share("E", "E", (config.inputs, config.embedding))
    draft.add(
        Node("e", "e", "inner", config.embedding, "lookup", (), "e(t) = the row x(t) of E"),
        Edge("x", "e", "E"),
    )
    return [_Source("e", config.embedding)]


def _output(draft: _Draft, config: ModelConfig, sources: list[_Source], forced: bool) -> None:
    last, K = config.pattern == "last", config.outputs
    if config.cutoffs:
        _adaptive(draft, config, sources[0])
    else:
        _affine(draft, config, sources, last)
    draft.add(
        Node("y_hat", "ŷ", "output", K, "softmax", (), "ŷ(t) = softmax(o(t))", last), Edge("o", "y_hat")
    )
    draft.add(Node("y", "y", "target", 0, last=last))
    draft.add(
        Node("L", "L", "loss", 1, "loss", (), "L(t) = -log ŷ(t)[y(t)]", last), Edge("o", "L"), Edge("y", "L")
    )
    if config.feeds_tokens and not forced:
        draft.add(
            Node("k", "k", "output", 0, "argmax", (), "k(t) = the most probable of ŷ(t)"), Edge("o", "k")
        )


def _adaptive(draft: _Draft, config: ModelConfig, source: _Source) -> None:
    """Add the head and the tails of an adaptive softmax, and o, which joins them."""
    rows = config.cutoffs[0] + len(config.cutoffs)
    draft.share("V", "V", (rows, config.width))
    draft.share("c", "c", (rows,))
    equation = f"o₀(t) = c + V h(t){', V = (rows of E, rows of the clusters)' * config.tied}"
    draft.add(Node("head", "o₀", "output", rows, "affine", ("c",), equation), Edge(source.name, "head", "V"))
    for i, (first, end, width) in enumerate(clusters_of(config), 1):
        at, n = tail_name(i), chr(ord("₀") + i)
        P = draft.share(at + "P", f"P{n}", (width, config.width))
        V, c = (
            draft.share(at + "V", f"V{n}", (end - first, width)),
            draft.share(at + "c", f"c{n}", (end - first,)),
        )
        z = Node(f"z{i}", f"z{n}", "inner", width, "affine in float32", (), f"z{n}(t) = P{n} h(t)")
        o = Node(
            f"o{i}",
            f"o{n}",
            "output",
            end - first,
            "affine in float32",
            (c,),
            f"o{n}(t) = c{n} + V{n} z{n}(t)",
        )
        draft.add(z, Edge(source.name, z.name, P))
        draft.add(o, Edge(z.name, o.name, V))
    names = ["head", *(f"o{i}" for i in range(1, len(config.cutoffs) + 1))]
    equation = "o(t) = (shortlist of o₀(t), cluster i of o₀(t) + log softmax(oᵢ(t)), …)"
    draft.add(
        Node("o", "o", "output", config.outputs, "join", (), equation), *(Edge(name, "o") for name in names)
    )


def _affine(draft: _Draft, config: ModelConfig, sources: list[_Source], last: bool) -> None:
    """Add o = c + V h."""
    V = config.output_matrix
    if not config.tied and len(sources) == 1:
        draft.share("V", "V", (config.outputs, config.width))
    reads = []
    for i, source in enumerate(sources):
        name = V
        if source.columns:
            name = draft.share(
                f"{V}[{i}]",
                f"{V}{_prime(bool(i))}",
                (config.outputs, source.width),
                V,
                columns=source.columns,
            )
        reads.append(Edge(source.name, "o", name, end=last))
    draft.share("c", "c", (config.outputs,))
    terms = " + ".join(f"{V}{_prime(bool(i))} h{_prime(bool(i))}(t)" for i in range(len(sources)))
    equation = f"o(t) = c + {terms}"
    draft.add(Node("o", "o", "output", config.outputs, "affine", ("c",), equation, last), *reads)


def _prime(reverse: bool) -> str:
    return "′" if reverse else ""


@dataclass(frozen=True)
class _Layer:
    """One layer and direction, while its nodes are added to the draft."""

    draft: _Draft
    config: ModelConfig
    cell: Cell
    prefix: str
    mark: str
    delay: int
    sources: list[_Source]
    forced: bool

    def add(self, node: GraphNode) -> None:
        """Add a node, its edges and the parameters that they share."""
        target = self.prefix + node.letter
        edges: list[Edge] = []
        biases: list[str] = []
        for term in node.terms:
            if isinstance(term, Input):
                for i, source in enumerate(self.sources):
                    name = self._share("U", term.gates, source.columns, _prime(i > 0))
                    edges.append(Edge(source.name, target, name))
            elif isinstance(term, Bias):
                biases.append(self._share(term.letter, term.gates))
            elif isinstance(term, Now):
                edges.append(Edge(self.prefix + term.letter, target))
            elif term.gates and self.config.pattern == "output":
                edges.append(Edge(self._fed_back, target, self._share("R", term.gates), 1))
            else:
                name = self._share("W", term.gates) if term.gates else ""
                edges.append(Edge(self.prefix + term.letter, target, name, self.delay))
        words = self._words()
        size, op, equation = node.blocks * self.config.hidden, node.op.format(**words), node.equation
        made = Node(
            target, node.letter + self.mark, node.kind, size, op, tuple(biases), equation.format(**words)
        )
        self.draft.add(made, *edges)

    def _words(self) -> dict[str, str]:
        """Return what stands for the input and for the step before in an equation."""
        x = "x" if self.sources[0].name in ("x", "e") else "h"
        before = "t+1" if self.delay < 0 else "t-1"
        past = f"R {self._fed_back}({before})" if self.config.pattern == "output" else f"W h({before})"
        return {"act": self.config.activation, "x": f"{x}(t)", "before": before, "past": past}

    @property
    def _fed_back(self) -> str:
        """The node that is fed back in figure 10.4."""
        return "o" if self.config.feeds_logits else "y" if self.forced else "k"

    def _share(self, letter: str, gates: str, columns: tuple[int, int] | None = None, mark: str = "") -> str:
        """Return the name of the rows of a parameter that belong to these gates; without gates, of all rows."""
        cell, H = self.cell, self.config.hidden
        X = self.sources[0].width
        shape = (cell.shapes(X, H) | {"R": (H, self.config.outputs)})[letter]
        block: dict[str, tuple[int, int]] = {}
        below = ""
        if gates and len(gates) < len(cell.gates):
            first = cell.block(gates[0], H).start
            below, block = f"_{gates}", {"rows": (first, first + H * len(gates))}
            shape = (H * len(gates), *shape[1:])
        if columns:
            block["columns"] = columns
        name = f"{self.prefix}{letter}{below}" + (f"[{mark or 0}]" if columns else "")
        symbol = f"{letter}{below}{mark}{self.mark}"
        return self.draft.share(name, symbol, shape, self.prefix + letter if block else "", **block)


def _layer(
    draft: _Draft, config: ModelConfig, layer: int, reverse: bool, sources: list[_Source], forced: bool
) -> str:
    cell, delay = cell_named(config.cell), -1 if reverse else 1
    made = _Layer(draft, config, cell, prefix(layer, reverse), _prime(reverse), delay, sources, forced)
    for node in cell.nodes:
        made.add(node)
    return made.prefix + "h"
