"""Turing machines and their direct simulation, the reference for compiled networks.

A finite control has a head on an infinite tape that is blank except for a word. By δ(state, symbol) = (write, move, to), a step
writes a symbol under the head, moves the head by one cell (L, R) or not (S), and enters a state. A halting state has no next step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

from unspool.errors import InputError
from unspool.kernels.arrays import cached_attribute

Move = Literal["L", "S", "R"]
MOVES: tuple[Move, ...] = ("L", "S", "R")


class Rule(NamedTuple):
    """The action of a step."""

    write: str
    move: Move
    to: str


class Configuration(NamedTuple):
    """The configuration after a step: the state, the tape on both sides of the head, and the position of the head."""

    state: str
    left: str
    """The symbols left of the head, the nearest last, without leading blanks."""
    right: str
    """The symbols under the head and right of it, without trailing blanks."""
    head: int
    """The cell of the head; the word begins at cell 0."""

    def shown(self, blank: str) -> str:
        """Return the tape with brackets around the cell under the head.

        >>> Configuration("A", "10", "", 2).shown("_")
        '10[_]'
        """
        return f"{self.left}[{self.right[:1] or blank}]{self.right[1:]}"


@dataclass(frozen=True)
class Machine:
    """States, symbols and a rule for each pair of them, checked when made.

    >>> flip = Machine("flip", "_", "go", ("done",), {
    ...     ("go", "0"): Rule("1", "R", "go"), ("go", "1"): Rule("0", "R", "go"), ("go", "_"): Rule("_", "S", "done")})
    >>> flip.symbols
    ('_', '0', '1')
    >>> [each.shown("_") for each in simulate(flip, "10")]
    ['[1]0', '0[0]', '01[_]', '01[_]']
    """

    name: str
    blank: str
    start: str
    halting: tuple[str, ...]
    rules: Mapping[tuple[str, str], Rule]

    def __post_init__(self) -> None:
        check_names(self.name, self.states, self.symbols)
        states = set(self.states)
        for (state, symbol), rule in self.rules.items():
            at = f"the transition of state {state!r} at {symbol!r}"
            if rule.move not in MOVES:
                raise InputError(f"{at} moves {rule.move!r}; expected L, S (stay) or R")
            if rule.to not in states:
                raise InputError(f"{at} enters {rule.to!r}, which has no transitions and is not halting")
            if state in self.halting:
                raise InputError(f"{at} leaves a halting state; remove it, or the state from halting")
        if self.start not in self.states:
            listed = ", ".join(self.states[:8]) + (", …" if len(self.states) > 8 else "")
            raise InputError(f"the start is {self.start!r}; expected one of the states {listed}")
        check_complete(
            self.rules, (state for state in self.states if state not in self.halting), self.symbols
        )

    @cached_attribute
    def states(self) -> tuple[str, ...]:
        """All states: those with rules in order, then the halting ones."""
        return tuple(dict.fromkeys([state for state, _ in self.rules] + list(self.halting)))

    @cached_attribute
    def symbols(self) -> tuple[str, ...]:
        """All symbols: the blank first, then the others sorted."""
        used = {symbol for _, symbol in self.rules} | {rule.write for rule in self.rules.values()}
        return (self.blank, *sorted(used - {self.blank}))

    def rule(self, state: str, symbol: str) -> Rule:
        """Return the rule of a state and symbol; a halted machine changes nothing."""
        return Rule(symbol, "S", state) if state in self.halting else self.rules[state, symbol]

    def check(self, word: str) -> None:
        """Raise InputError if a word has a symbol outside the alphabet."""
        check_word("tape", word, self.name, self.symbols)


def check_word(what: str, word: str, name: str, symbols: Sequence[str]) -> None:
    """Raise InputError with the first symbol of a word that is not in the alphabet, and its position from 1."""
    for position, symbol in enumerate(word, 1):
        if symbol not in symbols:
            raise InputError(
                f"{what}: symbol {symbol!r} at position {position} is not in the alphabet of {name!r}; "
                f"expected only {' '.join(symbols)}: remove or replace it"
            )


def check_complete(
    rules: Mapping[tuple[str, str], object], states: Iterable[str], symbols: Sequence[str]
) -> None:
    """Raise InputError for a state without a transition at one of the symbols."""
    for state, symbol in product(states, symbols):
        if (state, symbol) not in rules:
            raise InputError(
                f"state {state!r} has no transition at {symbol!r}; add one, or * for all other symbols"
            )


def check_names(name: str, states: Sequence[str], symbols: Sequence[str]) -> None:
    """Raise InputError for a symbol that is not one character, or a name that is not printable."""
    for symbol in symbols:
        if len(symbol) != 1:
            raise InputError(f"the symbol {symbol!r} has {len(symbol)} characters; expected one")
    for what, each in (("name", name), *(("state", q) for q in states), *(("symbol", a) for a in symbols)):
        if not each.isprintable():
            raise InputError(f"the {what} {each!r} is not printable; expected printable characters")


def simulate(machine: Machine, word: str) -> Iterator[Configuration]:
    """Simulate a machine directly: yield its configuration before the first step and after each step, until it halts."""
    machine.check(word)
    blank, state, head, left, right = machine.blank, machine.start, 0, "", word.rstrip(machine.blank)
    while True:
        yield Configuration(state, left, right, head)
        if state in machine.halting:
            return
        write, move, state = machine.rules[state, right[:1] or blank]
        if move == "R":
            left, right, head = (left + write).lstrip(blank), right[1:], head + 1
        elif move == "L":
            left, right, head = left[:-1], ((left[-1:] or blank) + write + right[1:]).rstrip(blank), head - 1
        else:
            right = (write + right[1:]).rstrip(blank)
