"""Built-in machines and automata. The busy beavers are the champions of their size, in standard notation."""

from __future__ import annotations

from typing import Any

from unspool.errors import InputError
from unspool.storage.files import as_path
from unspool.turing.automaton import Automaton
from unspool.turing.machine import Machine
from unspool.turing.parse import from_values, load
from unspool.turing.universal import RULES

BUILTIN = "builtin:"


def _machine(start: str, halting: str, transitions: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Return a machine from short rules: "_ L carry" is write, move, next state."""
    table = {
        state: {symbol: rule.split() for symbol, rule in rules.items()}
        for state, rules in transitions.items()
    }
    return {"blank": "_", "start": start, "halting": halting.split(), "transitions": table}


def _beaver(rules: str, symbols: str = "01") -> dict[str, Any]:
    """Return a machine from 1RB1LB_1LA1RH: one group per state from A on, one rule per symbol: write, move, next state; H halts."""
    table = {
        "ABCDEFG"[i]: {symbol: list(group[3 * k : 3 * k + 3]) for k, symbol in enumerate(symbols)}
        for i, group in enumerate(rules.split("_"))
    }
    return {"blank": "0", "start": "A", "halting": ["H"] if "H" in rules else [], "transitions": table}


MACHINES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "increment": ("adds one to a binary number", "1011", _machine("right", "done", {
        "right": {"_": "_ L carry", "*": "* R right"},
        "carry": {"1": "0 L carry", "0": "1 S done", "_": "1 S done"},
    })),
    "addition": ("adds two numbers in unary", "11+111", _machine("first", "done wrong", {
        "first": {"1": "1 R first", "+": "1 R second", "_": "_ S wrong"},
        "second": {"1": "1 R second", "_": "_ L erase", "+": "+ S wrong"},
        "erase": {"1": "_ S done", "*": "* S wrong"},
    })),
    "palindrome": ("says whether a word reads the same backwards", "abba", _machine("first", "yes no", {
        "first": {"a": "_ R seek-a", "b": "_ R seek-b", "_": "_ S yes"},
        "seek-a": {"_": "_ L last-a", "*": "* R seek-a"},
        "seek-b": {"_": "_ L last-b", "*": "* R seek-b"},
        "last-a": {"a": "_ L back", "b": "b S no", "_": "_ S yes"},
        "last-b": {"b": "_ L back", "a": "a S no", "_": "_ S yes"},
        "back": {"_": "_ R first", "*": "* L back"},
    })),
    "copy": ("writes a word a second time", "ab", _machine("mark", "done", {
        "mark": {"_": "= L home", "*": "* R mark"},
        "home": {"_": "_ R take", "*": "* L home"},
        "take": {"a": "A R carry-a", "b": "B R carry-b", "*": "* S done"},
        "carry-a": {"_": "a L return", "*": "* R carry-a"},
        "carry-b": {"_": "b L return", "*": "* R carry-b"},
        "return": {"A": "a R take", "B": "b R take", "*": "* L return"},
    })),
    "brackets": ("says whether brackets are balanced", "(()())", _machine("right", "yes no", {
        "right": {")": "x L left", "_": "_ L check", "*": "* R right"},
        "left": {"(": "x R right", "x": "x L left", "*": "* S no"},
        "check": {"x": "x L check", "_": "_ S yes", "*": "* S no"},
    })),
    "anbncn": ("says whether a word is n times a, n times b, n times c", "aabbcc", _machine("first", "yes no", {
        "first": {"a": "x R seek-b", "y": "y R tail", "_": "_ S yes", "*": "* S no"},
        "seek-b": {"a": "a R seek-b", "y": "y R seek-b", "b": "y R seek-c", "*": "* S no"},
        "seek-c": {"b": "b R seek-c", "z": "z R seek-c", "c": "z L back", "*": "* S no"},
        "back": {"x": "x R first", "*": "* L back"},
        "tail": {"y": "y R tail", "z": "z R tail", "_": "_ S yes", "*": "* S no"},
    })),
    "bb2": ("busy beaver, 2 states: 6 steps, 4 ones", "", _beaver("1RB1LB_1LA1RH")),
    "bb3": ("busy beaver, 3 states: 21 steps, the most", "", _beaver("1RB1RH_1LB0RC_1LC1LA")),
    "bb3-ones": ("busy beaver, 3 states: 6 ones, the most, in 14 steps", "", _beaver("1RB1RH_0RC1RB_1LC1LA")),
    "bb4": ("busy beaver, 4 states: 107 steps, 13 ones", "", _beaver("1RB1LB_1LA0LC_1RH1LD_1RD0RA")),
    "bb5": ("busy beaver, 5 states: 47,176,870 steps, 4,098 ones", "", _beaver("1RB1LC_1RC1RB_1RD0LE_1LA1LD_1RH0LA")),
    "wolfram": ("2 states, 3 symbols, never halts; universal on a prepared endless tape", "", _beaver("1RB2LA1LA_2LA2RB0RA", "012")),
    "universal": ("runs any machine with the symbols 0 and 1 that is written on its tape", ">1Rtt,1Ltt:1Lt,1R#O", _machine("seek", "halted wrong", RULES)),
}  # fmt: skip
"""Description, example tape and machine, by name."""

AUTOMATA: dict[str, tuple[str, str, dict[str, Any]]] = {
    "parity": ("accepts an even number of 1s", "10110", {
        "start": "even", "accepting": ["even"],
        "transitions": {"even": {"0": "even", "1": "odd"}, "odd": {"0": "odd", "1": "even"}},
    }),
    "thirds": ("accepts binary numbers that 3 divides", "11110", {
        "start": "r0", "accepting": ["r0"],
        "transitions": {"r0": {"0": "r0", "1": "r1"}, "r1": {"0": "r2", "1": "r0"}, "r2": {"0": "r1", "1": "r2"}},
    }),
    "ab": ("accepts (ab)*", "ababab", {
        "start": "a-next", "accepting": ["a-next"],
        "transitions": {"a-next": {"a": "b-next", "*": "lost"}, "b-next": {"b": "a-next", "*": "lost"}, "lost": {"*": "lost"}},
    }),
}  # fmt: skip


def find(machine: str) -> Machine | Automaton:
    """Return the machine or automaton that builtin:NAME or the path of a JSON file names.

    >>> find("builtin:bb2").name
    'bb2'
    """
    if not machine.startswith(BUILTIN):
        return load(as_path(machine))
    name = machine.removeprefix(BUILTIN)
    known = MACHINES | AUTOMATA
    if name not in known:
        raise InputError(f"no machine builtin:{name}; expected one of {', '.join(known)}")
    return from_values(known[name][2], name)
