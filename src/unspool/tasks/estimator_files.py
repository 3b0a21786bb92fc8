"""Write an estimator of sequences into a run, and read it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, Protocol, TypedDict

import numpy as np

from unspool.baselines.sequences.choice import NETWORK, Choice
from unspool.data.batches.examples import Examples
from unspool.data.encoder_fields import Fields, TokenFields
from unspool.data.encoders import Encoder, TokenEncoder, ValueEncoder, encoder_from_fields
from unspool.data.tokens.vocab import Vocab
from unspool.errors import FileError, InputError
from unspool.kernels.arrays import Floats
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.options import to_json
from unspool.storage import run_folder
from unspool.storage.log import RunLog
from unspool.storage.schema import read_as
from unspool.storage.tensors import read_arrays, write_arrays
from unspool.tasks.frames import NAMES
from unspool.training.provenance import provenance
from unspool.training.recipe import FitConfig
from unspool.training.state import TrainingState
from unspool.training.store import RunWriter, load_network

TARGET_VOCAB = "vocab.target.json"
MAX_LENGTH = 1_000_000
"""The largest length of an output that a run can ask for."""
LEARNED = {
    "single_": "single_",
    "longest_": "max_length_",
    "n_features_in_": "n_features_in_",
    "n_iter_": "n_iter_",
}
"""Attributes of an estimator by their keys in the file."""
ARRAYS = ("classes_", "class_prior_", NAMES)
CHOICE = "choice_"
"""The attribute of an estimator that says which model answers."""
PROVENANCE = "provenance_"
"""The attribute of an estimator that records what it was fitted with."""
LABEL_BYTES = 1 << 26
"""The largest array of labels that is read."""


class FittedEstimator(Protocol):
    """An estimator, as far as its run stores it."""

    network_: Network
    coder_: Encoder
    fit_config_: FitConfig
    n_iter_: int

    @property
    def absent(self) -> Mapping[str, Any]:
        """Values of the arguments that a run of an earlier version lacks."""

    @property
    def run_kind(self) -> str:
        """The kind of its runs."""

    @property
    def trains_network(self) -> bool:
        """Whether the network is trained."""

    def choose(self, rows: Any, examples: Examples, members: list[Floats]) -> None:
        """Choose the model that answers, after the fit of the networks."""

    def get_params(self) -> dict[str, Any]:
        """Return the constructor's arguments."""


class Labels(TypedDict):
    """An array of labels in a config."""

    dtype: str
    values: list[str | bool | int | float]


class Learned(TypedDict, total=False):
    """What was learned before the first update, besides the encoders."""

    single_: bool
    longest_: int
    n_features_in_: int
    n_iter_: int
    classes_: dict[str, Any]
    class_prior_: dict[str, Any]
    feature_names_in_: dict[str, Any]


class EstimatorConfig(TypedDict):
    """The fields of a run's config that its estimator is used with."""

    kind: str
    arguments: dict[str, Any]
    learned: Learned
    input: Fields
    target: NotRequired[Fields]
    network: SequenceConfig
    fit: FitConfig
    provenance: NotRequired[dict[str, Any]]


def write_estimator(
    estimator: FittedEstimator,
    path: str | Path,
    more: Mapping[str, Any],
    state: TrainingState[Network] | None = None,
) -> None:
    """Write a new run: of a fitted estimator, or with the state before its first update."""
    with run_folder.new_run(path) as run:
        made_with = getattr(estimator, PROVENANCE, None) or provenance(None)
        described = _described(estimator) | {"provenance": made_with}
        run_folder.write_config(run, estimator.run_kind, described | dict(more))
        for name, coder in encoders(estimator).items():
            if isinstance(coder, TokenEncoder):
                coder.vocab.save(run / name)
        step = getattr(estimator, "n_iter_", 0) if state is None else 0
        with RunLog(run / run_folder.LOG) as log:
            writer = RunWriter(run, log)
            writer.save_model(estimator.network_, step)
            if state is None:
                write_choice(estimator, run)
            writer.add({"event": "saved" if state is None else "begun", "step": step})
            if state is not None:
                writer.save_state(state)


def read_estimator(made: type[Any], path: str | Path) -> Any:
    """Read an estimator of a class from a run; refuse a run of another kind."""
    run = run_folder.check_run(path)
    content = read_as(EstimatorConfig, run_folder.read_config(run, made.run_kind), run / run_folder.CONFIG)
    arguments = {**made.absent, **content["arguments"]}
    estimator = read_as(made, arguments, run / run_folder.CONFIG, "arguments")
    for name, value in content["learned"].items():
        learned = _labels(value, run / run_folder.CONFIG, name) if name in ARRAYS else value
        setattr(estimator, LEARNED.get(name, name), learned)
    estimator.coder_ = _coder(content["input"], run, run_folder.VOCAB)
    if "target" in content:
        target = _coder(content["target"], run, TARGET_VOCAB)
        estimator.target_coder_ = target
    check_fits(estimator, content["network"], run / run_folder.CONFIG)
    estimator.network_, estimator.n_iter_ = load_network(content["network"], run)
    estimator.fit_config_ = content["fit"]
    read_choice(estimator, run, content["arguments"])
    if (made_with := content.get("provenance")) is not None:
        estimator.provenance_ = made_with
    return estimator


def write_choice(estimator: FittedEstimator, run: Path) -> None:
    """Write which model answers, and the baseline, into a run."""
    if "model" in estimator.get_params():
        choice: Choice = getattr(estimator, CHOICE, Choice(NETWORK))
        write_arrays(run / run_folder.CHOICE, choice.arrays(), choice.metadata())


def read_choice(estimator: Any, run: Path, arguments: Mapping[str, Any]) -> None:
    """Set `choice_` from the file of a run; the network answers until the fit has ended."""
    path = run / run_folder.CHOICE
    if not path.exists():
        if "model" in arguments and not (run / run_folder.TRAINING).exists():
            raise FileError(f"{path}: it is missing; restore it from a copy, or fit anew into another run")
        estimator.choice_ = Choice(NETWORK)
        return
    arrays, metadata = read_arrays(path)
    estimator.choice_ = Choice.restore(metadata, arrays, estimator.network_, path)


def check_fits(estimator: Any, config: SequenceConfig, path: Path) -> None:
    """Raise where the parts of an estimator do not fit its network: encoders, labels, priors, longest output."""
    coder, target = estimator.coder_, getattr(estimator, "target_coder_", None)
    discrete = config.output_head.is_discrete
    tagged = discrete and not config.has_decoder
    wrong = [
        estimator.shape != config.shape and "network.shape",
        (coder.size, getattr(estimator, "n_features_in_", coder.size)) != (config.inputs, config.inputs)
        and "input",
        isinstance(coder, ValueEncoder) != config.dense and "network.dense",
        not tagged and (target is None or target.size != config.outputs) and "target",
        not tagged and isinstance(target, ValueEncoder) == discrete and "target",
        not discrete and not hasattr(estimator, "single_") and "single_",
        config.has_decoder and not 1 <= getattr(estimator, "max_length_", 0) <= MAX_LENGTH and "longest_",
        not 1 <= getattr(estimator, "beam", 1) <= MAX_LENGTH and "beam",
    ]
    if tagged:
        wrong += [getattr(estimator, "classes_", np.zeros(0)).shape != (config.outputs,) and "classes_"]
    if tagged and not config.per_step:
        prior = getattr(estimator, "class_prior_", np.zeros(0))
        fits = prior.shape == (config.outputs,) and prior.dtype.kind == "f" and bool((prior > 0).all())
        wrong += [not fits and "class_prior_"]
    if name := next((each for each in wrong if each), None):
        raise FileError(f"{path}: damaged or manipulated: {name} does not fit the rest of the run")


def _coder(fields: Fields, run: Path, vocab: str) -> Encoder:
    """Return the encoder of a run; that of tokens has its vocabulary in another file."""
    of_tokens = isinstance(fields, TokenFields)
    if of_tokens and not (run / vocab).exists():
        raise FileError(f"{run / vocab}: the vocabulary is missing; restore it from a copy")
    try:
        return encoder_from_fields(fields, Vocab.load(run / vocab) if of_tokens else None)
    except InputError as error:
        raise FileError(f"{run / run_folder.CONFIG}: damaged or manipulated: {error}") from error


def _labels(value: Any, path: Path, name: str) -> Any:
    """Return an array of labels or priors from plain values."""
    fields = read_as(Labels, value, path, f"learned.{name}")
    try:
        dtype = np.dtype(fields["dtype"])
        if dtype.kind not in "biufUO" or dtype.itemsize * len(fields["values"]) > LABEL_BYTES:
            raise TypeError(f"dtype {fields['dtype']!r}")
        return np.array(fields["values"], dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{path}: damaged or manipulated: learned.{name}: {error}") from error


def _described(estimator: FittedEstimator) -> dict[str, Any]:
    return {
        "arguments": to_json(estimator),
        "network": estimator.network_.config.to_json(),
        "fit": estimator.fit_config_.to_json(),
        **learned_attributes(estimator),
    }


def learned_attributes(estimator: FittedEstimator) -> dict[str, Any]:
    """Return what was learned before the first update, without the vocabularies."""
    content: dict[str, Any] = {"input": estimator.coder_.to_json()}
    if hasattr(estimator, "target_coder_"):
        content["target"] = estimator.target_coder_.to_json()
    content["learned"] = {
        key: getattr(estimator, name) for key, name in LEARNED.items() if hasattr(estimator, name)
    }
    for name in ARRAYS:
        if hasattr(estimator, name):
            array = getattr(estimator, name)
            content["learned"][name] = {"dtype": array.dtype.str, "values": array.tolist()}
    return content


def encoders(estimator: FittedEstimator) -> dict[str, Encoder]:
    """Return the encoders of input and output, by the file of their vocabulary."""
    coders: dict[str, Encoder] = {run_folder.VOCAB: estimator.coder_}
    if hasattr(estimator, "target_coder_"):
        coders[TARGET_VOCAB] = estimator.target_coder_
    return coders
