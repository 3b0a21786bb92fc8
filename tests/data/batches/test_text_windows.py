"""Minibatches: what is in them, that nothing is in them twice, and that their place can be found again."""

import json
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.data.batches.text_windows import Batches, random_batches, sequential_batches
from unspool.errors import InputError

MAKERS = [random_batches, sequential_batches]
SIZES = {
    "B": st.integers(1, 5),
    "tau": st.integers(1, 7),
    "extra": st.integers(1, 60),
    "seed": st.integers(0, 99),
}


def make(maker: object, B: int, tau: int, extra: int, seed: int, epochs: int | None = 1) -> Batches:
    ids = np.arange(B * tau + extra, dtype=np.int32)
    return maker(ids, B, tau, np.random.default_rng(seed), epochs)  # type: ignore[operator, no-any-return]


@pytest.mark.parametrize("maker", MAKERS)
@given(**SIZES)
def test_targets_are_inputs_shifted_by_one_and_time_runs_downwards(
    maker: object, B: int, tau: int, extra: int, seed: int
) -> None:
    batches = list(make(maker, B, tau, extra, seed))
    assert batches
    for batch in batches:
        assert batch.x.shape == batch.y.shape == (tau, B)
        assert batch.x.dtype == batch.y.dtype == np.int32
        assert batch.reset.shape == (B,)
        assert (batch.y == batch.x + 1).all()  # the ids count up, so the next token is one more
        assert (np.diff(batch.x, axis=0) == 1).all()


@pytest.mark.parametrize("maker", MAKERS)
@given(**SIZES)
def test_every_token_is_used_once_an_epoch_up_to_the_stated_remainder(
    maker: object, B: int, tau: int, extra: int, seed: int
) -> None:
    used = Counter(np.concatenate([batch.y.ravel() for batch in make(maker, B, tau, extra, seed)]).tolist())
    assert set(used.values()) == {1}
    targets = B * tau + extra - 1
    left_out = 2 * (tau - 1) + (B - 1) * tau if maker is random_batches else (B + 1) * tau - 1
    assert targets - left_out <= len(used) <= targets


@given(**SIZES)
def test_rows_go_on_where_they_stopped(B: int, tau: int, extra: int, seed: int) -> None:
    batches = list(make(sequential_batches, B, tau, extra, seed))
    for before, after in pairwise(batches):
        assert (after.x[0] == before.y[-1]).all()
        assert not after.reset.any()
    assert batches[0].reset.all()


@given(**SIZES)
def test_random_windows_are_always_fresh(B: int, tau: int, extra: int, seed: int) -> None:
    assert all(batch.reset.all() for batch in make(random_batches, B, tau, extra, seed))


@pytest.mark.parametrize("maker", MAKERS)
@given(**SIZES, given=st.integers(0, 25))
def test_a_place_written_as_json_is_found_again(
    maker: object, B: int, tau: int, extra: int, seed: int, given: int
) -> None:
    batches = make(maker, B, tau, extra, seed, epochs=None)
    for _ in range(given):
        next(batches)
    place = json.loads(json.dumps(batches.state()))
    expected = [next(batches) for _ in range(25)]
    again = make(maker, B, tau, extra, seed=1234, epochs=None)
    again.restore(place)
    for batch in expected:
        other = next(again)
        assert (batch.x == other.x).all()
        assert (batch.y == other.y).all()
        assert (batch.reset == other.reset).all()
    assert again.state() == batches.state()


@pytest.mark.parametrize("maker", MAKERS)
def test_offsets_change_so_that_over_epochs_nothing_is_left_out(maker: object) -> None:
    used = np.concatenate([batch.y.ravel() for batch in make(maker, 2, 5, 20, 0, epochs=40)])
    assert set(used.tolist()) == set(range(1, 30))


def test_epochs_end_and_begin_anew_in_another_order() -> None:
    batches = make(random_batches, 2, 3, 60, 0, epochs=2)
    found = list(batches)
    half = batches.epoch and len(found) // 2
    assert batches.epoch == 2
    assert not np.array_equal(found[0].x, found[half].x)
    assert list(batches) == []


def test_the_same_seed_gives_the_same_batches() -> None:
    one, two = (list(make(random_batches, 3, 4, 50, 7)) for _ in range(2))
    assert all((a.x == b.x).all() for a, b in zip(one, two, strict=True))


def test_a_place_of_other_batches_is_refused() -> None:
    place = make(random_batches, 2, 3, 9, 0).state()
    with pytest.raises(InputError, match="kind"):
        make(sequential_batches, 2, 3, 9, 0).restore(place)
    with pytest.raises(InputError, match="tau"):
        make(random_batches, 2, 4, 7, 0).restore(place)


@pytest.mark.parametrize("maker", MAKERS)
def test_a_text_shorter_than_a_batch_is_an_error(maker: object) -> None:
    with pytest.raises(InputError, match=r"6 tokens, but a batch of 2 rows with 3 steps needs 7"):
        make(maker, 2, 3, 0, 0)
    with pytest.raises(InputError, match="1 or more"):
        make(maker, 0, 3, 9, 0)
