"""Read machines and automata from JSON.

    {"blank": "_", "start": "go", "halting": ["done"],                       a Turing machine: write, move, next state
     "transitions": {"go": {"0": ["1", "R", "go"], "1": ["0", "R", "go"], "_": ["_", "S", "done"]}}}

    {"start": "even", "accepting": ["even"],                                 an automaton: the next state
     "transitions": {"even": {"0": "even", "1": "odd"}, "odd": {"0": "odd", "1": "even"}}}

In transitions, * stands for all other symbols; as the written symbol, * keeps the symbol that was read.
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
    """Return the machine or automaton of a file."""
    try:
        return parse(read_bytes(path).decode("utf-8-sig"), path.stem)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 at byte {error.start}; expected JSON") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def parse(text: str, name: str) -> Machine | Automaton:
    """Return the machine or automaton of a JSON text.

    >>> parse('{"start": "a", "accepting": ["a"], "transitions": {"a": {"1": "b"}, "b": {"1": "a"}}}', "even").symbols
    ('1',)
    """
    try:
        content = json.loads(text, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise InputError("not a machine: the JSON has too many levels") from error
    except InputError:
        raise
    except ValueError as error:  # an integer with thousands of digits
        raise InputError(f"not a machine: {error}") from error
    return from_values(content, name)


def from_values(content: Any, name: str) -> Machine | Automaton:
    """Return the machine or automaton of plain values."""
    if not isinstance(content, dict):
        raise InputError(f"expected a JSON object with transitions; got {_describe(content)}")
    if "accepting" in content:
        if "halting" in content or "blank" in content:
            raise InputError(
                "got accepting with halting or blank; expected accepting (automaton), or halting and blank (machine)"
            )
        _check_fields(content, ("start", "accepting", "transitions"))
        table = {state: _next_states(state, rules) for state, rules in _table(content).items()}
        rules = _expand_others(table, {symbol for rules in table.values() for symbol in rules})
        return Automaton(_name(content, name), content["start"], _strings(content, "accepting"), rules)
    _check_fields(content, ("blank", "start", "halting", "transitions"))
    made = {state: _rules(state, rules) for state, rules in _table(content).items()}
    symbols = {symbol for rules in made.values() for symbol in rules} | {content["blank"]}
    symbols |= {rule.write for rules in made.values() for rule in rules.values()}
    expanded = {
        (state, symbol): Rule(symbol if rule.write == OTHERS else rule.write, rule.move, rule.to)
        for (state, symbol), rule in _expand_others(made, symbols).items()
    }
    return Machine(
        _name(content, name), content["blank"], content["start"], _strings(content, "halting"), expanded
    )


def _expand_others(table: dict[str, dict[str, T]], symbols: set[str]) -> dict[tuple[str, str], T]:
    """Return the rule of each state and symbol; symbols that are not listed get the rule of *."""
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
                f"the transition of state {state!r} at {symbol!r} is {_describe(rule)}; expected [write, move, next state]"
            )
        found[symbol] = Rule(*rule)
    return found


def _next_states(state: str, rules: Any) -> dict[str, str]:
    pairs = _pairs(state, rules)
    for symbol, to in pairs.items():
        if not isinstance(to, str):
            raise InputError(
                f"the transition of state {state!r} at {symbol!r} is {_describe(to)}; expected the next state"
            )
    return pairs


def _pairs(state: str, rules: Any) -> dict[str, Any]:
    if not isinstance(rules, dict):
        raise InputError(
            f"the transitions of state {state!r} are {_describe(rules)}; expected an object by symbol"
        )
    return rules


def _table(content: dict[str, Any]) -> dict[str, Any]:
    table = content["transitions"]
    if not isinstance(table, dict):
        raise InputError(f"transitions is {_describe(table)}; expected an object by state, then by symbol")
    return table


def _check_fields(content: dict[str, Any], needed: tuple[str, ...]) -> None:
    for field in needed:
        if field not in content:
            raise InputError(f"the field {field!r} is missing; expected {', '.join(needed)}")
    if unknown := sorted(set(content) - {*needed, "name"}):
        raise InputError(f"unknown field {unknown[0]!r}; expected {', '.join(needed)} and perhaps name")
    for field in ("blank", "start"):
        if field in needed and not isinstance(content[field], str):
            raise InputError(f"{field} is {_describe(content[field])}; expected a string")
    if content.get("blank") == OTHERS:
        raise InputError(f"blank is {OTHERS}, which stands for all other symbols; expected another character")


def _strings(content: dict[str, Any], field: str) -> tuple[str, ...]:
    value = content[field]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InputError(f"{field} is {_describe(value)}; expected a list of states")
    return tuple(value)


def _name(content: dict[str, Any], default: str) -> str:
    name = content.get("name", default)
    if not isinstance(name, str):
        raise InputError(f"name is {_describe(name)}; expected a string")
    return name


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{double!r} occurs twice in one object; remove one of them")
    return found


def _describe(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:37]}…"
