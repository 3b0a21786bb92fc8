"""The gradient of every row: the bits of a batch of that row alone, for every network there is."""

import numpy as np
import pytest

import torch
from cases import CELLS, INPUTS, Windowed, config_of, masks_of, rows_of
from unspool.errors import InputError
from unspool.gradients import per_sample
from unspool.gradients.bptt import backpropagate
from unspool.gradients.per_sample import per_sample_gradients, per_sample_norms
from unspool.kernels import native
from unspool.model.config import ModelConfig
from unspool.model.network import Model

LAST = np.array([3, 0, -1, 8, 2], np.int32)


def alone(case, b, y, state, xi=None, scale=0.5):
    """The gradient and the loss of a batch that holds row b alone."""
    row, model = slice(b, b + 1), case.model
    gradient = model.gradient()
    passed = backpropagate(
        model, np.ascontiguousarray(case.x[:, row]), np.ascontiguousarray(y[..., row]), state and rows_of(state, row),
        gradient, scale=scale, lengths=None if case.lengths is None else case.lengths[row],
        masks=masks_of(case.masks, row), xi=None if xi is None else np.ascontiguousarray(xi[:, row]),
    )  # fmt: skip
    if state is None:
        model.add_initial_state_gradient(passed.d_initial_state, gradient)
    model.fold_input_tables(gradient)
    return gradient, passed.loss


def check(config, *, given=False, xi=None):
    case = Windowed(config, tau=7, B=5, ragged=True)
    y = LAST % config.outputs if config.pattern == "last" else case.y
    state = case.start if given else None
    more = {"scale": 0.5, "lengths": case.lengths, "masks": case.masks, "xi": xi}
    found = per_sample_gradients(case.model, case.x, y, state, **more)
    norms = per_sample_norms(case.model, case.x, y, state, **more)
    for b in range(5):
        gradient, loss = alone(case, b, y, state, xi)
        assert found.flat[b].tobytes() == gradient.flat.tobytes(), b
        assert (found.losses[b], found.counts[b]) == (loss.sum, loss.count)
        assert norms[b] == native.global_norm(gradient.flat)
        for name in found:
            assert (found[name][b] == gradient.values[name]).all()
            assert (found.row(b)[name] == gradient.values[name]).all()
    return case, y, found


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("cell", CELLS)
def test_each_row_has_the_bits_of_a_batch_of_one(cell, kind):
    check(config_of(cell, kind, 9, layers=2, dropout=0.2, recurrent_dropout=0.1, learn_h0=True))
    check(config_of(cell, kind, 6, bidirectional=True, layers=2), given=True)


@pytest.mark.parametrize("kind", ["one-hot", "embedded", "gathered", "dense", "tied"])
@pytest.mark.parametrize(
    "pattern",
    [
        {"pattern": "output"},
        {"pattern": "output", "feedback": "logits", "learn_h0": True},
        {"pattern": "last"},
    ],
)
def test_each_row_of_every_pattern_has_the_bits_of_a_batch_of_one(pattern, kind):
    check(config_of("elman", kind, 7, dropout=0.2, **pattern))


def test_random_truncation_is_taken_row_by_row():
    xi = np.random.default_rng(0).choice([0.0, 2.0], (7, 5)).astype(np.float32)
    check(config_of("gru", "one-hot", 8), xi=xi)


@pytest.mark.parametrize("cell", CELLS)
def test_the_rows_add_up_to_the_gradient_of_the_batch_and_to_pytorchs(cell):
    case, y, found = check(config_of(cell, "dense", 6))
    gradient = case.model.gradient()
    backpropagate(case.model, case.x, y, None, gradient, scale=0.5, lengths=case.lengths)
    case.model.fold_input_tables(gradient)
    np.testing.assert_allclose(found.flat.sum(0), gradient.flat, rtol=1e-4, atol=1e-5)
    assert (found.counts == (y >= 0).sum(0)).all()


def test_torch_func_finds_the_same_gradients():
    config = ModelConfig(cell="elman", inputs=4, outputs=6, hidden=5, dense=True)
    case = Windowed(config, tau=6, B=3)
    p = {n: torch.tensor(v.astype(np.float64)) for n, v in case.model.parameters.items()}

    def loss(p, x, y):
        h, total = torch.zeros(5).double(), 0.0
        for x_t, y_t in zip(x, y, strict=True):
            h = torch.tanh(p["layer0.b"] + p["layer0.U"] @ x_t + p["layer0.W"] @ h)
            o = p["c"] + p["V"] @ h
            nats = torch.logsumexp(o, 0) - torch.gather(o, 0, y_t.clamp(min=0)[None])[0]
            total = total + torch.where(y_t >= 0, nats, torch.zeros(()).double())
        return total

    x, y = torch.tensor(case.x).double(), torch.tensor(case.y).long()
    theirs = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 1, 1))(p, x, y)
    ours = per_sample_gradients(case.model, case.x, case.y)
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value.numpy(), rtol=1e-4, atol=1e-6, err_msg=name)


def test_any_number_of_rows_at_once_gives_the_same_bits(monkeypatch):
    case = Windowed(config_of("lstm", "embedded", 8), tau=5, B=7, ragged=True)
    more = {"lengths": case.lengths}
    found = per_sample_gradients(case.model, case.x, case.y, **more)
    norms = per_sample_norms(case.model, case.x, case.y, **more)
    for room, rows in ((1, 64), (2**28, 3)):
        monkeypatch.setattr(per_sample, "ROOM", room)
        monkeypatch.setattr(per_sample, "ROWS", rows)
        assert (per_sample_gradients(case.model, case.x, case.y, **more).flat == found.flat).all()
        assert (per_sample_norms(case.model, case.x, case.y, **more) == norms).all()
    native.set_threads(1)
    assert (per_sample_gradients(case.model, case.x, case.y, **more).flat == found.flat).all()


def test_an_empty_batch_and_rows_without_targets_have_gradients_of_zero():
    model = Model.initialise(ModelConfig(cell="gru", inputs=4, outputs=4, hidden=5), seed=0)
    x = np.ones((6, 2), np.int32)
    nothing = per_sample_gradients(model, x[:, :0], x[:, :0])
    assert nothing.flat.shape == (0, model.parameters.flat.size) and nothing["layer0.U"].shape == (0, 15, 4)
    assert per_sample_norms(model, x[:, :0], x[:, :0]).shape == (0,)
    y = np.stack([np.full(6, -1), np.ones(6)], axis=1).astype(np.int32)
    found = per_sample_gradients(model, x, y)
    assert not found.flat[0].any() and found.flat[1].any() and found.counts.tolist() == [0, 6]


def test_what_does_not_fit_is_refused_before_anything_is_made(monkeypatch):
    model = Model.initialise(ModelConfig(cell="gru", inputs=4, outputs=4, hidden=5), seed=0)
    x = np.ones((6, 20), np.int32)
    monkeypatch.setattr(per_sample, "available", lambda: 1000)
    with pytest.raises(InputError, match="pass fewer rows, or take per_sample_norms"):
        per_sample_gradients(model, x, x)
    assert per_sample_norms(model, x, x).shape == (20,)
    with pytest.raises(InputError, match="y is"):
        per_sample_norms(model, x, x[:3])
