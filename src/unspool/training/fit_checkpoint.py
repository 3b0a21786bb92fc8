"""A fit that is kept in a run while it goes: stopped or killed at any moment, it goes on to the same bits.

    RUN/config.json           arguments, the network's sizes, the planned updates, what the training part taught
        vocab.json            the vocabulary of the input, where it is tokens
        vocab.target.json     the vocabulary of what is written, where there is one
        model.safetensors     the best parameters so far, under the textbook's letters
        training.safetensors  all that is needed to go on; when the fit has ended it is gone
        log.jsonl             what happened, a line each; the last one says that the fit has ended

The folder gets its name when it is complete, with the untrained network in it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from unspool.data.batches.examples import Examples
from unspool.data.encoders import Encoder, TokenEncoder, ValueEncoder
from unspool.errors import FileError, InputError
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_layout import shapes_of_network
from unspool.model.sequence_network import Network
from unspool.options import to_json
from unspool.storage import run_folder, tensors
from unspool.storage.files import why
from unspool.storage.log import RunLog, read_log
from unspool.storage.schema import read_as
from unspool.training import store
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.fit import FitReport, fit
from unspool.training.fit_state import FitState, Saved
from unspool.training.provenance import provenance
from unspool.training.recipe import FitConfig

TARGET_VOCAB = "vocab.target.json"
LONGEST = 1_000_000
"""The most steps of an answer that a run can ask for."""
LEARNED = ("single_", "longest_", "n_features_in_", "n_iter_")
ARRAYS = ("classes_", "class_prior_")
PROVENANCE = "provenance_"
"""The attribute of an estimator that says what it was fitted with."""
EXAMPLES = "examples"
"""The key of the data's hash in the config: only a run that was kept while it was fitted has it."""


class Fits(Protocol):
    """An estimator, as far as it is written down."""

    network_: Network
    coder_: Encoder
    fit_config_: FitConfig
    n_iter_: int

    @property
    def run_kind(self) -> str:
        """What the config calls it."""

    def get_params(self) -> dict[str, Any]:
        """Return the constructor's arguments."""


def create_run(estimator: Fits, path: str | Path, examples: Examples, more: Mapping[str, Any]) -> None:
    """Write a new run before its first update."""
    begun = FitState.initial(estimator.network_, estimator.fit_config_)
    write(estimator, path, {EXAMPLES: _hash(estimator, examples)} | dict(more), begun)


def write(estimator: Fits, path: str | Path, more: Mapping[str, Any], begun: FitState | None = None) -> None:
    """Write a new run: an estimator that is fitted, or one whose fit begins."""
    with run_folder.new_run(path) as run:
        made_with = getattr(estimator, PROVENANCE, None) or provenance(None)
        described = _described(estimator) | {"provenance": made_with}
        run_folder.write_config(run, estimator.run_kind, described | dict(more))
        for name, coder in _coders(estimator).items():
            if isinstance(coder, TokenEncoder):
                coder.vocab.save(run / name)
        step = getattr(estimator, "n_iter_", 0) if begun is None else 0
        keep(estimator, run, step)
        with RunLog(run / run_folder.LOG) as journal:
            journal.add({"event": "saved" if begun is None else "begun", "step": step})
            if begun is not None:
                _save(begun, run, journal)


def keep(estimator: Fits, run: Path, step: int) -> None:
    """Write the parameters as they are now into a run."""
    about = {"network": estimator.network_.config.to_json(), "step": step}
    tensors.write_arrays(run / run_folder.MODEL, dict(estimator.network_.parameters), about)


def load_plan(estimator: Fits, examples: Examples, path: str | Path) -> FitConfig:
    """Give the plan of a run that was begun; refuse one begun with other arguments or other examples."""
    content = run_folder.read_config(path, estimator.run_kind)
    if EXAMPLES not in content:
        raise InputError(
            f"{path}: it holds no fit that could go on: it was saved when fitted; give another run"
        )
    given = json.loads(json.dumps(to_json(estimator), default=tensors.as_plain))
    arguments = read_as(dict[str, Any], content.get("arguments"), Path(path) / run_folder.CONFIG, "arguments")
    for name, value in arguments.items():
        if given.get(name) != value:
            raise InputError(
                f"{path}: it was begun with {name}={value!r}, not {given.get(name)!r}; "
                "go on with the same arguments, or give another run"
            )
    if content[EXAMPLES] != _hash(estimator, examples):
        raise InputError(
            f"{path}: it was begun with other sequences or targets; give the same, or another run"
        )
    return read_as(FitConfig, content.get("fit"), Path(path) / run_folder.CONFIG, "fit")


def read_network(config: SequenceConfig, run: Path) -> tuple[Network, int]:
    """Return the network of a run and the number of updates that it has had."""
    path = run / run_folder.MODEL
    arrays, about = tensors.read_arrays(path)
    step = read_as(int, about.get("step"), path, "step")
    if step < 0 or config != read_as(SequenceConfig, about.get("network"), path, "network"):
        raise FileError(f"{path}: the model of another run")
    store.check_layers(config.layers, arrays, path)
    return Network(config, store.filled(shapes_of_network(config), arrays, path)), step


def check_fits(estimator: Any, config: SequenceConfig, path: Path) -> None:
    """Raise where the parts of an estimator do not fit its network: coders, labels, shares, longest answer."""
    coder, target = estimator.coder_, getattr(estimator, "target_coder_", None)
    discrete = config.output_head.is_discrete
    tagged = discrete and not config.decodes
    wrong = [
        estimator.shape != config.shape and "network.shape",
        (coder.size, getattr(estimator, "n_features_in_", coder.size)) != (config.inputs, config.inputs)
        and "input",
        isinstance(coder, ValueEncoder) != config.dense and "network.dense",
        not tagged and (target is None or target.size != config.outputs) and "target",
        not tagged and isinstance(target, ValueEncoder) == discrete and "target",
        not discrete and not hasattr(estimator, "single_") and "single_",
        config.decodes and not 1 <= getattr(estimator, "longest_", 0) <= LONGEST and "longest_",
        not 1 <= getattr(estimator, "beam", 1) <= LONGEST and "beam",
    ]
    if tagged:
        wrong += [getattr(estimator, "classes_", np.zeros(0)).shape != (config.outputs,) and "classes_"]
    if tagged and not config.aligned:
        prior = getattr(estimator, "class_prior_", np.zeros(0))
        fits = prior.shape == (config.outputs,) and prior.dtype.kind == "f" and bool((prior > 0).all())
        wrong += [not fits and "class_prior_"]
    if name := next((each for each in wrong if each), None):
        raise FileError(f"{path}: damaged or crafted: {name} does not fit the rest of the run")


def fit_with_checkpoints(
    estimator: Fits, examples: Examples, run: Path, policy: CheckpointPolicy
) -> Generator[FitReport]:
    """Fit from where the run is to the end; whoever leaves the reports earlier leaves a run that can go on."""
    network, config = estimator.network_, estimator.fit_config_
    state, training = FitState.initial(network, config), run / run_folder.TRAINING
    with RunLog(run / run_folder.LOG) as journal:
        if journal.locked:
            run_folder.remove_leftovers(run)
        if has_ended(run):
            fitted, estimator.n_iter_ = read_network(network.config, run)
            network.parameters.flat[:] = fitted.parameters.flat
            return
        arrays, about = tensors.read_arrays(training)
        saved_state = read_as(Saved, about, training)
        state.restore(arrays, saved_state, training)
        journal.truncate_to(saved_state["journal"])
        saved = time.monotonic()
        for report in fit(network, examples, config, state):
            _note(journal, report)
            if report.best:
                keep(estimator, run, report.step)
            try:
                yield report
            except GeneratorExit:
                _keep_all(estimator, state, run, journal)
                raise
            if policy.due(report.step, saved):
                _keep_all(estimator, state, run, journal)
                saved = time.monotonic()
        keep(estimator, run, state.step)
        journal.add({"event": "fitted", "step": state.step, "seconds": state.seconds})
        journal.mark()
        _remove(training)


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError as error:
        raise FileError(f"{path}: cannot be removed: {why(error)}") from error


def has_ended(run: Path) -> bool:
    """Say whether a fit is over; one that is not, and cannot go on either, is refused."""
    if (run / run_folder.TRAINING).exists():
        return False
    log = run / run_folder.LOG
    told = read_log(log) if log.exists() else []
    if not told or told[-1].get("event") != "fitted":
        raise FileError(
            f"{run / run_folder.TRAINING}: it is missing, and {run_folder.LOG} does not say that the fit has ended; "
            "restore it from a copy, or fit anew into another run"
        )
    return True


def _keep_all(estimator: Fits, state: FitState, run: Path, journal: RunLog) -> None:
    """Write all that is needed to go on; while none is known to be the best, the parameters of now are the model."""
    _save(state, run, journal)
    if state.flat is None:
        keep(estimator, run, state.step)


def _save(state: FitState, run: Path, journal: RunLog) -> None:
    state.refuse_infinite()
    about = state.about() | {"journal": journal.mark()}
    tensors.write_arrays(run / run_folder.TRAINING, state.arrays(), about)


def _note(journal: RunLog, report: FitReport) -> None:
    if report.valid is not None:
        entry = {"step": report.step, "train": report.loss, "seconds": report.seconds}
        journal.add(entry | {"valid": report.valid, "best": report.best})


def _hash(estimator: Fits, examples: Examples) -> str:
    """Give a hash of the examples and of what their numbers stand for: letters, labels, units."""
    meant = _learned_attributes(estimator)
    meant["learned"].pop("n_iter_", None)
    coders = _coders(estimator).items()
    meant["vocabs"] = {name: coder.vocab.sha256 for name, coder in coders if isinstance(coder, TokenEncoder)}
    words = json.dumps(meant, sort_keys=True, default=tensors.as_plain) + examples.sha256()
    return hashlib.sha256(words.encode()).hexdigest()


def _described(estimator: Fits) -> dict[str, Any]:
    return {
        "arguments": to_json(estimator),
        "network": estimator.network_.config.to_json(),
        "fit": estimator.fit_config_.to_json(),
        **_learned_attributes(estimator),
    }


def _learned_attributes(estimator: Fits) -> dict[str, Any]:
    """Give what the training part taught, the vocabularies aside."""
    content: dict[str, Any] = {"input": estimator.coder_.to_json()}
    if hasattr(estimator, "target_coder_"):
        content["target"] = estimator.target_coder_.to_json()
    content["learned"] = {name: getattr(estimator, name) for name in LEARNED if hasattr(estimator, name)}
    for name in ARRAYS:
        if hasattr(estimator, name):
            array = getattr(estimator, name)
            content["learned"][name] = {"dtype": array.dtype.str, "values": array.tolist()}
    return content


def _coders(estimator: Fits) -> dict[str, Encoder]:
    coders: dict[str, Encoder] = {run_folder.VOCAB: estimator.coder_}
    if hasattr(estimator, "target_coder_"):
        coders[TARGET_VOCAB] = estimator.target_coder_
    return coders
