"""Draw a graph: folded, with a black square on delayed edges, next to unfolded.

Edges have the colour of their parameter, so shared parameters are visible. With a trace, a node shows its first values (blue
below zero, orange above) and its gradient below them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from unspool.inspect.graph.sheet import CELLS, COLUMNS, FOOT, LOOP, MARGIN, ROW, Sheet, format_value
from unspool.inspect.graph.structure import At, Edge, Folded, Link, Unfolded
from unspool.inspect.graph.trace import Trace
from unspool.plots.svg import Canvas

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


class _Picture(Sheet):
    """The picture of a graph, folded and unfolded side by side."""

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
                self._straight(edge, self.left)
        for node in self.folded.nodes:
            self.node(node, *self.position(node.name, self.left), sup="", title=format_value(node))

    def _loop(self, edge: Edge) -> None:
        """Draw a delayed edge as a loop at the side, with a black square."""
        side, number = self.loops[edge]
        x1, y1, x2, y2 = self.ends(edge, self.left, self.left)
        (w1, h1), (w2, _) = self.size(edge.source), self.size(edge.target)
        if edge.source == edge.target:
            out, middle = x1 + side * (w1 + 24), y1 - h1 * 0.6
            x1, y1, y2 = x1 + side * w1 * 0.55, y1 - h1 * (1.0 if self.made else 0.82), y2 + 3
            x2 += side * (w2 + 8)
            bend = (x1, y1 - 20), (out, y1 - 22)
        else:
            out, middle = self.left + side * (self.half + 4 + LOOP * number), (y1 + y2) / 2
            x1, x2 = x1 + side * w1, x2 + side * (w2 + 8)
            bend = (out, y1), (out, y1)
        d = _curved((x1, y1), *bend, (out, middle), (out, y2), (out, y2), (x2, y2))
        self.path(edge, d, (x2, y2), math.pi if side > 0 else 0, "edge delayed")
        self.canvas.tag("rect", x=out - 5, y=middle - 5, width=10, height=10, class_="square")
        self.letter(edge, out + side * 9, middle + 5, "start" if side > 0 else "end")

    def _between(self) -> None:
        x, y = self.arrow, self.height - FOOT - ROW / 2
        self.canvas.text(x, y - 10, "unfold", text_anchor="middle", class_="soft", font_size=12)
        self.canvas.line(x - 22, y, x + 16, y, class_="axis")
        self.tip(x + 16, y, 0, "var(--soft)")

    # The unfolded graph.

    def _unfolded(self) -> None:
        column = {t: i for i, t in enumerate(self.steps, 1) if t}
        last = len(self.steps) + 1
        where = {0: 0, self.graph.tau + 1: last} | column
        for at in self._shown(column):
            for link in self.graph.into(at):
                self._link(link, where)
        self._dots()
        for at in (*self.graph.starts, *self._shown(column)):
            node = self.folded.node[at.name]
            x, y = self.position(at.name, self.x_of(where[at.t]))
            self.node(node, x, y, f"({at.t})", self.describe_at(at), at)
        for t, i in column.items():
            self.canvas.text(self.x_of(i), self.height - 18, f"t = {t}", text_anchor="middle", class_="soft")

    def _shown(self, column: Mapping[int, int]) -> list[At]:
        return [at for at in self.graph.nodes if at.t in column]

    def _link(self, link: Link, where: Mapping[int, int]) -> None:
        here = self.x_of(where[link.target.t])
        if not link.edge.delay:
            self._straight(link.edge, here)
        elif link.source.t in where:
            self._curve(link.edge, self.x_of(where[link.source.t]), here)
        else:  # from the dots
            self._curve(link.edge, here - link.edge.delay * self.apart, here, faint=True)

    def _dots(self) -> None:
        """Draw the gap of the steps that are left out: edges into it, and dots."""
        if None not in self.steps:
            return
        gap = self.steps.index(None) + 1
        for name, delay in self.folded.carried.items():
            near, (x, y) = self.x_of(gap - delay), self.position(name, self.x_of(gap))
            edge = next(edge for edge in self.folded.edges if edge.source == name and edge.delay)
            begin = self.position(name, near)[0] + delay * self.size(name)[0]
            style = f"stroke:{self.colour(edge)}"
            self.canvas.line(begin, y, x - delay * 20, y, class_="edge delayed faint", style=style)
            self.canvas.text(x, y + 7, "⋯", text_anchor="middle", class_="soft", font_size=22)
        self.canvas.text(self.x_of(gap), self.height - 18, "…", text_anchor="middle", class_="soft")

    def _curve(self, edge: Edge, x_from: float, x_to: float, faint: bool = False) -> None:
        """Draw an edge from step to step."""
        side = 1 if edge.delay > 0 else -1
        x1, y1, x2, y2 = self.ends(edge, x_from, x_to)
        x1 += side * (20 if faint else self.size(edge.source)[0])
        x2 -= side * (self.size(edge.target)[0] + 8)
        bend = side * max(26.0, abs(x2 - x1) * 0.45)
        if abs(y1 - y2) < 1:
            d = f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
        else:
            d = _curved((x1, y1), (x1 + bend, y1), (x2 - bend, y2), (x2, y2))
        kind = "edge delayed" + (" faint" if faint else "")
        self.path(edge, d, (x2, y2), 0 if side > 0 else math.pi, kind)
        self.letter(edge, (x1 + x2) / 2, (y1 + y2) / 2 + (-8 if y1 == y2 else 4))

    def _straight(self, edge: Edge, x: float) -> None:
        """Draw an edge within a step."""
        x1, y1, x2, y2 = self.ends(edge, x, x)
        long = abs(y1 - y2) > 1.5 * ROW
        if long and abs(x1 - x2) < 0.9 * self.unit:  # around the nodes in between
            side = 0.85 * self.unit + max(x1, x2)
            w, h = self.size(edge.target)
            end = (x2 + w * 0.55 + 4, y2 + h + 5)
            d = _curved((x1 + 12, y1 - 17), (side, y1 - ROW * 0.9), (side, y2 + ROW * 0.8), end)
            self.path(edge, d, end, math.atan2(end[1] - (y2 + ROW * 0.8), end[0] - side))
            middle = (x1 + 0.62 * (side - x1) + 8, y1 - ROW * 0.62)
        else:
            angle = math.atan2(y2 - y1, x2 - x1)
            start = self.border(edge.source, x1, y1, angle, 0)
            end = self.border(edge.target, x2, y2, angle + math.pi, 8)
            self.canvas.line(*start, *end, class_="edge", style=f"stroke:{self.colour(edge)}")
            self.tip(*end, angle, self.colour(edge))
            aside = -13 if "_" in edge.parameter and abs(x1 - x2) < 1 else 10
            middle = ((start[0] + end[0]) / 2 + aside, (start[1] + end[1]) / 2 + 5)
        self.letter(edge, *middle)

    def _legend(self) -> None:
        parts = [f"{each.symbol} {'×'.join(map(str, each.shape))}".strip() for each in self.folded.parameters]
        line = "shared by all steps: " + ",  ".join(parts[:9]) + (" …" if len(parts) > 9 else "")
        self.canvas.text(MARGIN, 20, self.folded.title, font_weight=600)
        self.canvas.text(MARGIN, 37, line, class_="soft", font_size=11.5)
        if self.made:
            what = f"in a node: its first {CELLS} values"
            what += ", and below them their gradients" if self.made.gradients else ""
            self.canvas.text(
                MARGIN, 53, f"{what}; blue below zero, orange above", class_="soft", font_size=11.5
            )


def _curved(start: tuple[float, float], *points: tuple[float, float]) -> str:
    """Return the path of cubic curves: for each, two control points and its end."""
    first, *rest = [f"{x:.1f} {y:.1f}" for x, y in (start, *points)]
    return f"M{first}" + "".join(f"C{' '.join(rest[i : i + 3])}" for i in range(0, len(rest), 3))


def draw_graph(
    graph: Folded | Unfolded | Trace,
    *,
    tau: int = 3,
    labels: Mapping[At, str] | None = None,
    columns: int = COLUMNS,
) -> Canvas:
    """Return the picture of a graph, folded next to unfolded; a folded one is unfolded for tau steps.

    Of more than `columns` steps, the first and the last are drawn.
    """
    made = graph if isinstance(graph, Trace) else None
    unfolded = graph.graph if isinstance(graph, Trace) else graph
    if isinstance(unfolded, Folded):
        unfolded = unfolded.unfold(tau)
    return _Picture(unfolded, made, labels or {}, columns).draw()


def save_graphs(graphs: list[Unfolded], path: str | Path) -> None:
    """Write the pictures of several graphs to one file, below each other."""
    drawn = [draw_graph(graph) for graph in graphs]
    whole = Canvas(
        max(each.width for each in drawn),
        sum(each.height for each in drawn),
        "; ".join(each.title for each in drawn),
    )
    top = 0.0
    for each in drawn:
        whole.tag("g", "".join(each.parts), transform=f"translate(0 {top:.0f})")
        top += each.height
    whole.save(path, CSS)


def save_graph(graph: Folded | Unfolded | Trace, path: str | Path, **more: object) -> None:
    """Write the picture of a graph to a file."""
    draw_graph(graph, **more).save(path, CSS)  # type: ignore[arg-type]
