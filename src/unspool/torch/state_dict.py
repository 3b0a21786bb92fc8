"""Convert parameters from and to PyTorch's names: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, … and _reverse.

A whole model is a module with `nn.Embedding` (E), a recurrent module, and `nn.Linear` (V and c).

b is the sum of PyTorch's two biases (their gradients are always equal); `to_torch` writes zero for the second. Where the
second bias stands inside a product, as in one block of the GRU, it is a parameter of the cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unspool.cells import cell_named, names_with
from unspool.errors import FileError, InputError
from unspool.kernels.arrays import Floats
from unspool.model.config import ModelConfig
from unspool.model.layer_names import layer_directions, torch_suffix
from unspool.model.network import Model
from unspool.model.parameters import Parameters, shapes_of
from unspool.storage.files import as_path, write_atomic

FIRST = "weight_ih_l0"
"""The entry that every recurrent module of PyTorch has."""


def to_torch(
    model: Model | ModelConfig,
    parameters: Parameters | None = None,
    *,
    embedding: str = "embedding",
    rnn: str = "rnn",
    linear: str = "linear",
) -> dict[str, Floats]:
    """Return a model as the `state_dict` of a module with `nn.Embedding`, `nn.RNN` (or GRU, LSTM) and `nn.Linear`.

    The three names are those of the submodules. With a config and parameters instead of a model, return the recurrent
    layers alone, under the names of `nn.RNN`, `nn.GRU` or `nn.LSTM`.

    >>> model = Model.initialise(ModelConfig(cell="gru", inputs=3, outputs=2, hidden=4), seed=0)
    >>> list(to_torch(model, linear="head"))[2:]
    ['rnn.bias_ih_l0', 'rnn.bias_hh_l0', 'head.weight', 'head.bias']
    >>> {name: value.shape for name, value in to_torch(model.config, model.parameters).items()}
    {'weight_ih_l0': (12, 3), 'weight_hh_l0': (12, 4), 'bias_ih_l0': (12,), 'bias_hh_l0': (12,)}
    """
    if isinstance(model, ModelConfig):
        if parameters is None:
            raise InputError("parameters: missing; pass a Model, or a ModelConfig and its Parameters")
        return _layers_to_torch(model, parameters)
    config, p = model.config, model.parameters
    _refuse_no_counterpart(config)
    result = {f"{embedding}.weight": p["E"].copy()} if config.embedding else {}
    result |= {f"{rnn}.{name}": value for name, value in _layers_to_torch(config, p).items()}
    result[f"{linear}.weight"] = p[config.output_matrix].copy()
    result[f"{linear}.bias"] = p["c"].copy()
    return result


def _refuse_no_counterpart(config: ModelConfig) -> None:
    """Raise for a model that PyTorch's modules cannot compute."""
    if config.learn_h0:
        raise InputError(
            "learn_h0=True: a state_dict has no place for h(0); export the recurrent layers alone"
        )
    _refuse_adaptive(config)
    if config.activation not in ("tanh", "relu"):
        raise InputError(f"activation={config.activation!r}: nn.RNN computes tanh or relu only")


def _refuse_adaptive(config: ModelConfig) -> None:
    if config.cutoffs:
        raise InputError(
            f"softmax={config.softmax!r}: the tails of nn.AdaptiveLogSoftmaxWithLoss have no biases, and these have; convert "
            "the recurrent layers alone"
        )


def _layers_to_torch(config: ModelConfig, parameters: Parameters) -> dict[str, Floats]:
    inner = _inner_biases(config)
    result: dict[str, Floats] = {}
    for layer, reverse in layer_directions(config):
        p, suffix = parameters.layer(layer, reverse), torch_suffix(layer, reverse)
        second = np.zeros_like(p["b"])
        for name, block in inner.items():
            second[block] = p[name]
        result[f"weight_ih_{suffix}"] = np.ascontiguousarray(p["U"])
        result[f"weight_hh_{suffix}"] = p["W"].copy()
        result[f"bias_ih_{suffix}"] = p["b"].copy()
        result[f"bias_hh_{suffix}"] = second
    return result


def _inner_biases(config: ModelConfig) -> dict[str, slice]:
    """Return the parameters that are blocks of PyTorch's second bias; raise if PyTorch has no such layer."""
    if config.pattern == "output":
        raise InputError(
            "pattern='output' (figure 10.4) has no layer in PyTorch: nn.RNN reads h(t-1), not the output"
        )
    cell = cell_named(config.cell)
    if cell.torch is None:
        raise InputError(f"cell={config.cell!r} has no layer in PyTorch; expected {names_with('torch')}")
    return {name: cell.block(gate, config.hidden) for gate, name in cell.torch.inner_biases.items()}


def from_torch(
    config: ModelConfig,
    state_dict: Mapping[str, Any],
    onto: Parameters | None = None,
    *,
    embedding: str | None = None,
    rnn: str | None = None,
    linear: str | None = None,
) -> Parameters:
    """Return the parameters of a PyTorch `state_dict`: of a whole module, or of `nn.RNN`, `nn.GRU` or `nn.LSTM` alone.

    The submodules are found by the names and shapes of their weights, or named by `embedding`, `rnn` and `linear`. An
    entry that this model has no parameter for is refused. Parameters that the state dict lacks stay as in `onto`;
    without `onto`, a recurrent module alone leaves them zero and a whole module must have all of them.
    Values may be arrays or tensors; missing biases (bias=False) count as zero.
    """
    _inner_biases(config)
    modules = Modules.found(config, state_dict, embedding, rnn, linear)
    if modules.rest:
        _refuse_adaptive(config)
    if onto is None and modules.rest:
        modules.refuse_incomplete(config, state_dict)
    parameters = Parameters(shapes_of(config)) if onto is None else onto
    filled = Parameters(parameters.shapes, parameters.flat.copy())  # a refusal leaves `onto` unchanged
    _fill_layers(config, state_dict, filled, modules.rnn)
    if modules.embedding is not None:
        filled["E"][:] = _entry(state_dict, f"{modules.embedding}weight", filled["E"].shape)
    if modules.linear is not None:
        _fill_linear(config, state_dict, filled, modules.linear)
    parameters.flat[:] = filled.flat
    return parameters


def _fill_layers(
    config: ModelConfig, state_dict: Mapping[str, Any], parameters: Parameters, prefix: str
) -> None:
    inner = _inner_biases(config)
    for layer, reverse in layer_directions(config):
        p, suffix = parameters.layer(layer, reverse), torch_suffix(layer, reverse)
        p["U"][:] = _entry(state_dict, f"{prefix}weight_ih_{suffix}", p["U"].shape)
        p["W"][:] = _entry(state_dict, f"{prefix}weight_hh_{suffix}", p["W"].shape)
        first, second = (
            _entry(state_dict, f"{prefix}bias_{kind}_{suffix}", p["b"].shape, missing=0.0)
            for kind in ("ih", "hh")
        )
        p["b"][:] = first + second
        for name, block in inner.items():
            p["b"][block] = first[block]
            p[name][:] = second[block]


def _fill_linear(
    config: ModelConfig, state_dict: Mapping[str, Any], parameters: Parameters, prefix: str
) -> None:
    V = _entry(state_dict, f"{prefix}weight", (config.outputs, config.width))
    if not config.tied:
        parameters["V"][:] = V
    elif not np.array_equal(V, parameters["E"]):
        raise InputError(f"{prefix}weight differs from the embedding's weight; tied=True needs both equal")
    parameters["c"][:] = _entry(state_dict, f"{prefix}bias", parameters["c"].shape, missing=0.0)


@dataclass(frozen=True)
class Modules:
    """The prefixes of a state dict's submodules, each "" or ending with a dot; None if there is none."""

    rnn: str
    embedding: str | None
    linear: str | None
    rest: tuple[str, ...]
    """The entries that are not recurrent."""

    @staticmethod
    def found(
        config: ModelConfig,
        state_dict: Mapping[str, Any],
        embedding: str | None,
        rnn: str | None,
        linear: str | None,
    ) -> Modules:
        """Find the submodules; refuse several that fit, and entries that belong to none of them."""
        recurrent = _recurrent_prefix(state_dict, rnn)
        layers = _recurrent_names(config, state_dict, recurrent)
        rest = tuple(name for name in state_dict if name not in layers)
        weights = [name for name in rest if name == "weight" or name.endswith(".weight")]
        shapes = {name[: -len("weight")]: _shape(state_dict[name]) for name in weights}
        tokens = (config.inputs, config.embedding) if config.embedding else None
        wide = (config.outputs, config.width)
        no_bias = {each: shape for each, shape in shapes.items() if f"{each}bias" not in rest}
        E = _prefix(no_bias, tokens, "embedding", embedding)
        others = {each: shape for each, shape in shapes.items() if each != E}
        V = _prefix(others, wide, "linear", linear)
        used = {f"{each}weight" for each in (E, V) if each is not None} | {f"{V}bias"}
        if left := sorted(set(rest) - used):
            have = ", ".join(f"{name!r} {_shape(state_dict[name])}" for name in left)
            open_ = {"embedding": tokens if E is None else None, "linear": wide if V is None else None}
            need = " or ".join(f"{name} weight {shape}" for name, shape in open_.items() if shape)
            raise InputError(
                f"the state dict has {have}, for which this model has no place; expected {need or 'no more entries'}"
            )
        return Modules(recurrent, E, V, rest)

    def refuse_incomplete(self, config: ModelConfig, state_dict: Mapping[str, Any]) -> None:
        """Raise if a whole module lacks the embedding or the output layer."""
        for name, prefix, shape in (
            ("embedding", self.embedding, (config.inputs, config.embedding)),
            ("linear", self.linear, (config.outputs, config.width)),
        ):
            if prefix is None and all(shape):
                raise InputError(
                    f"the state dict has no {name} weight of shape {shape}; it has {', '.join(sorted(state_dict))}: "
                    f"pass {name}='its name', or onto=parameters to keep those"
                )


def _recurrent_prefix(state_dict: Mapping[str, Any], given: str | None) -> str:
    if given is not None:
        prefix = f"{given}." if given else ""
        _entry(state_dict, prefix + FIRST)
        return prefix
    found = [name[: -len(FIRST)] for name in state_dict if name == FIRST or name.endswith("." + FIRST)]
    if len(found) > 1:
        raise InputError(
            f"the state dict has several recurrent modules, {' and '.join(repr(each[:-1]) for each in found)}; "
            "expected one"
        )
    if not found:
        _entry(state_dict, FIRST)
    return found[0]


def _recurrent_names(config: ModelConfig, state_dict: Mapping[str, Any], prefix: str) -> set[str]:
    """Return the entries of the recurrent layers; raise if there are layers that this model does not have."""
    known = {torch_suffix(layer, reverse) for layer, reverse in layer_directions(config)}
    found = set()
    for name in state_dict:
        match = re.fullmatch(re.escape(prefix) + r"(?:weight|bias)_(ih|hh|hr)_(l\d+(?:_reverse)?)", name)
        if match and (match[1] == "hr" or match[2] not in known):
            raise InputError(f"the state dict has {name!r}, for which this model has no place")
        if match:
            found.add(name)
    return found


def _prefix(
    shapes: Mapping[str, tuple[int, ...]], shape: tuple[int, ...] | None, role: str, given: str | None
) -> str | None:
    """Return the prefix of the one module with a weight of this shape, or of the one that was named."""
    if given is not None:
        if f"{given}." not in shapes:
            raise InputError(
                f"{role} is {given!r}; the state dict has {', '.join(repr(each[:-1]) for each in shapes) or 'none'}"
            )
        return f"{given}."
    fit = [each for each, its in shapes.items() if its == shape]
    if len(fit) > 1:  # a bias-free output layer has the shape of an embedding where their widths are equal
        fit = [each for each in fit if ("emb" in each) == (role == "embedding")] or fit
    if len(fit) > 1:
        raise InputError(
            f"the state dict has several weights of shape {shape}, {' and '.join(repr(each[:-1]) for each in fit)}; "
            f"pass {role}='its name'"
        )
    return fit[0] if fit else None


def _shape(value: Any) -> tuple[int, ...]:
    try:
        return tuple(np.shape(value))
    except ValueError:  # ragged lists
        return ()


def gradient_to_torch(config: ModelConfig, gradient: Parameters) -> dict[str, Floats]:
    """Return gradients under PyTorch's names: both biases have the gradient of b, except for inner biases.

    The shapes are those of `to_torch`.
    """
    result, inner = _layers_to_torch(config, gradient), _inner_biases(config)
    for layer, reverse in layer_directions(config):
        suffix = torch_suffix(layer, reverse)
        second = result[f"bias_ih_{suffix}"].copy()
        for block in inner.values():
            second[block] = result[f"bias_hh_{suffix}"][block]
        result[f"bias_hh_{suffix}"] = second
    return result


def save_torch(
    path: str | Path, model: Model | ModelConfig, parameters: Parameters | None = None, **names: str
) -> None:
    """Write what `to_torch` returns as safetensors: a whole model or its recurrent layers; replace an existing file."""
    from safetensors.numpy import save

    write_atomic(path, save(to_torch(model, parameters, **names)))


def load_torch(
    path: str | Path, config: ModelConfig, onto: Parameters | None = None, **names: str
) -> Parameters:
    """Read a state dict from safetensors by `from_torch`; `names` are its names of submodules."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    file = as_path(path)
    try:
        return from_torch(config, load_file(file), onto, **names)
    except (OSError, SafetensorError) as error:
        raise FileError(f"{path} cannot be read as safetensors: {error}") from error


def _entry(
    state_dict: Mapping[str, Any],
    name: str,
    shape: tuple[int, ...] | None = None,
    missing: float | None = None,
) -> Floats:
    """Return one entry as float32 of this shape, or filled with `missing` if there is none."""
    if name not in state_dict:
        if missing is None or shape is None:
            raise InputError(
                f"the state dict has no {name!r}; it has {', '.join(sorted(state_dict)) or 'nothing'}"
            )
        return np.full(shape, missing, np.float32)
    value = state_dict[name]
    try:
        array = np.asarray(
            value.detach().cpu().float() if hasattr(value, "detach") else value, dtype=np.float32
        )
    except (TypeError, ValueError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"{name} cannot be read as an array of float32: {error}") from error
    if shape is not None and array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}; this model needs {shape}")
    return array
