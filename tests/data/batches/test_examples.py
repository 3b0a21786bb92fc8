"""Batches of sequences: every sequence once, nothing lost, little padding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.data.batches.examples import Examples, group_by_length, pad
from unspool.errors import EmptyInput, InputError

LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=30)


@given(lengths=LENGTHS, B=st.integers(1, 7), seed=st.none() | st.integers(0, 9))
def test_every_sequence_is_in_one_batch_as_it_was(lengths: list[int], B: int, seed: int | None) -> None:
    sequences = [np.arange(n, dtype=np.int32) + 100 * i for i, n in enumerate(lengths)]
    rng = None if seed is None else np.random.default_rng(seed)
    seen = []
    for batch in Examples(sequences).batches(B, rng, per_step=False):
        assert batch.x.shape == (max(1, batch.lengths.max()), batch.B)
        assert batch.B <= B
        for b, row in enumerate(batch.rows):
            np.testing.assert_array_equal(batch.x[: batch.lengths[b], b], sequences[row])
            assert (batch.x[batch.lengths[b] :, b] == 0).all()
        seen += batch.rows.tolist()
    assert sorted(seen) == list(range(len(lengths)))


def test_sequences_of_vectors_keep_their_channels() -> None:
    batch = next(Examples([np.ones((2, 3)), np.ones((4, 3))]).batches(2, per_step=False))
    assert batch.x.shape == (4, 2, 3)
    assert batch.x.sum() == 18


def test_buckets_save_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = np.random.default_rng(0).integers(1, 100, size=400)

    def padding(buckets: int) -> int:
        monkeypatch.setattr("unspool.data.batches.examples.BUCKETS", buckets)
        groups = group_by_length(lengths, 10, np.random.default_rng(1))
        return sum(int((lengths[rows].max() - lengths[rows]).sum()) for rows in groups)

    assert padding(8) < 0.35 * padding(1)


def test_padding_is_minus_one_or_nan_where_targets_are_missing() -> None:
    x, lengths = pad([np.array([1, 2]), np.array([3])], missing=True)
    assert x.T.tolist() == [[1, 2], [3, -1]] and lengths.tolist() == [2, 1]
    assert np.isnan(pad([np.array([1.0]), np.zeros(0)], missing=True)[0][0, 1])


def test_nothing_and_nonsense_are_errors() -> None:
    with pytest.raises(EmptyInput):
        Examples([])
    with pytest.raises(InputError):
        group_by_length(np.array([2]), 0)
