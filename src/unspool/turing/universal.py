"""A universal machine: it runs any machine with the symbols 0 and 1 that is written on its tape. Its network is one for all of these.

    >1Rtt,1Ltt:1Lt,1R#O          the busy beaver of two states, on an empty tape

A block a state: what to do at 0, a comma, what to do at 1. Each is what to write, the move, and the next state as so many t, none for
halting. The block of the state that the machine is in begins with >, the others with a colon. Behind # stands its tape, where O and I are
the 0 and the 1 under its head. A step of it takes one walk to the block and back, and one for every t:

    seek, find, entry    from the head to the entry for what stands there
    write, move, go      take what to write and the move, mark the entry (l, r), go back to the head and do both
    mark, insert, carry  mark the new cell; left of the first one, shift the whole tape by one
    first … next         for every t of the marked entry: move > to the first block, then on by one
"""

from __future__ import annotations

from unspool.errors import InputError
from unspool.turing.machine import Machine

RULES = {
    "seek": {"O": "O L find-0", "I": "I L find-1", "*": "* R seek"},
    "find-0": {">": "> R write", "*": "* L find-0"},
    "find-1": {">": "> R entry", "*": "* L find-1"},
    "entry": {",": ", R write", "*": "* R entry"},
    "write": {"0": "0 R move-0", "1": "1 R move-1", "*": "* S wrong"},
    "move-0": {"L": "l R go-0L", "R": "r R go-0R", "*": "* S wrong"},
    "move-1": {"L": "l R go-1L", "R": "r R go-1R", "*": "* S wrong"},
    "go-0L": {"O": "0 L mark-L", "I": "0 L mark-L", "*": "* R go-0L"},
    "go-0R": {"O": "0 R mark-R", "I": "0 R mark-R", "*": "* R go-0R"},
    "go-1L": {"O": "1 L mark-L", "I": "1 L mark-L", "*": "* R go-1L"},
    "go-1R": {"O": "1 R mark-R", "I": "1 R mark-R", "*": "* R go-1R"},
    "mark-L": {"0": "O L return", "1": "I L return", "#": "# R insert", "*": "* S wrong"},
    "mark-R": {"0": "O L return", "1": "I L return", "_": "O L return", "*": "* S wrong"},
    "insert": {"0": "O R carry-0", "1": "O R carry-1", "*": "* S wrong"},
    "carry-0": {"0": "0 R carry-0", "1": "0 R carry-1", "_": "0 L return", "*": "* S wrong"},
    "carry-1": {"0": "1 R carry-0", "1": "1 R carry-1", "_": "1 L return", "*": "* S wrong"},
    "return": {"l": "l R first", "r": "r R first", "*": "* L return"},
    "first": {"t": "T L unmark", "*": "* S halted"},
    "unmark": {">": ": L home", "*": "* L unmark"},
    "home": {"_": "_ R place", "*": "* L home"},
    "place": {":": "> R anchor", "*": "* S wrong"},
    "anchor": {"l": "l R more", "r": "r R more", "*": "* R anchor"},
    "more": {"T": "T R more", "t": "T L begin", "*": "* L restore"},
    "begin": {"_": "_ R advance", "*": "* L begin"},
    "advance": {">": ": R next", "*": "* R advance"},
    "next": {":": "> L back", "#": "# S wrong", "*": "* R next"},
    "back": {"_": "_ R anchor", "*": "* L back"},
    "restore": {"T": "t L restore", "l": "L R seek", "r": "R R seek", "*": "* S wrong"},
}
"""write, move, next state; * is every other symbol, and written keeps it."""


def describe(machine: Machine, word: str) -> str:
    """Write a machine and its tape for the universal one.

    >>> from unspool.turing.builtin import find
    >>> describe(find("builtin:bb2"), "")
    '>1Rtt,1Ltt:1Lt,1R#O'
    """
    machine.check(word)
    if machine.blank != "0" or not set(machine.symbols) <= {"0", "1"}:
        raise InputError(
            f"{machine.name} has the symbols {' '.join(machine.symbols)}; expected 0, the blank, and 1"
        )
    states = [machine.start, *(q for q in machine.states if q not in (machine.start, *machine.halting))]

    def entry(state: str, symbol: str) -> str:
        write, move, to = machine.rules.get((state, symbol), machine.rules[state, "0"])
        if move == "S":
            raise InputError(f"state {state!r} of {machine.name} stays at {symbol}; expected L or R")
        return f"{write}{move}{'' if to in machine.halting else 't' * (1 + states.index(to))}"

    if machine.start in machine.halting:
        raise InputError(f"{machine.name} starts in a halting state; expected one with rules")
    blocks = ":".join(f"{entry(q, '0')},{entry(q, '1')}" for q in states)
    return f">{blocks}#{'I' if word[:1] == '1' else 'O'}{word[1:]}"


def simulated(tape: str) -> tuple[str, str]:
    """Return what stands left of the head of the machine on a universal one's tape, and from there on, without outer blanks.

    >>> simulated(">1Rtt,1Ltt:1Lt,1R#10I100")
    ('10', '11')
    """
    cells = tape.partition("#")[2]
    at = next(i for i, symbol in enumerate(cells) if symbol in "OI")
    plain = cells.replace("O", "0").replace("I", "1")
    return plain[:at].lstrip("0"), plain[at:].rstrip("0")
