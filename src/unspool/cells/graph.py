"""Nodes of a cell's computational graph: what each of them reads, its equation and its position in a picture."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Input(NamedTuple):
    """U x(t), the rows of these gates."""

    gates: str


class Past(NamedTuple):
    """A value of the step before, multiplied with the rows of W of these gates; without gates, as it is."""

    letter: str
    gates: str = ""


class Now(NamedTuple):
    """A value of the same step."""

    letter: str


class Bias(NamedTuple):
    """The rows of a parameter that belong to these gates; without gates, all of it."""

    letter: str
    gates: str = ""


class GraphNode(NamedTuple):
    """A quantity that a layer computes at every step.

    In `op` and `equation`, {act} is the activation, {x} the input of the layer, {before} the step before and {past} the
    term W h(t-1), or what takes its place in figure 10.4.
    """

    letter: str
    kind: Literal["inner", "gate", "state"]
    op: str
    terms: tuple[Input | Past | Now | Bias, ...]
    position: tuple[float, float]
    """In a picture of the layer: in half-widths of a node to the right, in rows upwards from the lowest."""
    equation: str
    blocks: int = 1
    """Its size, as a multiple of H."""
    number: str = ""
    """The number of the equation in Goodfellow et al., *Deep Learning*, that defines it, or that it is a part of."""
