"""Where a run is kept: the best model, the training state, the journal; or nowhere, and then in memory."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unspool.evaluation.metrics import Metrics
from unspool.kernels.arrays import Floats
from unspool.model.network import Model
from unspool.storage import run_folder, tensors
from unspool.storage.log import RunLog
from unspool.training import store
from unspool.training.events import RunConfig, StepDone
from unspool.training.state import TrainingState


class Stopwatch:
    """Seconds since it was made, and those before."""

    def __init__(self, before: float = 0.0) -> None:
        self._start = time.perf_counter() - before

    def __call__(self) -> float:
        """Give the seconds."""
        return time.perf_counter() - self._start


@dataclass(frozen=True)
class RunWriter:
    """Where a run is written down, if anywhere."""

    out: Path | None
    journal: RunLog | None

    def note(self, step: StepDone, every: int) -> None:
        """Write an update into the journal, now and then."""
        report = step.report
        if self.journal is None or (step.valid is None and step.sample is None and report.step % every):
            return
        entry: dict[str, Any] = {"step": report.step, "seconds": round(step.seconds, 3), "train": step.train}
        entry |= {"loss": report.loss, "norm": report.norm, "targets": report.targets}
        if step.valid is not None:
            entry["valid"] = step.valid
        if step.sample is not None:
            entry["sample"] = step.sample
        self.journal.add(entry)

    def rewrite(self, config: RunConfig) -> None:
        """Write the changed plan: before any state that follows it."""
        if self.out is not None:
            content = run_folder.read_config(self.out, "language")
            run_folder.write_config(self.out, "language", content | {"run": config.to_json()})

    def save(self, training: TrainingState) -> None:
        """Write the training state: from here the run can go on."""
        if self.out is not None and self.journal is not None:
            about = training.about() | {"journal": self.journal.mark()}
            tensors.write_arrays(self.out / run_folder.TRAINING, training.arrays(), about)

    def conclude(self, part: str, judged: Metrics, training: TrainingState) -> None:
        """Write the end into the journal, once."""
        if self.journal is not None:
            best = {"best_step": training.best_step, "part": part}
            self.journal.add({"judged": judged.to_json() | best, "seconds": round(training.seconds, 3)})


@dataclass
class BestModel:
    """The model with the lowest validation loss: kept in the run, or in memory where there is none."""

    training: TrainingState
    writer: RunWriter
    kept: Floats | None = None

    def look(self, valid: float) -> None:
        """Keep the model if it is the best so far."""
        training = self.training
        if not valid < training.best:
            return
        training.best, training.best_step = valid, training.step
        if self.writer.out is None:
            self.kept = training.model.parameters.flat.copy()
        else:
            about = {"step": training.step, "valid": valid}
            store.save_model(self.writer.out / run_folder.MODEL, training.model, about)

    def model(self) -> Model:
        """Give the best model."""
        if self.writer.out is not None:
            return store.load_model(self.writer.out / run_folder.MODEL)[0]
        best = Model.initialise(self.training.model.config, 0)
        assert self.kept is not None
        best.parameters.flat[:] = self.kept
        return best
