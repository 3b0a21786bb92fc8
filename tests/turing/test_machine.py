"""Machines and automata as values: what they compute, and what is refused."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from unspool.errors import FileError, InputError
from unspool.turing.automaton import Automaton
from unspool.turing.builtin import AUTOMATA, MACHINES, find
from unspool.turing.machine import Configuration, Machine, simulate
from unspool.turing.parse import load, parse

FLIP: dict[str, Any] = {
    "blank": "_",
    "start": "go",
    "halting": ["done"],
    "transitions": {"go": {"0": ["1", "R", "go"], "1": ["0", "R", "go"], "_": ["_", "S", "done"]}},
}
EVEN: dict[str, Any] = {
    "start": "even",
    "accepting": ["even"],
    "transitions": {"even": {"0": "even", "1": "odd"}, "odd": {"0": "odd", "1": "even"}},
}


def machine(name: str) -> Machine:
    found = find(f"builtin:{name}")
    assert isinstance(found, Machine)
    return found


def end(name: str, word: str) -> tuple[str, str, int]:
    run = list(simulate(machine(name), word))
    return run[-1].state, run[-1].left + run[-1].right, len(run) - 1


def words(symbols: str, longest: int) -> list[str]:
    return ["".join(w) for n in range(longest + 1) for w in itertools.product(symbols, repeat=n)]


@pytest.mark.parametrize(
    ("name", "steps", "ones"),
    [("bb2", 6, 4), ("bb3", 21, 5), ("bb3-ones", 14, 6), ("bb4", 107, 13)],
)
def test_busy_beavers_make_the_steps_and_ones_of_the_literature(name: str, steps: int, ones: int) -> None:
    state, tape, made = end(name, "")
    assert (state, made, tape.count("1")) == ("H", steps, ones)


def test_increment_adds_one() -> None:
    for n in range(70):
        state, tape, _ = end("increment", f"{n:b}")
        assert (state, int(tape, 2)) == ("done", n + 1)


def test_addition_adds() -> None:
    for a, b in itertools.product(range(5), range(5)):
        assert end("addition", "1" * a + "+" + "1" * b)[:2] == ("done", "1" * (a + b))
    assert {end("addition", word)[0] for word in ("", "11", "1+1+1")} == {"wrong"}


def test_copy_writes_a_word_a_second_time() -> None:
    for word in words("ab", 4):
        assert end("copy", word)[:2] == ("done", f"{word}={word}")


def test_palindromes_are_told() -> None:
    for word in words("ab", 7):
        assert end("palindrome", word)[0] == ("yes" if word == word[::-1] else "no")


def test_balanced_brackets_are_told() -> None:
    for word in words("()", 8):
        depths = list(itertools.accumulate((1 if c == "(" else -1 for c in word), initial=0))
        assert end("brackets", word)[0] == ("yes" if min(depths) == 0 and depths[-1] == 0 else "no")


def test_anbncn_is_told() -> None:
    for word in words("abc", 6):
        n = len(word) // 3
        assert end("anbncn", word)[0] == ("yes" if word == "a" * n + "b" * n + "c" * n else "no")


def test_automata_accept_what_they_say() -> None:
    true = {
        "parity": ("01", lambda w: w.count("1") % 2 == 0),
        "thirds": ("01", lambda w: int(w or "0", 2) % 3 == 0),
        "ab": ("ab", lambda w: w == "ab" * (len(w) // 2)),
    }
    assert set(true) == set(AUTOMATA)
    for name, (symbols, accepts) in true.items():
        automaton = find(f"builtin:{name}")
        assert isinstance(automaton, Automaton)
        for word in words(symbols, 7):
            assert (list(automaton.run(word))[-1] in automaton.accepting) == accepts(word)


def test_every_example_tape_halts_well_but_for_those_that_go_on() -> None:
    for name, (_, tape, _) in MACHINES.items():
        *_, last = itertools.islice(simulate(machine(name), tape), 600)
        assert last.state in ({"bb5": "ABCDE", "wolfram": "AB"}.get(name) or ("done", "yes", "H", "halted"))


def test_a_run_by_hand() -> None:
    made = parse(json.dumps(FLIP), "flip")
    assert isinstance(made, Machine)
    assert list(simulate(made, "10")) == [
        Configuration("go", "", "10", 0),
        Configuration("go", "0", "0", 1),
        Configuration("go", "01", "", 2),
        Configuration("done", "01", "", 2),
    ]


def test_a_star_is_every_other_symbol_and_written_keeps_it() -> None:
    table = {"go": {"_": ["_", "S", "done"], "1": ["0", "R", "go"], "*": ["*", "R", "go"]}}
    made = parse(json.dumps(FLIP | {"transitions": table}), "zero")
    assert isinstance(made, Machine)
    assert made.rules["go", "0"] == ("0", "R", "go")
    assert list(simulate(made, "101"))[-1].left == "000"


def without(content: dict[str, Any], field: str) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key != field}


def go(**rules: Any) -> dict[str, Any]:
    table = FLIP["transitions"]["go"] | rules
    return FLIP | {"transitions": {"go": table}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON: Expecting property name"),
        ("[1, 2]", "expected a JSON object with transitions; got [1, 2]"),
        (without(FLIP, "blank"), "the field 'blank' is missing"),
        (without(EVEN, "transitions"), "the field 'transitions' is missing"),
        (FLIP | {"colour": 1}, "unknown field 'colour'"),
        (FLIP | {"accepting": []}, "got accepting with halting or blank"),
        (FLIP | {"blank": "__"}, "the symbol '__' has 2 characters"),
        (FLIP | {"blank": "*"}, "blank is *"),
        (FLIP | {"blank": 0}, "blank is 0; expected a string"),
        (FLIP | {"start": "on"}, "the start is 'on'; expected one of the states go, done"),
        (FLIP | {"halting": "done"}, 'halting is "done"; expected a list'),
        (FLIP | {"halting": []}, "enters 'done', which has no transitions"),
        (FLIP | {"halting": ["done", "go"]}, "leaves a halting state"),
        (FLIP | {"transitions": [1]}, "transitions is [1]"),
        (FLIP | {"transitions": {"go": 3}}, "the transitions of state 'go' are 3"),
        (FLIP | {"name": 3}, "name is 3"),
        (go(**{"0": ["1", "R"]}), "state 'go' at '0' is [\"1\", \"R\"]; expected [write, move, next state]"),
        (go(**{"0": ["1", "X", "go"]}), "moves 'X'; expected L, S (stay) or R"),
        (go(**{"0": ["2", "R", "go"]}), "state 'go' has no transition at '2'"),
        (go(**{"0": ["1", "R", "on"]}), "enters 'on'"),
        (EVEN | {"start": "zero"}, "the start is 'zero'"),
        (EVEN | {"accepting": ["zero"]}, "the accepting state is 'zero'"),
        (EVEN | {"transitions": {}}, "transitions is empty"),
        (EVEN | {"transitions": {"even": {"0": "even", "1": "odd"}, "odd": {"0": "odd"}}}, "state 'odd' has no transition at '1'"),
        (EVEN | {"transitions": {"even": {"0": "odd"}}}, "enters 'odd', which has no transitions"),
        (EVEN | {"transitions": {"even": {"0": 1}}}, "state 'even' at '0' is 1; expected the next state"),
        ('{"start": "a", "start": "b"}', "'start' occurs twice"),
        ("[" * 100_000, "has too many levels"),
        ("[" + "1" * 5000 + "]", "not a machine: Exceeds the limit"),
        (FLIP | {"blank": "\u0001"}, "the symbol '\\x01' is not printable"),
        (FLIP | {"name": "red \u001b[31m"}, "is not printable"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(text: str | dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    with pytest.raises(InputError) as raised:
        load(path)
    said = str(raised.value)
    assert said.startswith(f"{path}: ") and message in said and "\n" not in said


def test_files_and_names_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file or folder"):
        find(str(tmp_path / "none.json"))
    with pytest.raises(InputError, match="no machine builtin:bb6; expected one of increment"):
        find("builtin:bb6")
    (tmp_path / "latin.json").write_bytes(b'{"blank": "\xe9"}')
    with pytest.raises(InputError, match="is not UTF-8 at byte 11"):
        find(str(tmp_path / "latin.json"))


def test_a_symbol_that_is_not_known_is_refused() -> None:
    with pytest.raises(
        InputError,
        match="tape: symbol '2' at position 3 is not in the alphabet of 'increment'; expected only _ 0 1",
    ):
        next(simulate(machine("increment"), "102"))
    with pytest.raises(
        InputError,
        match="word: symbol 'x' at position 1 is not in the alphabet of 'parity'; expected only 0 1",
    ):
        list(find("builtin:parity").run("x"))  # type: ignore[union-attr]


def test_a_mark_of_byte_order_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "flip.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(FLIP).encode())
    assert load(path) == parse(json.dumps(FLIP), "flip")
