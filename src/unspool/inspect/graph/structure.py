"""Data structures of recurrent computations: folded graphs with delayed edges, and unfolded graphs without cycles.

    folded        h ◀─■─ h        one node, and an edge of delay one (the black square of the book's figures)
    unfolded      h(0) ─▶ h(1) ─▶ h(2) ─▶ …       one node per step, no cycle, the same parameters at every step

A delay of 1 reads step t-1, a delay of -1 reads step t+1 (the direction from the end). A node before the first step, or after
the last, is a start: it is given, not computed.
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

MAX_NODES = 250_000
"""Most nodes of an unfolded graph: a few seconds and a few hundred megabytes."""


@dataclass(frozen=True)
class Parameter:
    """A matrix or vector shared by all steps; with rows or columns, a block of a larger one."""

    name: str
    symbol: str
    shape: tuple[int, ...]
    of: str = ""
    """The parameter of the model that this is, or is a block of; empty: the parameter `name`."""
    rows: tuple[int, int] | None = None
    columns: tuple[int, int] | None = None


@dataclass(frozen=True)
class Node:
    """A quantity that is computed or given at every step."""

    name: str
    symbol: str
    kind: Kind
    size: int
    """Number of values per row of a minibatch; 0: one token."""
    op: str = ""
    """The operation that computes it; empty if it is given."""
    biases: tuple[str, ...] = ()
    """Parameters that no edge multiplies."""
    equation: str = ""
    last: bool = False
    """Whether it exists only at the last step."""


@dataclass(frozen=True)
class Edge:
    """An input of a node: another node, optionally multiplied by a matrix, at the same step or one step away."""

    source: str
    target: str
    parameter: str = ""
    delay: int = 0
    end: bool = False
    """Whether it reads the end of the source's direction: the last step, or the first for a direction from the end."""


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
    """A recurrent computation with one node per quantity.

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
    """The edges into a node are in the order of the arguments of its operation."""
    parameters: tuple[Parameter, ...]

    @cached_property
    def node(self) -> dict[str, Node]:
        """The nodes by name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def parameter(self) -> dict[str, Parameter]:
        """The parameters by name."""
        return {parameter.name: parameter for parameter in self.parameters}

    def symbol(self, edge: Edge) -> str:
        """Return the symbol of the parameter of an edge; empty if it has none."""
        return self.parameter[edge.parameter].symbol if edge.parameter else ""

    @cached_property
    def into(self) -> dict[str, list[Edge]]:
        """The edges into each node, in order."""
        return {node.name: [edge for edge in self.edges if edge.target == node.name] for node in self.nodes}

    @cached_property
    def carried(self) -> dict[str, int]:
        """The nodes that are carried from step to step, with their delays."""
        return {edge.source: edge.delay for edge in self.edges if edge.delay}

    def unfold(self, tau: int) -> Unfolded:
        """Return the graph of tau steps, without cycles."""
        at_least("tau", tau, 1)
        if (size := len(self.nodes) * tau) > MAX_NODES:
            raise InputError(
                f"tau is {tau:,}: the unfolded graph would have {size:,} nodes; expected at most {MAX_NODES:,}: "
                f"choose a tau of at most {MAX_NODES // len(self.nodes):,}"
            )
        return Unfolded(self, tau)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)

    @staticmethod
    def from_json(content: dict[str, Any]) -> Folded:
        """Return the graph of plain values; raise InputError for missing or unknown fields and invalid edges."""
        try:
            graph = read_as(Folded, content, "the folded graph")
        except FileError as error:
            raise InputError(f"not a graph: {error}") from None
        graph.check()
        return graph

    def check(self) -> None:
        """Raise InputError for an edge whose nodes, parameter or delay are invalid."""
        for edge in self.edges:
            wrong = ""
            if edge.source not in self.node or edge.target not in self.node:
                wrong = "an unknown node; expected two nodes of the graph"
            elif edge.parameter and edge.parameter not in self.parameter:
                wrong = "an unknown parameter; expected one of the graph"
            elif edge.delay not in (-1, 0, 1):
                wrong = f"a delay of {edge.delay}; expected -1, 0 or 1"
            if wrong:
                raise InputError(f"the edge {edge.source} -> {edge.target} has {wrong}")


@dataclass(frozen=True)
class Unfolded:
    """A recurrent computation over tau steps: no cycles, and all steps share the parameters."""

    folded: Folded
    tau: int

    @cached_property
    def nodes(self) -> tuple[At, ...]:
        """The nodes in topological order, without starts."""
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
        """Return the links into a node, in order."""
        return [Link(self._source(edge, at.t), at, edge) for edge in self.folded.into[at.name]]

    def _source(self, edge: Edge, t: int) -> At:
        if edge.end:
            return At(edge.source, 1 if self.folded.carried.get(edge.source, 1) < 0 else self.tau)
        return At(edge.source, t - edge.delay)

    def inside(self, at: At) -> bool:
        """Return whether a node lies within the steps; otherwise it is a start."""
        return 1 <= at.t <= self.tau

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """All links, including those from starts."""
        return tuple(link for at in self._all() for link in self.into(at))

    @cached_property
    def starts(self) -> tuple[At, ...]:
        """The initial states, which must be given besides the inputs."""
        return tuple(dict.fromkeys(link.source for link in self.links if not self.inside(link.source)))

    @cached_property
    def shared(self) -> dict[str, list[str]]:
        """The uses of each parameter, on edges or as a bias."""
        uses: dict[str, list[str]] = {parameter.name: [] for parameter in self.folded.parameters}
        for at in self._all():
            for name in self.folded.node[at.name].biases:
                uses[name].append(str(at))
            for source, target, edge in self.into(at):
                if edge.parameter:
                    uses[edge.parameter].append(f"{source} -> {target}")
        return uses
