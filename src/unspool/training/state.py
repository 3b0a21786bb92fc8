"""All that changes during training, as one value that can be saved and restored.

Everything else (the data, the settings, the schedule, the dropout masks, which are functions of seed and step) is fixed. So
training that continues from a saved state ends in the same bits as training that was never interrupted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NotRequired, TypedDict, TypeVar

import numpy as np

from unspool.cells import cell_named
from unspool.data.batches.text_windows import Batches, Position
from unspool.errors import Diverged, FileError, InputError
from unspool.gradients.truncation import CarriedState
from unspool.kernels.arrays import Floats
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.parameters import shapes_of
from unspool.model.sequence_network import Network
from unspool.optimisers.base import Optimiser
from unspool.storage.log import Mark
from unspool.storage.tensors import check_array


class Saved(TypedDict):
    """The fields of a saved state, besides its arrays."""

    step: int
    seconds: float
    best: float | None
    journal: Mark
    train: NotRequired[float]
    loss: NotRequired[float]
    """`train`, as estimators of sequences call it."""
    best_step: NotRequired[int]
    since: NotRequired[int]
    """The validations since the best one."""
    batches: NotRequired[Position]
    before: NotRequired[int]
    """The updates of the networks of an ensemble that are trained already."""


ModelT = TypeVar("ModelT", Model, Network)
FINISHED = "finished."
"""The prefix of the arrays of networks that are trained already."""


@dataclass
class TrainingState(Generic[ModelT]):
    """A model in training."""

    model: ModelT
    optimiser: Optimiser
    batches: Batches | None = None
    """The batches of a text, which have a position; batches of examples are a function of the step."""
    carried: CarriedState | None = None
    """What one update on a text leaves for the next: the state, and the steps that gradients still reach."""
    best: float = math.inf
    """The lowest validation loss so far."""
    best_step: int = 0
    """The number of updates after which that was."""
    best_parameters: Floats | None = None
    """The parameters that had it; None before the first validation, and where the model file of the run has them."""
    validations_since_best: int = 0
    train: float = 0.0
    """The running mean of the training loss."""
    seconds: float = 0.0
    """The duration of the run so far, over all its parts."""
    finished: dict[str, Floats] = field(default_factory=dict)
    """Of an ensemble: the parameters of the networks that are trained already, by name."""
    before: int = 0
    """The updates of those networks."""
    saved: float = field(default_factory=time.monotonic)
    """When it was saved last, or made: a time of this process, which is not saved."""

    @property
    def step(self) -> int:
        """The number of updates so far."""
        return self.optimiser.step

    def update_best(self, valid: float) -> bool:
        """Take a validation loss; keep the parameters if it is the lowest so far, and return whether it is."""
        if not valid < self.best:
            self.validations_since_best += 1
            return False
        self.best, self.best_step, self.validations_since_best = valid, self.step, 0
        self.best_parameters = self.model.parameters.flat.copy()
        return True

    def restore_best(self) -> None:
        """Set the model's parameters to the best ones."""
        if self.best_parameters is not None:
            self.model.parameters.flat[:] = self.best_parameters

    def refuse_infinite(self) -> None:
        """Raise where a parameter is not finite: such a model is never saved."""
        if not np.isfinite(self.model.parameters.flat).all():
            raise Diverged(
                f"some parameters are not finite after step {self.step}: lower the learning rate or the clipping norm"
            )

    def arrays(self) -> dict[str, Floats]:
        """Return all arrays by name. The best parameters of a text model are in the model file of its run instead."""
        found = {"parameters": self.model.parameters.flat}
        if self.carried is None and self.best_parameters is not None:
            found["best"] = self.best_parameters
        found |= {name: array for name, array in self.optimiser.state().items() if name != "step"}
        found |= {FINISHED + name: array for name, array in self.finished.items()}
        return found if self.carried is None else found | self.carried.state()

    def metadata(self) -> dict[str, Any]:
        """Return everything else, ready for JSON."""
        found = {
            "step": self.step,
            "best": self.best if math.isfinite(self.best) else None,
            "best_step": self.best_step,
            "since": self.validations_since_best,
            "train": self.train,
            "loss": self.train,
            "seconds": self.seconds,
        }
        found |= {"before": self.before} if self.finished else {}
        return found if self.batches is None else found | {"batches": self.batches.state()}

    def restore(self, arrays: Mapping[str, Floats], saved: Saved, path: object) -> None:
        """Return to a saved state; raise FileError where its arrays belong to another model."""
        flat = self.model.parameters.flat
        for name in {"parameters", *(name for name in arrays if not name.startswith(("past.", FINISHED)))}:
            check_array(arrays, name, flat.shape, path)
        if self.carried is not None and isinstance(self.model, Model):
            check_carried(self.model.config, arrays, path)
        fields: Mapping[str, Any] = saved
        wanted = {"train", "best_step", "batches"} if self.batches is not None else {"loss", "since"}
        if missing := sorted(wanted - fields.keys()):
            raise FileError(f"{path}: damaged or manipulated: {missing[0]} is missing")
        since = fields.get("since", 0)
        for name in ("since", "before"):
            if fields.get(name, 0) < 0:
                raise FileError(
                    f"{path}: damaged or manipulated: {name} is {fields[name]}; expected 0 or more"
                )
        try:
            self.optimiser.restore({"step": saved["step"]} | dict(arrays))
            if self.batches is not None:
                self.batches.restore(fields["batches"])
        except InputError as error:
            raise FileError(f"{path}: damaged or manipulated: {error}") from error
        flat[:] = arrays["parameters"]
        if self.carried is not None:
            self.carried.restore(dict(arrays))
        self.best = math.inf if saved["best"] is None else saved["best"]
        self.best_step, self.best_parameters = fields.get("best_step", 0), arrays.get("best")
        self.validations_since_best, self.seconds = since, saved["seconds"]
        self.train = fields.get("train", fields.get("loss", 0.0))
        self.before = fields.get("before", 0)
        self.finished = {
            name.removeprefix(FINISHED): array for name, array in arrays.items() if name.startswith(FINISHED)
        }


def check_size(config: ModelConfig, arrays: Mapping[str, Floats], path: object) -> None:
    """Raise where a saved state cannot hold the parameters of a model, before any of them is allocated."""
    saved = arrays.get("parameters")
    if saved is None or config.layers > saved.size or bytes_of_parameters(config) > 4 * saved.size:
        raise FileError(f"{path}: it belongs to a model of other sizes")


def bytes_of_parameters(config: ModelConfig) -> int:
    """Return the size of a model's parameters in bytes."""
    return 4 * sum(math.prod(shape) for shape in shapes_of(config).values())


def check_carried(config: ModelConfig, arrays: Mapping[str, Floats], path: object) -> None:
    """Raise where the carried state, or the steps to look back on, are not those of a model."""
    names = [name for name in arrays if name.startswith("past.")]
    tokens = [name for name in names if name.endswith((".x", ".y", ".fresh"))]
    first = next((arrays[name] for name in names), None)
    B = None if first is None or not first.ndim else first.shape[-1 if names[0] in tokens else 0]
    for name in names:
        if name.endswith(".fresh"):
            _check_resets(arrays, name, path)
        elif name in tokens:
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
        raise FileError(f"{path}: damaged or manipulated: the carried state is not complete")


def _check_resets(arrays: Mapping[str, Floats], name: str, path: object) -> None:
    """Raise where the rows that were reset before the steps of x are not 0 or 1 for each of these steps and rows."""
    x = arrays.get(name.removesuffix("fresh") + "x")
    resets = check_array(arrays, name, (None, None) if x is None else x.shape, path, np.int32)
    if x is None or not np.isin(resets, (0, 1)).all():
        raise FileError(f"{path}: damaged or manipulated: {name} must be 0 or 1 for each step and row")


def _check_ids(config: ModelConfig, ids: Any, name: str, path: object) -> None:
    if ids.size and (ids.min() < 0 or ids.max() >= config.inputs + config.feeds_tokens):
        raise FileError(f"{path}: damaged or manipulated: {name} has an id that the vocabulary does not have")
