"""Parameters from and to PyTorch's names: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, … and _reverse.

Our b is the sum of PyTorch's two biases (their gradients are always equal); on the way out the second is
zero. The GRU is the exception: in its block n the second bias stands inside the reset gate's product: our d.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unspool.cells import cell_named
from unspool.config import ModelConfig
from unspool.errors import FileError, InputError
from unspool.files import write_whole
from unspool.parameters import Parameters, shapes_of
from unspool.values import Floats


def torch_suffix(layer: int, reverse: bool) -> str:
    """Return how PyTorch names a layer and direction.

    >>> torch_suffix(1, True)
    'l1_reverse'
    """
    return f"l{layer}_reverse" if reverse else f"l{layer}"


def to_torch(config: ModelConfig, parameters: Parameters) -> dict[str, Floats]:
    """Return the recurrent layers under the names of `nn.RNN`, `nn.GRU` or `nn.LSTM`.

    >>> from unspool.model import Model
    >>> model = Model.fresh(ModelConfig(cell="gru", inputs=3, outputs=2, hidden=4), seed=0)
    >>> {name: value.shape for name, value in to_torch(model.config, model.parameters).items()}
    {'weight_ih_l0': (12, 3), 'weight_hh_l0': (12, 4), 'bias_ih_l0': (12,), 'bias_hh_l0': (12,)}
    """
    result: dict[str, Floats] = {}
    H = config.hidden
    _refuse_feedback(config)
    for layer, reverse in places(config):
        p, suffix = parameters.layer(layer, reverse), torch_suffix(layer, reverse)
        second = np.zeros_like(p["b"])
        if "d" in p:
            second[2 * H :] = p["d"]
        result[f"weight_ih_{suffix}"] = np.ascontiguousarray(p["U"])
        result[f"weight_hh_{suffix}"] = p["W"].copy()
        result[f"bias_ih_{suffix}"] = p["b"].copy()
        result[f"bias_hh_{suffix}"] = second
    return result


def from_torch(
    config: ModelConfig, state_dict: Mapping[str, Any], onto: Parameters | None = None
) -> Parameters:
    """Return parameters with the recurrent layers of a PyTorch `state_dict`; the others stay as in `onto`.

    Values may be arrays or tensors; missing biases (bias=False) count as zero.
    """
    parameters = Parameters(shapes_of(config)) if onto is None else onto
    H = config.hidden
    _refuse_feedback(config)
    _refuse_other_layers(config, state_dict)
    for layer, reverse in places(config):
        p, suffix = parameters.layer(layer, reverse), torch_suffix(layer, reverse)
        p["U"][:] = _entry(state_dict, f"weight_ih_{suffix}", p["U"].shape)
        p["W"][:] = _entry(state_dict, f"weight_hh_{suffix}", p["W"].shape)
        first = _entry(state_dict, f"bias_ih_{suffix}", p["b"].shape, missing=0.0)
        second = _entry(state_dict, f"bias_hh_{suffix}", p["b"].shape, missing=0.0)
        p["b"][:] = first + second
        if "d" in p:
            p["b"][2 * H :] = first[2 * H :]
            p["d"][:] = second[2 * H :]
    return parameters


def _refuse_feedback(config: ModelConfig) -> None:
    if config.pattern == "output":
        raise InputError(
            "pattern='output' (figure 10.4) has no layer in PyTorch: nn.RNN reads h(t-1), not the output"
        )


def _refuse_other_layers(config: ModelConfig, state_dict: Mapping[str, Any]) -> None:
    """Raise where the state dict has recurrent layers that this model has not: nothing is lost in silence."""
    known = {torch_suffix(layer, reverse) for layer, reverse in places(config)}
    for name in state_dict:
        match = re.fullmatch(r"(?:weight|bias)_(ih|hh|hr)_(l\d+(?:_reverse)?)", name)
        if match and (match[1] == "hr" or match[2] not in known):
            raise InputError(f"the state dict has {name!r}, for which this model has no place")


def gradient_to_torch(config: ModelConfig, gradient: Parameters) -> dict[str, Floats]:
    """Return gradients under PyTorch's names: both biases get what the sum gets, but for the GRU's d."""
    result = to_torch(config, gradient)
    H = config.hidden
    for layer, reverse in places(config):
        suffix = torch_suffix(layer, reverse)
        second = result[f"bias_ih_{suffix}"].copy()
        if cell_named(config.cell).has_inner_bias:
            second[2 * H :] = result[f"bias_hh_{suffix}"][2 * H :]
        result[f"bias_hh_{suffix}"] = second
    return result


def places(config: ModelConfig) -> list[tuple[int, bool]]:
    """Return every (layer, reverse) of a model."""
    return [(layer, bool(r)) for layer in range(config.layers) for r in range(config.directions)]


def save_torch(path: str | Path, config: ModelConfig, parameters: Parameters) -> None:
    """Write the recurrent layers under PyTorch's names as safetensors; an existing file is replaced."""
    from safetensors.numpy import save

    write_whole(path, save(to_torch(config, parameters)))


def load_torch(path: str | Path, config: ModelConfig, onto: Parameters | None = None) -> Parameters:
    """Read recurrent layers under PyTorch's names from safetensors."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return from_torch(config, load_file(path), onto)
    except (OSError, SafetensorError) as error:
        raise FileError(f"{path} cannot be read as safetensors: {error}") from error


def _entry(
    state_dict: Mapping[str, Any], name: str, shape: tuple[int, ...], missing: float | None = None
) -> Floats:
    if name not in state_dict:
        if missing is None:
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
    if array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}; this model needs {shape}")
    return array
