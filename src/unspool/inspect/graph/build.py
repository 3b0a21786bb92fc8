"""The graph of a network: the nodes of figure 10.3, or of a GRU or LSTM, one layer on the other.

    Elman     x ─U─▶ a ─▶ h ─V─▶ o ─▶ ŷ          GRU     x, h(t-1) ─▶ a ─▶ r, z;  h(t-1) ─▶ q;  x, r, q ─▶ n;  n, z, h(t-1) ─▶ h
              h(t-1) ─W─▶ a      o, y ─▶ L       LSTM    x, h(t-1) ─▶ a ─▶ i, f, g, o;  i, f, g, s(t-1) ─▶ s;  o, s ─▶ h

A second direction is a layer of its own whose edges have a delay of -1; its symbols carry a prime. In figure 10.4
the edge with the delay begins at the output o, as in the book, where logits are fed back. Where tokens are fed back,
it begins at the target y (teacher forcing), or at the most probable output k when the network runs freely. In
figure 10.5 there is one output, at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unspool.cells import cell_named
from unspool.inspect.graph.structure import Edge, Folded, Kind, Node, Parameter
from unspool.model.config import ModelConfig
from unspool.model.parameters import prefix

NAMES = {"elman": "Elman network", "gru": "GRU", "lstm": "LSTM"}


@dataclass
class _Draft:
    """A graph that is being put together."""

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    parameters: dict[str, Parameter] = field(default_factory=dict)

    def add(
        self,
        name: str,
        symbol: str,
        kind: Kind,
        size: int,
        op: str = "",
        reads: tuple[Edge, ...] = (),
        biases: tuple[str, ...] = (),
        equation: str = "",
        last: bool = False,
    ) -> None:
        self.nodes.append(Node(name, symbol, kind, size, op, biases, equation, last))
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
    title = f"{NAMES[config.cell]}, H = {config.hidden}{layers}{ways}{figure}"
    return Folded(title, tuple(draft.nodes), tuple(draft.edges), tuple(draft.parameters.values()))


def _side_by_side(names: list[str], H: int) -> list[_Source]:
    """Two directions stand beside each other: the matrix that reads them has columns for each."""
    if len(names) == 1:
        return [_Source(names[0], H)]
    return [_Source(name, H, (i * H, (i + 1) * H)) for i, name in enumerate(names)]


def _input(draft: _Draft, config: ModelConfig) -> list[_Source]:
    draft.add("x", "x", "input", config.inputs if config.dense else 0)
    if not config.embedding:
        return [_Source("x", config.inputs)]
    draft.share("E", "E", (config.inputs, config.embedding))
    draft.add(
        "e", "e", "inner", config.embedding, "lookup", (Edge("x", "e", "E"),), (), "e(t) = the row x(t) of E"
    )
    return [_Source("e", config.embedding)]


def _output(draft: _Draft, config: ModelConfig, sources: list[_Source], forced: bool) -> None:
    last = config.pattern == "last"
    V = "E" if config.tied else "V"
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
    draft.add("o", "o", "output", config.outputs, "affine", tuple(reads), ("c",), f"o(t) = c + {terms}", last)
    draft.add(
        "y_hat",
        "ŷ",
        "output",
        config.outputs,
        "softmax",
        (Edge("o", "y_hat"),),
        (),
        "ŷ(t) = softmax(o(t))",
        last,
    )
    draft.add("y", "y", "target", 0, last=last)
    draft.add(
        "L", "L", "loss", 1, "loss", (Edge("o", "L"), Edge("y", "L")), (), "L(t) = -log ŷ(t)[y(t)]", last
    )
    if config.feeds_tokens and not forced:
        draft.add("k", "k", "output", 0, "argmax", (Edge("o", "k"),), (), "k(t) = the most probable of ŷ(t)")


def _prime(reverse: bool) -> str:
    return "′" if reverse else ""


@dataclass(frozen=True)
class _Layer:
    """One layer and direction: how its parts are called."""

    draft: _Draft
    config: ModelConfig
    at: str
    mark: str
    delay: int
    sources: list[_Source]
    forced: bool

    def node(self, letter: str, kind: Kind, op: str, reads: tuple[Edge, ...], biases: tuple[str, ...] = (), size: int = 0, equation: str = "") -> str:  # fmt: skip
        symbol = letter + self.mark
        self.draft.add(
            self.at + letter, symbol, kind, size or self.config.hidden, op, reads, biases, equation
        )
        return self.at + letter

    def share(self, letter: str, gates: str, columns: tuple[int, int] | None = None, mark: str = "") -> str:
        """Return the name of the rows of a parameter that belong to these gates."""
        cell, H = cell_named(self.config.cell), self.config.hidden
        whole = letter == "d" or len(gates) == len(cell.gates)
        first = 0 if whole else cell.gates.index(gates[0])
        height = H if letter == "d" else H * len(gates)
        width = {"U": self.sources[0].width, "W": H, "R": self.config.outputs}.get(letter)
        below = "" if whole else f"_{gates}"
        block: dict[str, tuple[int, int]] = {} if whole else {"rows": (first * H, first * H + height)}
        if columns:
            block["columns"] = columns
        name = f"{self.at}{letter}{below}" + (f"[{mark or 0}]" if columns else "")
        shape = (height,) if width is None else (height, width)
        symbol = f"{letter}{below}{mark}{self.mark}"
        return self.draft.share(name, symbol, shape, self.at + letter if block else "", **block)

    def inputs(self, target: str, gates: str) -> tuple[Edge, ...]:
        return tuple(
            Edge(source.name, self.at + target, self.share("U", gates, source.columns, _prime(i > 0)))
            for i, source in enumerate(self.sources)
        )

    def past(self, target: str, letter: str = "h", gates: str = "") -> Edge:
        name = self.share("W", gates) if gates else ""
        return Edge(self.at + letter, self.at + target, name, self.delay)

    def now(self, target: str, letter: str) -> Edge:
        return Edge(self.at + letter, self.at + target)


def _layer(
    draft: _Draft, config: ModelConfig, layer: int, reverse: bool, sources: list[_Source], forced: bool
) -> str:
    delay = -1 if reverse else 1
    made = _Layer(draft, config, prefix(layer, reverse), _prime(reverse), delay, sources, forced)
    {"elman": _elman, "gru": _gru, "lstm": _lstm}[config.cell](made)
    return made.at + "h"


def _read(layer: _Layer) -> tuple[str, str]:
    """What stands in an equation for the step before and for the input."""
    x = "x" if layer.sources[0].name in ("x", "e") else "h"
    return ("t+1" if layer.delay < 0 else "t-1"), f"{x}(t)"


def _elman(layer: _Layer) -> None:
    before, x = _read(layer)
    reads = layer.inputs("a", "a")
    if layer.config.pattern == "output":
        seen = "o" if layer.config.feeds_logits else "y" if layer.forced else "k"
        reads, term = (*reads, Edge(seen, layer.at + "a", layer.share("R", "a"), 1)), f"R {seen}({before})"
    else:
        reads, term = (*reads, layer.past("a", gates="a")), f"W h({before})"
    layer.node("a", "inner", "affine", reads, (layer.share("b", "a"),), 0, f"a(t) = b + {term} + U {x}")
    act = layer.config.activation
    layer.node("h", "state", act, (layer.now("h", "a"),), (), 0, f"h(t) = {act}(a(t))")


def _gru(layer: _Layer) -> None:
    before, x = _read(layer)
    reads = (*layer.inputs("a", "rz"), layer.past("a", gates="rz"))
    equation = f"a(t) = b + W h({before}) + U {x}, of r and z"
    layer.node("a", "inner", "affine", reads, (layer.share("b", "rz"),), 2 * layer.config.hidden, equation)
    for gate in "rz":
        layer.node(
            gate, "gate", f"gru.{gate}", (layer.now(gate, "a"),), (), 0, f"{gate}(t) = sigmoid(a_{gate}(t))"
        )
    d = (layer.share("d", "n"),)
    layer.node("q", "inner", "affine", (layer.past("q", gates="n"),), d, 0, f"q(t) = d + W_n h({before})")
    reads = (*layer.inputs("n", "n"), layer.now("n", "r"), layer.now("n", "q"))
    equation = f"n(t) = tanh(b_n + U_n {x} + r(t) q(t))"
    layer.node("n", "inner", "gru.n", reads, (layer.share("b", "n"),), 0, equation)
    reads = (layer.now("h", "z"), layer.now("h", "n"), layer.past("h"))
    layer.node("h", "state", "gru.h", reads, (), 0, f"h(t) = (1 - z(t)) n(t) + z(t) h({before})")


def _lstm(layer: _Layer) -> None:
    before, x = _read(layer)
    reads = (*layer.inputs("a", "ifgo"), layer.past("a", gates="ifgo"))
    equation = f"a(t) = b + W h({before}) + U {x}"
    layer.node("a", "inner", "affine", reads, (layer.share("b", "ifgo"),), 4 * layer.config.hidden, equation)
    for gate in "ifgo":
        curve = "tanh" if gate == "g" else "sigmoid"
        layer.node(
            gate, "gate", f"lstm.{gate}", (layer.now(gate, "a"),), (), 0, f"{gate}(t) = {curve}(a_{gate}(t))"
        )
    reads = (layer.now("s", "f"), layer.past("s", "s"), layer.now("s", "i"), layer.now("s", "g"))
    layer.node("s", "state", "lstm.s", reads, (), 0, f"s(t) = f(t) s({before}) + i(t) g(t)")
    reads = (layer.now("h", "o"), layer.now("h", "s"))
    layer.node("h", "state", "lstm.h", reads, (), 0, "h(t) = o(t) tanh(s(t))")
