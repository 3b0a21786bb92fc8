"""One machine, and so one network, for all machines: C12."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.errors import InputError
from unspool.turing.builtin import find
from unspool.turing.compile import compile_machine
from unspool.turing.machine import Configuration, Machine, Rule, simulate
from unspool.turing.run import side_by_side
from unspool.turing.universal import decode_tape, encode_machine


def machine(name: str) -> Machine:
    found = find(f"builtin:{name}")
    assert isinstance(found, Machine)
    return found


def inside(run: list[Configuration]) -> list[tuple[int | None, str, str]]:
    """The machine on the tape between its steps: the number of its state, None where it has halted, and its tape."""
    found: list[tuple[int | None, str, str]] = []
    for each in run:
        tape = each.left + each.right
        if each.state == "seek" and each.right[:1] in ("O", "I"):
            found.append((tape[: tape.index(">")].count(":"), *decode_tape(tape)))
        elif each.state == "halted":
            found.append((None, *decode_tape(tape)))
    return found


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    names = "ABC"[: draw(st.integers(1, 3))]
    rule = st.builds(Rule, st.sampled_from("01"), st.sampled_from("LR"), st.sampled_from([*names, "H"]))
    return Machine("random", "0", "A", ("H",), {(q, a): draw(rule) for q in names for a in "01"})


@settings(max_examples=40, deadline=None)
@given(small=machines(), word=st.text("01", max_size=6))
def test_it_runs_any_machine_of_two_symbols(small: Machine, word: str) -> None:
    numbers = {q: i for i, q in enumerate(["A", *(q for q in small.states if q not in "AH")])}
    true = [(numbers.get(each.state), each.left, each.right) for each in itertools.islice(simulate(small, word), 12)]  # fmt: skip
    run = list(itertools.islice(simulate(machine("universal"), encode_machine(small, word)), 4000))
    seen = inside(run)
    assert len(seen) >= 2
    assert seen[: len(true)] == true[: len(seen)]


@pytest.mark.parametrize(("name", "ones"), [("bb2", 4), ("bb3", 5), ("bb3-ones", 6), ("bb4", 13)])
def test_it_runs_the_busy_beavers(name: str, ones: int) -> None:
    run = list(simulate(machine("universal"), encode_machine(machine(name), "")))
    assert run[-1].state == "halted"
    assert "".join(inside(run)[-1][1:]).count("1") == ones
    assert len(inside(run)) == len(list(simulate(machine(name), "")))


def test_its_network_runs_another_machine_exactly() -> None:
    network = compile_machine(machine("universal"))
    pairs = list(side_by_side(network, encode_machine(machine("bb2"), ""), 1000))
    assert all(pair.agree for pair in pairs)
    assert inside([pair.network for pair in pairs])[-1] == (None, "11", "11")
    assert (len(network.units), len(pairs) - 1) == (513, 538)


def test_what_it_cannot_run_is_said() -> None:
    with pytest.raises(InputError, match="increment has the symbols _ 0 1; expected 0 \\(the blank\\) and 1"):
        encode_machine(machine("increment"), "1")
    stays = Machine(
        "stays", "0", "A", ("H",), {("A", "0"): Rule("1", "S", "H"), ("A", "1"): Rule("1", "R", "H")}
    )
    with pytest.raises(InputError, match="state 'A' of stays stays at 0; expected L or R"):
        encode_machine(stays, "")
    with pytest.raises(InputError, match="starts in a halting state"):
        encode_machine(Machine("none", "0", "H", ("H",), {}), "")
    with pytest.raises(InputError, match="tape: symbol '2'"):
        encode_machine(machine("bb2"), "2")


@pytest.mark.parametrize("tape", [">#O", ">1,1#O", ">1Rtt,1R#O", ">1X,1R#O"])
def test_a_broken_description_ends_in_wrong(tape: str) -> None:
    if "X" in tape:
        with pytest.raises(InputError, match="tape: symbol 'X'"):
            next(simulate(machine("universal"), tape))
        return
    *_, last = itertools.islice(simulate(machine("universal"), tape), 500)
    assert last.state == "wrong"
