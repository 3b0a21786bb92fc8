"""A recurrent computation as data: folded, with an edge that reads the step before, and unfolded, without one.

    folded        h ◀─■─ h        one node, and an edge of delay one (the black square of the book's figures)
    unfolded      h(0) ─▶ h(1) ─▶ h(2) ─▶ …       one node a step, no circle, the same parameters at every step

A delay of one reads step t-1, a delay of minus one reads step t+1 (the direction that begins at the end). What
lies before the first step, or behind the last, is a start: it is given and not computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any, Literal, NamedTuple

from unspool.errors import FileError, InputError
from unspool.options import at_least
from unspool.storage.schema import read_as

Kind = Literal["input", "target", "inner", "gate", "state", "output", "loss"]

MOST = 250_000
"""As many nodes as an unfolded graph may have: some seconds and a few hundred megabytes."""


@dataclass(frozen=True)
class Parameter:
    """A matrix or a vector that every step shares; a block of a larger one where rows or columns are named."""

    name: str
    symbol: str
    shape: tuple[int, ...]
    of: str = ""
    """The model's parameter that this is, or is a block of; its own name where empty."""
    rows: tuple[int, int] | None = None
    columns: tuple[int, int] | None = None


@dataclass(frozen=True)
class Node:
    """A quantity that is computed at every step, or given."""

    name: str
    symbol: str
    kind: Kind
    size: int
    """How many values it has for one row of a minibatch; 0: one token."""
    op: str = ""
    """The operation that computes it; nothing where it is given."""
    biases: tuple[str, ...] = ()
    """Parameters that no edge multiplies."""
    equation: str = ""
    last: bool = False
    """Whether it is there at the last step only."""


@dataclass(frozen=True)
class Edge:
    """What a node reads: another node, through a matrix or as it is, now or one step away."""

    source: str
    target: str
    parameter: str = ""
    delay: int = 0
    end: bool = False
    """Whether it reads where the source's direction ends: at the last step, or at the first for one from the end."""


class At(NamedTuple):
    """A node at a step."""

    name: str
    t: int

    def __str__(self) -> str:
        return f"{self.name}({self.t})"


class Link(NamedTuple):
    """An edge between two steps."""

    source: At
    target: At
    edge: Edge


@dataclass(frozen=True)
class Folded:
    """A recurrent computation, drawn once.

    >>> from unspool.inspect.graph.systems import plain
    >>> graph = plain()
    >>> [(edge.source, edge.target, edge.delay) for edge in graph.edges]
    [('s', 's', 1)]
    >>> [f"{source} -> {target}" for source, target, _ in graph.unfold(3).links]
    ['s(0) -> s(1)', 's(1) -> s(2)', 's(2) -> s(3)']
    """

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    """Those into one node stand in the order in which its operation reads them."""
    parameters: tuple[Parameter, ...]

    @cached_property
    def node(self) -> dict[str, Node]:
        """The nodes by their names."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def parameter(self) -> dict[str, Parameter]:
        """The parameters by their names."""
        return {parameter.name: parameter for parameter in self.parameters}

    @cached_property
    def into(self) -> dict[str, list[Edge]]:
        """The edges that a node reads, in order."""
        return {node.name: [edge for edge in self.edges if edge.target == node.name] for node in self.nodes}

    @cached_property
    def carried(self) -> dict[str, int]:
        """The nodes that an edge with a delay reads, and that delay: what is handed from step to step."""
        return {edge.source: edge.delay for edge in self.edges if edge.delay}

    def unfold(self, tau: int) -> Unfolded:
        """Apply the definition tau times: a graph without circles."""
        at_least("tau", tau, 1)
        if (size := len(self.nodes) * tau) > MOST:
            raise InputError(
                f"tau is {tau:,}: the unfolded graph would have {size:,} nodes, more than the {MOST:,} that "
                f"fit; choose a tau of at most {MOST // len(self.nodes):,}"
            )
        return Unfolded(self, tau)

    def to_json(self) -> dict[str, Any]:
        """Give the fields as plain values."""
        return asdict(self)

    @staticmethod
    def from_json(content: dict[str, Any]) -> Folded:
        """Make it from plain values; a field that is missing or unknown, or an edge to nowhere, is an error."""
        try:
            graph = read_as(Folded, content, "the folded graph")
        except FileError as error:
            raise InputError(f"not a graph: {error}") from None
        graph.check()
        return graph

    def check(self) -> None:
        """Refuse an edge that begins, ends or is multiplied nowhere."""
        for edge in self.edges:
            if edge.source not in self.node or edge.target not in self.node:
                raise InputError(f"the edge {edge.source} -> {edge.target} has an end that is no node")
            if edge.parameter and edge.parameter not in self.parameter:
                raise InputError(f"the edge {edge.source} -> {edge.target} names no parameter of the graph")
            if edge.delay not in (-1, 0, 1):
                raise InputError(f"the edge {edge.source} -> {edge.target} has a delay of {edge.delay}")


@dataclass(frozen=True)
class Unfolded:
    """A recurrent computation, drawn tau times: no circle is left, and every step shares the parameters."""

    folded: Folded
    tau: int

    @cached_property
    def nodes(self) -> tuple[At, ...]:
        """The nodes in an order in which they can be computed; starts are not among them."""
        reads = {
            at: [link.source for link in self.into(at) if self.inside(link.source)] for at in self._all()
        }
        return tuple(TopologicalSorter(reads).static_order())

    def _all(self) -> Iterator[At]:
        for t in range(1, self.tau + 1):
            for node in self.folded.nodes:
                if not node.last or t == self.tau:
                    yield At(node.name, t)

    def into(self, at: At) -> list[Link]:
        """What a node reads, in order."""
        return [Link(self._source(edge, at.t), at, edge) for edge in self.folded.into[at.name]]

    def _source(self, edge: Edge, t: int) -> At:
        if edge.end:
            return At(edge.source, 1 if self.folded.carried.get(edge.source, 1) < 0 else self.tau)
        return At(edge.source, t - edge.delay)

    def inside(self, at: At) -> bool:
        """Whether a node lies within the steps; otherwise it is a start."""
        return 1 <= at.t <= self.tau

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """The edges, those from the starts too."""
        return tuple(link for at in self._all() for link in self.into(at))

    @cached_property
    def starts(self) -> tuple[At, ...]:
        """What must be given besides inputs: the states before the first step."""
        return tuple(dict.fromkeys(link.source for link in self.links if not self.inside(link.source)))

    @cached_property
    def shared(self) -> dict[str, list[str]]:
        """Where each parameter is used: the same one at every step, on an edge or as a bias."""
        uses: dict[str, list[str]] = {parameter.name: [] for parameter in self.folded.parameters}
        for at in self._all():
            for name in self.folded.node[at.name].biases:
                uses[name].append(str(at))
            for source, target, edge in self.into(at):
                if edge.parameter:
                    uses[edge.parameter].append(f"{source} -> {target}")
        return uses
