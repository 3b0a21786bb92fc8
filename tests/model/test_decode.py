"""Writing: greedy is a beam of one, a wide beam finds the most probable sequence, a row is alone."""

import itertools

import numpy as np
import pytest

from unspool.data.batches.examples import SequenceBatch
from unspool.kernels.elementwise import log_softmax, softmax, squareplus, tanh
from unspool.model.decode import beam, sample, until_end
from unspool.model.sequence_config import BOS, EOS, UNK, SequenceConfig
from unspool.model.sequence_network import Network


def make(attention, K=5, seed=0, **more):
    config = SequenceConfig(
        "encoder-decoder", "classes", inputs=4, outputs=K, hidden=5, attention=attention, **more
    )
    network = Network.initialise(config, seed)
    network.parameters["V"][:] *= 3  # far from uniform
    lengths = np.array([3, 1, 4], np.int32)
    x = np.random.default_rng(seed).integers(0, 4, (4, 3)).astype(np.int32)
    return network, SequenceBatch(x, lengths, None, None, np.arange(3))


def log_prob(network, batch, row, tokens):
    """log P of a whole sequence, by one pass with teacher forcing."""
    L, n = int(batch.lengths[row]), len(tokens)
    y = np.array(tokens, np.int32)[:, None]
    one = SequenceBatch(
        batch.x[:L, row : row + 1], batch.lengths[row : row + 1], y, np.array([n], np.int32), np.arange(1)
    )
    return -network.loss(one).sum


@pytest.mark.parametrize("attention", ["none", "general", "additive"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_wide_beam_finds_the_most_probable_sequence(attention, seed):
    network, batch = make(attention, K=7, seed=seed)
    longest, K = 3, network.config.outputs
    others = [t for t in range(K) if t not in (UNK, BOS, EOS)]
    ended = [[*body, EOS] for n in range(longest) for body in itertools.product(others, repeat=n)] + [
        list(body) for body in itertools.product(others, repeat=longest)
    ]
    found = beam(network, batch, network.weights(), max_length=longest, width=K**longest)
    for row, written in enumerate(found):
        scores = [log_prob(network, batch, row, tokens) for tokens in ended]
        best = int(np.argmax(scores))
        assert written.log_prob == pytest.approx(scores[best], abs=1e-4)
        assert written.tokens.tolist() == until_end(np.array(ended[best])).tolist()


@pytest.mark.parametrize("attention", ["none", "general"])
def test_greedy_takes_the_most_probable_token_and_its_log_prob_is_that_of_teacher_forcing(attention):
    network, batch = make(attention, bidirectional=True, cell="lstm")
    for row, written in enumerate(beam(network, batch, network.weights(), max_length=6)):
        tokens = written.tokens.tolist() + ([EOS] if len(written.tokens) < 6 else [])
        assert written.log_prob == pytest.approx(log_prob(network, batch, row, tokens), abs=1e-4)
        for at in range(len(tokens)):
            can = [t for t in range(network.config.outputs) if t not in (UNK, BOS)]
            here = [log_prob(network, batch, row, [*tokens[:at], t]) for t in can]
            assert can[int(np.argmax(here))] == tokens[at]


def test_a_row_is_written_alone_as_among_others():
    network, batch = make("general")
    weights = network.weights()
    for width in (1, 3):
        among = beam(network, batch, weights, max_length=5, width=width)
        for row in range(3):
            L = int(batch.lengths[row])
            alone = SequenceBatch(
                batch.x[:L, row : row + 1], batch.lengths[row : row + 1], None, None, np.array([row])
            )
            (single,) = beam(network, alone, weights, max_length=5, width=width)
            assert single.tokens.tolist() == among[row].tokens.tolist()
            assert single.log_prob == among[row].log_prob
            drawn = sample(network, alone, weights, max_length=5, temperature=1.0, seed=3)[0]
            whole = sample(network, batch, weights, max_length=5, temperature=1.0, seed=3)[row]
            assert drawn.tokens.tolist() == whole.tokens.tolist()


def test_draws_have_the_frequencies_of_the_distribution():
    network, batch = make("none")
    n = 3000
    many = SequenceBatch(
        np.repeat(batch.x[:, :1], n, axis=1), np.full(n, 3, np.int32), None, None, np.arange(n)
    )
    drawn = sample(network, many, network.weights(), max_length=1, temperature=1.0, seed=0)
    p = np.exp([log_prob(network, batch, 0, [t]) for t in range(5)])
    p[[UNK, BOS]] = 0
    p /= p.sum()
    counts = np.bincount([each.tokens[0] if len(each.tokens) else EOS for each in drawn], minlength=5)
    assert np.abs(counts / n - p).max() < 4 * np.sqrt(0.25 / n)


def test_special_tokens_are_never_written_however_probable():
    network, batch = make("none")
    network.parameters["c"][[UNK, BOS]] = 50
    weights = network.weights()
    ways = [beam(network, batch, weights, max_length=4, width=width) for width in (1, 3)]
    ways += [sample(network, batch, weights, max_length=4, temperature=t, seed=0) for t in (0.01, 1.0)]
    for written in (each for way in ways for each in way):
        assert not {UNK, BOS} & set(written.tokens.tolist()) and np.isfinite(written.log_prob)


def test_elementwise_functions_are_numpys():
    x = np.linspace(-30, 30, 301).astype(np.float32).reshape(7, 43)
    assert np.abs(tanh(x) - np.tanh(x.astype(np.float64))).max() < 3e-7
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    assert softmax(x) == pytest.approx(e / e.sum(1, keepdims=True), rel=1e-5, abs=1e-12)
    assert np.exp(log_softmax(x)) == pytest.approx(e / e.sum(1, keepdims=True), rel=1e-5, abs=1e-12)
    value, slope = squareplus(x)
    step = 1e-5
    numeric = (squareplus(x + np.float64(step))[0] - squareplus(x - np.float64(step))[0]) / (2 * step)
    assert (value > 0).all() and slope == pytest.approx(numeric, abs=1e-8, rel=1e-5)
