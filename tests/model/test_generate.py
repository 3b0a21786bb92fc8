"""Generation: the same seed gives the same text, the settings mean what they say, a state can be kept."""

import inspect
from itertools import islice

import numpy as np
import pytest

from unspool.cli.commands.generate import Options
from unspool.errors import InputError
from unspool.model.config import ModelConfig
from unspool.model.generate import TEMPERATURE, Sampling, generate, sample
from unspool.model.network import Model
from unspool.model.stream import Stream
from unspool.tasks.language.estimator import LanguageModel

K = 9


@pytest.fixture(scope="module")
def model() -> Model:
    made = Model.initialise(ModelConfig(inputs=K, outputs=K, cell="lstm", hidden=12), seed=2)
    made.parameters["V"][:] *= 4
    return made


def logits_after(model: Model, ids: list[int]) -> np.ndarray:
    stream = Stream(model)
    for token in ids:
        stream.read(token)
    return stream.logits()


def test_the_same_seed_gives_the_same_text_and_another_another(model: Model) -> None:
    one, two, other = (sample(model, [1, 2], 50, seed=seed) for seed in (7, 7, 8))
    assert one == two
    assert one != other
    assert len(one) == 50 and set(one) <= set(range(K))


def test_a_longer_text_begins_with_the_shorter_one(model: Model) -> None:
    assert sample(model, [1], 30, seed=0)[:10] == sample(model, [1], 10, seed=0)


@pytest.mark.parametrize("greedy", [Sampling(temperature=0), Sampling(top_k=1)])
def test_greedy_takes_the_most_probable(model: Model, greedy: Sampling) -> None:
    text = [4]
    for token in sample(model, text, 12, seed=0, sampling=greedy):
        assert token == int(logits_after(model, text).argmax())
        text.append(token)


def test_draws_follow_the_probabilities(model: Model) -> None:
    o = logits_after(model, [3, 5]).astype(np.float64) / 0.8
    p = np.exp(o - o.max()) / np.exp(o - o.max()).sum()
    drawn = [sample(model, [3, 5], 1, seed=seed, sampling=Sampling(0.8))[0] for seed in range(4000)]
    share = np.bincount(drawn, minlength=K) / len(drawn)
    assert np.abs(share - p).max() < 4 * 0.5 / np.sqrt(len(drawn))


def test_top_k_and_top_p_leave_the_improbable_out(model: Model) -> None:
    o = logits_after(model, [3, 5]).astype(np.float64)
    order = np.argsort(-o)
    p = np.exp(o - o.max()) / np.exp(o - o.max()).sum()
    enough = int(np.searchsorted(np.cumsum(p[order]), 0.6)) + 1
    three = {sample(model, [3, 5], 1, seed=seed, sampling=Sampling(2.0, top_k=3))[0] for seed in range(300)}
    nucleus = {
        sample(model, [3, 5], 1, seed=seed, sampling=Sampling(1.0, top_p=0.6))[0] for seed in range(300)
    }
    assert three == set(order[:3].tolist())
    assert nucleus == set(order[:enough].tolist())


def test_every_interface_has_the_same_default_temperature() -> None:
    writes = inspect.signature(LanguageModel.generate).parameters["temperature"].default
    assert Sampling().temperature == Options().temperature == writes == TEMPERATURE < 1


def test_a_text_goes_on_from_a_state_that_was_kept(model: Model) -> None:
    whole = sample(model, [1, 2], 12, seed=0, sampling=Sampling(temperature=0))
    stream = Stream(model)
    first = list(islice(generate(stream, [1, 2], seed=0, sampling=Sampling(temperature=0)), 5))
    other = Stream(model)
    other.restore(stream.state())
    rest = islice(generate(other, first[-1:], seed=0, sampling=Sampling(temperature=0)), 7)
    assert first + list(rest) == whole


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_k": -1}, "top_k"),
        ({"top_p": 0}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
    ],
)
def test_settings_without_meaning_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Sampling(**settings)


def test_an_empty_prefix_and_an_unknown_token_are_refused(model: Model) -> None:
    with pytest.raises(InputError, match="prefix"):
        sample(model, [], 3, seed=0)
    with pytest.raises(InputError):
        sample(model, [K], 3, seed=0)
