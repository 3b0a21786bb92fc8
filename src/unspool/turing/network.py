"""Networks with saturated-linear activation, rational weights and named units.

    h(t) = σ(W h(t-1) + U x(t) + b),   σ(a) = min(1, max(0, a))

The tape of a machine is two stacks with their tops at the head: the cells left of the head, and the cell under it with the cells
right of it. With m symbols (the blank is number 0) and a base β ≥ 2m, a stack of symbol numbers s₁, s₂, … from its top on is

    z = 2 s₁ / β + 2 s₂ / β² + …

Only even digits occur, so these numbers form a Cantor set with gaps between numbers that differ at the top: β z is at most
2s + (2m-2)/(β-1) < 2s + 1 if the top is s, and at least 2s + 2 if it is larger. An empty stack is the number 0. β is a power of
two, so floats represent every weight exactly, and every state that fits their precision.
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
"""Bits per digit, and the format code of Python for such digits."""
WRONG = "\uffff"
"""Marks a digit without a symbol; not printable, so never a symbol itself."""


class MachineUnit(NamedTuple):
    """A hidden unit. Each belongs to one move v and can be nonzero only if the last step made that move.

    e: the state is `state` and the top of the right stack is number `at` or higher (0 or 1);
    g: the top of the left stack is number `at` or higher (0 or 1); l, r: the left, the right stack's number.
    """

    kind: Kind
    move: Move
    state: str = ""
    at: int = 0

    @property
    def is_control(self) -> bool:
        """Whether it is 1 exactly in its state."""
        return self.kind == "e" and not self.at

    @property
    def label(self) -> str:
        """Its name in pictures and tables.

        >>> MachineUnit("e", "R", "carry", 1).label, MachineUnit("r", "L").label
        ('e[carry,R,1]', 'r[L]')
        """
        parts = [self.state] * (self.kind == "e") + [self.move] + [str(self.at)] * (self.kind in "eg")
        return f"{self.kind}[{','.join(parts)}]"


@dataclass(frozen=True, eq=False)
class MachineNetwork:
    """The weights of a machine, which do not depend on the tape."""

    machine: Machine
    base: int
    units: tuple[MachineUnit, ...]
    W: Rationals  # H H
    U: Rationals  # H m+1: the symbols of the machine, then start
    b: Rationals  # H

    @property
    def start(self) -> int:
        """The input that ends the reading of the tape and starts the machine."""
        return len(self.machine.symbols)

    def inputs(self, word: str) -> list[int]:
        """Return the inputs before the first step: the word from its end to its beginning, then start."""
        self.machine.check(word)
        return [*(self.machine.symbols.index(symbol) for symbol in reversed(word)), self.start]

    def encode(self, configuration: Configuration, last: Move = "S") -> Rationals:
        """Return the hidden state that encodes a configuration entered by a move."""
        left, right = configuration.left[::-1], configuration.right
        tops = [self.machine.symbols.index(stack[:1] or self.machine.blank) for stack in (left, right)]

        def value(unit: MachineUnit) -> Fraction:
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
        """Return the stack of a number, its top first; None if the number encodes no stack.

        >>> from unspool.turing.builtin import find
        >>> from unspool.turing.compile import compile_machine
        >>> network = compile_machine(find("builtin:increment"))  # the symbols _ 0 1, β = 8
        >>> network.number("1_0"), network.symbols(258, 512), network.symbols(1, 8)
        (Fraction(129, 256), '1_0', None)
        """
        width, bits = (
            self.base.bit_length() - 1,
            denominator.bit_length() - 1,
        )  # bits per digit, bits after the binary point
        if denominator != 1 << bits or not 0 <= numerator < denominator:
            return None  # infinitely many digits, or a number of 1 or more
        count = -(-bits // width)
        stack = _digits(numerator << count * width - bits, width, count) if numerator else ""
        stack = stack.translate(self._symbol_of_digit).rstrip(self.machine.blank)
        return None if WRONG in stack else stack

    @cached_attribute
    def _symbol_of_digit(self) -> dict[int, str]:
        """The symbol of each digit; `WRONG` for digits without a symbol."""
        found = dict.fromkeys(range(self.base), WRONG)
        return found | {2 * i: symbol for i, symbol in enumerate(self.machine.symbols)}


def _digits(number: int, width: int, count: int) -> str:
    """Return `count` digits of `width` bits, each as the character with that code.

    >>> [ord(digit) for digit in _digits(0o2071, 3, 4)], [ord(digit) for digit in _digits(0b100_00001, 5, 2)]
    ([2, 0, 7, 1], [4, 1])
    """
    if width in NOTATIONS:
        text, own = f"{number:0{count}{NOTATIONS[width]}}", "0123456789abcdef"
        return text.translate({ord(sign): digit for digit, sign in enumerate(own)})
    bits = f"{number:0{width * count}b}"
    return "".join(chr(int(bits[at : at + width], 2)) for at in range(0, len(bits), width))
