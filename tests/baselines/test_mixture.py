"""The mixture of a network with n-grams: a distribution, fitted to its minimum, blind to the future."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.baselines.kneser_ney_smoothing import kneser_ney
from unspool.baselines.mixture import (
    PENALTY,
    Mixture,
    MixtureScorer,
    cross_fitted,
    features,
    fit_mixture,
    share,
)
from unspool.baselines.ngram_counts import count_ngrams
from unspool.baselines.ngram_model import NgramModel
from unspool.errors import FileError
from unspool.evaluation.language import NetworkScorer, log_prob
from unspool.kernels.arrays import Ids, Real
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.tasks.language.mixture import load_mixture, save_mixture

K, ORDER = 7, 4


def text(n: int, seed: int) -> Ids:
    """A text with structure: each token depends on the two before it, most of the time."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, K, n)
    for t in range(2, n):
        if rng.random() < 0.7:
            ids[t] = (ids[t - 1] + 2 * ids[t - 2]) % K
    return ids.astype(np.int32)


@pytest.fixture(scope="module")
def ngrams() -> NgramModel:
    return kneser_ney(count_ngrams(text(3000, 1), K, ORDER))


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.initialise(ModelConfig(cell="gru", inputs=K, outputs=K, hidden=8), seed=1)


@pytest.fixture(scope="module")
def mixture(ngrams: NgramModel, model: Model) -> Mixture:
    ids = text(500, 2)
    return fit_mixture(ngrams, ids, log_prob(model, ids))


def most_discounted(ngrams: NgramModel, context: list[int]) -> float:
    """max_w a(c, w), over the tokens one by one."""
    level, weights = ngrams.counts.levels[len(context)], ngrams.weights[len(context)]
    entries = [ngrams.counts.entry([*context, w]) for w in range(K)]
    assert len(level.keys) == len(weights.discounted)
    return max((float(weights.discounted[entry]) for entry in entries if entry >= 0), default=0.0)


def by_hand(mixture: Mixture, ids: Ids, t: int, network: Real) -> Real:
    """All probabilities of token t, from counts that are looked up one by one."""
    counts, n = mixture.ngrams.counts, min(t, ORDER - 1)
    while n and not counts.count(ids[t - n : t].tolist()):
        n -= 1
    context = ids[t - n : t].tolist()
    count = counts.count(context) if n else counts.tokens
    backoff = mixture.ngrams.weights[n].backoff[counts.entry(context)]
    most = 1 / K
    for m in range(n + 1):  # from no context to the longest known one
        most = (
            most_discounted(mixture.ngrams, context[n - m :])
            + most * mixture.ngrams.weights[m].backoff[counts.entry(context[n - m :])]
        )
    assert most >= mixture.ngrams.next_probs(context).max() - 1e-12  # a bound
    phi = [1, int(np.log2(count)) / 8, backoff, most, most**2, *(float(n == m) for m in range(1, ORDER))]
    a = float(np.dot(mixture.v, phi))
    part = (1 + a / np.sqrt(1 + a * a)) / 2
    return (1 - part) * network + part * mixture.ngrams.next_probs(ids[max(0, t - ORDER + 1) : t].tolist())


def test_every_distribution_is_that_of_the_equations_and_sums_to_one(mixture: Mixture) -> None:
    ids, rng = text(60, 3), np.random.default_rng(4)
    for t in range(1, len(ids)):
        network = rng.dirichlet(np.ones(K))
        found = mixture.next_probs(network, ids[:t].tolist())
        assert np.allclose(found, by_hand(mixture, ids, t, network), rtol=1e-12)
        assert found.sum() == pytest.approx(1, abs=1e-12) and (found > 0).all()


def test_scores_of_a_text_are_those_token_by_token(mixture: Mixture, model: Model) -> None:
    ids = text(80, 5)
    found = MixtureScorer(NetworkScorer(model), mixture).log_prob(ids)
    network = log_prob(model, ids)
    for t in range(1, len(ids)):
        # The network's other probabilities do not matter for the target.
        p = mixture.next_probs(np.full(K, np.exp(network[t - 1])), ids[:t].tolist())[ids[t]]
        assert found[t - 1] == pytest.approx(np.log(p), rel=1e-12)
    assert (MixtureScorer(NetworkScorer(model), mixture).log_prob(ids, given=9) == found[8:]).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 59), st.integers(0, K - 1))
def test_the_share_does_not_depend_on_the_token_or_what_follows(
    mixture: Mixture, at: int, token: int
) -> None:
    ids = text(60, 6)
    changed = ids.copy()
    changed[at:] = token
    assert (mixture.share(changed)[:at] == mixture.share(ids)[:at]).all()


def test_the_fit_is_a_minimum(ngrams: NgramModel, model: Model) -> None:
    ids = text(400, 7)
    network = log_prob(model, ids)
    fitted = fit_mixture(ngrams, ids, network)
    phi, p, q = features(ngrams, ids)[1:], np.exp(network), np.exp(ngrams.log_prob(ids))
    penalty = PENALTY * np.array([1e-3, *np.ones(phi.shape[1] - 1)])

    def loss(v: Real) -> float:
        part = share(v, phi)
        return float(-np.log((1 - part) * p + part * q).sum() + (penalty * v * v).sum())

    for i in range(len(fitted.v)):
        e = np.zeros(len(fitted.v))
        e[i] = 1e-3
        slope = (loss(fitted.v + e) - loss(fitted.v - e)) / 2e-3
        assert abs(slope) < 0.05
        assert loss(fitted.v + 300 * e) > loss(fitted.v) < loss(fitted.v - 300 * e)


@pytest.mark.parametrize("better", ["network", "n-grams"])
def test_a_useless_part_gets_hardly_any_share(better: str, ngrams: NgramModel) -> None:
    ids = text(2000, 8)
    counted = ngrams.log_prob(ids)
    network = np.full(len(counted), np.log(0.98)) if better == "network" else np.full(len(counted), -20.0)
    mixed = -fit_mixture(ngrams, ids, network).log_prob(ids, network).mean()
    assert mixed < min(-network.mean(), -counted.mean()) + 0.002


def test_each_half_of_the_fitted_text_is_scored_by_the_other(mixture: Mixture, model: Model) -> None:
    ids = text(500, 2)
    network = log_prob(model, ids)
    crossed, inside = cross_fitted(mixture, ids, network), mixture.log_prob(ids, network)
    assert crossed.shape == inside.shape
    assert -crossed.mean() > -inside.mean()  # the fit on the text itself is too good
    changed = network.copy()
    changed[len(network) // 2 :] -= 0.5  # the first half is scored by a fit on the second one
    again = cross_fitted(mixture, ids, changed)
    assert not (again[:10] == crossed[:10]).all()


def test_impossible_targets_have_no_probability(ngrams: NgramModel) -> None:
    certain = kneser_ney(count_ngrams(np.array([0, 1] * 20, np.int32), 3, 2), uniform=False)
    ids = np.array([0, 1, 2, 0, 1], np.int32)
    network = np.array([-1.0, -np.inf, -1.0, -1.0])
    found = fit_mixture(certain, ids, network).log_prob(ids, network)
    assert found[1] == -np.inf and np.isfinite(found[[0, 2, 3]]).all()


def test_a_saved_mixture_is_the_same(mixture: Mixture, model: Model, tmp_path: Path) -> None:
    path, ids = tmp_path / "mixture.safetensors", text(200, 9)
    save_mixture(path, mixture, model)
    again = load_mixture(path, model)
    assert again is not None
    network = log_prob(model, ids)
    assert (again.log_prob(ids, network) == mixture.log_prob(ids, network)).all()
    p = np.full(K, 1 / K)
    assert (again.next_probs(p, [1, 2, 3]) == mixture.next_probs(p, [1, 2, 3])).all()


def test_a_mixture_of_another_network_is_not_used(mixture: Mixture, model: Model, tmp_path: Path) -> None:
    path = tmp_path / "mixture.safetensors"
    save_mixture(path, mixture, model)
    assert load_mixture(path, Model.initialise(model.config, seed=2)) is None
    assert load_mixture(tmp_path / "none.safetensors", model) is None


def test_a_damaged_file_is_refused(mixture: Mixture, model: Model, tmp_path: Path) -> None:
    path = tmp_path / "mixture.safetensors"
    save_mixture(path, mixture, model)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match="mixture"):
        load_mixture(path, model)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 30), st.integers(0, 30))
def test_many_contexts_at_once_give_the_same_bits(mixture: Mixture, start: int, more: int) -> None:
    ids = text(start + more, 10) if start + more else np.zeros(0, np.int32)
    network = np.random.default_rng(start).dirichlet(np.ones(K), more + 1)
    rows = mixture.next_probs_rows(network, ids, start)
    assert rows.shape == (more + 1, K)
    for row, p in enumerate(network):
        before = ids[: start + row].tolist()
        assert (rows[row] == mixture.next_probs(p, before)).all()
        recent = before[max(0, len(before) - ORDER + 1) :]
        assert (mixture.ngrams.next_probs_rows(ids, start)[row] == mixture.ngrams.next_probs(recent)).all()


def test_shares_do_not_depend_on_the_blocks(mixture: Mixture, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = text(200, 4)
    whole = mixture.share(ids)
    assert (whole == share(mixture.v, features(mixture.ngrams, ids)[1:])).all()
    for block in (1, 7, 199):
        monkeypatch.setattr("unspool.baselines.mixture.BLOCK", block)
        assert (mixture.share(ids) == whole).all()
