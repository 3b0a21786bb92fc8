"""One token at a time: what is drawn, from what, and how a state is taken out and put back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import CELLS, config_of
from unspool.errors import InputError
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.stream import Stream


def stream_of(logits):
    """A stream whose next logits are these: the output's bias alone speaks."""
    config = ModelConfig(inputs=2, outputs=len(logits), cell="elman", hidden=3)
    model = Model.initialise(config, seed=0)
    model.parameters["V"][:] = 0
    model.parameters["c"][:] = logits
    stream = Stream(model)
    stream.read(0)
    assert np.array_equal(stream.logits(), np.float32(logits))
    return stream


def share(stream, n=2000, **options):
    """How often each token is drawn, with evenly spaced numbers."""
    drawn = [stream.draw((i + 0.5) / n, **options) for i in range(n)]
    return np.bincount(drawn, minlength=len(stream.logits())) / n


LOGITS = np.log([0.4, 0.05, 0.3, 0.15, 0.1])


def test_tokens_are_drawn_as_often_as_they_are_probable():
    assert np.allclose(share(stream_of(LOGITS)), [0.4, 0.05, 0.3, 0.15, 0.1], atol=1e-3)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_temperature_sharpens_or_flattens(temperature):
    weights = np.exp(LOGITS / temperature)
    assert np.allclose(share(stream_of(LOGITS), temperature=temperature), weights / weights.sum(), atol=1e-3)


def test_temperature_zero_takes_the_most_probable_and_the_first_of_equals():
    assert share(stream_of(LOGITS), n=50, temperature=0.0)[0] == 1
    assert stream_of([1, 3, 3, 2]).draw(0.99, temperature=0.0) == 1
    for tiny in (1e-30, 1e-40, 1e-45, 1e-300):  # beyond float32 too
        assert {
            stream_of([1, 3, 2, 2.5]).draw(u, temperature=tiny, top_p=p) for u in (0, 0.9) for p in (0.5, 1)
        } == {1}


def test_top_k_keeps_the_most_probable():
    assert np.allclose(share(stream_of(LOGITS), top_k=2), [4 / 7, 0, 3 / 7, 0, 0], atol=1e-3)
    assert np.allclose(share(stream_of(LOGITS), top_k=1), [1, 0, 0, 0, 0])
    for everything in (0, 5, 6, 10**6):
        assert np.allclose(share(stream_of(LOGITS), top_k=everything), np.exp(LOGITS), atol=1e-3)


def test_top_p_keeps_the_fewest_that_reach_it():
    assert np.allclose(share(stream_of(LOGITS), top_p=0.69), [4 / 7, 0, 3 / 7, 0, 0], atol=1e-3)
    assert np.allclose(share(stream_of(LOGITS), top_p=0.71), [8 / 17, 0, 6 / 17, 3 / 17, 0], atol=1e-3)
    for tiny in (1e-9, 1e-50):
        assert np.allclose(share(stream_of(LOGITS), top_p=tiny), [1, 0, 0, 0, 0])
    assert np.allclose(share(stream_of(LOGITS), top_p=1.0), np.exp(LOGITS), atol=1e-3)


def test_top_p_is_taken_of_what_top_k_leaves():
    assert np.allclose(share(stream_of(LOGITS), top_k=3, top_p=0.8), [4 / 7, 0, 3 / 7, 0, 0], atol=1e-3)


def test_equals_are_kept_in_the_order_of_the_ids():
    assert np.allclose(share(stream_of([0, 0, 0, 0]), top_k=2), [0.5, 0.5, 0, 0], atol=1e-3)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=40),
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 10),
    st.integers(0, 50),
    st.floats(0, 1, exclude_min=True),
)
def test_whatever_is_drawn_is_a_token_that_was_kept(logits, u, temperature, top_k, top_p):
    token = stream_of(logits).draw(u, temperature=temperature, top_k=top_k, top_p=top_p)
    assert 0 <= token < len(logits)
    if top_k:
        assert sum(np.float32(other) > np.float32(logits[token]) for other in logits) < top_k


def test_a_logit_of_minus_infinity_is_never_drawn():
    found = share(stream_of([0, -np.inf, 0, -np.inf]))
    assert np.allclose(found, [0.5, 0, 0.5, 0], atol=1e-3)


def test_advance_is_read_and_draw_with_the_seeds_numbers():
    model = Model.initialise(config_of("gru", "one-hot", 16), seed=0)
    first, second = Stream(model), Stream(model)
    token, drawn = 3, []
    for i in range(200):
        token = first.advance(token, seed=7, index=i, temperature=2.0)
        drawn.append(token)
    again, token = [], 3
    for i in range(200):
        token = second.advance(token, seed=7, index=i, temperature=2.0)
        again.append(token)
    assert drawn == again and len(set(drawn)) > 5
    assert all(np.array_equal(a, b) for a, b in zip(first.state()[0], second.state()[0], strict=True))
    other = Stream(model)
    assert [other.advance(3, seed=8, index=i, temperature=2.0) for i in range(50)] != drawn[:50]


def test_the_seeds_numbers_are_even_and_independent_of_order():
    uniform = stream_of(np.zeros(10))
    drawn = [uniform.advance(0, seed=1, index=i) for i in range(5000)]
    assert np.abs(np.bincount(drawn, minlength=10) / 5000 - 0.1).max() < 0.02
    assert [uniform.advance(0, seed=1, index=i) for i in (4999, 17, 0)] == [drawn[4999], drawn[17], drawn[0]]
    assert uniform.advance(0, seed=1 + 2**64, index=17) == drawn[17]


@pytest.mark.parametrize("cell", CELLS)
def test_a_state_taken_out_and_put_back_goes_on_to_the_same_bits(cell):
    model = Model.initialise(config_of(cell, "embedded", 9, layers=2, learn_h0=True), seed=0)
    stream = Stream(model)
    for token in (1, 5, 2):
        stream.read(token)
    saved = stream.state()
    stream.read(7)
    expected = stream.logits()
    stream.read(0)
    stream.restore(saved)
    stream.read(7)
    assert np.array_equal(stream.logits(), expected)
    fresh = Stream(model)
    fresh.restore(saved)
    fresh.read(7)
    assert np.array_equal(fresh.logits(), expected)


def test_what_a_stream_hands_out_is_a_copy():
    stream = Stream(Model.initialise(config_of("lstm", "one-hot", 5), seed=0))
    stream.read(1)
    logits, state = stream.logits(), stream.state()
    kept = logits.copy(), state[0][0].copy()
    stream.read(2)
    assert np.array_equal(logits, kept[0]) and np.array_equal(state[0][0], kept[1])


def test_a_stream_keeps_the_weights_it_was_made_with():
    model = Model.initialise(config_of("gru", "tied", 8, layers=2), seed=0)
    stream, other = Stream(model), Stream(model)
    stream.read(1)
    expected = stream.logits()
    model.parameters.flat[:] = 0
    junk = [np.full(n, np.nan, np.float32) for n in range(1, 200)]  # where freed memory would be taken again
    other.read(1)
    assert np.array_equal(other.logits(), expected) and len(junk) == 199
    del model
    other.read(2)
    assert np.isfinite(other.logits()).all()


@pytest.mark.parametrize("kind", ["dense", "both directions"])
def test_a_model_that_cannot_be_read_token_by_token_is_refused(kind):
    config = (
        config_of("gru", "dense", 4)
        if kind == "dense"
        else config_of("gru", "one-hot", 4, bidirectional=True)
    )
    with pytest.raises(InputError, match="stream"):
        Stream(Model.initialise(config, seed=0))
