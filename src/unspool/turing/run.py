"""Run a compiled machine exactly: h(t) = σ(W h(t-1) + U x(t) + b) in integers over a common denominator, which grows with the tape."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

import numpy as np

from unspool.turing.machine import Configuration, Move, simulate
from unspool.turing.network import MachineNetwork, Rationals


class HiddenState(NamedTuple):
    """The exact hidden units, `h[i]` / `denominator`, as integers."""

    h: Rationals
    denominator: int

    def value(self, *units: int) -> Fraction:
        """Return the sum of some units."""
        return dyadic(sum(self.h[i] for i in units), self.denominator)


class Exact:
    """A network in integers: its weights times their common denominator.

    >>> from unspool.turing.builtin import find
    >>> from unspool.turing.compile import compile_machine
    >>> exact = Exact(compile_machine(find("builtin:bb2")))
    >>> [(exact.decode(each).state, str(exact.r(each))) for each in islice(exact.run(""), 4)]
    [('A', '0'), ('B', '0'), ('A', '5/8'), ('B', '5/32')]
    """

    def __init__(self, network: MachineNetwork) -> None:
        self.network = network
        parts = (network.W, network.U, network.b)
        self.scale = math.lcm(*{weight.denominator for part in parts for weight in part.flat})
        self.W, self.U, self.b = (_times(part, self.scale) for part in parts)
        self._stack_units = {
            kind: [i for i, unit in enumerate(network.units) if unit.kind == kind] for kind in ("l", "r")
        }
        self._controls = [
            (i, unit.state, unit.move) for i, unit in enumerate(network.units) if unit.is_control
        ]

    def update(self, before: HiddenState, x: int | None = None) -> HiddenState:
        """Return h(t) from h(t-1) and an input; None: no input."""
        on = np.flatnonzero(before.h)
        a = self.W[:, on] @ before.h[on] if len(on) else 0 * self.b
        a = a + before.denominator * (self.b if x is None else self.b + self.U[:, x])
        denominator = before.denominator * self.scale
        h = np.minimum(np.maximum(a, 0), denominator)
        zeros = _zeros(
            functools.reduce(operator.or_, h, denominator)
        )  # trailing zeros of all numbers: the common factor is 2^zeros
        return HiddenState(h >> zeros, denominator >> zeros)

    def read(self, word: str) -> HiddenState:
        """Return the hidden state before the first step: h(0) = 0, then the word from its end, then start."""
        hidden = HiddenState(np.array([0] * len(self.network.units), object), 1)
        for x in self.network.inputs(word):
            hidden = self.update(hidden, x)
        return hidden

    def run(self, word: str) -> Iterator[HiddenState]:
        """Yield the hidden state before the first step and after each step, until the machine halts."""
        hidden = self.read(word)
        yield hidden
        while self.control(hidden)[0] not in self.network.machine.halting:
            hidden = self.update(hidden)
            yield hidden

    def control(self, hidden: HiddenState) -> tuple[str, Move]:
        """Return the state, and the move that entered it."""
        on = [(q, v) for i, q, v in self._controls if hidden.h[i]]
        assert len(on) == 1, "the network is in one state"
        return on[0]

    def l(self, hidden: HiddenState) -> Fraction:  # noqa: E743
        """Return the left stack's number."""
        return hidden.value(*self._stack_units["l"])

    def r(self, hidden: HiddenState) -> Fraction:
        """Return the right stack's number."""
        return hidden.value(*self._stack_units["r"])

    def decode(self, hidden: HiddenState, head: int = 0) -> Configuration:
        """Return the configuration that the units encode; they encode the last move, not the position `head`."""
        left, right = (
            self.network.symbols(sum(hidden.h[i] for i in units), hidden.denominator)
            for units in self._stack_units.values()
        )
        assert left is not None and right is not None, "both are numbers of stacks"
        return Configuration(self.control(hidden)[0], left[::-1], right, head)


def dyadic(numerator: int, denominator: int) -> Fraction:
    """Return a fraction whose denominator is a power of two, in time linear in its length.

    `Fraction` uses Euclid's algorithm, in time quadratic in the length.

    >>> dyadic(6, 16), dyadic(0, 8)
    (Fraction(3, 8), Fraction(0, 1))
    """
    zeros = _zeros(numerator | denominator)
    fraction = object.__new__(Fraction)
    fraction._numerator, fraction._denominator = numerator >> zeros, denominator >> zeros  # type: ignore[attr-defined]
    return fraction


def _zeros(number: int) -> int:
    """Return the number of trailing zero bits of a positive integer."""
    return (number & -number).bit_length() - 1


def _times(part: Rationals, scale: int) -> Rationals:
    whole = [weight.numerator * (scale // weight.denominator) for weight in part.flat]
    return np.array(whole, object).reshape(part.shape)


class ExactState(NamedTuple):
    """The exact values of a network after a step: state, left stack, right stack."""

    state: str
    l: Fraction  # noqa: E741
    r: Fraction


class StepPair(NamedTuple):
    """A machine and its network after the same step."""

    machine: Configuration
    network: Configuration
    hidden: HiddenState
    truth: ExactState

    @property
    def agree(self) -> bool:
        """Whether state, head and tape are equal."""
        return self.machine == self.network


def side_by_side(network: MachineNetwork, word: str, steps: int) -> Iterator[StepPair]:
    """Yield the machine and its exact network after each step, for `steps` steps or until it halts."""
    exact, head = Exact(network), 0
    both = zip(simulate(network.machine, word), exact.run(word), strict=True)
    for t, (configuration, hidden) in enumerate(islice(both, steps + 1)):
        move = exact.control(hidden)[1] if t else "S"
        head += {"L": -1, "S": 0, "R": 1}[move]
        network_at = exact.decode(hidden, head)
        truth = ExactState(network_at.state, exact.l(hidden), exact.r(hidden))
        yield StepPair(configuration, network_at, hidden, truth)


def exact_states(network: MachineNetwork, word: str, steps: int) -> list[ExactState]:
    """Return the exact states before the first step and after each step."""
    return [pair.truth for pair in side_by_side(network, word, steps)]
