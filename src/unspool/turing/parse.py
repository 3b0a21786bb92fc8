"""Read machines and automata from JSON.

    {"blank": "_", "start": "go", "halting": ["done"],                       a Turing machine: write, move, next state
     "transitions": {"go": {"0": ["1", "R", "go"], "1": ["0", "R", "go"], "_": ["_", "S", "done"]}}}

    {"start": "even", "accepting": ["even"],                                 an automaton: the next state
     "transitions": {"even": {"0": "even", "1": "odd"}, "odd": {"0": "odd", "1": "even"}}}

In transitions, * stands for all other symbols; as the written symbol, * keeps the symbol that was read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from unspool.data.formats.base import errors_name
from unspool.errors import InputError
from unspool.storage.files import read_bytes
from unspool.turing.automaton import Automaton
from unspool.turing.machine import Machine, Rule

OTHERS = "*"
T = TypeVar("T")


def load(path: Path) -> Machine | Automaton:
    """Return the machine or automaton of a file."""
    content = read_bytes(path)
    with errors_name(path):
        try:
            return parse(content.decode("utf-8-sig"), path.stem)
        except UnicodeDecodeError as error:
            raise InputError(f"is not UTF-8 at byte {error.start}; expected JSON") from error


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
        table = _table(content, "the next state", lambda rule: isinstance(rule, str))
        rules = _expand_others(table, {symbol for rules in table.values() for symbol in rules})
        return Automaton(_name(content, name), content["start"], _strings(content, "accepting"), rules)
    _check_fields(content, ("blank", "start", "halting", "transitions"))
    table = _table(content, "[write, move, next state]", lambda rule: _are_strings(rule) and len(rule) == 3)
    symbols = {symbol for rules in table.values() for symbol in rules} | {content["blank"]}
    symbols |= {write for rules in table.values() for write, _, _ in rules.values()}
    expanded = {
        (state, symbol): Rule(symbol if write == OTHERS else write, move, to)
        for (state, symbol), (write, move, to) in _expand_others(table, symbols).items()
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


def _table(content: dict[str, Any], expected: str, fits: Callable[[Any], bool]) -> dict[str, dict[str, Any]]:
    """Return the transitions by state and symbol; raise InputError for one that does not fit."""
    table = content["transitions"]
    _require(isinstance(table, dict), "transitions is", table, "an object by state, then by symbol")
    for state, rules in table.items():
        _require(
            isinstance(rules, dict), f"the transitions of state {state!r} are", rules, "an object by symbol"
        )
        for symbol, rule in rules.items():
            _require(fits(rule), f"the transition of state {state!r} at {symbol!r} is", rule, expected)
    return table  # type: ignore[no-any-return]


def _require(fits: bool, what: str, value: Any, expected: str) -> None:
    if not fits:
        raise InputError(f"{what} {_describe(value)}; expected {expected}")


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _check_fields(content: dict[str, Any], needed: tuple[str, ...]) -> None:
    for field in needed:
        if field not in content:
            raise InputError(f"the field {field!r} is missing; expected {', '.join(needed)}")
    if unknown := sorted(set(content) - {*needed, "name"}):
        raise InputError(f"unknown field {unknown[0]!r}; expected {', '.join(needed)} and perhaps name")
    for field in ("blank", "start"):
        if field in needed:
            _require(isinstance(content[field], str), f"{field} is", content[field], "a string")
    if content.get("blank") == OTHERS:
        raise InputError(f"blank is {OTHERS}, which stands for all other symbols; expected another character")


def _strings(content: dict[str, Any], field: str) -> tuple[str, ...]:
    _require(_are_strings(content[field]), f"{field} is", content[field], "a list of states")
    return tuple(content[field])


def _name(content: dict[str, Any], default: str) -> str:
    name = content.get("name", default)
    _require(isinstance(name, str), "name is", name, "a string")
    return str(name)


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
