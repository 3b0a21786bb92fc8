"""Repetition penalty, temperature, top-k, top-p and min-p: the definitions in NumPy, in the order of transformers."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.errors import InputError
from unspool.model.config import ModelConfig
from unspool.model.generate import Sampling, generate
from unspool.model.history import LONGEST_WINDOW, TokenHistory
from unspool.model.network import Model
from unspool.model.stream import Stream


def stream_of(logits: np.ndarray) -> Stream:
    """Return a stream whose logits are these, whatever it has read."""
    K = len(logits)
    model = Model.initialise(ModelConfig(cell="elman", inputs=K, outputs=K, hidden=4), seed=0)
    model.parameters["V"][:] = 0
    model.parameters["c"][:] = logits
    stream = Stream(model)
    stream.read(0)
    return stream


def probabilities(o: np.ndarray, how: Sampling, seen: np.ndarray) -> np.ndarray:
    """Return the distribution that a token is drawn from: the definitions, one after the other."""
    o = o.astype(np.float64)
    o = np.where(seen, np.where(o > 0, o / how.repetition_penalty, o * how.repetition_penalty), o)
    p = np.exp((o - o.max()) / how.temperature)
    order = np.argsort(-p, kind="stable")
    kept = np.zeros(len(o), bool)
    kept[order[: how.top_k or len(o)]] = True
    p = np.where(kept, p, 0) / p[kept].sum()
    before = np.cumsum(p[order]) - p[order]
    kept[order[before >= how.top_p - 1e-12]] = False
    kept[order[0]] = True
    kept &= p >= how.min_p * p.max()
    return np.where(kept, p, 0) / p[kept].sum()


def shares(stream: Stream, n: int = 4000, **how: object) -> np.ndarray:
    drawn = [stream.draw((i + 0.5) / n, **how) for i in range(n)]
    return np.bincount(drawn, minlength=stream.outputs) / n


@pytest.mark.parametrize(
    "how",
    [
        Sampling(1.0, min_p=0.2),
        Sampling(2.0, min_p=0.2),
        Sampling(0.5, min_p=0.05),
        Sampling(1.0, repetition_penalty=1.5),
        Sampling(1.0, repetition_penalty=0.7),
        Sampling(0.7, top_k=6, top_p=0.9, min_p=0.1, repetition_penalty=1.3),
        Sampling(1.3, top_k=4, min_p=0.02, repetition_penalty=2.0),
        Sampling(1.3, top_p=0.7, min_p=0.3),
        Sampling(1.0, min_p=1.0),
    ],
)
def test_draws_follow_the_definition_in_the_documented_order(how: Sampling) -> None:
    rng = np.random.default_rng(3)
    o = rng.normal(0, 1.5, 12).astype(np.float32)
    history = TokenHistory(12, [1, 5, 5, 7, 2])
    found = shares(stream_of(o), **how.arguments(history))
    wanted = probabilities(o, how, history.seen())
    assert np.abs(found - wanted).max() < 2 / 4000
    assert not found[wanted == 0].any() and found[wanted > 1e-3].all()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-30, 30, width=32), min_size=2, max_size=20),
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 1),
)
def test_min_p_keeps_exactly_the_tokens_near_the_most_probable_one(
    logits: list[float], u: float, min_p: float
) -> None:
    o = np.array(logits, np.float32)
    token = stream_of(o).draw(u, min_p=min_p)
    assert np.exp(np.float64(o[token] - o.max())) >= min_p * (1 - 1e-5)


def test_a_greedy_text_does_not_repeat_a_token_under_a_strong_penalty() -> None:
    o = np.array([5.0, 4.5, 4.4, -0.5, -6.0], np.float32)
    stream = stream_of(o)
    found = list(islice(generate(stream, [4], seed=0, sampling=Sampling(0, repetition_penalty=10.0)), 3))
    assert found == [0, 1, 2]
    # Only the last token counts: the two most probable ones take turns.
    how = Sampling(0, repetition_penalty=10.0, repetition_window=1)
    assert list(islice(generate(stream, [4], seed=0, sampling=how), 4)) == [0, 1, 0, 1]


def test_the_penalty_leaves_the_logits_of_the_stream_as_they_are() -> None:
    o = np.array([1.0, 2.0, -1.0], np.float32)
    stream = stream_of(o)
    stream.draw(0.5, repetition_penalty=3.0, seen=np.ones(3, bool))
    assert (stream.logits() == o).all()


def test_a_penalty_of_one_and_a_min_p_of_zero_change_nothing() -> None:
    model = Model.initialise(ModelConfig(cell="gru", inputs=9, outputs=9, hidden=12), seed=2)
    plain, neutral = Sampling(0.9, 5, 0.95), Sampling(0.9, 5, 0.95, 0.0, 1.0, 7)
    one, two = (list(islice(generate(Stream(model), [1], seed=4, sampling=s), 60)) for s in (plain, neutral))
    assert one == two


def test_a_history_counts_a_window_or_everything() -> None:
    history = TokenHistory(5, [3, 1, 1, 0])
    assert history.seen().tolist() == [True, True, False, True, False]
    assert history.seen(2).tolist() == [True, True, False, False, False]
    assert history.seen(1).tolist() == [True, False, False, False, False]
    copied = TokenHistory.from_arrays(5, **history.to_arrays())
    copied.add(4)
    assert copied.seen(3).tolist() == [True, True, False, False, True]
    assert not history.seen()[4]
    history.add(9)  # an id that cannot be drawn
    assert history.seen(1).tolist() == [True, False, False, False, False]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"min_p": -0.1}, "min_p"),
        ({"min_p": 1.5}, "min_p"),
        ({"min_p": "a"}, "min_p"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
        ({"repetition_penalty": float("inf")}, "repetition_penalty"),
        ({"repetition_window": -1}, "repetition_window"),
        ({"repetition_window": LONGEST_WINDOW + 1}, "repetition_window"),
    ],
)
def test_settings_without_meaning_are_refused(wrong: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Sampling(**wrong)


def test_a_mask_of_another_length_is_refused() -> None:
    with pytest.raises(InputError, match="seen"):
        stream_of(np.zeros(4, np.float32)).draw(0.5, repetition_penalty=2.0, seen=np.ones(3, bool))
