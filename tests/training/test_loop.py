"""Training as a walk of reports: the loss falls, the run repeats to the bit, and divergence is said."""

import math

import numpy as np
import pytest

from cases import CELLS, Batch, config_of
from unspool.errors import Diverged
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.optimisers.adam import Adam
from unspool.optimisers.sgd import SGD
from unspool.training.loop import train


def repeated(config, steps, tau=10, B=4, period=5):
    """A sequence that repeats itself: all of it can be learned."""
    tokens = (np.arange(steps * tau + 1)[:, None] + np.arange(B)) % period
    tokens = tokens.astype(np.int32)
    for i in range(steps):
        yield Batch(tokens[i * tau : (i + 1) * tau], tokens[i * tau + 1 : (i + 1) * tau + 1], i == 0)


def small(cell, **more):
    return ModelConfig(**({"inputs": 5, "outputs": 5, "cell": cell, "hidden": 16} | more))


@pytest.mark.parametrize(
    "optimiser",
    [lambda: Adam(learning_rate=0.02), lambda: SGD(learning_rate=0.5)],
)
@pytest.mark.parametrize("cell", CELLS)
def test_the_loss_falls_from_a_guess_to_almost_nothing(cell, optimiser):
    config = small(cell)
    model = Model.initialise(config, seed=0)
    reports = list(train(model, repeated(config, 120), optimiser()))
    assert reports[0].loss == pytest.approx(math.log(5), abs=0.7)
    assert reports[-1].loss < 0.05
    assert [r.step for r in reports] == list(range(1, 121)) and all(r.targets == 40 for r in reports)


GOLDEN = {
    "elman": (1.5055015, 0.1973880),
    "gru": (1.6607333, 1.0602497),
    "lnlstm": (1.6566219, 1.0574899),
    "lstm": (1.6190135, 1.3769894),
}
"""Losses of the first and the tenth step of a seeded run: a change of them is a change of the engine."""


@pytest.mark.parametrize("cell", CELLS)
def test_ten_steps_have_the_losses_that_they_always_had(cell):
    config = small(cell, layers=2, dropout=0.1, embedding=8)
    model = Model.initialise(config, seed=1)
    optimiser = Adam(learning_rate=0.01)
    losses = [report.loss for report in train(model, repeated(config, 10), optimiser, seed=3)]
    assert (losses[0], losses[-1]) == pytest.approx(GOLDEN[cell], abs=1e-4)


def test_the_first_loss_is_the_mean_of_what_an_untrained_model_says():
    config = small("gru")
    model = Model.initialise(config, seed=0)
    batch = next(repeated(config, 1))
    expected = model.loss(model.forward(batch.x), batch.y)
    report = next(train(model, [batch], Adam()))
    assert report.loss == expected.mean and report.targets == expected.count == 40


def test_the_state_is_carried_on_unless_a_window_is_fresh():
    config = small("lstm")
    first, second, _ = repeated(config, 3)
    model = Model.initialise(config, seed=0)
    carried = [r.loss for r in train(model, [first, second], Adam(learning_rate=0.0))]
    anew = [r.loss for r in train(model, [first, Batch(second.x, second.y, True)], Adam(learning_rate=0.0))]
    assert carried[0] == anew[0] and carried[1] != anew[1]
    alone = model.loss(model.forward(second.x), second.y)
    assert anew[1] == alone.mean
    given = next(train(model, [second], Adam(learning_rate=0.0), state=model.forward(first.x).state))
    assert given.loss == carried[1]


def test_a_learned_start_moves_in_a_fresh_window_only():
    config = small("gru", learn_h0=True)
    model = Model.initialise(config, seed=0)
    optimiser = SGD(learning_rate=0.1, momentum=0)
    batch = next(repeated(config, 1))
    report = next(train(model, [batch], optimiser))
    moved = model.parameters["layer0.h0"].copy()
    assert moved.any()
    next(train(model, [Batch(batch.x, batch.y, False)], optimiser, state=report.state))
    assert np.array_equal(model.parameters["layer0.h0"], moved)


def test_masked_targets_count_for_nothing():
    config = small("gru")
    batch = next(repeated(config, 1))
    masked = batch.y.copy()
    masked[3:, 1:] = -1
    report = next(train(Model.initialise(config, seed=0), [Batch(batch.x, masked, True)], Adam()))
    assert report.targets == (masked >= 0).sum() == 19
    nothing = Batch(batch.x, np.full_like(batch.y, -1), True)
    model = Model.initialise(config, seed=0)
    before = model.parameters.flat.copy()
    report = next(train(model, [nothing], Adam()))
    assert report.targets == 0 and report.norm == 0 and math.isnan(report.loss)
    assert np.array_equal(model.parameters.flat, before)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_raises_and_moves_nothing(value):
    config = small("elman", activation="identity")
    model = Model.initialise(config, seed=0)
    model.parameters["layer0.W"][0, 0] = value
    before = model.parameters.flat.tobytes()
    with pytest.raises(Diverged, match="step 1"):
        list(train(model, repeated(config, 1), Adam()))
    assert model.parameters.flat.tobytes() == before


def test_a_gradient_that_is_not_finite_raises_though_the_loss_is():
    config = ModelConfig(inputs=2, outputs=2, cell="elman", hidden=1, activation="identity", dense=True)
    model = Model.initialise(config, seed=0)
    for name, value in {
        "layer0.U": 1e-30,
        "layer0.W": 1e6,
        "layer0.b": 0,
        "V": [[1e4], [-1e4]],
        "c": 0,
    }.items():
        model.parameters[name][:] = value
    x, y = np.zeros((9, 1, 2), np.float32), np.zeros((9, 1), np.int32)
    before = model.parameters.flat.copy()
    with pytest.raises(Diverged, match="gradient"):
        list(train(model, [Batch(x, y, True)], Adam()))
    assert np.array_equal(model.parameters.flat, before)


def test_a_schedule_is_asked_for_every_step():
    config, asked = small("gru"), []

    def schedule(step):
        asked.append(step)
        return 0.0

    model = Model.initialise(config, seed=0)
    before = model.parameters.flat.copy()
    list(train(model, repeated(config, 4), Adam(), schedule=schedule))
    assert asked == [0, 1, 2, 3] and np.array_equal(model.parameters.flat, before)


def test_a_run_continued_elsewhere_ends_in_the_same_bits():
    config = config_of("lstm", "embedded", 12, layers=2, dropout=0.2, recurrent_dropout=0.2)
    windows = list(repeated(config, 10))
    straight = Model.initialise(config, seed=0)
    list(train(straight, windows, Adam(), seed=5))
    first, optimiser = Model.initialise(config, seed=0), Adam()
    state = [*train(first, windows[:4], optimiser, seed=5)][-1].state
    second, other = Model.initialise(config, seed=99), Adam()
    second.parameters.flat[:] = first.parameters.flat
    other.restore({k: v.copy() if isinstance(v, np.ndarray) else v for k, v in optimiser.state().items()})
    list(train(second, windows[4:], other, seed=5, state=state))
    assert np.array_equal(second.parameters.flat, straight.parameters.flat)
