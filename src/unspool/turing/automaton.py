"""A finite automaton as a value, and its direct run.

It reads a word symbol by symbol, s(t) = δ(s(t-1), x(t)), and accepts where it ends in an accepting state: the control of a
Turing machine without its tape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from unspool.errors import InputError
from unspool.kernels.arrays import cached_attribute
from unspool.turing.machine import check_names


@dataclass(frozen=True)
class Automaton:
    """States, symbols and the next state for every pair of them, checked when made.

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
            raise InputError("an automaton needs a transition")
        for name, state in (("start", self.start), *(("accepting state", each) for each in self.accepting)):
            if state not in self.states:
                raise InputError(f"the {name} is {state!r}; expected a state with transitions")
        check_names(self.name, self.states, self.symbols)
        for symbol in self.symbols:
            for state in self.states:
                if (state, symbol) not in self.rules:
                    raise InputError(
                        f"state {state!r} has no transition at {symbol!r}; give one, or * for all others"
                    )
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
        """Raise where a word has a symbol that this automaton does not know."""
        for i, symbol in enumerate(word):
            if symbol not in self.symbols:
                raise InputError(
                    f"the word has {symbol!r} at place {i}; {self.name} knows {' '.join(self.symbols)}"
                )

    def run(self, word: str) -> Iterator[str]:
        """Give the state before the first symbol and after each."""
        self.check(word)
        state = self.start
        yield state
        for symbol in word:
            state = self.rules[state, symbol]
            yield state
