"""All that changes while a model is trained, as one value that can be written down and gone on from.

Everything else (the text, the settings, the schedule, the dropout masks, which are a function of seed and step)
is fixed. So a run that goes on from here ends in the same bits as one that never stopped.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from unspool.cells import cell_named
from unspool.data.batches.text_windows import Batches, Position
from unspool.errors import FileError, InputError
from unspool.gradients.truncation import CarriedState
from unspool.kernels.arrays import Floats
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.parameters import shapes_of
from unspool.optimisers.base import Optimiser
from unspool.storage.log import Mark
from unspool.storage.tensors import check_array


class Saved(TypedDict):
    """The fields of a saved state, besides its arrays."""

    step: int
    batches: Position
    best: float | None
    best_step: int
    train: float
    seconds: float
    journal: Mark


@dataclass
class TrainingState:
    """A model on its way."""

    model: Model
    optimiser: Optimiser
    batches: Batches
    carried: CarriedState
    """What the next update goes on from: the carried state, and the steps that are looked back on."""
    best: float = math.inf
    """The lowest validation loss so far."""
    best_step: int = 0
    """After which update that was."""
    train: float = 0.0
    """The mean nats of about the last updates."""
    seconds: float = 0.0
    """Spent on the run so far, in all its pieces."""

    @property
    def step(self) -> int:
        """How many updates have been made."""
        return self.optimiser.step

    def arrays(self) -> dict[str, Floats]:
        """Give all numbers that are arrays, under names."""
        memory = self.optimiser.state()
        found = {"parameters": self.model.parameters.flat}
        found |= {name: memory[name] for name in ("m", "v") if memory[name] is not None}
        return found | self.carried.state()

    def about(self) -> dict[str, Any]:
        """Give everything else, ready for JSON."""
        return {
            "step": self.step,
            "batches": self.batches.state(),
            "best": self.best if math.isfinite(self.best) else None,
            "best_step": self.best_step,
            "train": self.train,
            "seconds": self.seconds,
        }

    def restore(self, arrays: Mapping[str, Floats], about: Saved, path: object) -> None:
        """Go back to a saved state; raise FileError where its arrays or its position are of another training."""
        flat = self.model.parameters.flat
        for name in {"parameters", "m", "v"} & {"parameters", *arrays}:
            check_array(arrays, name, flat.shape, path)
        check_past(self.model.config, arrays, path)
        try:
            self.optimiser.restore({"step": about["step"], "m": arrays.get("m"), "v": arrays.get("v")})
            self.batches.restore(about["batches"])
        except InputError as error:
            raise FileError(f"{path}: damaged or crafted: {error}") from error
        flat[:] = arrays["parameters"]
        self.carried.restore(dict(arrays))
        self.best = math.inf if about["best"] is None else about["best"]
        self.best_step = about["best_step"]
        self.train, self.seconds = about["train"], about["seconds"]


def check_size(config: ModelConfig, arrays: Mapping[str, Floats], path: object) -> None:
    """Raise where a saved state cannot hold the parameters of a model, before any of them is allocated."""
    saved = arrays.get("parameters")
    if saved is None or config.layers > saved.size or bytes_of_parameters(config) > 4 * saved.size:
        raise FileError(f"{path}: it belongs to a model of other sizes")


def bytes_of_parameters(config: ModelConfig) -> int:
    """Return how many bytes the parameters of a model have."""
    return 4 * sum(math.prod(shape) for shape in shapes_of(config).values())


def check_past(config: ModelConfig, arrays: Mapping[str, Floats], path: object) -> None:
    """Raise where the carried state, or the steps to look back on, are not those of a model."""
    names = [name for name in arrays if name.startswith("past.")]
    tokens = [name for name in names if name.endswith((".x", ".y"))]
    first = next((arrays[name] for name in names), None)
    B = None if first is None or not first.ndim else first.shape[-1 if names[0] in tokens else 0]
    for name in names:
        if name in tokens:
            _check_ids(config, check_array(arrays, name, (None, B), path, np.int32), name, path)
        elif config.feeds_tokens:  # the state is the token before: -1 at the start
            _check_ids(config, check_array(arrays, name, (B,), path, np.int32) + 1, name, path)
        else:
            check_array(arrays, name, (B, config.hidden), path)
    states = sorted(name for name in names if name not in tokens)
    parts = "hs"[: cell_named(config.cell).parts]
    wanted = sorted(f"past.{layer}.{part}" for layer in range(config.layers) for part in parts)
    pending = {"past.waiting.x", "past.waiting.y"} & set(names)
    if (states and states != wanted) or len(pending) == 1:
        raise FileError(f"{path}: damaged or crafted: the carried state is not complete")


def _check_ids(config: ModelConfig, ids: Any, name: str, path: object) -> None:
    if ids.size and (ids.min() < 0 or ids.max() >= config.inputs + config.feeds_tokens):
        raise FileError(f"{path}: damaged or crafted: {name} has an id that the vocabulary does not have")
