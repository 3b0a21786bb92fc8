"""Copies and pickles: the same bits as the original now and after ten updates, and no memory in common."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from cases import CELLS, INPUTS, config_of
from unspool import Adam, LanguageModel, Stream, TextModel
from unspool.data.batches.examples import Examples
from unspool.data.text.settings import TextConfig
from unspool.data.tokens.registry import make_tokenizer
from unspool.data.tokens.vocab import Vocab
from unspool.errors import InputError
from unspool.gradients.truncation import CarriedState
from unspool.kernels import native, reference
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.parameters import Parameters
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.tasks import (
    SequenceClassifier,
    SequenceGenerator,
    SequenceRegressor,
    SequenceTagger,
    SequenceTranslator,
)
from unspool.tasks.forecast import Forecaster
from unspool.training.loop import updates
from unspool.training.objectives import SequenceObjective, TextObjective

WAYS = {"deepcopy": copy.deepcopy, "pickle": lambda value: pickle.loads(pickle.dumps(value))}
SENTENCE = "she sells sea shells by the sea shore. "


@pytest.fixture(params=WAYS)
def copied(request):
    """Return the function that makes the copy."""
    return WAYS[request.param]


class Batch:
    """A window of tokens or values."""

    def __init__(self, config, seed):
        rng = np.random.default_rng(seed)
        self.x = rng.integers(0, config.inputs, (7, 3)).astype(np.int32)
        if config.dense:
            self.x = rng.standard_normal((7, 3, config.inputs)).astype(np.float32)
        self.y = rng.integers(0, config.outputs, (7, 3)).astype(np.int32)
        self.reset = True


def ten_updates(model, optimiser, gradient):
    objective = TextObjective(model, CarriedState())
    objective.gradient = gradient
    batches = [Batch(model.config, seed) for seed in range(10)]
    assert len(list(updates(objective, CarriedState().segments(batches), optimiser))) == 10


def trained_together(model, optimiser, gradient, other, its_optimiser, its_gradient):
    """Train both and say whether they have the same bits, different from before."""
    before = model.parameters.flat.copy()
    ten_updates(model, optimiser, gradient)
    assert np.array_equal(other.parameters.flat, before)  # nothing is shared
    ten_updates(other, its_optimiser, its_gradient)
    return not np.array_equal(model.parameters.flat, before) and np.array_equal(
        model.parameters.flat, other.parameters.flat
    )


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("cell", CELLS)
def test_a_copied_model_learns_as_the_original_does(cell, kind, copied):
    model = Model.initialise(config_of(cell, kind, 6, layers=2, learn_h0=True), seed=1)
    optimiser, gradient = Adam(), model.gradient()
    ten_updates(model, optimiser, gradient)
    parts = copied((model, optimiser, gradient))
    other = parts[0]
    window = Batch(model.config, 99)
    assert np.array_equal(model.forward(window.x).h, other.forward(window.x).h)
    assert not np.shares_memory(model.parameters.flat, other.parameters.flat)
    assert not np.shares_memory(gradient.flat, parts[2].flat)
    assert not np.shares_memory(optimiser.arrays["m"], parts[1].arrays["m"])
    assert trained_together(model, optimiser, gradient, *parts)


def test_copied_parameters_are_views_into_their_own_vector_on_a_cache_line(copied):
    parameters = Model.initialise(config_of("gru", "embedded", 5), seed=0).parameters
    other = copied(parameters)
    assert other.shapes == parameters.shapes and np.array_equal(other.flat, parameters.flat)
    for name in other:
        assert np.shares_memory(other[name], other.flat), name
        assert other.stored(name).ctypes.data % 64 == 0, name
    other.flat[:] = 0
    assert parameters.flat.any() and not other["E"].any()


def test_a_shallow_copy_of_parameters_shares_the_vector():
    parameters = Model.initialise(config_of("gru", "embedded", 5), seed=0).parameters
    assert copy.copy(parameters).flat is parameters.flat


def test_parameters_in_double_precision_stay_so(copied):
    parameters = Parameters({"W": (2, 3)}, np.arange(16, dtype=np.float64))
    assert copied(parameters).flat.dtype == np.float64


def updated(network, optimiser, count=10):
    """Train a network on random batches that fit it; return its parameters."""
    config = network.config
    for seed in range(count):
        rng = np.random.default_rng(seed)
        x = [rng.integers(0, config.inputs, 4).astype(np.int32) for _ in range(3)]
        if config.dense:
            x = list(rng.standard_normal((3, 4, config.inputs)).astype(np.float32))
        width = () if config.head == "classes" else (config.outputs,)
        steps = (4,) if config.per_step else (5,) if config.has_decoder else ()
        y = rng.integers(0, config.outputs, (3, *steps, *width)).astype(np.int32)
        y = y if config.head == "classes" else y.astype(np.float32)
        batch = Examples(x, list(y) if steps else y).batch(np.arange(3), per_step=config.per_step)
        next(updates(SequenceObjective(network), [batch], optimiser))
    return network.parameters.flat.copy()


def check_networks(network, other):
    """Check that two networks are equal, apart, and learn the same."""
    before = network.parameters.flat.copy()
    assert np.shares_memory(other.encoder.parameters["layer0.W"], other.parameters.flat)
    made = updated(network, Adam())
    assert np.array_equal(other.parameters.flat, before) and not np.array_equal(made, before)
    assert np.array_equal(updated(other, Adam()), made)


def test_a_copied_network_with_attention_learns_as_the_original_does(copied):
    config = SequenceConfig(
        "encoder-decoder", "classes", inputs=9, outputs=6, hidden=8, attention="additive", bidirectional=True
    )
    network = Network.initialise(config, seed=0)
    check_networks(network, copied(network))


def test_a_copied_network_stays_on_its_backend_and_pools_alike(copied):
    config = SequenceConfig("many-to-one", "numbers", inputs=2, dense=True, outputs=1, hidden=4, pool="mean")
    network = Network.initialise(config, seed=0).on(reference)
    batch = Examples([np.ones((3, 2), np.float32), np.ones((1, 2), np.float32)]).batch(
        np.arange(2), per_step=False
    )
    other = copied(network)
    assert other.backend is other.encoder.backend is reference
    assert np.array_equal(other.outputs(batch), network.outputs(batch))
    pooled = copied(network.encoder).head_input(network.encode(batch, network.weights()))
    assert pooled.shape == (2, 4)


NUMBERS = [[0.0, 1.0, 2.0], [3.0, 2.0, 1.0, 0.0], [1.0, 2.0, 4.0], [5.0, 1.0]]
ESTIMATORS = {
    "classifier": (SequenceClassifier(hidden=4, steps=3), NUMBERS, ["a", "b", "a", "b"]),
    "classifier of tokens": (
        SequenceClassifier(hidden=4, steps=3, tokens="word", embedding=3),
        ["the sea", "a sea shore", "the shells", "a shore"],
        [1, 0, 1, 0],
    ),
    "regressor": (SequenceRegressor(hidden=4, steps=3, layers=2), NUMBERS, [1.0, 2.0, 3.0, 4.0]),
    "tagger": (SequenceTagger(hidden=4, steps=3, bidirectional=True), ["ab", "ba"], [["x", "y"], ["y", "x"]]),
    "translator": (
        SequenceTranslator(hidden=4, steps=3, attention="general"),
        ["ab", "ba"],
        ["AB", "BA"],
    ),
    "generator": (SequenceGenerator(hidden=4, steps=3, cell="lstm"), ["up", "down"], ["abc", "cba"]),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_copied_estimator_predicts_and_learns_as_the_original_does(name, copied):
    estimator, X, y = ESTIMATORS[name]
    reset = copied(estimator)
    assert reset.get_params() == estimator.get_params() and not hasattr(reset, "network_")
    fitted = copied(estimator).fit(X, y)
    assert np.array_equal(reset.fit(X, y).network_.parameters.flat, fitted.network_.parameters.flat)
    other = copied(fitted)
    assert np.array_equal(np.asarray(other.predict(X)), np.asarray(fitted.predict(X)))
    check_networks(fitted.network_, other.network_)


def test_a_copied_forecaster_predicts_and_learns_as_the_original_does(copied):
    y = 10 + np.sin(np.arange(60) * np.pi / 3)
    forecaster = Forecaster(horizon=3, members=2, steps=3, hidden=4)
    assert dataclasses.asdict(copied(forecaster)) == dataclasses.asdict(forecaster)
    forecaster.fit(y)
    other = copied(forecaster)
    assert np.array_equal(other.predict(), forecaster.predict())
    assert np.array_equal(other.predict_interval(), forecaster.predict_interval())
    for mine, its in zip(forecaster.fitted_.networks, other.fitted_.networks, strict=True):
        check_networks(mine, its)


@pytest.mark.parametrize("tokens", ["char", "word", "byte", "space", "jieba", "subword:260"])
def test_a_copied_text_model_writes_and_learns_as_the_original_does(tokens, copied):
    extra = {"jieba": "rjieba", "subword:260": "tokenizers"}
    if tokens in extra:
        pytest.importorskip(extra[tokens])
    tokenizer = make_tokenizer(tokens)
    if tokens.startswith("subword"):
        tokenizer.learn([SENTENCE])
    vocab = Vocab(tokenizer.encode_text(SENTENCE))
    config = ModelConfig(cell="lstm", inputs=len(vocab), outputs=len(vocab), hidden=8)
    text_model = TextModel(Model.initialise(config, seed=1), vocab, tokenizer, TextConfig(tokens=tokens))
    other = copied(text_model)
    assert other.perplexity(SENTENCE) == text_model.perplexity(SENTENCE)
    assert other.generate("the sea", 8) == text_model.generate("the sea", 8)
    made, its = text_model.model, other.model
    assert trained_together(
        made,
        Adam(),
        made.gradient(),
        its,
        Adam(),
        its.gradient(),
    )


def test_a_copied_language_model_is_what_the_original_is(copied):
    model = LanguageModel(hidden=8, steps=4, seed=1)
    text = SENTENCE * 40
    other = copied(model)
    assert other.get_params() == model.get_params()
    assert other.fit(text).perplexity(text) == model.fit(text).perplexity(text)
    carry_after = copied(model)
    assert carry_after.perplexity(text) == model.perplexity(text) and carry_after.curve_ == model.curve_
    assert carry_after.generate("the sea", 8) == model.generate("the sea", 8)
    assert not np.shares_memory(
        carry_after.text_model_.model.parameters.flat, model.text_model_.model.parameters.flat
    )


def packed_things():
    model = Model.initialise(config_of("gru", "one-hot", 5), seed=0)
    weights = model.weights()
    model.forward(Batch(model.config, 0).x, weights=weights)
    return {"Stream": Stream(model), "Panels": native.pack(np.eye(3, dtype=np.float32)), "weights": weights}


@pytest.mark.parametrize("name", ["Stream", "Panels", "weights"])
def test_what_is_packed_for_the_kernels_says_why_it_cannot_be_copied(name, copied):
    with pytest.raises(InputError, match=r"packed for .* model") as refused:
        copied(packed_things()[name])
    assert "\n" not in str(refused.value)
