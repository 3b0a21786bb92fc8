"""`accelerate`, `restore` and `explain` on models, and `freeze` and `step` on modules."""

import copy

import pytest
from torch.nn.utils.parametrizations import weight_norm

import torch
import unspool.torch as ut
from torch import nn
from torch_modules import NAMES, engine_ran, run, state_of
from unspool.errors import InputError


class Mixed(nn.Module):
    """Modules that can be accelerated, one that cannot, and one that is a class of somebody's own."""

    class Own(nn.GRU):
        """A subclass."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(
            [nn.RNN(4, 6), nn.GRU(4, 6, 2), nn.LSTM(4, 6), nn.LSTM(4, 6, proj_size=2), self.Own(4, 6)]
        )


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


def test_accelerate_changes_what_it_can_and_restore_undoes_it():
    model = Mixed()
    before, weights = [type(part) for part in model.parts], list(model.parameters())
    x, calls = torch.randn(5, 3, 4), []
    model.parts[1].register_forward_hook(lambda *_: calls.append(1))
    expected = [part(x)[0] for part in model.parts[:3]]
    assert ut.accelerate(model) is model
    assert [type(part) for part in model.parts] == [ut.RNN, ut.GRU, ut.LSTM, ut.LSTM, Mixed.Own]
    assert all(a is b for a, b in zip(model.parameters(), weights, strict=True))
    with engine_ran(4):
        for part, y in zip(model.parts[:3], expected, strict=True):
            torch.testing.assert_close(part(x)[0], y)
    model.parts[0].freeze()
    assert [type(part) for part in ut.restore(model).parts] == before and len(calls) == 2
    with engine_ran(0):
        assert all(torch.equal(part(x)[0], y) for part, y in zip(model.parts[:3], expected, strict=True))


def test_explain_has_a_line_for_each_recurrent_module():
    model = ut.accelerate(Mixed())
    model.parts.append(nn.GRU(4, 6))
    assert ut.explain(model).splitlines() == [
        "parts.0: RNN(4, 6): unspool",
        "parts.1: GRU(4, 6, num_layers=2): unspool",
        "parts.2: LSTM(4, 6): unspool",
        "parts.3: LSTM(4, 6, proj_size=2): PyTorch, because proj_size is not zero",
        "parts.4: Own(4, 6): PyTorch, because Own is a class with its own code",
        "parts.5: GRU(4, 6): PyTorch; accelerate() changes it",
    ]
    assert "weight_ih_l0 is not a dense float32" in ut.explain(ut.accelerate(nn.GRU(4, 6)).double())
    assert ut.explain(nn.Linear(2, 2)) == "the model has no recurrent modules"


def test_a_parametrized_module_changes_and_loses_its_parametrization_as_before():
    module, x = weight_norm(nn.LSTM(4, 6), "weight_hh_l0"), torch.randn(5, 3, 4)
    expected = module(x)[0]
    ut.accelerate(module)
    assert isinstance(module, ut.LSTM)
    with engine_ran(1, 1):
        found = run(module, x)
    torch.testing.assert_close(found[0], expected)
    torch.nn.utils.parametrize.remove_parametrizations(module, "weight_hh_l0")
    assert type(module) is ut.LSTM and type(ut.restore(module)) is nn.LSTM


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_steps_give_the_bits_of_the_window(name, layers, bias):
    module = getattr(ut, name)(5, 33, layers, bias=bias)
    x, given = torch.randn(6, 3, 5), state_of(module, 3)
    given = tuple(given) if name == "LSTM" else given[0]
    module.freeze()
    for begin in (None, given):
        y, end = module(x, begin)
        state = begin
        for t, now in enumerate(x):
            out, state = module.step(now, state)
            assert torch.equal(out, y[t])
        pairs = zip(state, end, strict=True) if name == "LSTM" else [(state, end)]
        assert all(torch.equal(a, b) for a, b in pairs)
    alone, state = module.step(x[0, 1])
    alone, state = module.step(x[1, 1], state)
    assert torch.equal(alone, module(x[:2, 1])[0][1]) and alone.shape == (33,)
    copied = copy.deepcopy(module)
    assert copied._steps is None and torch.equal(copied.step(x[0])[0], module.step(x[0])[0])


def test_steps_refuse_what_they_cannot_do():
    with pytest.raises(InputError, match="bidirectional"):
        ut.GRU(4, 6, bidirectional=True).freeze()
    with pytest.raises(ValueError, match="freeze: not available"):
        ut.LSTM(4, 6, proj_size=2).step(torch.zeros(4))
    module = ut.LSTM(4, 6)
    with pytest.raises(InputError, match="5 columns"):
        module.step(torch.zeros(5))
    with pytest.raises(InputError, match="h0 has shape"):
        module.step(torch.zeros(4), (torch.zeros(1, 7), torch.zeros(1, 6)))
    with pytest.raises((TypeError, InputError)):
        module.step(torch.zeros(4, dtype=torch.float64))


def test_frozen_weights_follow_the_parameters_at_the_next_freeze():
    module, x = ut.GRU(4, 6).freeze(), torch.randn(4)
    before = module.step(x)[0]
    with torch.no_grad():
        module.weight_ih_l0.mul_(2)
    assert torch.equal(module.step(x)[0], before)
    assert torch.equal(module.freeze().step(x)[0], module(x[None])[0][0])
