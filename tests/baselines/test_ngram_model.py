"""Models of counts: probabilities that add up, formulas computed a second time, and nltk as authority."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.lm import MLE, KneserNeyInterpolated

from unspool.baselines.kneser_ney_smoothing import estimate_discount, kneser_ney
from unspool.baselines.laplace_smoothing import laplace, maximum_likelihood
from unspool.baselines.ngram_counts import count_ngrams
from unspool.baselines.ngram_model import BLOCK, NgramModel, generate
from unspool.baselines.reverse import both_directions
from unspool.errors import InputError
from unspool.evaluation.metrics import measure

K = 5
TEXTS = st.lists(st.integers(0, 3), min_size=8, max_size=60)  # of K = 5, token 4 never occurs
EPS = st.lists(st.floats(0.01, 10), min_size=1, max_size=4)


def models(text: list[int], order: int) -> list[NgramModel]:
    counts = count_ngrams(np.array(text), K, order)
    return [
        laplace(counts, (1.0, 0.5, 2.0)),
        laplace(counts, (0.1,), recursive=True),
        kneser_ney(counts),
        kneser_ney(counts, discount=0.3),
    ]


@settings(max_examples=50)
@given(text=TEXTS, order=st.integers(1, 4))
def test_probabilities_add_up_to_one_after_every_context(text: list[int], order: int) -> None:
    for model in models(text, order):
        for length in range(order):
            for context in itertools.product(range(K), repeat=length):
                p = model.next_probs(context)
                assert p.sum() == pytest.approx(1.0, abs=1e-12)
                assert (p > 0).all()


@settings(max_examples=50)
@given(text=TEXTS, test=TEXTS, order=st.integers(1, 4))
def test_a_whole_text_is_scored_as_token_by_token(text: list[int], test: list[int], order: int) -> None:
    for model in models(text, order):
        one_by_one = [math.log(model.next_probs(test[:t])[test[t]]) for t in range(len(test))]
        np.testing.assert_allclose(model.log_prob(np.array(test), given=0), one_by_one, rtol=1e-12)
        np.testing.assert_allclose(model.log_prob(np.array(test)), one_by_one[1:], rtol=1e-12)


def test_a_long_text_is_scored_in_blocks_without_a_seam() -> None:
    rng = np.random.default_rng(0)
    text = rng.integers(K, size=BLOCK + 50)
    model = kneser_ney(count_ngrams(text[:5000], K, 4))
    around = model.log_prob(text)[BLOCK - 40 :]
    np.testing.assert_array_equal(around, model.log_prob(text[BLOCK - 60 :], given=21))


@given(text=TEXTS, eps=EPS)
def test_laplace_is_the_printed_formula(text: list[int], eps: list[float]) -> None:
    e1, e2, e3 = (eps[min(i, len(eps) - 1)] for i in range(3))
    one, two, three = (Counter(zip(*(text[i:] for i in range(n)), strict=False)) for n in (1, 2, 3))
    before_one = Counter((a,) for a in text[:-1])
    before_two = Counter(itertools.pairwise(text[:-1]))
    direct = laplace(count_ngrams(np.array(text), K, 3), eps)
    recursive = laplace(count_ngrams(np.array(text), K, 3), eps, recursive=True)

    def P1(x: int) -> float:
        return (one[(x,)] + e1 / K) / (len(text) + e1)

    def P2(y: int, x: int) -> float:
        return (two[x, y] + e2 * P1(y)) / (before_one[(x,)] + e2)

    for x, y, z in itertools.product(range(K), repeat=3):
        assert direct.next_probs([])[z] == pytest.approx(P1(z))
        assert direct.next_probs([y])[z] == pytest.approx(P2(z, y))
        below = before_two[x, y] + e3
        assert direct.next_probs([x, y])[z] == pytest.approx((three[x, y, z] + e3 * P1(z)) / below)
        assert recursive.next_probs([x, y])[z] == pytest.approx((three[x, y, z] + e3 * P2(z, y)) / below)


def as_nltk(text: list[int], order: int) -> tuple[list[list[tuple[str, ...]]], list[str]]:
    words = [str(token) for token in text]
    ngrams = [tuple(words[i : i + n]) for n in range(1, order + 1) for i in range(len(words) - n + 1)]
    return [ngrams], [str(token) for token in range(K)]


@settings(max_examples=25)
@given(text=TEXTS, order=st.integers(1, 3))
def test_maximum_likelihood_is_nltks(text: list[int], order: int) -> None:
    authority = MLE(order)
    authority.fit(*as_nltk(text, order))
    model = maximum_likelihood(count_ngrams(np.array(text), K, order))
    for context in itertools.product(range(4), repeat=order - 1):
        expected = [authority.score(str(w), [str(c) for c in context]) for w in range(K)]
        np.testing.assert_allclose(model.next_probs(context), expected, rtol=1e-12)


@settings(max_examples=25)
@given(text=TEXTS, order=st.integers(2, 3), discount=st.sampled_from([0.1, 0.75]))
def test_kneser_ney_is_nltks(text: list[int], order: int, discount: float) -> None:
    # nltk counts as different followers of a context also those that it met only at the very beginning of the
    # text, where nothing stands before; so the beginning is met a second time here.
    text = [*text, *text[:3]]
    authority = KneserNeyInterpolated(order, discount)
    authority.fit(*as_nltk(text, order))
    model = kneser_ney(count_ngrams(np.array(text), K, order), discount, uniform=False)
    for context in itertools.product(range(4), repeat=order - 1):
        expected = [authority.score(str(w), [str(c) for c in context]) for w in range(K)]
        np.testing.assert_allclose(model.next_probs(context), expected, rtol=1e-9, atol=1e-12)


def test_discounts_are_estimated_from_counts_of_one_and_two() -> None:
    assert estimate_discount(np.array([1, 1, 1, 2, 7])) == pytest.approx(3 / 5)
    assert estimate_discount(np.array([5, 6])) == 0.75


@pytest.mark.parametrize("discount", [1.5, (0.5,), (0.1, -0.1)])
def test_wrong_discounts_are_refused(discount: float | tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="discount"):
        kneser_ney(count_ngrams(np.array([0, 1, 0]), 2, 2), discount)


@pytest.mark.parametrize("eps", [(), (-1.0,)])
def test_wrong_weights_are_refused(eps: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="eps"):
        laplace(count_ngrams(np.array([0, 1, 0]), 2, 2), eps)


def test_foreign_ids_are_refused() -> None:
    with pytest.raises(InputError, match="0 … 1"):
        laplace(count_ngrams(np.array([0, 1, 0]), 2, 2)).log_prob(np.array([0, 2]))


def test_what_was_never_seen_is_impossible_by_maximum_likelihood() -> None:
    model = maximum_likelihood(count_ngrams(np.array([0, 1, 0, 1, 2]), K, 2))
    assert measure(model.log_prob(np.array([0, 1, 2, 0]))).perplexity == math.inf
    assert measure(model.log_prob(np.array([0, 1]))).perplexity == 1.0


def test_kneser_ney_predicts_better_than_laplace_where_contexts_are_many() -> None:
    rng = np.random.default_rng(0)
    words = rng.zipf(1.4, size=30_000) % 500
    text = np.where(np.arange(30_000) % 2, (words * 7 + 1) % 500, np.roll(words, 1))
    counts = count_ngrams(text[:25_000], 500, 2)
    strong = measure(kneser_ney(counts).log_prob(text[25_000:]))
    weak = measure(laplace(counts).log_prob(text[25_000:]))
    assert strong.nats < weak.nats


def test_generated_text_has_the_frequencies_of_the_model() -> None:
    model = laplace(count_ngrams(np.array([0, 1, 0, 1, 2, 3, 0]), K, 2))
    drawn = generate(model, 20_000, np.random.default_rng(0), prefix=[0])
    followers = Counter(b for a, b in itertools.pairwise(drawn) if a == 1)
    shares = np.array([followers[token] for token in range(K)]) / followers.total()
    np.testing.assert_allclose(shares, model.next_probs([1]), atol=0.02)
    assert drawn == generate(model, 20_000, np.random.default_rng(0), prefix=[0])


def test_maximum_likelihood_goes_on_after_a_dead_end() -> None:
    model = maximum_likelihood(count_ngrams(np.array([0, 1, 2]), 3, 3))
    drawn = generate(model, 50, np.random.default_rng(0), prefix=[1, 2])
    assert len(drawn) == 50
    assert set(drawn) <= {0, 1, 2}


def test_both_directions_of_counted_bigrams_differ_only_at_the_ends() -> None:
    rng = np.random.default_rng(0)
    text = rng.integers(4, size=3000) * rng.integers(2, size=3000)
    found = both_directions(lambda ids: maximum_likelihood(count_ngrams(ids, K, 2)), text, text)
    n = np.bincount(text)
    joint = [len(text) * found.forward.nats, len(text) * found.backward.nats]
    assert joint[0] != joint[1] or text[0] == text[-1]
    assert abs(joint[0] - joint[1]) < 2 * np.log(n.max())


def test_the_backward_model_reads_the_text_from_its_end() -> None:
    train, test = np.array([0, 1, 2, 0, 1, 2, 3]), np.array([3, 1, 0])
    build = lambda ids: laplace(count_ngrams(ids, K, 2))  # noqa: E731
    found = both_directions(build, train, test)
    assert found.backward.nats == pytest.approx(-build(train[::-1]).log_prob(np.array([0, 1, 3])).mean())
    assert found.forward.targets == found.backward.targets == 2


@pytest.mark.parametrize("prefix", [[], [0], [0, 1, 2]])
def test_every_generated_ngram_of_a_maximum_likelihood_model_occurs_in_the_text(prefix):
    ids = np.array([0, 1, 2, 0, 2, 1, 1, 0, 1, 2, 2, 0, 1, 0, 2] * 6, np.int32)
    model = maximum_likelihood(count_ngrams(ids, 3, 5))
    drawn = prefix + generate(model, 200, np.random.default_rng(0), prefix)
    seen = {tuple(ids[i : i + 5].tolist()) for i in range(len(ids) - 4)}
    windows = {tuple(drawn[i : i + 5]) for i in range(len(prefix), len(drawn) - 4)}
    assert windows <= seen
