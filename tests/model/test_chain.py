"""The CRF: against the enumeration of all label sequences, and finite differences."""

from itertools import pairwise, product

import numpy as np
import pytest

from unspool.data.batches.examples import Examples
from unspool.errors import InputError
from unspool.kernels import native, reference
from unspool.model.losses.chain import forward_backward, score_of, viterbi
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.tasks.tag import SequenceTagger

RNG = np.random.default_rng(1)
K, LENGTHS = 3, np.array([4, 1, 5, 2], np.int32)
SCORES, A = RNG.standard_normal((5, 4, K)) * 2, RNG.standard_normal((K, K)) * 1.5


def enumerated(row: int) -> list[tuple[float, tuple[int, ...]]]:
    """Return every label sequence of a row with its score, by definition."""
    n = int(LENGTHS[row])
    return [
        (
            sum(SCORES[t, row, k] for t, k in enumerate(path)) + sum(A[i, j] for i, j in pairwise(path)),
            path,
        )
        for path in product(range(K), repeat=n)
    ]


@pytest.mark.parametrize(("backend", "tolerance"), [(reference, 1e-10), (native, 1e-5)])
def test_sums_and_probabilities_are_those_of_the_enumeration(backend, tolerance) -> None:
    chain = forward_backward(SCORES.astype(backend.DTYPE), A.astype(backend.DTYPE), LENGTHS, backend)
    pairs = np.zeros((K, K))
    for row, n in enumerate(LENGTHS.tolist()):
        every = enumerated(row)
        log_Z = np.logaddexp.reduce([score for score, _ in every])
        assert chain.log_Z[row] == pytest.approx(log_Z, abs=tolerance * 10)
        p = np.zeros((n, K))
        for score, path in every:
            weight = np.exp(score - log_Z)
            p[np.arange(n), path] += weight
            for i, j in pairwise(path):
                pairs[i, j] += weight
        np.testing.assert_allclose(chain.p[:n, row], p, atol=tolerance)
        assert (chain.p[n:, row] == 0).all()
    np.testing.assert_allclose(chain.pairs, pairs, atol=tolerance * 10)


def test_viterbi_finds_the_best_sequence_and_scores_are_those_of_the_definition() -> None:
    y = np.full((5, 4), -1, np.int32)
    for row, n in enumerate(LENGTHS.tolist()):
        best, path = max(enumerated(row))
        assert viterbi(SCORES[:n, row], A).tolist() == list(path)
        y[:n, row] = path
        assert score_of(SCORES, A, y, LENGTHS)[row] == pytest.approx(best)
    assert viterbi(np.zeros((0, K)), A).tolist() == []


def test_the_gradient_is_that_of_finite_differences() -> None:
    config = SequenceConfig("many-to-many", "classes", inputs=2, dense=True, outputs=K, hidden=4, crf=True)
    x = [RNG.standard_normal((n, 2)) for n in LENGTHS]
    y = [RNG.integers(0, K, n).astype(np.int32) for n in LENGTHS]
    network = Network.initialise(config, 0).on(reference)
    network.parameters["A"][:] = A
    batch, gradient = Examples(x, y).batch(np.arange(4), per_step=True), network.gradient()
    total, flat = network.loss(batch, gradient=gradient), network.parameters.flat
    assert total.count == LENGTHS.sum()
    chosen = np.concatenate([RNG.choice(np.flatnonzero(gradient.values.flat), 25)])
    for i in chosen:
        around = []
        for step in (1e-5, -1e-5):
            flat[i] += step
            around.append(network.loss(batch).sum)
            flat[i] -= step
        assert gradient.values.flat[i] == pytest.approx(
            (around[0] - around[1]) / 2e-5 / total.count, abs=1e-7
        )


def test_padding_of_any_length_is_harmless() -> None:
    o = np.zeros((400, 2, 20), np.float32)
    chain = forward_backward(o, np.zeros((20, 20), np.float32), np.array([400, 1], np.int32), native)
    np.testing.assert_allclose(chain.log_Z, [400 * np.log(20), np.log(20)], rtol=1e-5)
    np.testing.assert_allclose(chain.pairs.sum(), 399, rtol=1e-4)


def test_a_row_does_not_depend_on_the_batch() -> None:
    o, own = SCORES.astype(np.float32), A.astype(np.float32)
    whole = forward_backward(o, own, LENGTHS, native)
    for row, n in enumerate(LENGTHS.tolist()):
        alone = forward_backward(
            np.ascontiguousarray(o[:n, row : row + 1]), own, LENGTHS[row : row + 1], native
        )
        assert (alone.p[:, 0] == whole.p[:n, row]).all() and alone.log_Z[0] == whole.log_Z[row]


def test_a_tagger_with_a_crf_learns_which_labels_follow_each_other(tmp_path) -> None:
    rng = np.random.default_rng(0)
    X = [["ab"] * int(n) for n in rng.integers(2, 7, 60)]
    y = [
        [("A", "B")[(t + first) % 2] for t in range(len(row))]
        for row, first in zip(X, rng.integers(0, 2, 60), strict=True)
    ]
    model = SequenceTagger(crf=True, steps=150, hidden=4, learning_rate=0.03, model="network").fit(X, y)
    found = model.predict(X)
    assert all((row[1:] != row[:-1]).all() for row in found)
    p = model.predict_proba(X)
    np.testing.assert_allclose([row.sum(axis=1).max() for row in p], 1, atol=1e-5)
    model.save(tmp_path / "run")
    again = SequenceTagger.load(tmp_path / "run")
    assert all((a == b).all() for a, b in zip(again.predict(X), found, strict=True))
    with pytest.raises(InputError, match="crf"):
        SequenceConfig("many-to-one", "classes", inputs=2, outputs=3, crf=True)
