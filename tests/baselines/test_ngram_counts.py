"""Counts of n-grams, against counting with a dictionary."""

import tracemalloc
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.baselines import ngram_counts as counting
from unspool.baselines.ngram_counts import count_ngrams
from unspool.errors import EmptyInput, InputError

TEXTS = st.lists(st.integers(0, 4), min_size=6, max_size=60)


@given(text=TEXTS, order=st.integers(1, 6), K=st.sampled_from([5, 3_000_000]))
def test_counts_are_those_of_a_dictionary(text: list[int], order: int, K: int) -> None:
    counts = count_ngrams(np.array(text, np.int32), K, order)
    for n in range(1, order + 1):
        expected = Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))
        assert len(counts.levels[n - 1].keys) == len(expected)
        assert all(counts.count(ngram) == number for ngram, number in expected.items())
        assert counts.levels[n - 1].counts.sum() == len(text) - n + 1
    assert counts.count([K - 1]) == text.count(K - 1)


@given(text=TEXTS)
def test_continuations_and_suffixes_are_those_of_the_text(text: list[int]) -> None:
    counts = count_ngrams(np.array(text), 5, 3)
    following = defaultdict(Counter)
    for a, b, c in zip(text, text[1:], text[2:], strict=False):
        following[a, b][c] += 1
    for context, expected in following.items():
        level, span = counts.levels[2], counts.levels[2].span(counts.entry(context))
        tokens, numbers = level.keys[span] % counts.K, level.counts[span]
        assert dict(zip(tokens.tolist(), numbers.tolist(), strict=True)) == expected
    for ngram in {tuple(text[i : i + 3]) for i in range(len(text) - 2)}:
        assert counts.levels[2].suffixes[counts.entry(ngram)] == counts.entry(ngram[1:])
        assert counts.levels[2].prefixes[counts.entry(ngram)] == counts.entry(ngram[:-1])


def test_keys_do_not_overflow_with_a_large_vocabulary_and_a_high_order() -> None:
    rng = np.random.default_rng(0)
    text = rng.integers(2**31 - 1, size=50)
    counts = count_ngrams(np.concatenate([text, text]), 2**31 - 1, 12)
    assert counts.count(text[:12].tolist()) == 2
    assert counts.count([*text[:11].tolist(), 5]) == 0


def test_what_cannot_be_counted_is_an_error() -> None:
    with pytest.raises(InputError, match="order"):
        count_ngrams(np.array([0, 1]), 2, 0)
    with pytest.raises(EmptyInput, match="too short"):
        count_ngrams(np.array([0, 1]), 2, 3)
    with pytest.raises(InputError, match="expected 0 … 1"):
        count_ngrams(np.array([0, 2]), 2, 1)
    with pytest.raises(InputError, match="expected 1 … 2"):
        count_ngrams(np.array([0, 1]), 2, 2).count([0, 1, 0])


@given(
    text=TEXTS, order=st.integers(1, 5), K=st.sampled_from([5, 3_000_000]), block=st.integers(1, 9),
    carried=st.sampled_from([0, 1 << 25]),
)  # fmt: skip
def test_a_text_in_blocks_gives_the_counts_of_the_whole(
    text: list[int], order: int, K: int, block: int, carried: int
) -> None:
    ids = np.array(text, np.int32)
    whole = count_ngrams(ids, K, order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "BLOCK", block)
        patch.setattr(counting, "CARRIED", carried)
        parts = count_ngrams(ids, K, order)
    for one, other in zip(whole.levels, parts.levels, strict=True):
        for field in ("keys", "counts", "suffixes"):
            assert getattr(one, field).tolist() == getattr(other, field).tolist()
        assert one.contexts == other.contexts


def test_memory_grows_with_the_distinct_ngrams_and_not_with_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "BLOCK", 2**13)
    monkeypatch.setattr(counting, "CARRIED", 2**13)
    ids = np.random.default_rng(0).integers(0, 20, 5_000).astype(np.int32)

    def peak(times: int) -> int:
        text = np.tile(ids, times)
        tracemalloc.start()
        count_ngrams(text, 3_000_000, 3)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(80) < 1.5 * peak(10)


def test_absurd_orders_are_refused_before_anything_is_counted() -> None:
    with pytest.raises(
        InputError, match="order is 1,000,000,000,000,000,000; expected a whole number of at most 100"
    ):
        count_ngrams(np.zeros(10, np.int32), 2, 10**18)
