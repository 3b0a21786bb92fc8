"""Markov chains, against the enumeration of all paths."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.baselines.markov import MarkovChain, estimate
from unspool.errors import EmptyInput, InputError

SHAPES = {"K": st.integers(2, 3), "order": st.integers(1, 3), "seed": st.integers(0, 1000)}


def draw_chain(K: int, order: int, seed: int, zeros: bool = False) -> MarkovChain:
    rng = np.random.default_rng(seed)
    initial = rng.dirichlet(np.ones(K**order)).reshape((K,) * order)
    transition = rng.dirichlet(np.ones(K), size=(K,) * order)
    if zeros:
        transition = np.where(transition < 0.2, 0, transition)
        transition /= transition.sum(-1, keepdims=True)
    return MarkovChain(initial, transition)


def paths(chain: MarkovChain, length: int) -> dict[tuple[int, ...], float]:
    """Multiply the probabilities out along every path there is."""
    found = {}
    k = chain.order
    for path in itertools.product(range(chain.K), repeat=length):
        p = float(chain.initial[path[:k]])
        for t in range(k, length):
            p *= chain.transition[path[t - k : t + 1]]
        found[path] = p
    return found


@settings(max_examples=30)
@given(**SHAPES, more=st.integers(0, 3))
def test_everything_is_what_enumeration_gives(K: int, order: int, seed: int, more: int) -> None:
    chain = draw_chain(K, order, seed, zeros=bool(seed % 2))
    length = order + more
    every = paths(chain, length)
    assert sum(every.values()) == pytest.approx(1.0)
    for path in list(every)[:: 1 + len(every) // 20]:
        assert chain.probability(path) == pytest.approx(every[path])
    marginals = [
        [sum(p for path, p in every.items() if path[t] == s) for s in range(K)] for t in range(length)
    ]
    np.testing.assert_allclose(chain.marginals(length), marginals, atol=1e-12)
    best, probability = chain.most_probable_path(length)
    assert probability == pytest.approx(max(every.values()))
    assert every[tuple(best)] == pytest.approx(probability)


@settings(max_examples=30)
@given(**SHAPES, steps=st.integers(1, 4))
def test_prediction_several_steps_ahead_sums_over_all_paths_between(
    K: int, order: int, seed: int, steps: int
) -> None:
    chain = draw_chain(K, order, seed)
    context = tuple(np.random.default_rng(seed).integers(K, size=order).tolist())
    expected = np.zeros(K)
    for path in itertools.product(range(K), repeat=steps):
        whole = context + path
        expected[path[-1]] += np.prod([chain.transition[whole[t : t + order + 1]] for t in range(steps)])
    np.testing.assert_allclose(chain.ahead([9, *context], steps), expected, atol=1e-12)


@settings(max_examples=30)
@given(**SHAPES)
def test_the_stationary_distribution_is_what_the_chain_comes_to(K: int, order: int, seed: int) -> None:
    chain = draw_chain(K, order, seed)
    np.testing.assert_allclose(chain.marginals(order + 3000)[-1], chain.stationary(), atol=1e-8)


def test_a_periodic_chain_and_one_with_states_left_for_good_have_one_answer() -> None:
    swap = MarkovChain(np.array([1.0, 0.0]), np.array([[0.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(swap.stationary(), [0.5, 0.5])
    absorbing = MarkovChain(
        np.array([1.0, 0, 0]), np.array([[0.5, 0.25, 0.25], [0, 0.5, 0.5], [0, 0.5, 0.5]])
    )
    np.testing.assert_allclose(absorbing.stationary(), [0, 0.5, 0.5])


def test_a_chain_in_two_parts_has_no_single_answer() -> None:
    with pytest.raises(InputError, match="not unique"):
        MarkovChain(np.array([0.5, 0.5]), np.eye(2)).stationary()


@given(text=st.lists(st.integers(0, 2), min_size=5, max_size=40), order=st.integers(1, 3))
def test_estimates_are_relative_frequencies(text: list[int], order: int) -> None:
    chain = estimate(np.array(text), 3, order)
    grams = [tuple(text[i : i + order + 1]) for i in range(len(text) - order)]
    for context in itertools.product(range(3), repeat=order):
        following = [gram[-1] for gram in grams if gram[:-1] == context]
        expected = [following.count(s) / len(following) if following else 1 / 3 for s in range(3)]
        np.testing.assert_allclose(chain.transition[context], expected)
    starts = [tuple(text[i : i + order]) for i in range(len(text) - order + 1)]
    assert chain.initial[starts[0]] == pytest.approx(starts.count(starts[0]) / len(starts))


def test_added_counts_smooth() -> None:
    chain = estimate(np.array([0, 0, 0]), 2, add=1)
    np.testing.assert_allclose(chain.transition, [[0.75, 0.25], [0.5, 0.5]])


def test_log_probabilities_leave_out_what_is_given() -> None:
    chain = draw_chain(3, 2, 0)
    ids = np.array([0, 2, 1, 1])
    assert np.exp(chain.log_prob(ids, given=0).sum()) == pytest.approx(chain.probability(ids))
    assert len(chain.log_prob(ids)) == 3
    np.testing.assert_allclose(
        np.exp(chain.log_prob(ids)[1:]), [chain.transition[0, 2, 1], chain.transition[2, 1, 1]]
    )


def test_nonsense_is_refused() -> None:
    with pytest.raises(InputError, match="do not sum to 1"):
        MarkovChain(np.array([0.5, 0.6]), np.full((2, 2), 0.5))
    with pytest.raises(InputError, match="equal axes"):
        MarkovChain(np.array([0.5, 0.5]), np.full((2, 3), 1 / 3))
    with pytest.raises(InputError, match="at most"):
        estimate(np.zeros(9, np.int32), 1000, 3)
    with pytest.raises(EmptyInput):
        estimate(np.zeros(1, np.int32), 2, 1)
    with pytest.raises(InputError, match="length"):
        draw_chain(2, 2, 0).most_probable_path(1)
    with pytest.raises(InputError, match="ahead"):
        draw_chain(2, 2, 0).ahead([0], 1)
    with pytest.raises(InputError, match="at most 4,096"):
        estimate(np.arange(100), 100, 2).stationary()


@settings(max_examples=30)
@given(**SHAPES, more=st.integers(0, 2), t=st.integers(1, 3))
def test_the_reverse_conditional_is_what_enumeration_gives(
    K: int, order: int, seed: int, more: int, t: int
) -> None:
    chain = draw_chain(K, order, seed, zeros=bool(seed % 2))
    every = paths(chain, t + order + more)
    joint = np.zeros((K,) * (order + 1))
    for path, p in every.items():
        joint[path[t - 1 : t + order]] += p  # x(t) … x(t+k)
    before = joint.sum(0, keepdims=True)
    expected = np.where(before > 0, joint / np.maximum(before, 1e-300), 1 / K).T
    np.testing.assert_allclose(chain.reverse_conditional(t), expected, atol=1e-12)


@settings(max_examples=30)
@given(**SHAPES, more=st.integers(-2, 3))
def test_both_factorisations_give_a_sequence_the_same_probability(
    K: int, order: int, seed: int, more: int
) -> None:
    chain = draw_chain(K, order, seed, zeros=bool(seed % 2))
    for path in itertools.product(range(K), repeat=max(1, order + more)):
        forward = np.exp(chain.log_prob(np.array(path), given=0).sum())
        assert np.exp(chain.log_prob_reversed(np.array(path)).sum()) == pytest.approx(forward, abs=1e-15)


@settings(max_examples=20)
@given(**SHAPES)
def test_the_stationary_chain_reversed_is_a_chain_with_the_same_probabilities(
    K: int, order: int, seed: int
) -> None:
    drawn = draw_chain(K, order, seed)
    chain = MarkovChain(drawn.stationary_joint(), drawn.transition)
    back = chain.reversed()
    for path in itertools.product(range(K), repeat=order + 2):
        assert back.probability(path[::-1]) == pytest.approx(chain.probability(path))
        terms = back.log_prob(np.array(path[::-1]), given=0)
        np.testing.assert_allclose(chain.log_prob_reversed(np.array(path)), terms, atol=1e-9)
    np.testing.assert_allclose(chain.reverse_conditional(3), chain.reverse_conditional(), atol=1e-9)
    np.testing.assert_allclose(back.stationary(), chain.stationary(), atol=1e-9)
    np.testing.assert_allclose(back.reversed().transition, chain.transition, atol=1e-8)


def test_a_step_before_the_first_is_refused() -> None:
    for t in (0, -1, 1.5, True):
        with pytest.raises(InputError, match=f"t is {t}; expected a whole number of 1 or more"):
            draw_chain(2, 1, 0).reverse_conditional(t)


def test_a_step_may_be_an_integer_of_numpy() -> None:
    chain = draw_chain(2, 1, 0)
    np.testing.assert_array_equal(chain.reverse_conditional(np.int64(2)), chain.reverse_conditional(2))
