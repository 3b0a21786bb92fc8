"""Automata in the engine, exactly; machines in floats, as long as these last: C12."""

import functools
import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool import Model, Stream
from unspool.turing.automaton import Automaton
from unspool.turing.builtin import AUTOMATA, find
from unspool.turing.compile import compile_machine
from unspool.turing.engine import automaton_model, machine_model, read_states, unit_labels, word_ids
from unspool.turing.floating import PRECISIONS, FirstErrors, Precision, first_errors, states
from unspool.turing.machine import Machine
from unspool.turing.network import MachineNetwork
from unspool.turing.run import Exact, exact_states


def automaton(name: str) -> Automaton:
    found = find(f"builtin:{name}")
    assert isinstance(found, Automaton)
    return found


@functools.cache
def network(name: str) -> MachineNetwork:
    found = find(f"builtin:{name}")
    assert isinstance(found, Machine)
    return compile_machine(found)


def read_all(made: Automaton, model: Model, words: list[str]) -> list[list[str]]:
    """Read words of one length side by side."""
    x = np.concatenate([word_ids(made, word) for word in words], axis=1)
    o = model.logits(model.forward(x))
    assert set(np.unique(o)) <= {0.0, 1.0} and (o.sum(axis=2) == 1).all()
    return [[made.states[k] for k in row] for row in o.argmax(axis=2).T.tolist()]


@pytest.mark.parametrize("name", AUTOMATA)
def test_an_automaton_in_the_engine_reads_every_short_word(name: str) -> None:
    made = automaton(name)
    model = automaton_model(made)
    for n in range(1, 11):
        words = ["".join(each) for each in itertools.product(made.symbols, repeat=n)]
        assert read_all(made, model, words) == [list(made.run(word))[1:] for word in words]


@pytest.mark.parametrize("name", AUTOMATA)
def test_an_automaton_in_the_engine_reads_ten_thousand_symbols(name: str) -> None:
    made = automaton(name)
    model = automaton_model(made)
    word = "".join(random.Random(name).choices(made.symbols, k=10_000))
    if name == "ab":
        word = "ab" * 5000  # a random one is lost at once
    assert read_states(made, model, word) == list(made.run(word))
    assert read_states(made, model, "") == [made.start]


@st.composite
def automata(draw: st.DrawFn) -> Automaton:
    names = [f"q{i}" for i in range(draw(st.integers(1, 7)))]
    pairs = list(itertools.product(names, "abcd"[: draw(st.integers(1, 4))]))
    to = draw(st.lists(st.sampled_from(names), min_size=len(pairs), max_size=len(pairs)))
    return Automaton("random", draw(st.sampled_from(names)), (), dict(zip(pairs, to, strict=True)))


@settings(max_examples=60, deadline=None)
@given(made=automata(), data=st.data())
def test_any_automaton_reads_any_word(made: Automaton, data: st.DataObject) -> None:
    word = data.draw(st.text(st.sampled_from(made.symbols), max_size=80))
    model = automaton_model(made)
    assert read_states(made, model, word) == list(made.run(word))
    assert len(unit_labels(made)) == model.config.hidden <= len(made.states) * len(made.symbols) + 1


def test_a_stream_reads_an_automaton_symbol_by_symbol() -> None:
    made = automaton("thirds")
    stream = Stream(automaton_model(made))
    for symbol, state in zip("110101", list(made.run("110101"))[1:], strict=True):
        stream.read(made.symbols.index(symbol))
        assert made.states[int(np.argmax(stream.logits()))] == state


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("name", "word"), [("increment", "1011"), ("palindrome", "abba"), ("bb3", ""), ("copy", "ab")]
)
def test_floats_are_the_exact_numbers_as_long_as_these_fit(
    name: str, word: str, precision: Precision
) -> None:
    made = network(name)
    exact = Exact(made)
    for hidden, h in zip(exact.run(word), states(made, word, precision), strict=False):
        assert h.dtype == precision
        assert h.tolist() == [float(hidden.value(i)) for i in range(len(h))]


def test_floats_last_as_long_as_their_digits() -> None:
    """Base 8 takes 3 bits a symbol: 24 bits hold 8 symbols, 53 hold 17; the 9th and the 18th are lost."""
    made = network("increment")

    def of(n: int, precision: Precision) -> FirstErrors:
        word = "1" * n
        return first_errors(made, word, exact_states(made, word, 1000), precision)

    assert of(7, "float32") == of(7, "float64") == of(16, "float64") == FirstErrors(None, None)
    assert of(9, "float32") == FirstErrors(0, 9)  # lost while it was read, noticed when it was come to
    assert of(12, "float32") == FirstErrors(0, 9)
    assert of(19, "float64") == FirstErrors(0, 19)


def test_a_growing_tape_outgrows_floats() -> None:
    made = network("bb5")
    truth = exact_states(made, "", 600)
    found = {precision: first_errors(made, "", truth, precision) for precision in PRECISIONS}
    tapes, wrong = zip(*found.values(), strict=True)
    assert None not in (*tapes, *wrong)
    assert tapes[0] <= wrong[0] and tapes[1] <= wrong[1]
    assert tapes[0] < tapes[1] and wrong[0] < wrong[1]


def test_the_model_of_a_machine_says_its_state() -> None:
    made = network("palindrome")
    model = machine_model(made)
    silence = made.start + 1
    x = np.array([*made.inputs("abba"), *[silence] * 15], np.int32)[:, None]
    o = model.logits(model.forward(x))[len("abba") :, 0]
    assert [made.machine.states[k] for k in o.argmax(axis=1)] == [
        t.state for t in exact_states(made, "abba", 99)
    ]
    assert model.config.activation == "relu" and model.config.hidden == 2 * len(made.units)
