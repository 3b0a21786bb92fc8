"""The range coder and its frequencies: round trips, sizes, and an outside authority."""

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from unspool.compress.integer_frequencies import STEPS_PER_NAT, TABLE, frequencies
from unspool.compress.range_coder import Decoder, Encoder
from unspool.errors import FileError, InputError

TOTALS = st.one_of(st.integers(1, 300), st.integers(1, 2**50))


@st.composite
def intervals(draw):
    total = draw(TOTALS)
    start = draw(st.one_of(st.integers(0, total - 1), st.just(total - 1), st.just(0)))
    return start, draw(st.one_of(st.integers(1, total - start), st.just(1), st.just(total - start))), total


def coded(choices):
    encoder = Encoder()
    for choice in choices:
        encoder.put(*choice)
    return encoder.finish()


def bits_of(choices):
    return math.fsum(math.log2(total / size) for _, size, total in choices)


@settings(max_examples=100, deadline=None)
@given(st.lists(intervals(), max_size=60))
@example([])
@example([(2**50 - 1, 1, 2**50)] * 40)  # always the last: the numbers are near the top, and carry
@example([(1, 1, 3)] * 200)
def test_every_choice_comes_back(choices):
    decoder = Decoder(coded(choices))
    for start, size, total in choices:
        assert start <= decoder.point(total) < start + size
        decoder.take(start, size)


@settings(max_examples=60, deadline=None)
@given(st.lists(intervals(), max_size=60))
def test_the_size_is_the_sum_of_the_logarithms_and_at_most_a_byte(choices):
    lost = len(choices) * 1.5 * 2**-6  # the remainder of a division by a total of 2^50
    assert len(coded(choices)) * 8 <= bits_of(choices) + lost + 8


@st.composite
def exact_intervals(draw):
    """Sizes and totals that are powers of two: nothing is rounded. Their starts are any, so that numbers carry."""
    total = 2 ** draw(st.integers(1, 40))
    size = 2 ** draw(st.integers(0, total.bit_length() - 2))
    return draw(st.sampled_from([total - size, total // 2 - size // 2, 0])), size, total


@settings(max_examples=100, deadline=None)
@given(st.lists(exact_intervals(), max_size=60))
@example([(1, 2, 4)] * 30 + [(2**40 - 1, 1, 2**40)])  # 3/8, 7/16 … to just below 1/2, and beyond it
@example([(2**39 - 1, 2, 2**40), (1, 1, 2)])  # a carry through five bytes that are full
def test_the_number_lies_where_fractions_say(choices):
    low, width = Fraction(0), Fraction(1)
    for start, size, total in choices:
        low, width = low + width * Fraction(start, total), width * Fraction(size, total)
    content = coded(choices)
    assert low <= Fraction(int.from_bytes(content, "big"), 256 ** len(content)) < low + width


def test_numbers_that_no_choice_gives_are_refused():
    total = 3 * 2**48  # 2^64 is no multiple of it: a remainder is left at the top
    with pytest.raises(FileError, match="damaged"):
        Decoder(b"\xff" * 8).point(total)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-80, 80, width=32), min_size=1, max_size=60))
def test_frequencies_are_the_softmax(o):
    o = np.float32(o)
    f = frequencies(o)
    p = np.exp(np.float64(o) - o.max())
    p /= p.sum()
    q = f / f.sum()
    assert (f >= 1).all() and f.sum() < 2**50
    assert (p * np.log(p / q)).sum() < 2e-7  # nats that they cost more
    assert np.allclose(q, p, rtol=2**-10, atol=2**-29)


def test_frequencies_of_rows_are_those_of_each_row():
    o = np.random.default_rng(0).normal(0, 5, (50, 37)).astype(np.float32)
    assert (frequencies(o) == np.stack([frequencies(row) for row in o])).all()


def test_the_table_is_the_same_on_every_machine():
    # A change here would make every file that was ever written unreadable.
    assert hashlib.sha256(TABLE.astype("<i8").tobytes()).hexdigest() == GOLDEN
    assert (np.floor(2.0 ** (30 - np.arange(2048) / 2048)) == TABLE).all()
    assert math.isclose(STEPS_PER_NAT, 2048 / math.log(2), rel_tol=1e-15)


GOLDEN = "89be6db8e8bb5fa143bb8c78517d05ebef8631ebf997ba013b92c314e11e8d7b"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_outputs_that_are_no_numbers_are_refused(bad):
    with pytest.raises(InputError, match="not finite"):
        frequencies(np.float32([0.0, bad]))
    assert frequencies(np.float32([0.0, -np.inf])).tolist() == [2**30 + 1, 1]


def test_the_size_is_that_of_another_coder():
    constriction = pytest.importorskip("constriction")
    rng = np.random.default_rng(1)
    o = rng.normal(0, 3, (5000, 60)).astype(np.float32)
    f = frequencies(o)
    p = f / f.sum(1, keepdims=True)
    symbols = np.array([rng.choice(60, p=row) for row in p])
    ends = f.cumsum(1)
    rows = np.arange(len(symbols))
    start, size = ends[rows, symbols] - f[rows, symbols], f[rows, symbols]
    ours = coded(zip(start.tolist(), size.tolist(), ends[:, -1].tolist(), strict=True))
    other = constriction.stream.queue.RangeEncoder()
    family = constriction.stream.model.Categorical(perfect=False)
    other.encode(symbols.astype(np.int32), family, p.astype(np.float32))
    theirs, ideal = other.num_bits(), -np.log2(p[rows, symbols]).sum()
    assert len(ours) * 8 < ideal + 9
    assert abs(len(ours) * 8 - theirs) < 64 + 1e-4 * ideal
