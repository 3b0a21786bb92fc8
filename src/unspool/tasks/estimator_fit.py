"""Fit an estimator of sequences in a run: interrupted at any moment, it continues to the same bits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from unspool.data.batches.examples import Examples
from unspool.data.encoders import TokenEncoder
from unspool.errors import InputError
from unspool.kernels.arrays import Floats
from unspool.options import to_json
from unspool.storage import run_folder, tensors
from unspool.storage.log import RunLog
from unspool.storage.schema import read_as
from unspool.tasks.estimator_files import (
    FittedEstimator,
    encoders,
    learned_attributes,
    read_choice,
    write_choice,
    write_estimator,
)
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.events import StepDone
from unspool.training.fit import ending
from unspool.training.members import fit_members
from unspool.training.recipe import FitConfig
from unspool.training.sequence_fit import initial_state
from unspool.training.store import RunWriter, fit_has_ended, load_network, remove_state, restore_state

EXAMPLES = "examples"
"""The key of the data's hash in the config: only runs with a fit have it."""


def create_run(
    estimator: FittedEstimator, path: str | Path, examples: Examples, more: Mapping[str, Any]
) -> None:
    """Write a new run before its first update."""
    state = initial_state(estimator.network_, estimator.fit_config_)
    write_estimator(estimator, path, {EXAMPLES: _hash(estimator, examples)} | dict(more), state)


def load_plan(estimator: FittedEstimator, examples: Examples, path: str | Path) -> FitConfig:
    """Return the plan of a run; refuse one that was begun with other arguments or other examples."""
    content = run_folder.read_config(path, estimator.run_kind)
    if EXAMPLES not in content:
        raise InputError(
            f"{path}: the run holds no fit to resume: it was saved after the fit; choose another run"
        )
    given = json.loads(json.dumps(to_json(estimator), default=tensors.as_plain))
    arguments = read_as(dict[str, Any], content.get("arguments"), Path(path) / run_folder.CONFIG, "arguments")
    # A run of an older version lacks newer arguments.
    defaults = to_json(type(estimator)()) | dict(estimator.absent)
    for name, value in (defaults | arguments).items():
        if given.get(name) != value:
            raise InputError(
                f"{path}: it was begun with {name}={value!r}, not {given.get(name)!r}; "
                "resume with the same arguments, or choose another run"
            )
    if content[EXAMPLES] != _hash(estimator, examples):
        raise InputError(
            f"{path}: it was begun with other sequences or targets; give the same, or another run"
        )
    return read_as(FitConfig, content.get("fit"), Path(path) / run_folder.CONFIG, "fit")


def fit_in_run(
    estimator: FittedEstimator, rows: Any, examples: Examples, run: Path, policy: CheckpointPolicy
) -> Generator[StepDone]:
    """Fit from the saved state of a run to the end; closing the generator saves the state."""
    network, config = estimator.network_, estimator.fit_config_
    state = initial_state(network, config)
    with RunLog(run / run_folder.LOG) as log:
        if log.locked:
            run_folder.remove_leftovers(run)
        if fit_has_ended(run):
            fitted, estimator.n_iter_ = load_network(network.config, run)
            network.parameters.flat[:] = fitted.parameters.flat
            read_choice(estimator, run, run_folder.read_config(run, estimator.run_kind)["arguments"])
            return
        restore_state(state, run, log)
        writer = RunWriter(run, log)
        members = list[Floats]()
        events = fit_members(network, examples, config, members, state, writer, policy)
        if not estimator.trains_network:
            events.close()
        with ending(events):
            for event in events:
                if event.valid is not None:
                    entry = {"step": event.step, "train": event.train, "seconds": event.seconds}
                    writer.add(entry | {"valid": event.valid, "best": event.best})
                yield event
        estimator.choose(rows, examples, members)
        write_choice(estimator, run)
        step = getattr(estimator, "n_iter_", 0)
        writer.save_model(network, step)
        writer.add({"event": "fitted", "step": step, "seconds": state.seconds})
        log.position()
        remove_state(run)


def _hash(estimator: FittedEstimator, examples: Examples) -> str:
    """Return a hash of the examples and of what their numbers stand for: tokens, labels, units."""
    meant = learned_attributes(estimator)
    meant["learned"].pop("n_iter_", None)
    coders = encoders(estimator).items()
    meant["vocabs"] = {name: coder.vocab.sha256 for name, coder in coders if isinstance(coder, TokenEncoder)}
    words = json.dumps(meant, sort_keys=True, default=tensors.as_plain) + examples.sha256()
    return hashlib.sha256(words.encode()).hexdigest()
