"""A machine and its network are the same, exactly, at every step: C12."""

import functools
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.errors import InputError
from unspool.turing.builtin import MACHINES, find
from unspool.turing.compile import compile_machine
from unspool.turing.machine import MOVES, Configuration, Machine, Rule, simulate
from unspool.turing.network import MachineNetwork
from unspool.turing.run import Exact, HiddenState, side_by_side

SYMBOLS = "_abcdef"


@functools.cache
def network(name: str) -> MachineNetwork:
    found = find(f"builtin:{name}")
    assert isinstance(found, Machine)
    return compile_machine(found)


@st.composite
def machines(draw: st.DrawFn, states: int = 5, symbols: int = 4) -> Machine:
    names = "ABCDE"[: draw(st.integers(1, states))]
    known = SYMBOLS[: draw(st.integers(1, symbols))]
    halting = tuple("HG"[: draw(st.integers(0, 2))])
    rule = st.builds(
        Rule, st.sampled_from(known), st.sampled_from(MOVES), st.sampled_from([*names, *halting])
    )
    pairs = list(itertools.product(names, known))
    rules = draw(st.lists(rule, min_size=len(pairs), max_size=len(pairs)))
    return Machine("random", "_", "A", halting, dict(zip(pairs, rules, strict=True)))


@settings(max_examples=40, deadline=None)
@given(machine=machines(), data=st.data())
def test_the_network_is_the_machine_at_every_step(machine: Machine, data: st.DataObject) -> None:
    made = compile_machine(machine)
    for _ in range(2):  # one network, several tapes
        word = data.draw(st.text(st.sampled_from(machine.symbols), max_size=12))
        pairs = list(side_by_side(made, word, 250))
        assert all(pair.agree for pair in pairs)
        assert len(pairs) == len(list(itertools.islice(simulate(machine, word), 251)))


def test_every_machine_of_two_states_that_writes_ones_or_leaves_them() -> None:
    """Rules of A in full, B as the busy beaver's: 12² machines, both blank and not."""
    actions = [Rule(w, m, q) for w in "01" for m in ("L", "R") for q in "ABH"]
    for at_0, at_1 in itertools.product(actions, actions):
        rules = {
            ("A", "0"): at_0,
            ("A", "1"): at_1,
            ("B", "0"): Rule("1", "L", "A"),
            ("B", "1"): Rule("1", "R", "H"),
        }
        made = compile_machine(Machine("two", "0", "A", ("H",), rules))
        assert all(pair.agree for word in ("", "1101") for pair in side_by_side(made, word, 12))  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
def test_built_in_machines_run_in_their_networks(name: str) -> None:
    pairs = list(side_by_side(network(name), MACHINES[name][1], 400))
    assert all(pair.agree for pair in pairs)


def test_a_long_run_with_a_long_tape_is_exact() -> None:
    *_, last = side_by_side(network("bb5"), "", 3000)
    assert last.agree
    assert max(last.truth.l.denominator, last.truth.r.denominator).bit_length() > 100  # beyond any float


def test_one_update_is_the_equation() -> None:
    """The whole numbers of Exact against σ(W h + U x + b) in Fractions, the definition."""
    made = network("palindrome")
    exact = Exact(made)
    h = np.array([Fraction(0)] * len(made.units), object)
    hidden = HiddenState(np.array([0] * len(h), object), 1)
    for x in (*made.inputs("abba"), *[None] * 16):
        a = made.W @ h + made.b + (made.U[:, x] if x is not None else 0)
        h = np.array([min(Fraction(1), max(Fraction(0), each)) for each in a], object)
        hidden = exact.update(hidden, x)
        assert [hidden.value(i) for i in range(len(h))] == list(h)
    assert exact.control(hidden)[0] == "yes"


@settings(max_examples=40, deadline=None)
@given(machine=machines(), data=st.data())
def test_reading_gives_the_state_that_stands_for_the_beginning(machine: Machine, data: st.DataObject) -> None:
    made = compile_machine(machine)
    word = data.draw(st.text(st.sampled_from(machine.symbols), max_size=30))
    hidden = Exact(made).read(word)
    first = Configuration(machine.start, "", word.rstrip("_"), 0)
    assert [hidden.value(i) for i in range(len(made.units))] == list(made.encode(first))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_step_from_any_configuration_is_the_machine_s(data: st.DataObject) -> None:
    machine = data.draw(machines())
    made, exact = compile_machine(machine), Exact(compile_machine(machine))
    text = st.text(st.sampled_from(machine.symbols), max_size=9)
    state = data.draw(st.sampled_from([unit.state for unit in made.units if unit.kind == "e"]))
    move = data.draw(st.sampled_from([unit.move for unit in made.units if unit.state == state]))
    before = Configuration(state, data.draw(text).lstrip("_"), data.draw(text).rstrip("_"), 0)
    h = made.encode(before, move)
    scale = int(np.lcm.reduce([each.denominator for each in h]))
    hidden = HiddenState(np.array([int(each * scale) for each in h], object), scale)
    assert exact.decode(hidden) == before
    symbol = before.right[:1] or "_"
    write, move, to = machine.rule(state, symbol)
    left, rest = before.left, before.right[1:]
    if move == "R":
        left, right = left + write, rest
    elif move == "L":
        left, right = left[:-1], (left[-1:] or "_") + write + rest
    else:
        right = write + rest
    after = exact.update(hidden)
    assert exact.decode(after) == Configuration(to, left.lstrip("_"), right.rstrip("_"), 0)
    assert exact.control(after) == (to, move)


def test_a_machine_that_has_halted_is_a_fixed_point() -> None:
    exact = Exact(network("bb3"))
    *_, last = exact.run("")
    still = exact.update(exact.update(last))
    assert exact.decode(still) == exact.decode(last)
    again = exact.update(still)
    assert (list(again.h), again.denominator) == (list(still.h), still.denominator)


def test_without_input_nothing_begins() -> None:
    exact = Exact(network("copy"))
    nothing = HiddenState(np.array([0] * len(exact.network.units), object), 1)
    assert not exact.update(nothing).h.any()


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_stacks_are_a_cantor_set(data: st.DataObject) -> None:
    """Numbers and stacks are one to one, and a gap lies between two tops: what σ needs to tell them exactly."""
    machine = data.draw(machines(symbols=7))
    made = compile_machine(machine)
    text = st.text(st.sampled_from(machine.symbols), max_size=20)
    stack, other = data.draw(text).rstrip("_"), data.draw(text).rstrip("_")
    q, p = made.number(stack), made.number(other)
    assert made.symbols(q.numerator, q.denominator) == stack
    assert (q == p) == (stack == other)
    top, lower = ((s[:1] or "_") for s in (stack, other))
    if machine.symbols.index(top) > machine.symbols.index(lower):
        assert made.base * (q - p) > 1
    assert 0 <= q < 1


def test_sizes_and_weights() -> None:
    for name in MACHINES:
        made = network(name)
        m, H = len(made.machine.symbols), len(made.units)
        entered = {(u.state, u.move) for u in made.units if u.kind == "e"}
        moves = {u.move for u in made.units if u.kind == "l"}
        assert m * len(entered) + (m - 1) * len(moves) + 2 * len(moves) == H
        assert 3 * (m * len(made.machine.states) + m + 1) >= H
        assert made.base >= 2 * m and made.base & (made.base - 1) == 0
        denominators = {w.denominator for part in (made.W, made.U, made.b) for w in part.flat}
        assert all(made.base**2 % d == 0 for d in denominators)


def test_a_number_of_no_stack_is_told() -> None:
    made = network("increment")  # _ 0 1: the digits 0 2 4 of base 8
    assert made.symbols(4, 8) == "1"
    assert [made.symbols(*each) for each in ((1, 8), (6, 8), (1, 3), (9, 8))] == [None] * 4


def test_a_machine_too_large_is_refused_before_it_fills_the_memory() -> None:
    names = [f"q{i}" for i in range(300)]
    rules = {(q, a): Rule(a, "R", names[i - 1]) for i, q in enumerate(names) for a in SYMBOLS}
    with pytest.raises(InputError, match=r"large needs 2,131 units; expected at most 2,000"):
        compile_machine(Machine("large", "_", "q0", (), rules))


@given(st.integers(-3, 5000), st.integers(0, 12))
def test_digits_are_those_of_long_division(numerator: int, places: int) -> None:
    network, denominator = compile_machine(find("builtin:increment")), 1 << places

    def divided() -> str | None:
        found, rest = "", numerator
        while rest:
            digit, rest = divmod(rest * network.base, denominator)
            if digit % 2 or not 0 <= digit < 2 * len(network.machine.symbols):
                return None
            found += network.machine.symbols[digit // 2]
        return found

    assert network.symbols(numerator, denominator) == divided()
