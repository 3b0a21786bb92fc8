"""Train the measured recipe once more, on the whole text: `unspool train --final`.

    train ──▶ best update on valid ──▶ figures on test        the measured model
    train + valid + test ──▶ as many updates per token        the final model, which the run keeps

With n training tokens of N in all, S planned updates and the best one s, the schedule of the final training has
S N / n updates, and it ends after s N / n of them: nothing is left that could choose the best one. The vocabulary stays that of the training split.

Both trainings start from the same seed, or from the same trained model (`--from`). With a time limit, the first one gets
the share n / (n + N) of it.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unspool.baselines.kneser_ney_smoothing import kneser_ney
from unspool.baselines.mixture import Mixture
from unspool.baselines.ngram_counts import count_ngrams
from unspool.data.text.corpus import Corpus
from unspool.evaluation.language import in_reading_order
from unspool.model.network import Model
from unspool.storage import run_folder
from unspool.storage.files import read_bytes, write_atomic
from unspool.storage.schema import read_as
from unspool.storage.tensors import read_arrays, write_arrays
from unspool.tasks.language.mixture import save_mixture
from unspool.tasks.language.plan import build_state, step_budget, train_text
from unspool.tasks.language.warm_start import WarmStart
from unspool.training import store
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.events import Event, FinalPlanned, FinalStep, FinalTrained, RunConfig, StepDone, Working
from unspool.training.fit import ending, fit
from unspool.training.state import Saved, TrainingState
from unspool.training.store import RunWriter


def first_share(corpus: Corpus) -> float:
    """Return the share of the time that the first training gets: n / (n + N)."""
    n = len(corpus.train.ids)
    return n / (n + sum(len(part.ids) for part in corpus.parts))


def whole_text(corpus: Corpus) -> Corpus:
    """Return a corpus whose training split is the whole text."""
    parts = [part.ids for part in corpus.parts]
    if corpus.end is not None:  # the line end that a part begins with is already there
        parts = [parts[0], *(ids[1:] for ids in parts[1:])]
    ids = np.concatenate(parts)
    return replace(corpus, train=replace(corpus.train, ids=ids))


@dataclass(frozen=True)
class FinalWriter(RunWriter):
    """Writes the state of the second training beside that of the first; the model file is written at its end only."""

    def save_model(self, model: Any, step: int, valid: float | None = None) -> None:
        """Write nothing: the run keeps the measured model until the final one is complete."""

    def save_state(self, state: TrainingState[Any]) -> None:
        """Write the training state."""
        if self.out is not None and self.log is not None:
            metadata = state.metadata() | {"journal": self.log.position()}
            write_arrays(self.out / run_folder.FINAL, state.arrays(), metadata)


def train_final(
    corpus: Corpus,
    config: RunConfig,
    best_step: int,
    mixture: Mixture | None,
    writer: RunWriter,
    policy: CheckpointPolicy,
    start: WarmStart | None,
) -> Generator[Event]:
    """Train on the whole text, from the saved state of that training if there is one, and replace the run's model."""
    ratio = sum(len(part.ids) for part in corpus.parts) / len(corpus.train.ids)
    corpus = whole_text(corpus)
    steps = max(1, round(config.fixed.steps * ratio))
    last = min(steps, max(1, round(best_step * ratio)))
    config = replace(config, recipe=replace(config.fixed, steps=steps, plans=()))
    state = build_state(corpus, config, start)
    if writer.out is not None:
        _restore(state, writer.out)
        keep_measured(writer.out)
    writer.add({"final_steps": last})
    yield FinalPlanned(last, len(corpus.train.ids), state.step)
    budget = step_budget(config)
    writer_of_state = FinalWriter(writer.out, writer.log)
    reports = train_text(state, config, budget)
    events = fit(state, reports, budget, writer=writer_of_state, policy=policy)
    with ending(events):
        while state.step < last:
            event = next(events)
            assert isinstance(event, StepDone)
            yield FinalStep(event.report, event.seconds, event.train, steps=last)
    events.close()  # saves the state
    state.refuse_infinite()
    if mixture is not None:
        yield Working("counting the n-grams of the whole text")
    mixed = None if mixture is None else _mixture(mixture, corpus, config)
    if writer.out is not None:
        _save(writer, state.model, last, mixed)
    yield FinalTrained(state.model, last, mixed)


def save_initial(folder: Path, corpus: Corpus, config: RunConfig, start: WarmStart | None, log: Any) -> None:
    """Write the state before the first update: a resumed run needs no other run."""
    FinalWriter(folder, log).save_state(build_state(whole_text(corpus), config, start))


def measured_path(out: Path) -> Path:
    """Return the file of the model that was measured: a copy, once the final training has begun."""
    kept = out / run_folder.MEASURED
    return kept if kept.exists() else out / run_folder.MODEL


def keep_measured(out: Path) -> None:
    """Copy the measured model, whose file the final model will replace."""
    if not (out / run_folder.MEASURED).exists():
        write_atomic(out / run_folder.MEASURED, read_bytes(out / run_folder.MODEL))


def _restore(state: TrainingState[Model], out: Path) -> None:
    path = out / run_folder.FINAL
    arrays, metadata = read_arrays(path)
    state.restore(arrays, read_as(Saved, metadata, path), path)


def _mixture(measured: Mixture, corpus: Corpus, config: RunConfig) -> Mixture:
    """Return the mixture with n-grams of the whole text, in the shares that were fitted for the measured model."""
    ids = in_reading_order(corpus.train.ids, config.backward)
    return Mixture(kneser_ney(count_ngrams(ids, len(corpus.vocab), measured.order, corpus.end)), measured.v)


def _save(writer: RunWriter, model: Model, step: int, mixture: Mixture | None) -> None:
    assert writer.out is not None
    store.save_model(writer.out / run_folder.MODEL, model, {"step": step, "valid": None, "final": True})
    if mixture is not None:
        save_mixture(writer.out / run_folder.MIXTURE, mixture, model)
    writer.add({"final": {"step": step}})
