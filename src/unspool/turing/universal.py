"""A universal Turing machine: it simulates any machine with the symbols 0 and 1 that is encoded on its tape.

    >1Rtt,1Ltt:1Lt,1R#O          the busy beaver of two states, on an empty tape

The tape has one block per state: the rule for 0, a comma, the rule for 1. A rule is the written symbol, the move, and the number of
the next state in unary (t), none for halting. The block of the current state begins with >, the others with a colon. After # comes
the simulated tape, where O and I are the 0 and the 1 under the head. A simulated step moves to the block and back, and once per t:

    seek, find, entry    from the head to the rule of the symbol under it
    write, move, go      read symbol and move, mark the rule (l, r), return to the head, write and move
    mark, insert, carry  mark the new cell; left of the first cell, shift the whole tape by one
    first … next         for each t of the marked rule: move > to the first block, then on by one
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
"""Write, move, next state; * stands for all other symbols, and as the written symbol keeps the symbol."""


def encode_machine(machine: Machine, word: str) -> str:
    """Return the tape of the universal machine for a machine and its tape.

    >>> from unspool.turing.builtin import find
    >>> encode_machine(find("builtin:bb2"), "")
    '>1Rtt,1Ltt:1Lt,1R#O'
    """
    machine.check(word)
    if machine.blank != "0" or not set(machine.symbols) <= {"0", "1"}:
        raise InputError(
            f"{machine.name} has the symbols {' '.join(machine.symbols)}; expected 0 (the blank) and 1"
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


def decode_tape(tape: str) -> tuple[str, str]:
    """Return the simulated tape left of the head, and from the head on, without outer blanks.

    >>> decode_tape(">1Rtt,1Ltt:1Lt,1R#10I100")
    ('10', '11')
    """
    cells = tape.partition("#")[2]
    at = next(i for i, symbol in enumerate(cells) if symbol in "OI")
    plain = cells.replace("O", "0").replace("I", "1")
    return plain[:at].lstrip("0"), plain[at:].rstrip("0")
