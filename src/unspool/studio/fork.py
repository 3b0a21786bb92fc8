"""Fork a run: a new run that goes on from an update of another one, with another learning rate, truncation or clipping.

The new folder holds what the parent's held after that update: its text, its state, its best model, its log up to there.
So a fork with nothing changed is the parent to the bit, and one with another rate first differs at the update after the fork.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from unspool.errors import InputError
from unspool.gradients.truncation import AUTO, Truncation
from unspool.model.network import Model
from unspool.storage import run_folder
from unspool.storage.log import RunLog, read_log
from unspool.studio.history import Progress
from unspool.studio.runs import Run
from unspool.training import store
from unspool.training.events import RunConfig
from unspool.training.recipe import check
from unspool.training.store import RunWriter

OPTIONS = ("learning_rate", "clip", "bptt")
"""What a fork may change."""


def fork_run(run: Run, update: int, options: Mapping[str, Any], out: Path, on_progress: Progress) -> None:
    """Write the folder of a run that goes on from an update of another one."""
    if (
        run.history is None
        or run.config is None
        or run.status in ("followed", "viewed", "stored", "preparing")
    ):
        raise InputError(f"{run.name} cannot be forked: it is {run.status}")
    if not run.first <= update < run.steps:
        raise InputError(f"update is {update}; expected {run.first} to {min(run.step, run.steps - 1)}")
    config = changed(run.config, options)
    state = run.history.state_at(update, on_progress)
    state.seconds = next((row[4] for row in reversed(run.curve) if row[0] <= update), 0.0)
    content = run_folder.read_config(run.out, "language")
    best = state.best_parameters
    with run_folder.new_run(out) as folder:
        shutil.copytree(run.out / run_folder.TEXT, folder / run_folder.TEXT)
        shutil.copyfile(run.out / run_folder.VOCAB, folder / run_folder.VOCAB)
        about = {"parent": run.name, "run": run.id, "update": update, "changed": dict(options)}
        content = {name: each for name, each in content.items() if name not in ("format", "kind")}
        run_folder.write_config(folder, "language", content | {"run": config.to_json(), "fork": about})
        model, step = state.model, update
        if best is not None:
            model, step = Model(state.model.config, state.model.parameters.like()), state.best_step
            model.parameters.flat[:] = best
        valid = state.best if np.isfinite(state.best) else None
        store.save_model(folder / run_folder.MODEL, model, {"step": step, "valid": valid})
        with RunLog(folder / run_folder.LOG) as log:
            for entry in _entries(run, update):
                log.add(entry)
            log.add({"fork": about, "recipe": asdict(config.fixed)})
            RunWriter(folder, log).save_state(state)


def changed(config: RunConfig, options: Mapping[str, Any]) -> RunConfig:
    """Return the config of a fork."""
    if unknown := sorted(set(options) - set(OPTIONS)):
        raise InputError(
            f"options: {unknown[0]!r} cannot be changed by a fork; expected {', '.join(OPTIONS)}: start a new run"
        )
    numbers = {name: options[name] for name in ("learning_rate", "clip") if options.get(name) is not None}
    check(numbers)
    bptt = options.get("bptt") or config.bptt
    if bptt == AUTO:
        raise InputError("bptt is auto; a fork needs a fixed one, for example truncated:16")
    if bptt != config.bptt:
        K1, now = Truncation.parse(bptt).K1, Truncation.parse(config.bptt)
        if now.K2 > now.K1:
            raise InputError(
                f"bptt is {config.bptt}: steps that it looks back on are carried; fork it with the same bptt"
            )
        if config.fixed.window < K1:
            raise InputError(
                f"bptt is {bptt}, and a window of this run has {config.fixed.window} steps: choose at most as many"
            )
    return replace(config, bptt=bptt, given=config.given | numbers, recipe=replace(config.fixed, **numbers))


def _entries(run: Run, update: int) -> list[dict[str, Any]]:
    """Return the entries of a run's log up to an update."""
    entries = read_log(run.out / run_folder.LOG)
    return [each for each in entries if each.get("step", 0) <= update and "judged" not in each]
