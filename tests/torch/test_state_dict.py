"""PyTorch's state dicts, both ways: through mappings, through files, and through PyTorch's own modules."""

import numpy as np
import pytest
from safetensors.numpy import save_file
from safetensors.torch import load_file as load_torch_file
from safetensors.torch import save_file as save_torch_file

import torch
from cases import INPUTS, TORCH_CELLS, config_of
from unspool.errors import FileError, InputError
from unspool.model.network import Model
from unspool.torch.state_dict import from_torch, gradient_to_torch, load_torch, save_torch, to_torch

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
    model = Model.initialise(config, seed=1)
    model.parameters.flat[:] = np.random.default_rng(0).uniform(-0.5, 0.5, model.parameters.flat.shape)
    return model


@pytest.mark.parametrize(("layers", "both"), PLACES)
@pytest.mark.parametrize("cell", TORCH_CELLS)
def test_names_and_shapes_are_pytorchs(cell, layers, both):
    config = config_for(cell, layers, both)
    theirs = {name: tuple(value.shape) for name, value in module_of(config).state_dict().items()}
    ours = to_torch(config, Model.initialise(config, seed=0).parameters)
    assert {name: value.shape for name, value in ours.items()} == theirs
    assert list(ours) == list(theirs)


@pytest.mark.parametrize(("layers", "both"), PLACES)
@pytest.mark.parametrize("cell", TORCH_CELLS)
def test_parameters_survive_a_trip_to_pytorch_and_back(cell, layers, both, tmp_path):
    config = config_for(cell, layers, both)
    model = random_model(config)
    save_torch(tmp_path / "ours.safetensors", config, model.parameters)
    module = module_of(config)
    module.load_state_dict(load_torch_file(tmp_path / "ours.safetensors"))
    save_torch_file(module.state_dict(), tmp_path / "theirs.safetensors")
    back = load_torch(tmp_path / "theirs.safetensors", config, Model.initialise(config, seed=9).parameters)
    for name in back:
        if name.startswith("layer"):
            assert np.array_equal(back[name], model.parameters[name]), name


@pytest.mark.parametrize("cell", TORCH_CELLS)
def test_a_module_that_was_given_our_parameters_computes_what_we_compute(cell):
    config = config_for(cell, 2, True)
    model, module = random_model(config), module_of(config)
    module.load_state_dict({name: torch.tensor(v) for name, v in to_torch(config, model.parameters).items()})
    x = np.random.default_rng(1).standard_normal((7, 3, config.inputs)).astype(np.float32)
    with torch.no_grad():
        theirs, _ = module(torch.tensor(x))
    assert np.allclose(model.forward(x).h, theirs.numpy(), atol=2e-6)


@pytest.mark.parametrize("cell", TORCH_CELLS)
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


# ── whole modules ──────────────────────────────────────────────────────────────────────────────────────────


class Net(torch.nn.Module):
    """The module that one would write in PyTorch for a config."""

    def __init__(self, config, names=("embedding", "rnn", "linear"), bias=True):
        super().__init__()
        torch.manual_seed(2)
        self.names, self.config = names, config
        wide = config.width
        if config.embedding:
            self.add_module(names[0], torch.nn.Embedding(config.inputs, config.embedding))
        self.add_module(
            names[1],
            MODULES[config.cell](
                config.input_width(0), config.hidden, config.layers, bidirectional=config.bidirectional
            ),
        )
        self.add_module(names[2], torch.nn.Linear(wide, config.outputs, bias=bias))
        if config.tied:
            self.get_submodule(names[2]).weight = self.get_submodule(names[0]).weight

    def forward(self, x):
        embedding, rnn, linear = self.names
        if self.config.embedding:
            x = self.get_submodule(embedding)(torch.tensor(x).long())
        elif not self.config.dense:
            x = torch.nn.functional.one_hot(torch.tensor(x).long(), self.config.inputs).float()
        else:
            x = torch.tensor(x)
        h, _ = self.get_submodule(rnn)(x)
        return self.get_submodule(linear)(h)


def input_of(config):
    rng = np.random.default_rng(3)
    if config.dense:
        return rng.standard_normal((7, 3, config.inputs)).astype(np.float32)
    return rng.integers(0, config.inputs, (7, 3)).astype(np.int32)


def check_equal_outputs(model, module, x):
    with torch.no_grad():
        theirs = module(x).numpy()
    assert np.allclose(model.logits(model.forward(x)), theirs, atol=5e-6)


WHOLE = [
    config_of(cell, kind, 6, layers=layers, bidirectional=both)
    for cell in TORCH_CELLS
    for kind in INPUTS
    if kind != "adaptive"
    for layers, both in ((1, False), (2, True))
]


@pytest.mark.parametrize("config", WHOLE, ids=lambda c: f"{c.cell}-{c.inputs}-{c.tied}-{c.directions}")
def test_a_whole_module_converts_both_ways(config):
    model, x = random_model(config), input_of(config)
    module = Net(config)
    module.load_state_dict({k: torch.tensor(v) for k, v in to_torch(model).items()}, strict=True)
    check_equal_outputs(model, module, x)
    assert list(to_torch(model)) == list(module.state_dict())
    other = Net(config, names=("words", "encoder", "fc"))
    back = Model(config, from_torch(config, other.state_dict()))
    check_equal_outputs(back, other, x)
    names = {"embedding": "words", "rnn": "encoder", "linear": "fc"}
    again = Net(config, names=("words", "encoder", "fc"))
    again.load_state_dict({k: torch.tensor(v) for k, v in to_torch(back, **names).items()}, strict=True)
    for name, value in again.state_dict().items():
        if "bias_" not in name:
            assert torch.equal(value, other.state_dict()[name]), name


def test_a_whole_module_goes_through_a_file(tmp_path):
    config = config_of("lstm", "embedded", 6)
    model = random_model(config)
    save_torch(tmp_path / "whole.safetensors", model, linear="head")
    module = Net(config, names=("embedding", "rnn", "head"))
    module.load_state_dict(load_torch_file(tmp_path / "whole.safetensors"), strict=True)
    back = load_torch(tmp_path / "whole.safetensors", config, linear="head")
    assert all(np.array_equal(back[name], model.parameters[name]) for name in back)


def test_names_below_other_modules_and_linear_layers_without_bias_are_found():
    config = config_of("gru", "embedded", 6)
    wrapped = torch.nn.Sequential()
    wrapped.add_module("module", Net(config, bias=False))
    found = from_torch(config, wrapped.state_dict())
    assert np.array_equal(found["V"], wrapped.state_dict()["module.linear.weight"]) and not found["c"].any()


def test_a_module_whose_weights_have_one_shape_needs_names():
    config = config_of("gru", "embedded", 6, embedding=6)
    names = ("first", "rnn", "second")
    state = Net(config, names, bias=False).state_dict()
    with pytest.raises(InputError, match="'first' and 'second'; pass embedding="):
        from_torch(config, state)
    found = from_torch(config, state, embedding="first")
    assert np.array_equal(found["E"], state["first.weight"])
    assert np.array_equal(found["V"], state["second.weight"])
    named = from_torch(config, Net(config, ("emb", "rnn", "out"), bias=False).state_dict())
    assert np.array_equal(named["E"], state["first.weight"])


def refused_states():
    config = config_of("gru", "embedded", 6)
    whole = Net(config).state_dict()
    narrow = {name: value for name, value in whole.items() if not name.startswith("linear")}
    dense = config_of("gru", "dense", 6)
    return {
        "an unknown entry": (config, whole | {"norm.weight": torch.ones(6)}, {}, r"'norm.weight' \(6,\)"),
        "an unknown buffer": (config, whole | {"steps": torch.ones(())}, {}, r"'steps' \(\)"),
        "a bias alone": (config, narrow | {"linear.bias": torch.ones(13)}, {}, "linear.bias"),
        "no linear": (config, narrow, {}, r"no linear weight of shape \(13, 6\)"),
        "no embedding": (
            config,
            {name: value for name, value in whole.items() if not name.startswith("emb")},
            {},
            "no embedding weight",
        ),
        "another width": (
            config,
            whole | {"linear.weight": torch.ones(13, 7)},
            {},
            r"'linear.weight' \(13, 7\).*expected linear weight \(13, 6\)",
        ),
        "an embedding too many": (dense, whole, {}, "no place|has shape"),
        "a wrong name": (config, whole, {"linear": "head"}, "linear is 'head'.*'linear'"),
        "a wrong recurrent name": (config, whole, {"rnn": "gru"}, r"no 'gru.weight_ih_l0'"),
        "two recurrent modules": (
            config,
            whole | {"decoder.weight_ih_l0": torch.ones(18, 6)},
            {},
            "several recurrent modules, 'rnn' and 'decoder'",
        ),
        "weights beside bare layers": (
            dense,
            module_of(dense).state_dict() | {"fc.weight": torch.ones(3, 3)},
            {},
            "fc.weight",
        ),
    }


@pytest.mark.parametrize("name", refused_states())
def test_what_would_be_lost_or_missing_is_refused_by_name(name):
    config, state, names, says = refused_states()[name]
    with pytest.raises(InputError, match=says) as refused:
        from_torch(config, state, **names)
    assert "\n" not in str(refused.value)


def test_a_refusal_leaves_the_given_parameters_unchanged():
    config = config_of("gru", "embedded", 6)
    onto = random_model(config).parameters
    before = onto.flat.copy()
    state = Net(config).state_dict() | {"linear.bias": torch.ones(7)}
    with pytest.raises(InputError, match=r"linear\.bias"):
        from_torch(config, state, onto)
    assert np.array_equal(onto.flat, before)


def test_tied_weights_that_differ_are_refused():
    config = config_of("gru", "tied", 6)
    state = dict(Net(config).state_dict())
    state["linear.weight"] = state["linear.weight"] + 1
    with pytest.raises(InputError, match="tied=True needs both equal"):
        from_torch(config, state)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"learn_h0": True}, "learn_h0"),
        ({"cell": "elman", "activation": "sigmoid"}, "sigmoid"),
        ({"cell": "elman", "pattern": "output"}, "pattern"),
    ],
)
def test_models_that_pytorch_has_no_module_for_are_refused(fields, says):
    model = Model.initialise(config_of(**{"cell": "gru", "kind": "one-hot", "hidden": 6} | fields), seed=0)
    with pytest.raises(InputError, match=says):
        to_torch(model)
    with pytest.raises(InputError, match="parameters: missing"):
        to_torch(model.config)
