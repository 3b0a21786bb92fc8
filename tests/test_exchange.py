"""PyTorch's state dicts, both ways: through mappings, through files, and through PyTorch's own modules."""

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import load_file as load_torch_file
from safetensors.torch import save_file as save_torch_file

from cases import CELLS, config_of
from unspool.errors import FileError, InputError
from unspool.exchange import from_torch, gradient_to_torch, load_torch, save_torch, to_torch
from unspool.model import Model

MODULES = {"elman": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}
PLACES = [(layers, both) for layers in (1, 3) for both in (False, True)]


def config_for(cell, layers, both):
    return config_of(cell, "dense", 6, layers=layers, bidirectional=both)


def module_of(config, **options):
    torch.manual_seed(1)
    return MODULES[config.cell](
        config.inputs, config.hidden, num_layers=config.layers, bidirectional=config.bidirectional, **options
    )


def random_model(config):
    model = Model.fresh(config, seed=1)
    model.parameters.flat[:] = np.random.default_rng(0).uniform(-0.5, 0.5, model.parameters.flat.shape)
    return model


@pytest.mark.parametrize(("layers", "both"), PLACES)
@pytest.mark.parametrize("cell", CELLS)
def test_names_and_shapes_are_pytorchs(cell, layers, both):
    config = config_for(cell, layers, both)
    theirs = {name: tuple(value.shape) for name, value in module_of(config).state_dict().items()}
    ours = to_torch(config, Model.fresh(config, seed=0).parameters)
    assert {name: value.shape for name, value in ours.items()} == theirs
    assert list(ours) == list(theirs)


@pytest.mark.parametrize(("layers", "both"), PLACES)
@pytest.mark.parametrize("cell", CELLS)
def test_parameters_survive_a_trip_to_pytorch_and_back(cell, layers, both, tmp_path):
    config = config_for(cell, layers, both)
    model = random_model(config)
    save_torch(tmp_path / "ours.safetensors", config, model.parameters)
    module = module_of(config)
    module.load_state_dict(load_torch_file(tmp_path / "ours.safetensors"))
    save_torch_file(module.state_dict(), tmp_path / "theirs.safetensors")
    back = load_torch(tmp_path / "theirs.safetensors", config, Model.fresh(config, seed=9).parameters)
    for name in back:
        if name.startswith("layer"):
            assert np.array_equal(back[name], model.parameters[name]), name


@pytest.mark.parametrize("cell", CELLS)
def test_a_module_that_was_given_our_parameters_computes_what_we_compute(cell):
    config = config_for(cell, 2, True)
    model, module = random_model(config), module_of(config)
    module.load_state_dict({name: torch.tensor(v) for name, v in to_torch(config, model.parameters).items()})
    x = np.random.default_rng(1).standard_normal((7, 3, config.inputs)).astype(np.float32)
    with torch.no_grad():
        theirs, _ = module(torch.tensor(x))
    assert np.allclose(model.forward(x).h, theirs.numpy(), atol=2e-6)


@pytest.mark.parametrize("cell", CELLS)
def test_both_biases_count_and_missing_ones_are_zero(cell):
    config = config_for(cell, 1, False)
    state = {name: value.numpy() for name, value in module_of(config).state_dict().items()}
    parameters = from_torch(config, state)
    total = state["bias_ih_l0"] + state["bias_hh_l0"]
    if cell == "gru":
        total[12:] = state["bias_ih_l0"][12:]
        assert np.array_equal(parameters["layer0.d"], state["bias_hh_l0"][12:])
    assert np.array_equal(parameters["layer0.b"], total)
    without = from_torch(config, module_of(config, bias=False).state_dict())
    assert not without["layer0.b"].any()


def test_what_is_not_recurrent_stays_as_it_was():
    config = config_for("gru", 1, False)
    onto = random_model(config).parameters
    V = onto["V"].copy()
    assert from_torch(config, module_of(config).state_dict(), onto) is onto
    assert np.array_equal(onto["V"], V)


@pytest.mark.parametrize(
    "convert", [torch.Tensor.double, torch.Tensor.half, torch.Tensor.bfloat16, torch.Tensor.tolist]
)
def test_values_of_other_kinds_are_read(convert):
    config = config_for("lstm", 1, False)
    state = {name: value.half().float() for name, value in module_of(config).state_dict().items()}
    exact = from_torch(config, state)
    found = from_torch(config, {name: convert(value) for name, value in state.items()})
    tolerance = 0.01 if convert is torch.Tensor.bfloat16 else 0
    assert np.allclose(found.flat, exact.flat, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["weight_ih_l0", "weight_hh_l1_reverse"])
def test_a_missing_entry_is_named(name):
    config = config_for("gru", 2, True)
    state = dict(module_of(config).state_dict())
    del state[name]
    with pytest.raises(InputError, match=name):
        from_torch(config, state)
    with pytest.raises(InputError, match="nothing"):
        from_torch(config, {})


@pytest.mark.parametrize("name", ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"])
@pytest.mark.parametrize("value", [np.zeros((3, 3)), np.zeros(()), "words", None, [[1], [2, 3]]], ids=str)
def test_a_wrong_entry_is_named(name, value):
    config = config_for("elman", 1, False)
    state = dict(module_of(config).state_dict()) | {name: value}
    with pytest.raises(InputError, match=name):
        from_torch(config, state)


@pytest.mark.parametrize(
    ("options", "name"),
    [({"num_layers": 2}, "weight_ih_l1"), ({"bidirectional": True}, "l0_reverse"), ({"proj_size": 3}, "l0")],
)
def test_layers_that_the_model_has_not_are_not_lost_in_silence(options, name):
    config = config_for("lstm", 1, False)
    state = torch.nn.LSTM(config.inputs, config.hidden, **options).state_dict()
    with pytest.raises(InputError, match=name):
        from_torch(config, state)


def test_gradients_have_pytorchs_names_and_both_biases_get_the_sum():
    config = config_for("gru", 1, False)
    gradient = random_model(config).parameters
    named = gradient_to_torch(config, gradient)
    assert np.array_equal(named["bias_ih_l0"], gradient["layer0.b"])
    assert np.array_equal(named["bias_hh_l0"][:12], gradient["layer0.b"][:12])
    assert np.array_equal(named["bias_hh_l0"][12:], gradient["layer0.d"])


def test_a_file_that_is_none_is_a_file_error(tmp_path):
    config = config_for("gru", 1, False)
    with pytest.raises(FileError, match="absent"):
        load_torch(tmp_path / "absent.safetensors", config)
    for content in (b"", b"garbage", b"\xff" * 100):
        (tmp_path / "bad.safetensors").write_bytes(content)
        with pytest.raises(FileError, match="bad"):
            load_torch(tmp_path / "bad.safetensors", config)
    save_file({"other": np.zeros(3, np.float32)}, tmp_path / "other.safetensors")
    with pytest.raises(InputError, match="weight_ih_l0"):
        load_torch(tmp_path / "other.safetensors", config)


def test_what_is_handed_out_is_a_copy():
    config = config_for("gru", 1, False)
    parameters = random_model(config).parameters
    before = parameters.flat.copy()
    for value in to_torch(config, parameters).values():
        value[:] = 0
    assert np.array_equal(parameters.flat, before)
