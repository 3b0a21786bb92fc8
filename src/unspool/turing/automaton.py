"""Finite automata and their direct simulation.

An automaton reads a word symbol by symbol, s(t) = δ(s(t-1), x(t)), and accepts it if the last state is accepting. It is the
control of a Turing machine without the tape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from unspool.errors import InputError
from unspool.kernels.arrays import cached_attribute
from unspool.turing.machine import check_complete, check_names, check_word


@dataclass(frozen=True)
class Automaton:
    """States, symbols and the next state of each pair of them, checked when made.

    >>> parity = Automaton("parity", "even", ("even",), {
    ...     ("even", "0"): "even", ("even", "1"): "odd", ("odd", "0"): "odd", ("odd", "1"): "even"})
    >>> list(parity.run("101"))
    ['even', 'odd', 'odd', 'even']
    """

    name: str
    start: str
    accepting: tuple[str, ...]
    rules: Mapping[tuple[str, str], str]

    def __post_init__(self) -> None:
        if not self.rules:
            raise InputError("transitions is empty; expected at least one")
        for name, state in (("start", self.start), *(("accepting state", each) for each in self.accepting)):
            if state not in self.states:
                raise InputError(f"the {name} is {state!r}; expected a state with transitions")
        check_names(self.name, self.states, self.symbols)
        check_complete(self.rules, self.states, self.symbols)
        for (state, symbol), to in self.rules.items():
            if to not in self.states:
                raise InputError(
                    f"the transition of state {state!r} at {symbol!r} enters {to!r}, which has no transitions"
                )

    @cached_attribute
    def states(self) -> tuple[str, ...]:
        """All states, in the order of their rules."""
        return tuple(dict.fromkeys(state for state, _ in self.rules))

    @cached_attribute
    def symbols(self) -> tuple[str, ...]:
        """All symbols, sorted."""
        return tuple(sorted({symbol for _, symbol in self.rules}))

    def check(self, word: str) -> None:
        """Raise InputError if a word has a symbol outside the alphabet."""
        check_word("word", word, self.name, self.symbols)

    def run(self, word: str) -> Iterator[str]:
        """Yield the state before the first symbol and after each symbol."""
        self.check(word)
        state = self.start
        yield state
        for symbol in word:
            state = self.rules[state, symbol]
            yield state
