"""Padded batches: every sequence once, nothing lost, little padding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.data.batches.padded import padded_batches
from unspool.errors import EmptyInput, InputError

LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=30)


@given(lengths=LENGTHS, B=st.integers(1, 7), seed=st.none() | st.integers(0, 9))
def test_every_sequence_is_in_one_batch_as_it_was(lengths: list[int], B: int, seed: int | None) -> None:
    sequences = [np.arange(n) + 100 * i for i, n in enumerate(lengths)]
    rng = None if seed is None else np.random.default_rng(seed)
    seen = []
    for batch in padded_batches(sequences, B, rng, pad=-1):
        assert batch.x.shape == (batch.lengths.max(), len(batch.rows))
        assert len(batch.rows) <= B
        for b, row in enumerate(batch.rows):
            np.testing.assert_array_equal(batch.x[: batch.lengths[b], b], sequences[row])
            assert (batch.x[batch.lengths[b] :, b] == -1).all()
        np.testing.assert_array_equal(batch.mask, batch.x >= 0)
        seen += batch.rows.tolist()
    assert sorted(seen) == list(range(len(lengths)))


def test_sequences_of_vectors_keep_their_channels() -> None:
    batch = next(padded_batches([np.ones((2, 3)), np.ones((4, 3))], B=2))
    assert batch.x.shape == (4, 2, 3)
    assert batch.x.sum() == 18


def test_buckets_save_padding() -> None:
    rng = np.random.default_rng(0)
    sequences = [np.ones(n) for n in rng.integers(1, 100, size=400)]

    def padding(buckets: int) -> int:
        batches = padded_batches(sequences, 10, np.random.default_rng(1), buckets=buckets)
        return sum(int((~batch.mask).sum()) for batch in batches)

    assert padding(8) < 0.35 * padding(1)


def test_nothing_and_nonsense_are_errors() -> None:
    with pytest.raises(EmptyInput):
        padded_batches([], 2)
    with pytest.raises(InputError):
        padded_batches([np.ones(2)], 0)
