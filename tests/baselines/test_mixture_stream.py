"""A mixture that reads and draws token by token: the bits of the mixture, and draws from its distribution."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.baselines.kneser_ney_smoothing import kneser_ney
from unspool.baselines.mixture import Mixture, fit_mixture
from unspool.baselines.mixture_stream import MixtureReader, MixtureStream
from unspool.baselines.ngram_counts import count_ngrams
from unspool.errors import InputError
from unspool.evaluation.language import log_prob
from unspool.kernels.arrays import Ids
from unspool.kernels.elementwise import log, softmax
from unspool.model.config import ModelConfig
from unspool.model.generate import Sampling, generate
from unspool.model.network import Model
from unspool.model.stream import Stream

K, ORDER = 6, 4


def text(n: int, seed: int) -> Ids:
    """A text with structure: each token depends on the two before it, most of the time."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, K - 1, n)  # the last token does not occur in the training text
    for t in range(2, n):
        if rng.random() < 0.7:
            ids[t] = (ids[t - 1] + 2 * ids[t - 2]) % (K - 1)
    return ids.astype(np.int32)


@pytest.fixture(scope="module")
def model() -> Model:
    made = Model.initialise(ModelConfig(cell="lstm", inputs=K, outputs=K, hidden=8), seed=1)
    made.parameters["V"][:] *= 4
    return made


@pytest.fixture(scope="module")
def mixture(model: Model) -> Mixture:
    ids = text(300, 2)
    return fit_mixture(kneser_ney(count_ngrams(text(400, 1), K, ORDER)), ids, log_prob(model, ids))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, K - 1), min_size=1, max_size=25), st.integers(0, 24))
def test_a_stream_has_the_bits_of_the_mixture_read_at_once(
    mixture: Mixture, model: Model, ids: list[int], start: int
) -> None:
    start = min(start, len(ids) - 1)
    network, stream, rows = Stream(model), MixtureStream(Stream(model), mixture), []
    for token in ids:
        network.read(token)
        stream.read(token)
        rows.append(softmax(network.logits()).astype(np.float64))
        probs = mixture.next_probs(rows[-1], ids[: len(rows)])
        assert (stream.next_probs() == probs).all()
        assert probs.sum() == pytest.approx(1, abs=1e-6) and (probs > 0).all()
    at_once = mixture.next_probs_rows(np.array(rows[start:]), np.array(ids), start + 1)
    assert (at_once[-1] == stream.next_probs()).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, K - 1), max_size=25))
def test_the_share_is_that_of_the_features(mixture: Mixture, ids: list[int]) -> None:
    reader = MixtureReader(mixture, ids)
    padded = np.array([K - 1, *ids, 0])  # before them a token that the counts do not know
    assert reader.share() == mixture.share(padded)[-1]


def test_the_logits_are_the_logarithms(mixture: Mixture, model: Model) -> None:
    stream = MixtureStream(Stream(model), mixture)
    stream.read(3)
    assert np.allclose(stream.logits(), np.log(stream.next_probs()), rtol=1e-6)


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-300, 1e300))
def test_the_portable_logarithm_is_exact_to_fifteen_digits(x: float) -> None:
    assert log(np.array([x]))[0] == pytest.approx(np.log(x), rel=2e-15, abs=3e-16)


@pytest.mark.parametrize(
    "sampling", [Sampling(1.0), Sampling(0.5), Sampling(1.0, top_k=2), Sampling(1.0, top_p=0.6)]
)
def test_draws_follow_the_distribution(mixture: Mixture, model: Model, sampling: Sampling) -> None:
    stream = MixtureStream(Stream(model), mixture)
    for token in (2, 4, 1):
        stream.read(token)
    weights = stream.next_probs() ** (1 / sampling.temperature)
    order = np.argsort(-weights)
    enough = int(np.searchsorted(np.cumsum(weights[order]), sampling.top_p)) + 1
    weights[order[min(sampling.top_k or K, enough) :]] = 0
    n = 2000
    how = {"temperature": sampling.temperature, "top_k": sampling.top_k, "top_p": sampling.top_p}
    drawn = [stream.draw((i + 0.5) / n, **how) for i in range(n)]
    assert np.allclose(np.bincount(drawn, minlength=K) / n, weights / weights.sum(), atol=2e-3)


def test_every_text_of_three_tokens_is_generated_as_often_as_it_is_probable(
    mixture: Mixture, model: Model
) -> None:
    n, found = 1500, np.zeros((K, K))
    for seed in range(n):
        one, two = islice(
            generate(MixtureStream(Stream(model), mixture), [0, 2], seed=seed, sampling=Sampling(1.0)), 2
        )
        found[one, two] += 1 / n
    expected = np.zeros((K, K))
    for one in range(K):
        stream = MixtureStream(Stream(model), mixture)
        for token in (0, 2):
            stream.read(token)
        first = stream.next_probs()[one]
        stream.read(one)
        expected[one] = first * stream.next_probs()
    assert expected.sum() == pytest.approx(1, abs=1e-6)
    assert np.abs(found - expected).max() < 4 * np.sqrt(0.25 / n)


def test_without_a_share_it_draws_as_the_network_does(mixture: Mixture, model: Model) -> None:
    v = np.zeros(len(mixture.v))
    v[0] = -1e9  # λ = 0
    alone = MixtureStream(Stream(model), Mixture(mixture.ngrams, v))
    how = Sampling(0.9, top_k=4, top_p=0.95)
    one = list(islice(generate(alone, [1, 2], seed=5, sampling=how), 100))
    assert one == list(islice(generate(Stream(model), [1, 2], seed=5, sampling=how), 100))


def test_a_state_and_the_last_tokens_are_all_that_is_needed(mixture: Mixture, model: Model) -> None:
    stream, later = (MixtureStream(Stream(model), mixture) for _ in range(2))
    ids = text(30, 5).tolist()
    for token in ids:
        stream.read(token)
    later.restore([(h, s) for h, s in stream.state()], ids[-ORDER + 1 :])
    drawn = [each.advance(3, seed=1, index=0, temperature=1.0) for each in (stream, later)]
    assert drawn[0] == drawn[1] and (stream.next_probs() == later.next_probs()).all()


def test_nothing_is_known_before_the_first_token(mixture: Mixture, model: Model) -> None:
    with pytest.raises(InputError, match="no token has been read"):
        MixtureStream(Stream(model), mixture).next_probs()
    with pytest.raises(InputError, match="float32"):
        Stream(model).set_logits([1.0, 2.0])  # type: ignore[arg-type]
