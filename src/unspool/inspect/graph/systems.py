"""Two dynamical systems, the first examples of unfolding.

    s(t) = f(s(t-1); θ)             (10.1)
    s(t) = f(s(t-1), x(t); θ)       (10.4)

Unfolded for t steps, the second is a function of the whole past (10.6, 10.7):

    s(t) = g(t)(x(t), x(t-1), …, x(1)) = f(s(t-1), x(t); θ)

g(t) takes t inputs, so each t has a different function; f is one function of two arguments, applied t times.

>>> f = lambda s, theta: theta * s * (1 - s)      # the logistic map
>>> s = g(plain(), f, 3, s0=0.25, theta=3.0)
>>> float(s) == f(f(f(0.25, 3.0), 3.0), 3.0)
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from unspool.errors import InputError
from unspool.inspect.graph.structure import At, Edge, Folded, Node, Parameter

Function = Callable[..., Any]


def plain(size: int = 1) -> Folded:
    """Return the autonomous system s(t) = f(s(t-1); θ)."""
    return Folded(
        "s(t) = f(s(t-1); θ)",
        (Node("s", "s", "state", size, "f", ("theta",), "s(t) = f(s(t-1); θ)"),),
        (Edge("s", "s", delay=1),),
        (Parameter("theta", "θ", ()),),
    )


def driven(size: int = 1, inputs: int = 1) -> Folded:
    """Return the driven system s(t) = f(s(t-1), x(t); θ)."""
    return Folded(
        "s(t) = f(s(t-1), x(t); θ)",
        (
            Node("x", "x", "input", inputs),
            Node("s", "s", "state", size, "f", ("theta",), "s(t) = f(s(t-1), x(t); θ)"),
        ),
        (Edge("s", "s", delay=1), Edge("x", "s")),
        (Parameter("theta", "θ", ()),),
    )


def g(graph: Folded, f: Function, t: int, *, s0: Any, theta: Any, x: Sequence[Any] = ()) -> Any:
    """Return s(t), evaluated on the unfolded graph from x(1) … x(t)."""
    unfolded = graph.unfold(t)
    if "x" in graph.node and len(x) != t:
        raise InputError(f"x has {len(x)} values; expected {t}, one per step")
    values: dict[Any, Any] = {at: s0 for at in unfolded.starts}
    for at in unfolded.nodes:
        reads = [values[link.source] for link in unfolded.into(at)]
        values[at] = f(*reads, theta) if graph.node[at.name].op else x[at.t - 1]
    return values[At("s", t)]
