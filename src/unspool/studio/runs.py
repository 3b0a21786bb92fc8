"""One run as the page shows it: its settings, its curve, its parameters at any update."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unspool.baselines.language import has_test
from unspool.cells import cell_named
from unspool.data.text.corpus import Corpus, open_corpus
from unspool.errors import FileError, InputError
from unspool.kernels.arrays import Floats
from unspool.model.network import Model
from unspool.model.parameters import Parameters
from unspool.storage import run_folder
from unspool.storage.log import RunLog, read_log
from unspool.storage.schema import read_as
from unspool.storage.tensors import read_arrays
from unspool.studio.history import BEST, History, Progress, Snapshot, snapshot_of
from unspool.studio.payload import array, clean, number
from unspool.tasks.language.final import measured_path
from unspool.tasks.language.plan import build_state
from unspool.tasks.language.run import Shown
from unspool.tasks.language.text_model import TextModel
from unspool.training import store
from unspool.training.events import Baseline, RunConfig
from unspool.training.state import Saved, TrainingState

SHOWN = (
    *("cell", "hidden", "layers", "activation", "pattern", "feedback", "embedding", "learning_rate", "clip"),
    *("batch_size", "window", "dropout", "decay", "warmup", "precision", "softmax", "tied", "h0"),
)
"""The numbers of a recipe that the page shows."""
WAIT = 2.0
"""Seconds that a request waits for a copy of the parameters of now."""
Row = tuple[float, float, float, float, float]
"""Update, loss, running mean of the training loss, norm of the gradient, seconds."""


@dataclass
class Run:
    """One run; the training thread changes it, requests read it."""

    id: str
    name: str
    out: Path
    status: str = "stored"
    message: str = ""
    text: str | None = None
    parent: dict[str, Any] | None = None
    config: RunConfig | None = None
    corpus: Corpus | None = None
    history: History | None = None
    source: TextModel | None = None
    """The vocabulary and the tokenizer, with some model."""
    step: int = 0
    pace: float = 0.0
    curve: list[Row] = field(default_factory=list)
    points: list[tuple[int, float, float, int]] = field(default_factory=list)
    """Update, training loss, validation loss, whether it is the lowest so far."""
    samples: list[tuple[int, str]] = field(default_factory=list)
    baselines: list[Baseline] = field(default_factory=list)
    left_out: str | None = None
    scores: dict[str, Any] | None = None
    rate: float | None = None
    """Tokens a second."""
    command: str | None = None
    published: tuple[int, Parameters] | None = None
    """The newest copy of the parameters, and the update after which it was made."""
    wanted: bool = False
    """Whether a request waits for a newer copy."""
    fresh: threading.Condition = field(default_factory=threading.Condition)
    begin: Callable[[], Any] | None = None
    """Makes the generator of a run that is not on the disk yet."""

    @property
    def steps(self) -> int:
        """The planned number of updates."""
        return self.step if self.config is None or self.config.recipe is None else self.config.recipe.steps

    @property
    def first(self) -> int:
        """The first update that can be restored."""
        held = self.history.steps if self.history is not None else []
        return held[0] if held else self.step

    def publish(self, model: Model, step: int) -> None:
        """Make a copy of the parameters; only the thread that changes them may."""
        copied = model.parameters.like()
        copied.flat[:] = model.parameters.flat
        with self.fresh:
            self.step, self.published, self.wanted = step, (step, copied), False
            self.fresh.notify_all()

    def read_story(self, out: Path, repeat: Callable[[RunConfig], str]) -> None:
        """Read the settings and the log of a run, for a model that is here already."""
        content = run_folder.read_config(out, "language")
        self.out = out
        if not (out / run_folder.LOG).exists() or "baselines" not in content:
            return
        path = out / run_folder.CONFIG
        self.config = RunConfig.from_json(content["run"], path)
        shown = read_as(Shown, content, path)
        self.baselines, self.left_out = shown["baselines"], shown.get("left_out")
        self.command = repeat(self.config) if "fork" not in content else None
        read_entries(self)
        self.status = "ended" if self.scores else "paused"

    def newest(self) -> tuple[int, Parameters]:
        """Return the newest parameters; while the run is trained, those of the next update."""
        with self.fresh:
            if self.published is None:
                raise InputError(f"{self.name}: there is no model yet ({self.status}); try again in a moment")
            if self.published[0] != self.step and self.status == "training":
                self.wanted = True
                self.fresh.wait_for(lambda: not self.wanted or self.status != "training", WAIT)
            return self.published

    def parameters_at(self, update: int | None, on_progress: Progress) -> tuple[int, Parameters]:
        """Return the parameters after an update, by default the newest, to the bit."""
        if update is None or (self.published is not None and self.published[0] == update):
            return self.newest()
        if self.history is None or not self.first <= update <= self.step:
            raise InputError(f"update is {update}; expected {self.first} to {self.step}")
        held = self.history.nearest(update)
        if held.step == update:
            assert self.published is not None
            found = self.published[1].like()
            found.flat[:] = held.arrays["parameters"]
            return update, found
        return update, self.history.state_at(update, on_progress).model.parameters

    def summary(self) -> dict[str, Any]:
        """Return what the strip shows."""
        content: dict[str, Any] = {
            "id": self.id, "name": clean(self.name), "text": self.text, "status": self.status, "message": clean(self.message),
            "parent": self.parent, "first": self.first, "step": self.step, "steps": self.steps, "pace": self.pace,
            "rate": number(self.rate), "left": None, "best": None, "scores": self.scores, "command": self.command,
            "resume": f"unspool resume {clean(str(self.out))}", "left_out": self.left_out,
            "baselines": [{"name": each.name, "nats": number(each.during.nats)} for each in self.baselines],
        }  # fmt: skip
        lowest = [(update, valid) for update, _, valid, best in self.points if best]
        if lowest:
            content["best"] = {"update": lowest[-1][0], "valid": lowest[-1][1]}
        if self.config is not None and self.config.recipe is not None:
            content |= _of_config(self.config)
            tokens = self.config.fixed.batch_size * self.config.fixed.window
            if self.rate and self.status == "training":
                content["left"] = (self.steps - self.step) * (tokens / self.rate + self.pace)
        if self.corpus is not None:
            content["tokens"] = {part.name: len(part.ids) for part in self.corpus.parts}
        return content | (_of_model(self.source) if self.source is not None else {})

    def curve_from(self, row: int, most: int | None = None) -> dict[str, Any]:
        """Return the rows of the curve from one on; of more than `most`, every n-th and the last."""
        rows = self.curve[row:]
        if most is not None and len(rows) > most:
            apart = -(-len(rows) // most)
            rows = rows[:-1:apart] + rows[-1:]
        return {"run": self.id, "from": row, "rows": array(np.array(rows).reshape(len(rows), 5), "f8")}


def _of_config(config: RunConfig) -> dict[str, Any]:
    content = {name: getattr(config.fixed, name) for name in SHOWN}
    names = ("seed", "bptt", "optimiser", "schedule", "backward", "batches")
    return content | {name: getattr(config, name) for name in names}


def _of_model(source: TextModel) -> dict[str, Any]:
    made, cell = source.model.config, cell_named(source.model.config.cell)
    return {
        "cell": made.cell, "hidden": made.hidden, "layers": made.layers, "vocabulary": len(source.vocab),
        "parameters": source.model.parameters.count, "token_kind": source.tokenizer.kind,
        "cell_state": cell.has_cell_state, "gates": list(cell.gates) if any(cell.tape) else [],
    }  # fmt: skip


def text_model(model: Model, corpus: Corpus, config: RunConfig) -> TextModel:
    """Return a model in training with what it reads with."""
    return TextModel(model, corpus.vocab, corpus.tokenizer, corpus.settings, config.backward)


def open_run(run: Run, repeat: Callable[[RunConfig], str]) -> None:
    """Read a run from the disk: its settings, its log and its saved state. Nothing is written."""
    content = run_folder.read_config(run.out, "language")
    run.source = TextModel.load(run.out)
    run.step = int((run.source.about or {}).get("step", 0))
    run.publish(run.source.model, run.step)
    if not (run.out / run_folder.TRAINING).exists():
        run.status, run.message = "viewed", "a model without a training state: it can be read, not trained"
        return
    path = run.out / run_folder.CONFIG
    run.config = config = RunConfig.from_json(content.get("run"), path)
    shown = read_as(Shown, content, path)
    run.baselines, run.left_out = shown["baselines"], shown.get("left_out")
    run.parent, run.command = content.get("fork"), repeat(config) if "fork" not in content else None
    run.corpus = open_corpus(run.out / run_folder.TEXT, config.settings)
    run.history = History(run.corpus, config)
    if not has_test(run.corpus):
        run.baselines = [Baseline(b.name, b.valid, None, b.seconds, b.counts, b.live) for b in run.baselines]
    read_state(run)
    if config.start is None and "fork" not in content:
        run.history.add(snapshot_of(build_state(run.corpus, config)))
    run.status = "ended" if run.step >= run.steps and run.scores else "paused"
    if is_locked(run.out):
        run.status, run.message = "followed", "another process trains this run; its log is followed"


def read_state(run: Run) -> None:
    """Read the log and the saved state of a run again."""
    assert run.history is not None and run.config is not None
    read_entries(run)
    arrays, metadata = read_arrays(run.out / run_folder.TRAINING)
    state: TrainingState[Model] = build_state(run.history.corpus, run.config)
    saved = read_as(Saved, metadata, run.out / run_folder.TRAINING)
    state.restore(arrays, saved, run.out / run_folder.TRAINING)
    if (best := best_of(run.out, state)) is not None:
        arrays[BEST] = best
    run.history.add(Snapshot(saved["step"], arrays, metadata))
    run.publish(state.model, saved["step"])


def best_of(out: Path, state: TrainingState[Model]) -> Floats | None:
    """Return the best parameters of a stored run, which its training state does not hold; None before the first validation."""
    if not np.isfinite(state.best):
        return None
    return np.array(store.load_model(measured_path(out))[0].parameters.flat)


def read_entries(run: Run) -> None:
    """Read the log of a run: its curve, validations, samples and scores."""
    curve, points, samples, lowest = list[Row](), [], [], np.inf
    for entry in read_log(run.out / run_folder.LOG):
        if "judged" in entry:
            run.scores = scores_of(entry["judged"], entry.get("mixture"))
        if not {"step", "train", "loss", "norm", "seconds"} <= entry.keys():
            continue
        step = int(entry["step"])
        loss, train, norm, seconds = (float(entry[name]) for name in ("loss", "train", "norm", "seconds"))
        curve.append((step, loss, train, norm, seconds))
        if "valid" in entry:
            best, lowest = entry["valid"] < lowest, min(lowest, entry["valid"])
            points.append((step, float(entry["train"]), float(entry["valid"]), int(best)))
        if "sample" in entry:
            samples.append((step, clean(str(entry["sample"]))))
    run.curve, run.points, run.samples = curve, points, samples


def scores_of(judged: dict[str, Any], mixture: dict[str, Any] | None) -> dict[str, Any]:
    """Return the result of a run from its log or from its last event."""
    nats = float(judged["nats"])
    return {
        "part": judged.get("part"), "nats": number(nats), "perplexity": number(float(np.exp(nats))),
        "mixture": number(mixture["nats"]) if mixture else None, "best_update": judged.get("best_step"),
    }  # fmt: skip


def is_locked(out: Path) -> bool:
    """Return whether another process uses a run."""
    try:
        with RunLog(out / run_folder.LOG):
            return False
    except FileError as error:
        return "another process" in str(error)
