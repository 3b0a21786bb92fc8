"""The parts of a picture of a graph: positions of columns and rows, nodes, arrow tips, letters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from unspool.inspect.graph.export import shown
from unspool.inspect.graph.layout import Layout, lay_out
from unspool.inspect.graph.structure import At, Edge, Folded, Node, Unfolded
from unspool.inspect.graph.trace import Trace
from unspool.plots.svg import Canvas, diverging, tag

COLUMNS = 6
"""Most steps that are drawn; of more steps, the first and the last, with dots between them."""
CELLS = 8
"""Number of values that a node shows."""
ROW, HALF, GUTTER, MARGIN, HEAD, FOOT = 74.0, 40.0, 58.0, 26.0, 62.0, 34.0
LOOP = 30.0
COLOURS = {"U": "blue", "W": "orange", "R": "orange", "V": "green", "E": "purple", "θ": "orange"}
KINDS = {"input": "fill", "target": "fill", "state": "state"}


class Sheet:
    """A canvas for a graph folded and unfolded side by side."""

    def __init__(
        self, graph: Unfolded, made: Trace | None, labels: Mapping[At, str], columns: int = COLUMNS
    ) -> None:
        self.graph, self.folded, self.made, self.labels = graph, graph.folded, made, labels
        self.layout: Layout = lay_out(graph.folded)
        self.unit = HALF * (1.36 if made else 1.0)
        self.half = self.layout.half_width * self.unit
        self.loops = _loops(graph.folded, self.layout)
        self.steps = _steps(graph.tau, columns)
        outside = {side: sum(way == side for way, _ in self.loops.values()) for side in (-1, 1)}
        self.left = MARGIN + self.half + LOOP * outside[-1] + (20 if outside[-1] else 0)
        self.apart = 2 * self.half + GUTTER
        self.arrow = self.left + self.half + LOOP * outside[1] + 50
        starts = [self.layout.places[at.name][0] for at in graph.starts if at.t < 1]
        reach, least = max(starts, default=-self.layout.half_width), min(starts, default=0.0)
        first = self.arrow + 64 + (1 - least) * self.unit  # middle of the column of starts
        self.first = first + (reach + 1) * self.unit + GUTTER + self.half  # middle of the first step
        self.before = first
        self.height = HEAD + (self.layout.rows + 1) * ROW + FOOT
        self.scale = _scales(made) if made else {}
        ends = any(delay < 0 for delay in self.folded.carried.values())
        wide = self.x_of(len(self.steps) + ends) + (self.unit * 1.6 if ends else self.half) + MARGIN
        self.canvas = Canvas(max(wide, 560), self.height, graph.folded.title)

    def x_of(self, column: int) -> float:
        """Return the middle of a column; column 0 holds the starts."""
        return self.first + self.apart * (column - 1) if column else self.before

    def position(self, name: str, middle: float) -> tuple[float, float]:
        """Return the position of a node in a column with this middle."""
        x, y = self.layout.places[name]
        return middle + x * self.unit, self.height - FOOT - (y + 0.5) * ROW

    def ends(self, edge: Edge, x_from: float, x_to: float) -> tuple[float, float, float, float]:
        """Return x and y of the two nodes of an edge, in columns with these middles."""
        return *self.position(edge.source, x_from), *self.position(edge.target, x_to)

    def size(self, name: str) -> tuple[float, float]:
        """Return half the width and half the height of a node."""
        if self.made:
            return (28.0, 22.0)
        return (15.0, 15.0) if self.folded.node[name].kind == "gate" else (19.0, 19.0)

    def border(self, name: str, x: float, y: float, angle: float, more: float) -> tuple[float, float]:
        """Return the point at which a line from the middle of a node leaves it."""
        w, h = self.size(name)
        if self.made or self.folded.node[name].kind in ("input", "target"):
            reach = min(
                w / abs(math.cos(angle)) if math.cos(angle) else math.inf,
                h / abs(math.sin(angle)) if math.sin(angle) else math.inf,
            )
        else:
            reach = w
        return x + (reach + more) * math.cos(angle), y + (reach + more) * math.sin(angle)

    def colour(self, edge: Edge) -> str:
        """Return the colour of the parameter of an edge."""
        return f"var(--{COLOURS.get(self.folded.symbol(edge)[:1], 'soft')})"

    def path(self, edge: Edge, d: str, end: tuple[float, float], angle: float, kind: str = "edge") -> None:
        """Draw an edge along a path, with its tip."""
        self.canvas.tag("path", d=d, class_=kind, style=f"stroke:{self.colour(edge)}")
        self.tip(*end, angle, self.colour(edge))

    def tip(self, x: float, y: float, angle: float, colour: str) -> None:
        """Draw an arrow tip that ends 7 units beyond the end of the line."""
        tip = [(7.0, 0.0), (-2.0, 4.2), (0.0, 0.0), (-2.0, -4.2)]
        c, s = math.cos(angle), math.sin(angle)
        points = " ".join(f"{x + c * u - s * v:.1f},{y + s * u + c * v:.1f}" for u, v in tip)
        self.canvas.tag("polygon", points=points, style=f"fill:{colour}")

    def letter(self, edge: Edge, x: float, y: float, anchor: str = "middle") -> None:
        """Write the letter of an edge: its matrix, or the f of a dynamical system."""
        system = self.folded.node[edge.target].op == "f" and edge.delay
        letter, _, below = (self.folded.symbol(edge) or ("f" if system else "")).partition("_")
        if not letter:
            return
        inside = escape(letter) + (tag("tspan", escape(below), dy=3, font_size=10) if below else "")
        self.canvas.tag(
            "text", inside, x=x, y=y, class_="math halo", font_size=15, style=f"fill:{self.colour(edge)}", text_anchor=anchor
        )  # fmt: skip

    def node(self, node: Node, x: float, y: float, sup: str, title: str, at: At | None = None) -> None:
        """Draw a node; at a step, with its values if there are any."""
        w, h = self.size(node.name)
        start = at is not None and not self.graph.inside(at)
        kind = KINDS.get(node.kind, "")
        inside = f"<title>{escape(title)}</title>"
        if self.made or kind == "fill":
            inside += tag("rect", x=x - w, y=y - h, width=2 * w, height=2 * h, rx=8.0 if kind != "fill" else 3.0, class_=kind or None)  # fmt: skip
        else:
            inside += tag("circle", cx=x, cy=y, r=w, class_=kind or None)
        strips = self._strips(at, x, y) if at is not None else ""
        small = node.kind == "gate" and not self.made
        label = escape(node.symbol) + (tag("tspan", escape(sup), dy=-5, class_="sup") if sup else "")
        base = y - 5 if strips else y + 5
        inside += tag("text", label, x=x, y=base, text_anchor="middle", class_="math", font_size=13.5 if small or sup else 17)  # fmt: skip
        if at is not None and at in self.labels:
            inside += tag("text", escape(self.labels[at]), x=x, y=y + 15, text_anchor="middle", font_size=12, class_="token")  # fmt: skip
        self.canvas.add(
            tag(
                "g",
                inside + strips,
                class_="node start" if start else "node",
                data_node=str(at) if at else None,
            )
        )

    def _strips(self, at: At, x: float, y: float) -> str:
        """Return the cells of the first values of a node, and of its gradient below them."""
        if self.made is None or at not in self.made.values or at in self.labels:
            return " " if at in self.labels else ""
        rows = [(self.made.values[at], self.scale[at.name, 0], y + 2)]
        if at in self.made.gradients:
            rows.append((self.made.gradients[at], self.scale[at.name, 1], y + 10.5))
        first = np.asarray(rows[0][0], float).reshape(len(rows[0][0]), -1)[0]
        if len(first) == 1:
            return tag("text", f"{first[0]:.2f}", x=x, y=y + 15, text_anchor="middle", font_size=11.5)
        found = ""
        for values, scale, top in rows:
            levels = np.asarray(values, float)[0][:CELLS] / scale
            left = x - 3 * len(levels)
            found += "".join(
                tag("rect", x=left + 6 * i, y=top, width=6, height=7.5, class_="cell", style=f"fill:{diverging(v)}")
                for i, v in enumerate(levels)
            )  # fmt: skip
        return found

    def describe_at(self, at: At) -> str:
        """Return the tooltip of a node at a step."""
        node = self.folded.node[at.name]
        lines = [shown(self.folded, at), node.equation if self.graph.inside(at) else "given: the start"]
        if self.made and at in self.made.values:
            lines.append(_numbers(np.asarray(self.made.values[at], float)[0]))
        if self.made and at in self.made.gradients:
            d = self.made.gradients[at][0]
            lines.append(f"∇ norm {np.linalg.norm(d):.3g}: {_numbers(d)}")
        return "\n".join(line for line in lines if line)


def _steps(tau: int, columns: int) -> Sequence[int | None]:
    """Return the steps that are drawn; None marks the gap."""
    if tau <= columns:
        return list(range(1, tau + 1))
    return [1, 2, 3, None, tau - 1, tau]


def _loops(graph: Folded, layout: Layout) -> dict[Edge, tuple[int, int]]:
    """Return the side and the distance of each delayed edge in the folded graph, the shortest innermost."""
    places = layout.places
    delayed = [edge for edge in graph.edges if edge.delay]
    found: dict[Edge, tuple[int, int]] = {}
    counted = {-1: 0, 1: 0}
    for edge in sorted(delayed, key=lambda e: abs(places[e.source][1] - places[e.target][1])):
        side = -1 if places[edge.target][0] < -0.3 else 1
        counted[side] += edge.source != edge.target
        found[edge] = (side, max(counted[side], 1))
    return found


def _scales(made: Trace) -> dict[tuple[str, int], float]:
    """Return the largest value and gradient of each node over all steps: the ends of its colour scale."""
    found: dict[tuple[str, int], float] = {}
    for i, values in enumerate((made.values, made.gradients)):
        for at, value in values.items():
            most = float(np.abs(np.asarray(value, float)[0]).max(initial=0.0))
            found[at.name, i] = max(found.get((at.name, i), 1e-30), most)
    return found


def format_value(node: Node) -> str:
    """Return the tooltip of a node of the folded graph."""
    size = f"{node.size} values" if node.size else "a token"
    return "\n".join(part for part in (node.symbol, node.equation, size) if part)


def _numbers(values: np.ndarray) -> str:
    flat = np.atleast_1d(values)
    if len(flat) == 1:
        return f"{flat[0]:.4g}"
    leading = ", ".join(f"{v:.3f}" for v in flat[:6])
    return f"{len(flat)} values: {leading}{', …' if len(flat) > 6 else ''}"
