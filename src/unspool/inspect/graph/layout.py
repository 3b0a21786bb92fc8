"""Positions of the nodes of a graph: one column per step, the input below, the loss above, as in the book's figures.

x is in half-widths of a node, y in rows, upwards from the input. Positions inside a layer are those of its cell.
"""

from __future__ import annotations

from dataclasses import dataclass

from unspool.cells import CELLS
from unspool.inspect.graph.structure import Folded

Position = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """The places of one column, and how wide and high it is."""

    places: dict[str, Position]
    half_width: float
    rows: float
    bands: tuple[tuple[str, float, float], ...]
    """What stands beside the layers, and their lowest and highest rows."""


def lay_out(graph: Folded) -> Layout:
    """Give every node its place."""
    if "x" not in graph.node or "s" in graph.node:
        return _system(graph)
    own = _positions(graph)
    groups = list(dict.fromkeys(name.rpartition(".")[0] for name in graph.node if "." in name))
    places: dict[str, Position] = {"x": (0, 0)}
    row, bands = 1.0, []
    if "e" in graph.node:
        places["e"], row = (0, 1), 2.0
    both = any("reverse" in group for group in groups)
    wide = max(abs(x) for x, _ in own.values())
    high = max(y for _, y in own.values())
    for group in groups:
        shift = 0.0 if not both else (wide + 1.0) * (1 if "reverse" in group else -1)
        for letter, (x, y) in own.items():
            places[f"{group}.{letter}"] = (x + shift, row + y)
        bands.append((_called(group), row, row + high))
        row += high + 1.15
    if "head" in graph.node:  # an adaptive softmax
        tails = [name for name in graph.node if name[0] == "o" and name[1:].isdecimal()]
        places["head"] = (-0.55, row + 1)
        for i, name in enumerate(tails):
            places[f"z{name[1:]}"], places[name] = (0.55 + 1.1 * i, row), (0.55 + 1.1 * i, row + 1)
        row += 2
    places["o"] = (0, row)
    places["y_hat"] = (-0.95, row + 1)
    places["L"] = (0.35, row + 1)
    places["y"] = (0.35, row + 2)
    if "k" in graph.node:
        places["k"] = (-0.95, row + 2)
    half = max(abs(x) for x, _ in places.values()) + 0.55
    return Layout(places, half, row + 2, tuple(bands) if len(groups) > 1 else ())


def _system(graph: Folded) -> Layout:
    places: dict[str, Position] = {"s": (0, 1 if "x" in graph.node else 0)}
    if "x" in graph.node:
        places["x"] = (0, 0)
    return Layout(places, 0.55, max(y for _, y in places.values()), ())


def _positions(graph: Folded) -> dict[str, Position]:
    """Return the positions inside a layer, by letter: those of the first cell with these nodes."""
    letters = {name.rpartition(".")[2] for name in graph.node if name.startswith("layer")}
    found = ({node.letter: node.position for node in cell.nodes} for cell in CELLS.values())
    return next(positions for positions in found if positions.keys() == letters)


def _called(group: str) -> str:
    number, _, way = group.removeprefix("layer").partition(".")
    return f"layer {int(number) + 1}" + (", from the end" if way else "")
