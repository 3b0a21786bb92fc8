"""The forecasters of a table, one per column, as one run; its fit can be interrupted at any moment and continues to the same bits."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from unspool.data.series.time_index import TimeIndex
from unspool.data.series.time_table import LongFormat, TimeTable
from unspool.errors import FileError, InputError
from unspool.kernels.arrays import Floats
from unspool.model.sequence_network import Network
from unspool.storage import run_folder
from unspool.storage.log import RunLog
from unspool.storage.tensors import check_array, read_arrays
from unspool.tasks.forecast.ensemble import Ensemble, fit_member
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.forecast.store import (
    KIND,
    ForecastWriter,
    describe_column,
    read_forecasters,
    write_appended,
    write_forecasters,
)
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.events import StepDone
from unspool.training.fit import save_checkpoint
from unspool.training.state import FINISHED, TrainingState
from unspool.training.store import Stopwatch, remove_state, restore_state


@dataclass(frozen=True)
class ForecastRun:
    """Forecasters by column, and the times of their series."""

    forecasters: dict[str, Forecaster]
    time: str | None = None
    """The column of times."""
    clock: TimeIndex | None = None
    begins: dict[str, int] | None = None
    """The number of each column's first value."""
    long: LongFormat | None = None
    """The columns of a long table; None: each series was a column."""

    def save(self, path: str | Path, **more: Any) -> None:
        """Write the fitted forecasters as a new run; `more` goes into its config."""
        write_forecasters(
            self.forecasters, path, more, time=self.time, clock=self.clock, begins=self.begins, long=self.long
        )

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read all forecasters of a run."""
        return cls(*read_forecasters(Forecaster, path))

    def append(self, table: TimeTable, path: str | Path) -> dict[str, int]:
        """Append the rows of a table that come after the series to them, here and in the run; return how many, by name."""
        added = {}
        for name, values in table.columns.items():
            model, begin = self.forecasters[name], (self.begins or {}).get(name, 0)
            first, end = values.begin + _first_step(self, table), begin + len(model.history_)
            if first > end:
                raise InputError(
                    f"{table.name}: {name!r} begins at {table.label(values.begin)}, {first - end:,} steps after the last value of "
                    f"the run; expected the next step"
                )
            later = values.y[end - first :] if self.clock else values.y
            added[name] = len(later)
            if len(later):
                model.append(later)
        if not any(added.values()):
            raise InputError(
                f"{table.name}: no row comes after the series of the run; there is nothing to append"
            )
        write_appended(self.forecasters, path)
        return added

    def create(self, path: str | Path, ensembles: Mapping[str, Ensemble], more: Mapping[str, Any]) -> None:
        """Write a new run before the first update; `more` goes into its config."""
        state = next(iter(ensembles.values())).state(0)
        write_forecasters(
            self.forecasters, path, more, time=self.time, clock=self.clock, begins=self.begins, long=self.long,
            state=state,
        )  # fmt: skip


def _first_step(run: ForecastRun, table: TimeTable) -> int:
    """Return the step of a table's first row, counted as in the run."""
    if run.clock is None or table.clock is None:
        return 0
    number = run.clock.numbers([table.label(0)])[0]
    if number is None or table.clock.step != run.clock.step:
        raise InputError(
            f"{table.name}: its times do not go in the steps of the run, which begin at {run.clock.begin!r}"
        )
    return number


def load_forecasts(path: str | Path) -> Forecaster | ForecastRun:
    """Read a run: the forecaster of its only column, or all of them."""
    run = ForecastRun.load(path)
    return next(iter(run.forecasters.values())) if len(run.forecasters) == 1 else run


@dataclass
class ForecastFit:
    """The fit of a run from its saved state on: fit the columns in their order, then call `finish`."""

    run: ForecastRun
    ensembles: Mapping[str, Ensemble]
    writer: ForecastWriter
    policy: CheckpointPolicy
    state: TrainingState[Network] = field(init=False)
    """The state of the network in training."""
    key: str = field(init=False)
    """The name of that network in the saved state."""
    clock: Stopwatch = field(init=False)
    """The seconds of the fit."""

    def __post_init__(self) -> None:
        """Read the saved state: networks that are trained already, in any order, and the one in training."""
        assert self.writer.out is not None and self.writer.log is not None
        path = self.writer.out / run_folder.TRAINING
        arrays, _ = read_arrays(path)
        left = []
        for key, (name, k) in self._networks.items():
            network = self.ensembles[name].members[k].network
            if FINISHED + key not in arrays:
                left.append(key)
                continue
            shape = network.parameters.flat.shape
            network.parameters.flat[:] = check_array(arrays, FINISHED + key, shape, path)
        if not left:
            raise FileError(f"{path}: damaged or manipulated: no network is left to train")
        self.key, (name, k) = left[0], self._networks[left[0]]
        self.state = self.ensembles[name].state(k)
        restore_state(self.state, self.writer.out, self.writer.log)
        self.clock = Stopwatch(self.state.seconds)

    @cached_property
    def _networks(self) -> dict[str, tuple[str, int]]:
        """The series and the number of each network, by its name in the saved state."""
        return {
            f"{i}.{k}": (name, k)
            for i, (name, each) in enumerate(self.ensembles.items())
            for k in range(len(each.members))
        }

    @cached_property
    def _keys(self) -> dict[tuple[str, int], str]:
        return {network: key for key, network in self._networks.items()}

    @property
    def step(self) -> int:
        """The updates of all networks so far."""
        return self.state.before + self.state.step

    def column(self, name: str) -> Generator[StepDone]:
        """Fit the forecaster of one column; of one that is fitted already, only its errors are measured."""
        ensemble = self.ensembles[name]
        for k, member in enumerate(ensemble.members):
            key = self._keys[name, k]
            if key in self.state.finished:
                continue
            if self.state.model is not member.network:
                self.state, self.key = ensemble.state(k, self.key, self.state), key
            left = len(self._networks) - len(self.state.finished)
            policy = replace(self.policy, at_end=left == 1)  # a save writes all columns
            yield from fit_member(ensemble, k, self.state, self.writer, policy)
        self.run.forecasters[name].calibrate(ensemble)

    def trained(self, name: str) -> dict[int, Floats]:
        """Return the parameters of the networks of a column that are trained already, by number."""
        found = self.state.finished
        keys = {k: self._keys[name, k] for k in range(len(self.ensembles[name].members))}
        return {k: found[key] for k, key in keys.items() if key in found}

    def take(self, name: str, networks: Sequence[Floats], calibrated: Mapping[str, Any]) -> None:
        """Take the networks of a column that was fitted elsewhere, and what `calibrate` set there; save if it is time."""
        members, before = self.ensembles[name].members, self.state.before
        for k, (member, flat) in enumerate(zip(members, networks, strict=True)):
            key = self._keys[name, k]
            if key not in self.state.finished:
                member.network.parameters.flat[:] = flat
                self.state.finished[key] = member.network.parameters.flat
                self.state.before += member.recipe.steps
        vars(self.run.forecasters[name]).update(calibrated)
        self.state.seconds = self.clock()
        every = self.policy.steps
        if before // every < self.state.before // every if every else self.policy.due(0, self.state.saved):
            self.save()

    def save(self) -> None:
        """Save all networks that are trained already; those of a column in training start again."""
        left = [key for key in self._networks if key not in self.state.finished]
        if not left:
            return
        if self.key not in left:
            self.key, (name, k) = left[0], self._networks[left[0]]
            fresh, old = self.ensembles[name].state(k), self.state
            fresh.finished, fresh.before, fresh.seconds = old.finished, old.before, old.seconds
            self.state = fresh
        save_checkpoint(self.state, self.writer)

    def finish(self, scores: Mapping[str, Any]) -> None:
        """Write the fitted forecasters and their scores; the training state is not needed any more."""
        out, log = self.writer.out, self.writer.log
        assert out is not None and log is not None
        self.writer.save_networks()
        columns = {name: describe_column(model) for name, model in self.run.forecasters.items()}
        content = run_folder.read_config(out, KIND) | {"columns": columns, "scores": dict(scores)}
        run_folder.write_config(out, KIND, content)
        self.writer.add({"event": "fitted", "step": self.step, "seconds": self.state.seconds})
        log.position()
        remove_state(out)


@contextmanager
def open_fit(
    run: ForecastRun, ensembles: Mapping[str, Ensemble], out: Path, policy: CheckpointPolicy
) -> Iterator[ForecastFit]:
    """Open a run whose fit has not ended, for this process alone."""
    with RunLog(out / run_folder.LOG) as log:
        if log.locked:
            run_folder.remove_leftovers(out)
        yield ForecastFit(run, ensembles, ForecastWriter(out, log, run.forecasters), policy)
