"""A graph as a picture: folded, with a black square on what reads the step before, beside unfolded.

An edge has the colour of its parameter, the same at every step: that is what sharing looks like. With a trace,
a node shows its values (the first of them, blue below zero, orange above) and, below, its gradient.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np

from unspool.draw.layout import Layout, lay_out
from unspool.draw.svg import Canvas, diverging, tag
from unspool.graph.structure import At, Edge, Folded, Link, Node, Unfolded
from unspool.graph.text import shown
from unspool.graph.trace import Trace

COLUMNS = 6
"""As many steps are drawn; of more, the first and the last, and dots between them."""
CELLS = 8
"""As many values of a node are shown."""
ROW, HALF, GUTTER, MARGIN, HEAD, FOOT = 74.0, 40.0, 58.0, 26.0, 62.0, 34.0
LOOP = 30.0
COLOURS = {"U": "blue", "W": "orange", "R": "orange", "V": "green", "E": "purple", "θ": "orange"}
CSS = (
    "svg.unspool .edge{fill:none;stroke:var(--soft);stroke-width:1.4}"
    "svg.unspool .delayed{stroke-width:2}svg.unspool .faint{stroke-dasharray:4 4}"
    "svg.unspool .node rect,svg.unspool .node circle{fill:var(--paper);stroke:var(--ink);stroke-width:1.4}"
    "svg.unspool .node .fill{fill:var(--panel)}svg.unspool .start rect,svg.unspool .start circle{stroke-dasharray:3 3}"
    "svg.unspool .node .cell{stroke:var(--line);stroke-width:.5}"
    "svg.unspool .node:hover rect:first-of-type,svg.unspool .node:hover circle{stroke:var(--blue);stroke-width:2.4}"
    "svg.unspool .square{fill:var(--ink)}svg.unspool .halo{stroke:var(--paper);stroke-width:4;paint-order:stroke}"
    "svg.unspool .band{fill:var(--panel);opacity:.75}"
)
KINDS = {"input": "fill", "target": "fill", "state": "state"}


class _Picture:
    """Folded and unfolded side by side on one sheet."""

    def __init__(self, graph: Unfolded, made: Trace | None, labels: Mapping[At, str]) -> None:
        self.graph, self.folded, self.made, self.labels = graph, graph.folded, made, labels
        self.layout: Layout = lay_out(graph.folded)
        self.unit = HALF * (1.36 if made else 1.0)
        self.half = self.layout.half_width * self.unit
        self.loops = _loops(graph.folded)
        self.steps = _steps(graph.tau)
        outside = {side: sum(way == side for way, _ in self.loops.values()) for side in (-1, 1)}
        self.left = MARGIN + self.half + LOOP * outside[-1] + (20 if outside[-1] else 0)
        self.apart = 2 * self.half + GUTTER
        self.arrow = self.left + self.half + LOOP * outside[1] + 50
        places = self.layout.places
        reach = max((places[at.name][0] for at in graph.starts if at.t < 1), default=-self.layout.half_width)
        least = min((places[at.name][0] for at in graph.starts if at.t < 1), default=0.0)
        first = self.arrow + 64 + (1 - least) * self.unit  # the middle of the column of the starts
        self.first = first + (reach + 1) * self.unit + GUTTER + self.half  # and of the first step
        self.before = first
        self.height = HEAD + (self.layout.rows + 1) * ROW + FOOT
        self.scale = _scales(made) if made else {}
        ends = any(delay < 0 for delay in self.folded.carried.values())
        wide = self.x_of(len(self.steps) + ends) + (self.unit * 1.6 if ends else self.half) + MARGIN
        self.canvas = Canvas(max(wide, 560), self.height, graph.folded.title)

    def x_of(self, column: int) -> float:
        """The middle of a column; 0 is that of the starts."""
        return self.first + self.apart * (column - 1) if column else self.before

    def place(self, name: str, middle: float) -> tuple[float, float]:
        x, y = self.layout.places[name]
        return middle + x * self.unit, self.height - FOOT - (y + 0.5) * ROW

    def size(self, node: Node) -> tuple[float, float]:
        """Half the width and half the height of a node."""
        if self.made:
            return (28.0, 22.0)
        return (15.0, 15.0) if node.kind == "gate" else (19.0, 19.0)

    def draw(self) -> Canvas:
        self._bands()
        self._folded()
        self._between()
        self._unfolded()
        self._legend()
        return self.canvas

    def _bands(self) -> None:
        for called, low, high in self.layout.bands:
            top = self.height - FOOT - (high + 0.98) * ROW
            height = (high - low + 0.96) * ROW
            self.canvas.tag(
                "rect", x=8, y=top, width=self.canvas.width - 16, height=height, rx=10, class_="band"
            )
            self.canvas.text(
                self.arrow, top + 18, called, class_="soft", font_size=11.5, text_anchor="middle"
            )

    # The folded graph.

    def _folded(self) -> None:
        for edge in self.folded.edges:
            if edge.delay:
                self._loop(edge)
            else:
                self._straight(edge, self.left, self.left)
        for node in self.folded.nodes:
            self._node(node, *self.place(node.name, self.left), sup="", title=_told(node))

    def _loop(self, edge: Edge) -> None:
        """An edge with a delay: out at the side, past a black square, and back."""
        way, number = self.loops[edge]
        (x1, y1), (x2, y2) = self.place(edge.source, self.left), self.place(edge.target, self.left)
        (w1, h1), (w2, _) = self.size(self.folded.node[edge.source]), self.size(self.folded.node[edge.target])
        if edge.source == edge.target:
            out, middle = x1 + way * (w1 + 24), y1 - h1 * 0.6
            x1, y1, y2 = x1 + way * w1 * 0.55, y1 - h1 * (1.0 if self.made else 0.82), y2 + 3
            x2 += way * (w2 + 8)
            d = (
                f"M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 - 20:.1f} {out:.1f} {y1 - 22:.1f} {out:.1f} {middle:.1f}"
                f"C{out:.1f} {y2:.1f} {out:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
            )
        else:
            out, middle = self.left + way * (self.half + 4 + LOOP * number), (y1 + y2) / 2
            x1, x2 = x1 + way * w1, x2 + way * (w2 + 8)
            d = (
                f"M{x1:.1f} {y1:.1f}C{out:.1f} {y1:.1f} {out:.1f} {y1:.1f} {out:.1f} {middle:.1f}"
                f"C{out:.1f} {y2:.1f} {out:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
            )
        colour = self._colour(edge)
        self.canvas.tag("path", d=d, class_="edge delayed", style=f"stroke:{colour}")
        self._arrow(x2, y2, math.pi if way > 0 else 0, colour)
        self.canvas.tag("rect", x=out - 5, y=middle - 5, width=10, height=10, class_="square")
        self._symbol(edge, out + way * 9, middle + 5, "start" if way > 0 else "end")

    def _between(self) -> None:
        x, y = self.arrow, self.height - FOOT - ROW / 2
        self.canvas.text(x, y - 10, "unfold", text_anchor="middle", class_="soft", font_size=12)
        self.canvas.line(x - 22, y, x + 16, y, class_="axis")
        self._arrow(x + 16, y, 0, "var(--soft)")

    # The unfolded graph.

    def _unfolded(self) -> None:
        column = {t: i for i, t in enumerate(self.steps, 1) if t}
        last = len(self.steps) + 1
        where = {0: 0, self.graph.tau + 1: last} | column
        for at in self._shown(column):
            for link in self.graph.into(at):
                self._link(link, where)
        self._dots(column)
        for at in (*self.graph.starts, *self._shown(column)):
            node = self.folded.node[at.name]
            x, y = self.place(at.name, self.x_of(where[at.t]))
            self._node(node, x, y, f"({at.t})", self._told(at), at)
        for t, i in column.items():
            self.canvas.text(self.x_of(i), self.height - 18, f"t = {t}", text_anchor="middle", class_="soft")

    def _shown(self, column: Mapping[int, int]) -> list[At]:
        return [at for at in self.graph.nodes if at.t in column]

    def _link(self, link: Link, where: Mapping[int, int]) -> None:
        here = self.x_of(where[link.target.t])
        if not link.edge.delay:
            self._straight(link.edge, here, here)
        elif link.source.t in where:
            self._curve(link.edge, self.x_of(where[link.source.t]), here)
        else:  # from the dots
            self._curve(link.edge, here - link.edge.delay * self.apart, here, faint=True)

    def _dots(self, column: Mapping[int, int]) -> None:
        """Where steps are left out: edges into the gap, and dots."""
        if None not in self.steps:
            return
        gap = self.steps.index(None) + 1
        for name, delay in self.folded.carried.items():
            near, (x, y) = self.x_of(gap - delay), self.place(name, self.x_of(gap))
            edge = next(edge for edge in self.folded.edges if edge.source == name and edge.delay)
            begin = self.place(name, near)[0] + delay * self.size(self.folded.node[name])[0]
            style = f"stroke:{self._colour(edge)}"
            self.canvas.line(begin, y, x - delay * 20, y, class_="edge delayed faint", style=style)
            self.canvas.text(x, y + 7, "⋯", text_anchor="middle", class_="soft", font_size=22)
        self.canvas.text(self.x_of(gap), self.height - 18, "…", text_anchor="middle", class_="soft")

    def _curve(self, edge: Edge, x_from: float, x_to: float, faint: bool = False) -> None:
        """An edge from step to step: out at the side, in at the side."""
        way = 1 if edge.delay > 0 else -1
        (x1, y1), (x2, y2) = self.place(edge.source, x_from), self.place(edge.target, x_to)
        x1 += way * (20 if faint else self.size(self.folded.node[edge.source])[0])
        x2 -= way * (self.size(self.folded.node[edge.target])[0] + 8)
        bend = way * max(26.0, abs(x2 - x1) * 0.45)
        if abs(y1 - y2) < 1:
            d = f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
        else:
            d = f"M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
        colour = self._colour(edge)
        self.canvas.tag(
            "path", d=d, class_="edge delayed" + (" faint" if faint else ""), style=f"stroke:{colour}"
        )
        self._arrow(x2, y2, 0 if way > 0 else math.pi, colour)
        self._symbol(edge, (x1 + x2) / 2, (y1 + y2) / 2 + (-8 if y1 == y2 else 4))

    def _straight(self, edge: Edge, x_from: float, x_to: float) -> None:
        """An edge within a step."""
        (x1, y1), (x2, y2) = self.place(edge.source, x_from), self.place(edge.target, x_to)
        long = abs(y1 - y2) > 1.5 * ROW
        colour = self._colour(edge)
        if long and abs(x1 - x2) < 0.9 * self.unit:  # around what stands between
            side = 0.85 * self.unit + max(x1, x2)
            w, h = self.size(self.folded.node[edge.target])
            end = (x2 + w * 0.55 + 4, y2 + h + 5)
            d = f"M{x1 + 12:.1f} {y1 - 17:.1f}C{side:.1f} {y1 - ROW * 0.9:.1f} {side:.1f} {y2 + ROW * 0.8:.1f} {end[0]:.1f} {end[1]:.1f}"
            self.canvas.tag("path", d=d, class_="edge", style=f"stroke:{colour}")
            self._arrow(*end, math.atan2(end[1] - (y2 + ROW * 0.8), end[0] - side), colour)
            middle = (x1 + 0.62 * (side - x1) + 8, y1 - ROW * 0.62)
        else:
            angle = math.atan2(y2 - y1, x2 - x1)
            start = self._edge_of(self.folded.node[edge.source], x1, y1, angle, 0)
            end = self._edge_of(self.folded.node[edge.target], x2, y2, angle + math.pi, 8)
            self.canvas.line(*start, *end, class_="edge", style=f"stroke:{colour}")
            self._arrow(*end, angle, colour)
            aside = -13 if "_" in edge.parameter and abs(x1 - x2) < 1 else 10
            middle = ((start[0] + end[0]) / 2 + aside, (start[1] + end[1]) / 2 + 5)
        self._symbol(edge, *middle)

    def _edge_of(self, node: Node, x: float, y: float, angle: float, more: float) -> tuple[float, float]:
        """Where a line from the middle of a node leaves it."""
        w, h = self.size(node)
        if self.made or node.kind in ("input", "target"):
            reach = min(
                w / abs(math.cos(angle)) if math.cos(angle) else math.inf,
                h / abs(math.sin(angle)) if math.sin(angle) else math.inf,
            )
        else:
            reach = w
        return x + (reach + more) * math.cos(angle), y + (reach + more) * math.sin(angle)

    # Parts.

    def _colour(self, edge: Edge) -> str:
        if not edge.parameter:
            return "var(--soft)"
        return f"var(--{COLOURS.get(self.folded.parameter[edge.parameter].symbol[0], 'soft')})"

    def _arrow(self, x: float, y: float, angle: float, colour: str) -> None:
        """A tip that ends 7 ahead of the line's end."""
        tip = [(7.0, 0.0), (-2.0, 4.2), (0.0, 0.0), (-2.0, -4.2)]
        c, s = math.cos(angle), math.sin(angle)
        points = " ".join(f"{x + c * u - s * v:.1f},{y + s * u + c * v:.1f}" for u, v in tip)
        self.canvas.tag("polygon", points=points, style=f"fill:{colour}")

    def _symbol(self, edge: Edge, x: float, y: float, anchor: str = "middle") -> None:
        """The letter on an edge: its matrix, or the f of a dynamical system."""
        if edge.parameter:
            symbol = self.folded.parameter[edge.parameter].symbol
        elif self.folded.node[edge.target].op == "f" and edge.delay:
            symbol = "f"
        else:
            return
        letter, _, below = symbol.partition("_")
        inside = escape(letter) + (tag("tspan", escape(below), dy=3, font_size=10) if below else "")
        self.canvas.tag(
            "text", inside, x=x, y=y, class_="math halo", font_size=15, style=f"fill:{self._colour(edge)}", text_anchor=anchor
        )  # fmt: skip

    def _node(self, node: Node, x: float, y: float, sup: str, title: str, at: At | None = None) -> None:
        w, h = self.size(node)
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
        self.canvas.add(tag("g", inside + strips, class_="node start" if start else "node"))

    def _strips(self, at: At, x: float, y: float) -> str:
        """The first values of a node, and its gradient below them."""
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
            shares = np.asarray(values, float)[0][:CELLS] / scale
            left = x - 3 * len(shares)
            found += "".join(
                tag("rect", x=left + 6 * i, y=top, width=6, height=7.5, class_="cell", style=f"fill:{diverging(v)}")
                for i, v in enumerate(shares)
            )  # fmt: skip
        return found

    def _told(self, at: At) -> str:
        """What a node says when it is pointed at."""
        node = self.folded.node[at.name]
        lines = [shown(self.folded, at), node.equation if self.graph.inside(at) else "given: the start"]
        if self.made and at in self.made.values:
            lines.append(_numbers(np.asarray(self.made.values[at], float)[0]))
        if self.made and at in self.made.gradients:
            d = self.made.gradients[at][0]
            lines.append(f"∇ norm {np.linalg.norm(d):.3g}: {_numbers(d)}")
        return "\n".join(line for line in lines if line)

    def _legend(self) -> None:
        parts = []
        for parameter in self.folded.parameters:
            size = "×".join(map(str, parameter.shape))
            parts.append(f"{parameter.symbol} {size}".strip())
        line = "shared by all steps: " + ",  ".join(parts[:9]) + (" …" if len(parts) > 9 else "")
        self.canvas.text(MARGIN, 20, self.folded.title, font_weight=600)
        self.canvas.text(MARGIN, 37, line, class_="soft", font_size=11.5)
        if self.made:
            what = f"in a node: its first {CELLS} values"
            what += ", and below them their gradients" if self.made.gradients else ""
            self.canvas.text(
                MARGIN, 53, f"{what}; blue below zero, orange above", class_="soft", font_size=11.5
            )


def draw_graph(
    graph: Folded | Unfolded | Trace, *, tau: int = 3, labels: Mapping[At, str] | None = None
) -> Canvas:
    """Draw a graph, folded beside unfolded; a folded one is unfolded for tau steps first."""
    made = graph if isinstance(graph, Trace) else None
    unfolded = graph.graph if isinstance(graph, Trace) else graph
    if isinstance(unfolded, Folded):
        unfolded = unfolded.unfold(tau)
    return _Picture(unfolded, made, labels or {}).draw()


def save_graph(graph: Folded | Unfolded | Trace, path: str | Path, **more: object) -> None:
    """Write the picture of a graph to a file."""
    draw_graph(graph, **more).save(path, CSS)  # type: ignore[arg-type]


def _steps(tau: int) -> Sequence[int | None]:
    """The steps that are drawn; None is where some are left out."""
    if tau <= COLUMNS:
        return list(range(1, tau + 1))
    return [1, 2, 3, None, tau - 1, tau]


def _loops(graph: Folded) -> dict[Edge, tuple[int, int]]:
    """At which side each edge with a delay runs in the folded graph, and how far out: the shortest inside."""
    places = lay_out(graph).places
    delayed = [edge for edge in graph.edges if edge.delay]
    found: dict[Edge, tuple[int, int]] = {}
    counted = {-1: 0, 1: 0}
    for edge in sorted(delayed, key=lambda e: abs(places[e.source][1] - places[e.target][1])):
        side = -1 if places[edge.target][0] < -0.3 else 1
        counted[side] += edge.source != edge.target
        found[edge] = (side, max(counted[side], 1))
    return found


def _scales(made: Trace) -> dict[tuple[str, int], float]:
    """The largest value, and the largest gradient, of a node over all steps: what full colour stands for."""
    found: dict[tuple[str, int], float] = {}
    for i, values in enumerate((made.values, made.gradients)):
        for at, value in values.items():
            most = float(np.abs(np.asarray(value, float)[0]).max(initial=0.0))
            found[at.name, i] = max(found.get((at.name, i), 1e-30), most)
    return found


def _told(node: Node) -> str:
    size = f"{node.size} values" if node.size else "a token"
    return "\n".join(part for part in (node.symbol, node.equation, size) if part)


def _numbers(values: np.ndarray) -> str:
    flat = np.atleast_1d(values)
    if len(flat) == 1:
        return f"{flat[0]:.4g}"
    shown_ = ", ".join(f"{v:.3f}" for v in flat[:6])
    return f"{len(flat)} values: {shown_}{', …' if len(flat) > 6 else ''}"
