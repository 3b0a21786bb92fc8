"""A compiled machine, run exactly: h(t) = σ(W h(t-1) + U x(t) + b) in whole numbers over one denominator, which grows with the tape."""

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


class Moment(NamedTuple):
    """The hidden units at one moment: `h[i]` / `denominator`, all whole numbers."""

    h: Rationals
    denominator: int

    def value(self, *units: int) -> Fraction:
        """Return the sum of some units."""
        return dyadic(sum(self.h[i] for i in units), self.denominator)


class Exact:
    """A network in whole numbers: its weights times their common denominator.

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
        self._places = {
            kind: [i for i, unit in enumerate(network.units) if unit.kind == kind] for kind in ("l", "r")
        }
        self._controls = [
            (i, unit.state, unit.move)
            for i, unit in enumerate(network.units)
            if unit.kind == "e" and not unit.at
        ]

    def update(self, before: Moment, x: int | None = None) -> Moment:
        """Return h(t) from h(t-1) and an input, or none."""
        on = np.flatnonzero(before.h)
        a = self.W[:, on] @ before.h[on] if len(on) else 0 * self.b
        a = a + before.denominator * (self.b if x is None else self.b + self.U[:, x])
        denominator = before.denominator * self.scale
        h = np.minimum(np.maximum(a, 0), denominator)
        zeros = _zeros(
            functools.reduce(operator.or_, h, denominator)
        )  # of all at the end, so the common factor is 2^zeros
        return Moment(h >> zeros, denominator >> zeros)

    def read(self, word: str) -> Moment:
        """Return the moment before the first step: h(0) = 0, then the word from its end, then start."""
        moment = Moment(np.array([0] * len(self.network.units), object), 1)
        for x in self.network.inputs(word):
            moment = self.update(moment, x)
        return moment

    def run(self, word: str) -> Iterator[Moment]:
        """Give the moment before the first step and after each, until the state halts."""
        moment = self.read(word)
        yield moment
        while self.control(moment)[0] not in self.network.machine.halting:
            moment = self.update(moment)
            yield moment

    def control(self, moment: Moment) -> tuple[str, Move]:
        """Return the state, and the move that entered it."""
        on = [(q, v) for i, q, v in self._controls if moment.h[i]]
        assert len(on) == 1, "the network is in one state"
        return on[0]

    def l(self, moment: Moment) -> Fraction:  # noqa: E743
        """Return the left stack's number."""
        return moment.value(*self._places["l"])

    def r(self, moment: Moment) -> Fraction:
        """Return the right stack's number."""
        return moment.value(*self._places["r"])

    def decode(self, moment: Moment, head: int = 0) -> Configuration:
        """Return the configuration that the units stand for; where the head is they do not say, but how it moved."""
        left, right = (
            self.network.symbols(sum(moment.h[i] for i in self._places[kind]), moment.denominator)
            for kind in ("l", "r")
        )
        assert left is not None and right is not None, "both are numbers of stacks"
        return Configuration(self.control(moment)[0], left[::-1], right, head)


def dyadic(numerator: int, denominator: int) -> Fraction:
    """Return a fraction whose denominator is a power of two, in time linear in its length.

    `Fraction` looks for a common factor by Euclid's algorithm, in time quadratic in the length.

    >>> dyadic(6, 16), dyadic(0, 8)
    (Fraction(3, 8), Fraction(0, 1))
    """
    zeros = _zeros(numerator | denominator)
    fraction = object.__new__(Fraction)
    fraction._numerator, fraction._denominator = numerator >> zeros, denominator >> zeros  # type: ignore[attr-defined]
    return fraction


def _zeros(number: int) -> int:
    """Return how many zeros a positive number has at its end in binary."""
    return (number & -number).bit_length() - 1


def _times(part: Rationals, scale: int) -> Rationals:
    whole = [weight.numerator * (scale // weight.denominator) for weight in part.flat]
    return np.array(whole, object).reshape(part.shape)


class Truth(NamedTuple):
    """What stands in a network of whatever precision after a step."""

    state: str
    l: Fraction  # noqa: E741
    r: Fraction


class Pair(NamedTuple):
    """A machine and its network after the same step."""

    machine: Configuration
    network: Configuration
    moment: Moment
    truth: Truth

    @property
    def agree(self) -> bool:
        """Whether state, head and the whole tape are the same."""
        return self.machine == self.network


def side_by_side(network: MachineNetwork, word: str, steps: int) -> Iterator[Pair]:
    """Run the machine as it is defined and its network exactly, for so many steps or until it halts."""
    exact, head = Exact(network), 0
    both = zip(simulate(network.machine, word), exact.run(word), strict=True)
    for t, (configuration, moment) in enumerate(islice(both, steps + 1)):
        move = exact.control(moment)[1] if t else "S"
        head += {"L": -1, "S": 0, "R": 1}[move]
        network_at = exact.decode(moment, head)
        truth = Truth(network_at.state, exact.l(moment), exact.r(moment))
        yield Pair(configuration, network_at, moment, truth)


def truth_of(network: MachineNetwork, word: str, steps: int) -> list[Truth]:
    """Return what the network holds before the first step and after each."""
    return [pair.truth for pair in side_by_side(network, word, steps)]
