"""Write and read the model of a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unspool.errors import FileError
from unspool.kernels.arrays import Floats
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.parameters import Parameters, Shapes, shapes_of
from unspool.storage.schema import read_as
from unspool.storage.tensors import check_array, read_arrays, write_arrays


def save_model(path: str | Path, model: Model, about: Mapping[str, Any]) -> None:
    """Write a model's parameters under the textbook's letters, its sizes and a few words about it."""
    write_arrays(path, dict(model.parameters), {"model": model.config.to_json()} | dict(about))


def load_model(path: str | Path) -> tuple[Model, dict[str, Any]]:
    """Read a model, and what was said about it."""
    arrays, about = read_arrays(path)
    config = read_as(ModelConfig, about.pop("model", None), path, "model")
    check_layers(config.layers, arrays, path)
    return Model(config, filled(shapes_of(config), arrays, path)), about


def check_layers(layers: int, arrays: Mapping[str, Floats], path: str | Path) -> None:
    """Raise where a file cannot hold this many layers, before the shapes of all of them are listed."""
    if layers > len(arrays):
        raise FileError(f"{path}: damaged or crafted: {layers:,} layers, but {len(arrays)} arrays")


def filled(shapes: Shapes, arrays: Mapping[str, Floats], path: str | Path) -> Parameters:
    """Return parameters with the arrays of a file; each is checked before memory is allocated."""
    for name, shape in shapes.items():
        check_array(arrays, name, shape, path)
    parameters = Parameters(shapes)
    for name in shapes:
        parameters[name][:] = arrays[name]
    return parameters
