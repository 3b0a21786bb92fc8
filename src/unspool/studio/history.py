"""Return to any update of a training, to the bit: snapshots of its state, and updates made again from the nearest one.

    update     0 ── 40 ── 80 ── 120 ── … ── now          ── the snapshots that are held
    asked           80 ─▶ 81 ─▶ … ─▶ 97                   the updates after the nearest snapshot, again

A snapshot is a copy of everything that a training state holds (`training.state`), so the updates after it, made again
with the same data, settings and random numbers, give the same bits. The snapshots take a bounded amount of memory: when
they are too many, every other one is dropped and later ones are further apart.
"""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from unspool.data.text.corpus import Corpus
from unspool.errors import InputError
from unspool.evaluation.language import in_reading_order, validation_loss
from unspool.kernels.arrays import Floats
from unspool.model.network import Model
from unspool.tasks.language.plan import build_state, step_budget, train_text
from unspool.tasks.language.warm_start import WarmStart
from unspool.training.events import RunConfig, StepDone
from unspool.training.fit import fit
from unspool.training.state import Saved, TrainingState

MEMORY = 192 * 2**20
"""Bytes of the snapshots of one run."""
FEWEST = 8
"""Snapshots that are held whatever they take."""
BEST = "best"


class Snapshot(NamedTuple):
    """A copy of a training state."""

    step: int
    arrays: dict[str, Floats]
    metadata: dict[str, Any]

    @property
    def nbytes(self) -> int:
        """The bytes of its own arrays; the best parameters are shared with the snapshots around it."""
        return sum(each.nbytes for name, each in self.arrays.items() if name != BEST)


def snapshot_of(state: TrainingState[Model], best: Floats | None = None) -> Snapshot:
    """Return a copy of a training state, which may go on; `best` are the best parameters where the state has none."""
    arrays = {name: np.array(each) for name, each in state.arrays().items()}
    best = best if state.best_parameters is None else state.best_parameters
    if best is not None:
        arrays[BEST] = best
    return Snapshot(state.step, arrays, state.metadata())


class Superseded(Exception):
    """A newer request has overtaken this one."""


Progress = Callable[[int], None]
"""Called with the update that was made again; it may raise Superseded."""


class History:
    """The snapshots of one run; one thread adds them, any thread asks for a state."""

    def __init__(self, corpus: Corpus, config: RunConfig, start: WarmStart | None = None) -> None:
        self.corpus, self.config, self.start = corpus, config, start
        self._held: list[Snapshot] = []
        self._apart = 1
        self._lock = threading.Lock()

    @property
    def steps(self) -> list[int]:
        """The updates whose states are held."""
        with self._lock:
            return [each.step for each in self._held]

    def due(self, step: int) -> bool:
        """Return whether a snapshot is worth holding after an update."""
        with self._lock:
            return not self._held or step >= self._held[-1].step + self._apart

    def add(self, found: Snapshot) -> None:
        """Hold a snapshot."""
        with self._lock:
            steps = [each.step for each in self._held]
            if found.step in steps:
                return
            insort(self._held, found, key=lambda each: each.step)
            most = max(FEWEST, MEMORY // max(found.nbytes, 1))
            if len(self._held) > most:
                self._held = self._held[:-1][::2] + self._held[-1:]
                self._apart *= 2

    def forget_after(self, step: int) -> None:
        """Drop the snapshots after an update: the training has returned to it."""
        with self._lock:
            self._held = [each for each in self._held if each.step <= step]

    def nearest(self, step: int) -> Snapshot:
        """Return the last snapshot that is not after an update."""
        with self._lock:
            at = bisect_right([each.step for each in self._held], step)
            if not at:
                first = self._held[0].step if self._held else 0
                raise InputError(f"update is {step}; the first one that can be restored is {first}")
            return self._held[at - 1]

    def state_at(self, step: int, on_progress: Progress = lambda _: None) -> TrainingState[Model]:
        """Return the training state after an update, to the bit: that of the nearest snapshot, and the updates after it again.

        With the best parameters so far if validations were made again; the caller owns the state.
        """
        found = self.nearest(step)
        state = restored(self.corpus, self.config, found)
        if found.step == step:
            return state
        ids = in_reading_order(self.corpus.valid.ids, self.config.backward)
        budget = step_budget(self.config)
        events = fit(
            state,
            train_text(state, self.config, budget),
            budget,
            validate=lambda: validation_loss(
                state.model, ids, self.config.validation_tokens, end=self.corpus.end
            ),
        )
        for event in events:
            if not isinstance(event, StepDone):
                continue
            if event.step == step:
                break
            on_progress(event.step)
        made = snapshot_of(state)
        events.close()
        self.add(made)
        return restored(self.corpus, self.config, made)


def restored(corpus: Corpus, config: RunConfig, found: Snapshot) -> TrainingState[Model]:
    """Return a training state like the one that a snapshot was taken of."""
    state = build_state(corpus, config)
    state.restore({name: np.array(each) for name, each in found.arrays.items()}, saved(found), "a snapshot")
    return state


def saved(found: Snapshot) -> Saved:
    """Return the plain values of a snapshot as those of a file."""
    return cast(Saved, found.metadata)
