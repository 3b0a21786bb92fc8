"""Where the nodes of a graph stand: one column a step, the input below, the loss above, as in the book's figures.

Places are in units: x in half-widths of a node's room, y in rows, upwards from the input.
"""

from __future__ import annotations

from dataclasses import dataclass

from unspool.inspect.graph.structure import Folded

Position = tuple[float, float]

CELLS: dict[str, dict[str, Position]] = {
    "elman": {"a": (0, 0), "h": (0, 1)},
    "gru": {"a": (0, 0), "q": (-1.4, 1), "r": (-0.2, 1), "z": (1.4, 1), "n": (-0.7, 2), "h": (0.5, 3)},
    "lstm": {
        "a": (0, 0),
        "f": (-1.65, 1),
        "i": (-0.55, 1),
        "g": (0.55, 1),
        "o": (1.65, 1),
        "s": (-0.55, 2),
        "h": (0.9, 3),
    },
}
"""The nodes of a cell, from its lowest row."""


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
    cell = _cell_of(graph)
    groups = list(dict.fromkeys(name.rpartition(".")[0] for name in graph.node if "." in name))
    places: dict[str, Position] = {"x": (0, 0)}
    row, bands = 1.0, []
    if "e" in graph.node:
        places["e"], row = (0, 1), 2.0
    both = any("reverse" in group for group in groups)
    wide = max(abs(x) for x, _ in CELLS[cell].values())
    high = max(y for _, y in CELLS[cell].values())
    for group in groups:
        shift = 0.0 if not both else (wide + 1.0) * (1 if "reverse" in group else -1)
        for letter, (x, y) in CELLS[cell].items():
            places[f"{group}.{letter}"] = (x + shift, row + y)
        bands.append((_called(group), row, row + high))
        row += high + 1.15
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


def _cell_of(graph: Folded) -> str:
    letters = {name.rpartition(".")[2] for name in graph.node}
    return "lstm" if "f" in letters else "gru" if "z" in letters else "elman"


def _called(group: str) -> str:
    number, _, way = group.removeprefix("layer").partition(".")
    return f"layer {int(number) + 1}" + (", from the end" if way else "")
