"""The files of a run: its model, its training state and its log, and how they are written during training.

RUN/config.json           the kind of the run, its settings, what was learned before the first update
    vocab.json            the vocabulary, where the input is tokens
    vocab.target.json     the vocabulary of the output, where there is one
    model.safetensors     the best parameters so far, under the textbook's letters
    training.safetensors  the training state; of sequences until the fit has ended
    log.jsonl             one line of JSON per entry
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unspool.errors import FileError
from unspool.kernels.arrays import Floats
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.parameters import Parameters, Shapes, shapes_of
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_layout import shapes_of_network
from unspool.model.sequence_network import Network
from unspool.storage import run_folder
from unspool.storage.files import why
from unspool.storage.log import RunLog, read_log
from unspool.storage.schema import read_as
from unspool.storage.tensors import check_array, read_arrays, write_arrays
from unspool.training.state import Saved, TrainingState


class Stopwatch:
    """Seconds since it was made, plus those before."""

    def __init__(self, before: float = 0.0) -> None:
        self._start = time.perf_counter() - before

    def __call__(self) -> float:
        """Return the seconds."""
        return time.perf_counter() - self._start


@dataclass(frozen=True)
class RunWriter:
    """Writes a run during training; without a folder it writes nothing."""

    out: Path | None = None
    log: RunLog | None = None

    def add(self, entry: dict[str, Any]) -> None:
        """Write a line into the log."""
        if self.log is not None:
            self.log.add(entry)

    def save_model(self, model: Model | Network, step: int, valid: float | None = None) -> None:
        """Write the model as it is now."""
        if self.out is not None:
            save_model(self.out / run_folder.MODEL, model, {"step": step, "valid": valid})

    def save_state(self, state: TrainingState[Any]) -> None:
        """Write the training state: the run can be resumed from here."""
        if self.out is not None and self.log is not None:
            state.refuse_infinite()
            metadata = state.metadata() | {"journal": self.log.position()}
            write_arrays(self.out / run_folder.TRAINING, state.arrays(), metadata)


def restore_state(state: TrainingState[Any], run: Path, log: RunLog) -> None:
    """Return to the state that a run was saved in last, and truncate its log to the same moment."""
    path = run / run_folder.TRAINING
    arrays, metadata = read_arrays(path)
    saved = read_as(Saved, metadata, path)
    state.restore(arrays, saved, path)
    log.truncate_to(saved["journal"])


def saved_step(path: Path) -> int:
    """Return the updates of a saved training state, of an ensemble those of all its networks."""
    saved = read_as(Saved, read_arrays(path)[1], path)
    return saved.get("before", 0) + saved["step"]


def fit_has_ended(run: Path) -> bool:
    """Return whether the fit of sequences in a run has ended; raise where it has not and cannot be resumed either."""
    if (run / run_folder.TRAINING).exists():
        return False
    log = run / run_folder.LOG
    entries = read_log(log) if log.exists() else []
    if not entries or entries[-1].get("event") != "fitted":
        raise FileError(
            f"{run / run_folder.TRAINING}: it is missing, and {run_folder.LOG} does not say that the fit has ended; "
            "restore it from a copy, or fit anew into another run"
        )
    return True


def remove_state(run: Path) -> None:
    """Remove the training state of a fit that has ended."""
    path = run / run_folder.TRAINING
    try:
        path.unlink()
    except OSError as error:
        raise FileError(f"{path}: cannot be removed: {why(error)}") from error


def save_model(path: str | Path, model: Model | Network, metadata: Mapping[str, Any]) -> None:
    """Write a model's parameters under the textbook's letters, with its sizes and metadata."""
    key = "model" if isinstance(model, Model) else "network"
    write_arrays(path, dict(model.parameters), {key: model.config.to_json()} | dict(metadata))


def load_model(path: str | Path) -> tuple[Model, dict[str, Any]]:
    """Read a model of text and its metadata."""
    arrays, metadata = read_arrays(path)
    config = read_as(ModelConfig, metadata.pop("model", None), path, "model")
    check_layers(config.layers, arrays, path)
    return Model(config, filled(shapes_of(config), arrays, path)), metadata


def load_network(config: SequenceConfig, run: Path) -> tuple[Network, int]:
    """Read the network of a run and the number of its updates; refuse one of other sizes."""
    path = run / run_folder.MODEL
    arrays, metadata = read_arrays(path)
    step = read_as(int, metadata.get("step"), path, "step")
    if step < 0 or config != read_as(SequenceConfig, metadata.get("network"), path, "network"):
        raise FileError(f"{path}: the model of another run")
    return network_from(config, arrays, path), step


def network_from(config: SequenceConfig, arrays: Mapping[str, Floats], path: str | Path) -> Network:
    """Return a network with the arrays of a file."""
    check_layers(config.layers, arrays, path)
    return Network(config, filled(shapes_of_network(config), arrays, path))


def check_layers(layers: int, arrays: Mapping[str, Floats], path: str | Path) -> None:
    """Raise where a file cannot hold this many layers, before the shapes of all of them are listed."""
    if layers > len(arrays):
        raise FileError(f"{path}: damaged or manipulated: {layers:,} layers, but {len(arrays)} arrays")


def filled(shapes: Shapes, arrays: Mapping[str, Floats], path: str | Path) -> Parameters:
    """Return parameters with the arrays of a file; each is checked before memory is allocated."""
    for name, shape in shapes.items():
        check_array(arrays, name, shape, path)
    parameters = Parameters(shapes)
    for name in shapes:
        parameters[name][:] = arrays[name]
    return parameters
