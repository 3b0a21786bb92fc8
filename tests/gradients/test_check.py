"""The proof of the gradients passes where they are right, and fails where they are not."""

import json

import numpy as np
import pytest

from cases import CELLS, TORCH_CELLS, config_of
from unspool.cli.commands.check_gradients import Options, check_command
from unspool.errors import InputError
from unspool.gradients import check as module
from unspool.gradients.check import check_gradients
from unspool.kernels.backend import BACKENDS
from unspool.model.config import ModelConfig
from unspool.model.network import Model


@pytest.mark.parametrize("pattern", ["hidden", "last"])
@pytest.mark.parametrize("kind", ["one-hot", "dense", "tied"])
@pytest.mark.parametrize("cell", CELLS)
def test_all_ways_agree(cell, kind, pattern):
    config = config_of(cell, kind, 4, layers=2, bidirectional=kind == "dense", learn_h0=True, pattern=pattern)
    model = Model.initialise(config, seed=1)
    model.parameters.flat[:] += 0.1 * np.random.default_rng(0).standard_normal(model.parameters.flat.shape)
    found = check_gradients(model, tau=4, B=2, probed=3)
    assert {each.name for each in found} == set(model.parameters)
    assert all(each.agrees for each in found), found
    if cell in TORCH_CELLS:
        assert all(each.reference_and_torch < 1e-12 for each in found)


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid", "identity"])
@pytest.mark.parametrize("pattern", ["hidden", "output"])
def test_all_ways_agree_for_every_activation(activation, pattern):
    config = ModelConfig(cell="elman", inputs=4, outputs=5, hidden=6, activation=activation, pattern=pattern)
    assert all(each.agrees for each in check_gradients(Model.initialise(config, seed=1), tau=5, probed=4))


@pytest.mark.parametrize("wrong", ["native", "reference", "torch"])
def test_a_wrong_gradient_is_found(wrong, monkeypatch, capsys):
    name = "by_torch" if wrong == "torch" else "by_backend"
    right = getattr(module, name)

    def off(model, x, y, *backend):
        found = right(model, x, y, *backend)
        meant = not backend or backend[0] is BACKENDS[wrong]
        return found | {"layer0.W": found["layer0.W"] * 1.001} if meant else found

    monkeypatch.setattr(module, name, off)
    with pytest.raises(SystemExit) as stopped:
        check_command(options=Options(hidden=5, values=4))
    assert stopped.value.code == 1
    assert "NOT all agree: layer0.W" in " ".join(capsys.readouterr().out.split())


def test_the_command_prints_json_and_works_without_pytorch(monkeypatch, capsys):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    check_command(options=Options(cell="lstm", hidden=4, values=3, json=True))
    found = json.loads(capsys.readouterr().out)
    assert found["agree"] is True
    assert [each["hand_and_torch"] for each in found["parameters"]] == [None] * 5


def test_no_steps_are_refused():
    with pytest.raises(InputError, match="tau is 0"):
        check_gradients(Model.initialise(ModelConfig(inputs=2, outputs=2, hidden=2), seed=0), tau=0)
