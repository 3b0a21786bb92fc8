"""Evaluation plays by the protocol: every target once, the state carried, windows that change no bit."""

import math

import numpy as np
import pytest

from unspool.cells import CELLS
from unspool.data.text.corpus import prepare
from unspool.errors import InputError
from unspool.evaluation.language import NetworkScorer, evaluate, log_prob
from unspool.evaluation.metrics import measure
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.stream import Stream

K = 6


def model(cell: str = "gru", layers: int = 1, **more: object) -> Model:
    config = ModelConfig(inputs=K, outputs=K, cell=cell, hidden=7, layers=layers, **more)
    return Model.initialise(config, seed=3)


def text(length: int) -> np.ndarray:
    return np.random.default_rng(length).integers(K, size=length).astype(np.int32)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("window", [1, 2, 7, 50, 99, 100, 1000])
def test_windows_of_any_size_change_no_bit(cell: str, window: int) -> None:
    ids, made = text(100), model(cell, layers=2)
    np.testing.assert_array_equal(log_prob(made, ids, window=window), log_prob(made, ids))


@pytest.mark.parametrize("cell", CELLS)
def test_it_says_what_a_stream_says_token_by_token(cell: str) -> None:
    ids, made = text(40), model(cell)
    stream, expected = Stream(made), []
    for now, then in zip(ids[:-1].tolist(), ids[1:].tolist(), strict=True):
        stream.read(now)
        o = stream.logits().astype(np.float64)
        expected.append(o[then] - o.max() - math.log(np.exp(o - o.max()).sum()))
    np.testing.assert_allclose(log_prob(made, ids), expected, rtol=1e-5)


def test_probabilities_of_all_tokens_add_up_to_one() -> None:
    ids, made = text(5), model()
    last = [log_prob(made, np.append(ids, np.int32(k)))[-1] for k in range(K)]
    assert np.exp(last).sum() == pytest.approx(1, abs=1e-6)


def test_a_model_that_knows_nothing_wavers_among_all_tokens() -> None:
    made = model()
    made.parameters.flat[:] = 0
    assert measure(log_prob(made, text(50))).perplexity == pytest.approx(K, rel=1e-6)


def test_every_target_of_a_part_is_scored_once(tmp_path) -> None:
    (tmp_path / "text").write_text("été, été! " * 40, encoding="utf-8")
    corpus = prepare(tmp_path / "text", split=(0.5, 0.25, 0.25))
    size = len(corpus.vocab)
    made = Model.initialise(ModelConfig(inputs=size, outputs=size, hidden=4), seed=0)
    found = evaluate(NetworkScorer(made), corpus.test)
    assert found.targets == len(corpus.test.ids) - 1
    assert found.nats == pytest.approx(-log_prob(made, corpus.test.ids).mean())
    first = corpus.decode(corpus.test.ids[:1])
    assert found.characters == corpus.test.characters - 1
    assert found.bytes == corpus.test.bytes - len(first.encode())


def test_what_is_only_context_is_not_scored() -> None:
    ids, network = text(20), NetworkScorer(model())
    np.testing.assert_array_equal(network.log_prob(ids, given=5), network.log_prob(ids)[4:])
    with pytest.raises(InputError, match="start from"):
        network.log_prob(ids, given=0)


def test_what_cannot_be_evaluated_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to predict"):
        log_prob(model(), text(1))
    with pytest.raises(InputError, match="window is 0"):
        log_prob(model(), text(9), window=0)
    with pytest.raises(InputError, match="one direction"):
        log_prob(model(bidirectional=True), text(9))
    with pytest.raises(InputError):
        log_prob(model(), np.full(9, K, np.int32))
