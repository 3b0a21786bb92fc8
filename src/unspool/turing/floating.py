"""Run a compiled machine in floating point, and find the first step at which it is wrong.

A stack of n symbols in base β = 2^k is a number with up to nk binary digits. A float32 has 24 digits, a float64 has 53: further
digits are lost to rounding. The control state goes wrong only when the head reaches those cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain, repeat
from typing import Literal, NamedTuple

import numpy as np

from unspool.kernels import native, reference
from unspool.kernels.arrays import Floats
from unspool.kernels.backend import Backend
from unspool.turing.engine import machine_model
from unspool.turing.network import MachineNetwork
from unspool.turing.run import ExactState

Precision = Literal["float32", "float64"]
PRECISIONS: tuple[Precision, ...] = ("float32", "float64")
BACKENDS: dict[Precision, Backend] = {"float32": native, "float64": reference}
WINDOW = 256
"""Number of steps per window."""


class FirstErrors(NamedTuple):
    """The first step after which the tape or the state is wrong; None if it never is."""

    tape: int | None
    state: int | None


def first_errors(
    network: MachineNetwork, word: str, truth: Iterable[ExactState], precision: Precision
) -> FirstErrors:
    """Run a network in floating point and compare it with the exact states, step by step, until its state is wrong.

    >>> from unspool.turing.builtin import find
    >>> from unspool.turing.compile import compile_machine
    >>> from unspool.turing.run import exact_states
    >>> network = compile_machine(find("builtin:increment"))
    >>> [first_errors(network, word, exact_states(network, word, 100), "float32") for word in ("1" * 7, "1" * 12)]
    [FirstErrors(tape=None, state=None), FirstErrors(tape=0, state=9)]
    """
    watch = FloatRun(network, word, precision)
    for true in truth:
        watch.see(true)
    return watch.first_errors


class FloatRun:
    """A network in floating point that is compared with an exact one, until its state is wrong."""

    def __init__(self, network: MachineNetwork, word: str, precision: Precision) -> None:
        self.first_errors, self.t = FirstErrors(None, None), 0
        self._states = states(network, word, precision)
        self._stacks = [np.array([unit.kind == kind for unit in network.units]) for kind in "lr"]
        self._controls = {
            q: np.array([unit.is_control and unit.state == q for unit in network.units])
            for q in network.machine.states
        }

    def see(self, true: ExactState) -> None:
        """Make a step and compare it with the exact state."""
        if self.first_errors.state is not None:
            return
        h, tape = next(self._states), self.first_errors.tape
        if tape is None:
            held = tuple(Fraction(float(h[on].sum())) for on in self._stacks)
            tape = self.t if held != (true.l, true.r) else None
        wrong = any(h[on].sum() != (q == true.state) for q, on in self._controls.items())
        self.first_errors = FirstErrors(self.t if wrong and tape is None else tape, self.t if wrong else None)
        self.t += 1


def states(network: MachineNetwork, word: str, precision: Precision) -> Iterator[Floats]:
    """Yield the hidden units before the first step and after each step, endlessly: float32 by the native kernels, float64 by the reference."""
    model, H = machine_model(network).on(BACKENDS[precision]), len(network.units)
    weights = model.weights()
    h = np.zeros((1, 2 * H), precision)
    nothing = [network.start + 1] * WINDOW
    first = network.inputs(word)
    for ids in chain([first], repeat(nothing)):
        x = np.array(ids, np.int32)[:, None]
        hs = model.forward(x, [(h, None)], weights=weights).h
        h = hs[-1]
        values = hs[:, 0, :H] - hs[:, 0, H:]
        yield from values[-1:] if ids is first else values
