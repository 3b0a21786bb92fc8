"""The thread that trains: it alone reads the events of a run and touches its parameters.

    commands ─▶ ┌─────────────────────────┐ ─▶ event ─▶ the run's curve, copies of its parameters, snapshots
                │ next event of the run   │
                └─────────────────────────┘

Between two events it carries out commands, so a stop takes effect at the next update. A stopped run waits for a moment; then its
generator is closed, which saves it and frees its lock, and a start resumes it from the disk. So whatever happens between two
updates, the updates are those of `unspool train`.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, TypeVar

from unspool.errors import InputError, UnspoolError
from unspool.kernels.arrays import Floats
from unspool.storage import run_folder
from unspool.studio.history import History, snapshot_of
from unspool.studio.payload import clean
from unspool.studio.runs import Run, best_of, is_locked, read_state, scores_of, text_model
from unspool.tasks.language.run import resume
from unspool.training.events import (
    CorpusReady,
    Evaluated,
    Event,
    FinalPlanned,
    FinalStep,
    LeftOut,
    PlanChanged,
    RunConfig,
    Scoring,
    StepDone,
    TrainingPlanned,
)

T = TypeVar("T")
PARKED = 1.5
"""Seconds after a stop until the run is saved and closed."""
FOLLOW = 1.0
"""Seconds between two looks at the log of a run that another process trains."""
RATE_OVER = 20
"""Updates that the speed is measured over."""


class Trainer(threading.Thread):
    """Owns the generator of the run that is trained."""

    def __init__(self, changed: Callable[[], None], note: Callable[[str, str], None]) -> None:
        super().__init__(name="training", daemon=True)
        self._changed, self._note = changed, note
        self._commands: queue.Queue[tuple[Callable[[], Any], Future[Any]] | None] = queue.Queue()
        self.run_now: Run | None = None
        """The run whose generator is open, or was last."""
        self._events: Generator[Event] | None = None
        self._training: Any = None
        self.going = False
        self._left: int | None = None
        """After how many updates to stop; None: at the end."""
        self._best: Floats | None = None
        """The best parameters of a resumed run."""
        self._times: list[tuple[float, int]] = []
        self.followed: Run | None = None

    def call(self, command: Callable[[], T]) -> Future[T]:
        """Carry out a command in this thread, between two updates."""
        result: Future[T] = Future()
        self._commands.put((command, result))
        return result

    def close(self) -> None:
        """Save the run, and end the thread."""
        self._commands.put(None)
        self.join()

    def run(self) -> None:
        """Train, and carry out commands, until the thread is closed."""
        while True:
            try:
                given = self._commands.get(timeout=self._patience())
            except queue.Empty:
                self._idle()
                continue
            if given is None:
                self._park()
                return
            command, result = given
            try:
                result.set_result(command())
            except BaseException as error:
                result.set_exception(error)
            self._changed()

    def _patience(self) -> float:
        """Return how long to wait for a command before something else is done."""
        if self.going and self.run_now is not None:
            return self.run_now.pace if self.run_now.status == "training" else 0.0
        return PARKED if self._events is not None else FOLLOW

    def _idle(self) -> None:
        if self.going:
            self._advance()
        elif self._events is not None:
            self._park()
        elif self.followed is not None:
            self._follow(self.followed)

    # Commands.

    def start_run(self, run: Run, updates: int | None = None) -> None:
        """Start or resume a run, for some updates or to its end; another run that is trained is saved first."""
        if run.status in ("ended", "viewed", "stored", "followed"):
            raise InputError(f"{run.name} cannot be trained: it is {run.status}; fork it, or start a new run")
        if run is not self.run_now or self._events is None:
            self._park()
            self._open(run)
        self.going, self._left, self._times = True, updates, []
        run.status = "preparing" if self._training is None else "training"

    def stop_run(self) -> None:
        """Stop after the update that is under way."""
        if self._training is not None or self.run_now is None:
            self._pause()
        else:
            self._left = 0  # a run that is not on the disk yet stops when it is

    def _pause(self) -> None:
        self.going = False
        run = self.run_now
        if run is not None and run.status in ("training", "evaluating"):
            with run.fresh:
                run.status, run.rate = "paused", None
                run.fresh.notify_all()

    def _open(self, run: Run) -> None:
        self.run_now, self._training = run, None
        if run.begin is not None and not (run.out / run_folder.CONFIG).exists():
            self._events = run.begin()
        else:
            self._events = resume(run.out)

    def _park(self) -> None:
        """Close the generator of the run: its state is saved, and its lock is free."""
        events, self._events, run = self._events, None, self.run_now
        self._pause()
        if events is None or run is None:
            return
        if run.status == "preparing":
            run.status, run.message = "paused", "nothing was saved: it begins again"
        try:
            events.close()
        except UnspoolError as error:
            self._failed(run, str(error))
        self._training = None

    def _advance(self) -> None:
        """Take one event of the run."""
        run, events = self.run_now, self._events
        assert run is not None
        if events is None:
            self.going = False
            return
        try:
            event = next(events)
        except StopIteration:
            self._events, self._training, self.going = None, None, False
            run.status, run.rate, run.message = "ended", None, ""
        except UnspoolError as error:
            self._failed(run, str(error))
        except Exception as error:
            self._failed(run, f"an internal error: {type(error).__name__}: {error}")
        else:
            self._take(run, event)
        self._changed()

    def _failed(self, run: Run, message: str) -> None:
        self._events, self._training, self.going = None, None, False
        with run.fresh:
            run.status, run.message, run.rate = "failed", clean(message), None
            run.fresh.notify_all()
        self._note("failed", f"{run.name}: {message}")

    # Events.

    def _take(self, run: Run, event: Event) -> None:
        match event:
            case CorpusReady(corpus):
                run.corpus = corpus
                run.message = f"counting n-grams: {sum(len(part.ids) for part in corpus.parts):,} tokens"
            case FinalStep() | FinalPlanned():
                run.status, run.message = "evaluating", "the final model is trained on the whole text"
            case TrainingPlanned():
                self._planned(run, event)
            case PlanChanged(config):
                self._planned_anew(run, config)
            case LeftOut(why):
                run.left_out = why
            case StepDone():
                self._step(run, event)
            case Scoring(done, total):
                run.status, run.message = "evaluating", f"{done:,} of {total:,} tokens"
            case Evaluated(_, part, metrics, best, mixed):
                judged = metrics.to_json() | {"part": part, "best_step": best}
                run.scores = scores_of(judged, None if mixed is None else mixed.to_json())
            case list():
                run.baselines = event
                run.message = "planning"

    def _planned(self, run: Run, event: TrainingPlanned) -> None:
        """Take the planned run: from now on it is on the disk, and every update of it can be restored."""
        training = event.training
        assert training is not None and run.corpus is not None
        self._training, run.config, run.message = training, event.config, ""
        self._best = best_of(run.out, training) if event.step else None
        if run.history is None:
            run.history = History(run.corpus, event.config)
        run.history.config = event.config
        if run.source is None:
            run.source = text_model(event.model, run.corpus, event.config)
        run.history.forget_after(event.step)
        run.curve = [row for row in run.curve if row[0] <= event.step]
        run.history.add(snapshot_of(training, self._best))
        run.publish(event.model, event.step)
        run.status = "training"
        if self._left == 0:
            self._pause()

    def _planned_anew(self, run: Run, config: RunConfig) -> None:
        run.config = config
        if run.history is not None:
            run.history.config = config

    def _step(self, run: Run, event: StepDone) -> None:
        step, report = event.step, event.report
        last = step >= event.steps
        self._times = [*self._times[-RATE_OVER:], (time.perf_counter(), report.targets)]
        spent = self._times[-1][0] - self._times[0][0]
        run.rate = sum(n for _, n in self._times[1:]) / spent if spent > 0 else None
        run.curve.append((step, report.loss, event.train, report.norm, event.seconds))
        if event.valid is not None:
            run.points.append((step, event.train, event.valid, int(event.best)))
        if event.sample is not None:
            run.samples.append((step, clean(event.sample)))
        if self._left is not None:
            self._left -= 1
        stops = last or self._left == 0
        assert run.history is not None
        if last or run.history.due(step):
            run.history.add(snapshot_of(self._training, self._best))
        if run.wanted or stops or run.pace:
            run.publish(self._training.model, step)
        else:
            run.step = step
        if stops and not last:
            self._pause()

    def _follow(self, run: Run) -> None:
        """Read the log and the saved state of a run that another process trains; take it over when it is free."""
        try:
            read_state(run)
            if not is_locked(run.out):
                run.status = "ended" if run.step >= run.steps and run.scores else "paused"
                run.message, self.followed = "", None
        except UnspoolError as error:
            run.message = clean(str(error))
        self._changed()
