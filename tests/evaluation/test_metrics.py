"""The protocol of measuring: its limits, and that sums are divided once."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.errors import EmptyInput
from unspool.evaluation.metrics import measure


def test_certainty_is_one_and_impossibility_is_infinite() -> None:
    assert measure(np.log(np.ones(5))).perplexity == 1.0
    assert measure(np.array([-1.0, -np.inf])).perplexity == math.inf
    assert measure(np.full(3, -1000.0)).perplexity == math.inf


@given(K=st.integers(1, 10_000), targets=st.integers(1, 50))
def test_an_even_guess_among_k_tokens_is_k(K: int, targets: int) -> None:
    assert measure(np.full(targets, -np.log(K))).perplexity == pytest.approx(K)


def test_perplexity_is_the_geometric_mean_of_one_over_p_not_the_harmonic() -> None:
    p = np.array([0.5, 0.1, 0.9])
    assert measure(np.log(p)).perplexity == pytest.approx(np.prod(1 / p) ** (1 / 3))
    assert measure(np.log(p)).perplexity != pytest.approx(1 / np.mean(p))


@given(p=st.lists(st.floats(0.001, 1), min_size=2, max_size=40), cut=st.integers(1, 39))
def test_blocks_of_different_length_weigh_by_their_tokens(p: list[float], cut: int) -> None:
    logs = np.log(p)
    assert measure([logs[:cut], logs[cut:]]).nats == pytest.approx(measure(logs).nats, rel=1e-12)


def test_bits_are_counted_by_character_and_by_byte() -> None:
    result = measure(np.log([0.25, 0.25]), characters=2, bytes=8)
    assert result.bits_per_character == pytest.approx(2.0)
    assert result.bits_per_byte == pytest.approx(0.5)
    assert measure(np.log([0.25])).bits_per_byte is None


def test_nothing_cannot_be_measured() -> None:
    with pytest.raises(EmptyInput, match="at least two tokens"):
        measure(np.zeros(0))
