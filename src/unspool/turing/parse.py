"""Machines and automata from JSON.

    {"blank": "_", "start": "go", "halting": ["done"],                       a Turing machine: write, move, next state
     "transitions": {"go": {"0": ["1", "R", "go"], "1": ["0", "R", "go"], "_": ["_", "S", "done"]}}}

    {"start": "even", "accepting": ["even"],                                 an automaton: the next state
     "transitions": {"even": {"0": "even", "1": "odd"}, "odd": {"0": "odd", "1": "even"}}}

In transitions * is every symbol that is not named; written, it keeps the symbol that was read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from unspool.errors import InputError
from unspool.storage.files import read_bytes
from unspool.turing.automaton import Automaton
from unspool.turing.machine import Machine, Rule

OTHERS = "*"
T = TypeVar("T")


def load(path: Path) -> Machine | Automaton:
    """Read a machine or an automaton from a file."""
    try:
        return parse(read_bytes(path).decode("utf-8-sig"), path.stem)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 at byte {error.start}; expected JSON") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def parse(text: str, name: str) -> Machine | Automaton:
    """Read a machine or an automaton from JSON.

    >>> parse('{"start": "a", "accepting": ["a"], "transitions": {"a": {"1": "b"}, "b": {"1": "a"}}}', "even").symbols
    ('1',)
    """
    try:
        content = json.loads(text, object_pairs_hook=_without_doubles)
    except json.JSONDecodeError as error:
        raise InputError(f"no JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise InputError("no machine: the JSON is nested too deeply") from error
    except InputError:
        raise
    except ValueError as error:  # a number of thousands of digits
        raise InputError(f"no machine: {error}") from error
    return from_values(content, name)


def from_values(content: Any, name: str) -> Machine | Automaton:
    """Make a machine or an automaton from plain values."""
    if not isinstance(content, dict):
        raise InputError(f"expected a JSON object with transitions; got {_told(content)}")
    if "accepting" in content:
        if "halting" in content or "blank" in content:
            raise InputError("accepting goes with an automaton, halting and blank with a machine: not both")
        _check_fields(content, ("start", "accepting", "transitions"))
        table = {state: _next_states(state, rules) for state, rules in _table(content).items()}
        rules = _spread(table, {symbol for rules in table.values() for symbol in rules})
        return Automaton(_name(content, name), content["start"], _strings(content, "accepting"), rules)
    _check_fields(content, ("blank", "start", "halting", "transitions"))
    made = {state: _rules(state, rules) for state, rules in _table(content).items()}
    symbols = {symbol for rules in made.values() for symbol in rules} | {content["blank"]}
    symbols |= {rule.write for rules in made.values() for rule in rules.values()}
    kept = {
        (state, symbol): Rule(symbol if rule.write == OTHERS else rule.write, rule.move, rule.to)
        for (state, symbol), rule in _spread(made, symbols).items()
    }
    return Machine(
        _name(content, name), content["blank"], content["start"], _strings(content, "halting"), kept
    )


def _spread(table: dict[str, dict[str, T]], symbols: set[str]) -> dict[tuple[str, str], T]:
    """Give every pair its rule: where a symbol is not named, that of all others."""
    return {
        (state, symbol): rules[symbol if symbol in rules else OTHERS]
        for state, rules in table.items()
        for symbol in sorted(symbols - {OTHERS})
        if symbol in rules or OTHERS in rules
    }


def _rules(state: str, rules: Any) -> dict[str, Rule]:
    found = {}
    for symbol, rule in _pairs(state, rules).items():
        if not isinstance(rule, list) or len(rule) != 3 or not all(isinstance(each, str) for each in rule):
            raise InputError(
                f"the transition of state {state!r} at {symbol!r} is {_told(rule)}; expected [write, move, next state]"
            )
        found[symbol] = Rule(*rule)
    return found


def _next_states(state: str, rules: Any) -> dict[str, str]:
    pairs = _pairs(state, rules)
    for symbol, to in pairs.items():
        if not isinstance(to, str):
            raise InputError(
                f"the transition of state {state!r} at {symbol!r} is {_told(to)}; expected the next state"
            )
    return pairs


def _pairs(state: str, rules: Any) -> dict[str, Any]:
    if not isinstance(rules, dict):
        raise InputError(
            f"the transitions of state {state!r} are {_told(rules)}; expected an object by symbol"
        )
    return rules


def _table(content: dict[str, Any]) -> dict[str, Any]:
    table = content["transitions"]
    if not isinstance(table, dict):
        raise InputError(f"transitions is {_told(table)}; expected an object by state, then by symbol")
    return table


def _check_fields(content: dict[str, Any], needed: tuple[str, ...]) -> None:
    for field in needed:
        if field not in content:
            raise InputError(f"the field {field!r} is missing; expected {', '.join(needed)}")
    if unknown := sorted(set(content) - {*needed, "name"}):
        raise InputError(f"unknown field {unknown[0]!r}; expected {', '.join(needed)} and perhaps name")
    for field in ("blank", "start"):
        if field in needed and not isinstance(content[field], str):
            raise InputError(f"{field} is {_told(content[field])}; expected a string")
    if content.get("blank") == OTHERS:
        raise InputError(f"blank is {OTHERS}, which stands for all other symbols; expected another character")


def _strings(content: dict[str, Any], field: str) -> tuple[str, ...]:
    value = content[field]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InputError(f"{field} is {_told(value)}; expected a list of states")
    return tuple(value)


def _name(content: dict[str, Any], default: str) -> str:
    name = content.get("name", default)
    if not isinstance(name, str):
        raise InputError(f"name is {_told(name)}; expected a string")
    return name


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{double!r} stands twice in one object; leave one of them out")
    return found


def _told(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:37]}…"
