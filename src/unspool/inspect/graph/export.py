"""Export graphs as JSON (which can be read again), Graphviz DOT and Mermaid.

>>> from unspool.inspect.graph.systems import driven
>>> print(to_mermaid(driven().unfold(2)))
flowchart LR
  start_s_0(["s(0)"])
  subgraph step1["t = 1"]
    x_1["x(1)"]
    s_1(("s(1)"))
  end
  subgraph step2["t = 2"]
    x_2["x(2)"]
    s_2(("s(2)"))
  end
  start_s_0 ==> s_1
  x_1 --> s_1
  s_1 ==> s_2
  x_2 --> s_2
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NotRequired, TypedDict

from unspool.errors import FileError, InputError
from unspool.inspect.graph.structure import At, Folded, Link, Node, Unfolded
from unspool.inspect.graph.trace import Trace
from unspool.storage.schema import parse_json, read_as

FORMAT = "unspool-graph-1"
SHAPES = {"input": "box", "target": "box", "state": "circle", "loss": "diamond", "gate": "ellipse"}


BRACKETS = {"input": '["{}"]', "target": '["{}"]', "state": '(("{}"))', "loss": '{{{{"{}"}}}}'}


class Content(TypedDict):
    """The fields of a graph in JSON that are read."""

    folded: dict[str, Any]
    tau: NotRequired[int]
    nodes: NotRequired[list[dict[str, Any]]]
    edges: NotRequired[list[dict[str, Any]]]


def to_json(graph: Folded | Unfolded | Trace, indent: int | None = None) -> str:
    """Return a graph as JSON: folded, unfolded, or with the values and gradients of a trace."""
    if isinstance(graph, Folded):
        alone = {"format": FORMAT, "folded": graph.to_json()}
        return json.dumps(alone, ensure_ascii=False, indent=indent)
    made = graph if isinstance(graph, Trace) else None
    unfolded = graph.graph if isinstance(graph, Trace) else graph
    content = {
        "format": FORMAT,
        "tau": unfolded.tau,
        "folded": unfolded.folded.to_json(),
        "nodes": [_node(at, made) for at in (*unfolded.starts, *unfolded.nodes)],
        "edges": [_edge(link) for link in unfolded.links],
        "shared": unfolded.shared,
    }
    if made is not None and made.shared:
        content["gradients"] = {name: values.tolist() for name, values in made.shared.items()}
    return json.dumps(content, ensure_ascii=False, indent=indent)


def _node(at: At, made: Trace | None) -> dict[str, Any]:
    content: dict[str, Any] = {"id": str(at), "node": at.name, "t": at.t}
    if made is not None and at in made.values:
        content["value"] = made.values[at].tolist()
    if made is not None and at in made.gradients:
        content["gradient"] = made.gradients[at].tolist()
    return content


def _edge(link: Link) -> dict[str, Any]:
    return {"from": str(link.source), "to": str(link.target), "parameter": link.edge.parameter}


def from_json(text: str) -> Folded | Unfolded:
    """Return a graph from JSON, folded if it has no tau; raise InputError if nodes or edges do not match its folded form.

    >>> from unspool.inspect.graph.systems import plain
    >>> from_json(to_json(plain())) == plain(), from_json(to_json(plain().unfold(2))) == plain().unfold(2)
    (True, True)
    """
    try:
        found = parse_json(text, "the graph")
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise InputError(f"not a graph of the format {FORMAT}")
        content = read_as(Content, found, "the graph")
    except FileError as error:
        raise InputError(f"not a graph: {error}") from None
    folded = Folded.from_json(content["folded"])
    if not content.keys() & {"tau", "nodes", "edges"}:
        return folded
    unfolded = folded.unfold(content.get("tau", 0))
    nodes = [each.get("id") for each in content.get("nodes", ())]
    edges = [[each.get(key) for key in ("from", "to", "parameter")] for each in content.get("edges", ())]
    if nodes != [str(at) for at in (*unfolded.starts, *unfolded.nodes)] or edges != [
        list(_edge(link).values()) for link in unfolded.links
    ]:
        raise InputError("the nodes and edges do not match the folded graph; expected those of its unfolding")
    return unfolded


def to_dot(graph: Folded | Unfolded) -> str:
    """Return a graph for Graphviz, `dot -Tsvg`; a delayed edge is bold with a square at its end."""
    folded = graph if isinstance(graph, Folded) else graph.folded
    lines = [f"digraph {_quoted(folded.title)} {{", "  rankdir=BT;", '  node [fontname="Helvetica"];']
    if isinstance(graph, Folded):
        edges = [(edge.source, edge.target, edge) for edge in graph.edges]
        bold = ", style=bold, arrowtail=box, dir=both, constraint=false"
        lines += [f"  {_quoted(node.name)} [{_look(node, node.symbol)}];" for node in graph.nodes]
    else:
        edges = [(str(source), str(target), edge) for source, target, edge in graph.links]
        bold = ", style=bold, constraint=false"
        for at in graph.starts:
            look = _look(folded.node[at.name], shown(folded, at))
            lines.append(f"  {_quoted(str(at))} [{look}, style=dashed];")
        for t in range(1, graph.tau + 1):
            lines.append(f"  subgraph cluster_{t} {{ label={_quoted(f't = {t}')}; color=gray;")
            lines += [
                f"    {_quoted(str(at))} [{_look(node, shown(folded, at))}];" for at, node in _step(graph, t)
            ]
            lines.append("  }")
    for begin, end, edge in edges:
        label = _quoted(folded.symbol(edge)) + (bold if edge.delay else "")
        lines.append(f"  {_quoted(begin)} -> {_quoted(end)} [label={label}];")
    return "\n".join([*lines, "}"])


def to_mermaid(graph: Folded | Unfolded) -> str:
    """Return a graph for Mermaid; a delayed edge is thick."""
    folded = graph if isinstance(graph, Folded) else graph.folded
    lines = ["flowchart LR"]
    if isinstance(graph, Folded):
        edges = [(_plain(edge.source), _plain(edge.target), edge) for edge in graph.edges]
        mark = " ■"
        lines += [f"  {_plain(node.name)}{_bracketed(node, node.symbol)}" for node in graph.nodes]
    else:
        name = {at: f"{_plain(at.name)}_{at.t}" for at in graph.nodes}
        name |= {at: f"start_{_plain(at.name)}_{at.t}" for at in graph.starts}
        edges = [(name[source], name[target], edge) for source, target, edge in graph.links]
        mark = ""
        lines += [f'  {name[at]}(["{shown(folded, at)}"])' for at in graph.starts]
        for t in range(1, graph.tau + 1):
            lines.append(f'  subgraph step{t}["t = {t}"]')
            lines += [f"    {name[at]}{_bracketed(node, shown(folded, at))}" for at, node in _step(graph, t)]
            lines.append("  end")
    for begin, end, edge in edges:
        label = (folded.symbol(edge) + (mark if edge.delay else "")).strip()
        arrow = ("==>" if edge.delay else "-->") + (f"|{label}|" if label else "")
        lines.append(f"  {begin} {arrow} {end}")
    return "\n".join(lines)


def shown(folded: Folded, at: At) -> str:
    """Return the label of a node at a step in pictures: its symbol and the step, without the layer."""
    return f"{folded.node[at.name].symbol}({at.t})"


def _step(graph: Unfolded, t: int) -> Iterator[tuple[At, Node]]:
    for node in graph.folded.nodes:
        if not node.last or t == graph.tau:
            yield At(node.name, t), node


def _look(node: Node, label: str) -> str:
    return f"label={_quoted(label)}, shape={SHAPES.get(node.kind, 'ellipse')}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _bracketed(node: Node, label: str) -> str:
    return BRACKETS.get(node.kind, '("{}")').format(label)
