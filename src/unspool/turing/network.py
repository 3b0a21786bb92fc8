"""A network with the saturated-linear activation and rational weights, as a value whose units have names.

    h(t) = σ(W h(t-1) + U x(t) + b),   σ(a) = min(1, max(0, a))

The tape of a machine is two stacks, both with their top at the head: what stands left of it, and the cell under it with what
stands right of it. With m symbols, the blank being number 0, and a base β ≥ 2m, a stack of symbols number s₁, s₂, … from its top on is

    z = 2 s₁ / β + 2 s₂ / β² + …

Only the even digits occur, so these numbers are a Cantor set, and between two that differ at the top there is a gap: β z is at most
2s + (2m-2)/(β-1) < 2s + 1 where the top is s, and at least 2s + 2 where it is larger. Blanks without end are the number 0.
β is a power of two, so that a float holds every weight and, as long as it has digits enough, every state.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.arrays import cached_attribute
from unspool.turing.machine import Configuration, Machine, Move

Rationals = NDArray[Any]
"""An array of Fractions."""
Kind = Literal["e", "g", "l", "r"]
NOTATIONS = {1: "b", 3: "o", 4: "x"}
"""Bits of a digit, and the format in which Python writes such digits at once."""
WRONG = "\uffff"
"""Stands for a digit that is no symbol's; not printable, so no symbol either."""


class Unit(NamedTuple):
    """A hidden unit. Each belongs to one move v: it can be on only where the last step moved so.

    e: the state is `state` and the top of the right stack is number `at` or higher (0 or 1);
    g: the top of the left stack is number `at` or higher (0 or 1); l, r: the left, the right stack's number.
    """

    kind: Kind
    move: Move
    state: str = ""
    at: int = 0

    @property
    def label(self) -> str:
        """Its name in pictures and tables.

        >>> Unit("e", "R", "carry", 1).label, Unit("r", "L").label
        ('e[carry,R,1]', 'r[L]')
        """
        parts = [self.state] * (self.kind == "e") + [self.move] + [str(self.at)] * (self.kind in "eg")
        return f"{self.kind}[{','.join(parts)}]"


@dataclass(frozen=True, eq=False)
class MachineNetwork:
    """The weights of a machine: the same for every tape."""

    machine: Machine
    base: int
    units: tuple[Unit, ...]
    W: Rationals  # H H
    U: Rationals  # H m+1: a symbol that is read, in the order of the machine's; the last says start
    b: Rationals  # H

    @property
    def start(self) -> int:
        """The input that ends the reading of the tape and starts the machine."""
        return len(self.machine.symbols)

    def inputs(self, word: str) -> list[int]:
        """Return what is read before the first step: the word from its end to its beginning, then start."""
        self.machine.check(word)
        return [*(self.machine.symbols.index(symbol) for symbol in reversed(word)), self.start]

    def encode(self, configuration: Configuration, last: Move = "S") -> Rationals:
        """Return the hidden state that stands for a configuration, entered by a move."""
        left, right = configuration.left[::-1], configuration.right
        tops = [self.machine.symbols.index(stack[:1] or self.machine.blank) for stack in (left, right)]

        def value(unit: Unit) -> Fraction:
            if unit.move != last:
                return Fraction(0)
            if unit.kind == "e":
                return Fraction(unit.state == configuration.state and tops[1] >= unit.at)
            if unit.kind == "g":
                return Fraction(tops[0] >= unit.at)
            return self.number(left if unit.kind == "l" else right)

        return np.array([value(unit) for unit in self.units], object)

    def number(self, stack: str) -> Fraction:
        """Return the number of a stack, its top first."""
        z = Fraction(0)
        for symbol in reversed(stack):
            z = (z + 2 * self.machine.symbols.index(symbol)) / self.base
        return z

    def symbols(self, numerator: int, denominator: int) -> str | None:
        """Return the stack of a number, its top first; None where the number stands for none.

        >>> from unspool.turing.builtin import find
        >>> from unspool.turing.compile import compile_machine
        >>> network = compile_machine(find("builtin:increment"))  # the symbols _ 0 1, β = 8
        >>> network.number("1_0"), network.symbols(258, 512), network.symbols(1, 8)
        (Fraction(129, 256), '1_0', None)
        """
        width, places = (
            self.base.bit_length() - 1,
            denominator.bit_length() - 1,
        )  # bits of a digit, bits behind the point
        if denominator != 1 << places or not 0 <= numerator < denominator:
            return None  # digits would never end, or there is one before the point
        count = -(-places // width)
        stack = _digits(numerator << count * width - places, width, count) if numerator else ""
        stack = stack.translate(self._symbol_of_digit).rstrip(self.machine.blank)
        return None if WRONG in stack else stack

    @cached_attribute
    def _symbol_of_digit(self) -> dict[int, str]:
        """The symbol of each digit, as character with the digit's number; `WRONG` where there is none."""
        found = dict.fromkeys(range(self.base), WRONG)
        return found | {2 * i: symbol for i, symbol in enumerate(self.machine.symbols)}


def _digits(number: int, width: int, count: int) -> str:
    """Return `count` digits of `width` bits each, every digit as the character with its number.

    >>> [ord(digit) for digit in _digits(0o2071, 3, 4)], [ord(digit) for digit in _digits(0b100_00001, 5, 2)]
    ([2, 0, 7, 1], [4, 1])
    """
    if width in NOTATIONS:
        text, own = f"{number:0{count}{NOTATIONS[width]}}", "0123456789abcdef"
        return text.translate({ord(sign): digit for digit, sign in enumerate(own)})
    bits = f"{number:0{width * count}b}"
    return "".join(chr(int(bits[at : at + width], 2)) for at in range(0, len(bits), width))
