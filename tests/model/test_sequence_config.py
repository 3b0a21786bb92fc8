"""Configs that contradict themselves, beginnings of gates, probes of the state, fits by their updates."""

import numpy as np
import pytest

from unspool.data.batches.examples import Examples
from unspool.errors import Diverged, InputError
from unspool.inspect.probes import probe
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.training.recipe import FitConfig
from unspool.training.sequence_fit import evaluate, fit_network


def config(**more):
    fields = {"shape": "many-to-one", "head": "classes", "inputs": 6, "outputs": 3, "hidden": 32} | more
    return SequenceConfig(**fields)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"shape": "many-to-few"}, "shape is 'many-to-few'"),
        ({"head": "numerals"}, "head is 'numerals'"),
        ({"attention": "general"}, "many-to-one has none"),
        ({"shape": "many-to-many", "pool": "mean"}, "nothing to pool"),
        ({"cell": "elman", "chrono_steps": 10}, "elman has none"),
        ({"shape": "encoder-decoder", "outputs": 2}, "<bos>"),
        ({"hidden": 0}, "hidden is 0"),
        ({"floor": 0.0}, "floor is 0.0"),
    ],
)
def test_a_contradiction_is_refused_when_it_is_made(fields, line):
    with pytest.raises(InputError, match=line):
        config(**fields)


def test_a_config_goes_through_json():
    made = config(cell="lstm", bidirectional=True, chrono_steps=5)
    assert SequenceConfig.from_json(made.to_json()) == made
    with pytest.raises(InputError, match="unknown field 'depth'"):
        SequenceConfig.from_json(made.to_json() | {"depth": 3})


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_gates_that_remember_keep_a_state_for_about_that_long(cell):
    network = Network.initialise(config(cell=cell, chrono_steps=200), seed=0)
    b = network.parameters["encoder.layer0.b"]
    times = 1 + np.exp(b[32:64])  # 1 / (1 - sigmoid(b))
    assert times.min() > 1.5 and times.max() <= 200 and 40 < times.mean() < 160


def test_an_untrained_state_holds_the_last_symbol_and_not_the_one_far_back():
    rng = np.random.default_rng(0)
    strings = [rng.integers(0, 6, 30).astype(np.int32) for _ in range(1500)]
    found = probe(Network.initialise(config(), seed=0), strings, lags=30)
    assert found.accuracy[0] > 0.99 and found.accuracy[29] < 0.3 and 0 < found.held() < 20
    with pytest.raises(InputError, match="40 lags"):
        probe(Network.initialise(config(), seed=0), strings, lags=40)


def test_a_state_that_holds_a_symbol_by_hand_is_read_to_the_end():
    network = Network.initialise(config(cell="elman", hidden=6), seed=0)
    p = network.parameters
    p["encoder.layer0.U"][:] = 0.5 * np.eye(6)
    p["encoder.layer0.W"][:] = 0
    rng = np.random.default_rng(0)
    found = probe(network, [rng.integers(0, 6, 4).astype(np.int32) for _ in range(600)], lags=2)
    assert found.accuracy[0] == 1.0 and found.accuracy[1] < 0.35 and found.held() == 1
    assert 1 <= found.amount < 1.3


def test_a_loss_that_is_not_a_number_stops_a_fit():
    x = np.full((4, 3, 1), np.inf, np.float32)
    network = Network.initialise(config(inputs=1, dense=True), seed=0)
    with pytest.raises(Diverged, match="step 1"):
        list(fit_network(network, Examples(x, np.zeros(4, np.int32)), FitConfig(steps=2)))


def test_losses_are_sums_and_counts_whatever_the_batches():
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 6, n).astype(np.int32) for n in rng.integers(0, 9, 50)]
    network = Network.initialise(config(), seed=0)
    examples = Examples(rows, rng.integers(0, 3, 50).astype(np.int32))
    one, many = evaluate(network, examples, B=50), evaluate(network, examples, B=7)
    assert one.count == many.count == 50 and one.sum == pytest.approx(many.sum, rel=1e-12)


def test_rows_of_another_length_than_their_targets_are_named():
    network = Network.initialise(config(shape="many-to-many"), seed=0)
    rows = [np.zeros(2, np.int32), np.zeros(3, np.int32)]
    with pytest.raises(InputError, match="sequence 2 has 3 steps and 2 targets"):
        evaluate(network, Examples(rows, [np.zeros(2, np.int32), np.zeros(2, np.int32)]))
