"""The ensemble of a forecaster: how its networks are made and trained, and the errors behind its intervals.

Each network reads scaled windows (`unspool.data.series.windows`) and predicts all steps ahead at once, by the squared
error. Noise of standard deviation σ on the input reduces overfitting of a short series; to first order it is a penalty of
σ² on the slope of the predictions.

    σ = min(0.6, 5 / √n)      n values to learn from                                          (1)

The width of an interval is an empirical quantile of the errors on values that were not trained on: with m of
them, the ⌈level (m + 1)⌉-th smallest, which holds `level` of exchangeable errors on average (`unspool.evaluation.intervals`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unspool.cells import TASK_DEFAULT, CellName
from unspool.data.batches.examples import SequenceBatch
from unspool.data.series.windows import WindowScale, WindowSpec, origins_of, read_targets, read_windows
from unspool.kernels.arrays import Floats, Precision, Real, Whole
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.optimisers import make_optimiser
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.deadline import StepBudget
from unspool.training.events import StepDone
from unspool.training.fit import fit
from unspool.training.loop import updates
from unspool.training.objectives import SequenceObjective
from unspool.training.state import TrainingState
from unspool.training.store import RunWriter

STEPS_AT_ONCE = 2**18
"""The number of steps that are predicted at once; predictions do not depend on it."""


@dataclass(frozen=True)
class MemberConfig:
    """How a network is made and trained."""

    cell: CellName = TASK_DEFAULT
    hidden: int = 0
    steps: int = 0
    noise: float = -1.0
    learning_rate: float = 8e-3
    optimiser: str = "adam"
    schedule: str = "cosine"
    batch_size: int = 0
    precision: Precision = "float32"

    def chosen(self, windows: int, values: int) -> MemberConfig:
        """Choose what is 0 (hidden, steps, batch_size) or negative (noise) by the number of windows and values.

        >>> MemberConfig().chosen(61, 120)
        MemberConfig(cell='gru', hidden=16, steps=400, noise=0.45643546458763845, learning_rate=0.008, optimiser='adam', schedule='cosine', batch_size=32, precision='float32')
        """
        B = self.batch_size or (32 if windows < 2000 else 64)
        return replace(
            self,
            hidden=self.hidden or (16 if windows < 500 else 32 if windows < 5000 else 48),
            steps=self.steps or int(np.clip(6 * windows / B, 400, 2400)),
            noise=min(0.6, 5 / float(np.sqrt(values))) if self.noise < 0 else self.noise,  # (1)
            batch_size=B,
        )


@dataclass(frozen=True)
class FittedMember:
    """What was learned from a training part."""

    layout: WindowSpec
    units: WindowScale
    networks: list[Network]

    def answers(self, z: Real, origins: Whole, phase: int) -> tuple[Real, Real, Real]:
        """Return the mean prediction (n H) of the networks, and each window's level and scale."""
        rows = max(1, STEPS_AT_ONCE // (self.layout.length // self.layout.fold))
        parts = [
            self._answers(z, origins[at : at + rows], phase) for at in range(0, max(len(origins), 1), rows)
        ]
        answers, level, spread = (np.concatenate(part) for part in zip(*parts, strict=True))
        return answers, level, spread

    def _answers(self, z: Real, origins: Whole, phase: int) -> tuple[Real, Real, Real]:
        x, level, spread = read_windows(self.layout, self.units, z, origins, phase)
        lengths = np.full(len(origins), len(x), np.int32)
        batch = SequenceBatch(x, lengths, None, None, np.arange(len(origins)))
        outputs = [network.outputs(batch).astype(np.float64) for network in self.networks]
        return np.mean(outputs, axis=0), level, spread


def network_config(recipe: MemberConfig, layout: WindowSpec) -> SequenceConfig:
    """Return the config of each network."""
    return SequenceConfig(
        "many-to-one", "numbers", inputs=layout.inputs, outputs=layout.horizon, dense=True, cell=recipe.cell,
        hidden=recipe.hidden, precision=recipe.precision,
    )  # fmt: skip


def fresh_network(recipe: MemberConfig, layout: WindowSpec, seed: int) -> Network:
    """Return a new network with a small V: its predictions are near the baseline."""
    network = Network.initialise(network_config(recipe, layout), seed)
    network.parameters["V"][:] *= 0.1
    return network


class Member(NamedTuple):
    """One network to train, on the first `values` of a series."""

    network: Network
    recipe: MemberConfig
    units: WindowScale
    values: int
    seed: int


@dataclass(frozen=True)
class Ensemble:
    """The networks of a forecaster in the order of their training, and the series that they learn from."""

    layout: WindowSpec
    z: Real
    """The transformed series."""
    known: NDArray[np.bool_]
    """Which values were observed."""
    members: list[Member]

    @property
    def steps(self) -> int:
        """The updates of all networks."""
        return sum(member.recipe.steps for member in self.members)

    def state(
        self, k: int, name: str = "", before: TrainingState[Network] | None = None
    ) -> TrainingState[Network]:
        """Return the state of network k before its first update; `before` is that of the trained network before it."""
        recipe = self.members[k].recipe
        optimiser = make_optimiser(recipe.optimiser, learning_rate=recipe.learning_rate, decay=0.05)
        state = TrainingState(self.members[k].network, optimiser)
        if before is not None:
            state.seconds, state.train = before.seconds, before.train if k else 0.0
            state.before, state.saved = before.before + before.step, before.saved
            state.finished = before.finished | {name: before.model.parameters.flat}
        return state

    def batches(self, k: int) -> Iterator[SequenceBatch]:
        """Yield the batches of network k: windows with noise."""
        layout, (_, recipe, units, n, seed) = self.layout, self.members[k]
        z, origins = self.z[:n], origins_of(layout, n)
        x, level, spread = read_windows(layout, units, z, origins, 0)
        targets = read_targets(layout, units, z, origins, level, spread)
        y = _scored(targets, self.known, origins).astype(np.float32)
        rng = np.random.default_rng([seed, 3])
        for _ in range(recipe.steps):
            rows = rng.integers(len(origins), size=recipe.batch_size)
            yield _noisy(x, y, rows, layout.fold, recipe.noise, rng)


def fit_member(
    ensemble: Ensemble,
    k: int,
    state: TrainingState[Network],
    writer: RunWriter | None = None,
    policy: CheckpointPolicy | None = None,
) -> Generator[StepDone]:
    """Train network k from a state on; events count the updates of the whole ensemble."""
    member, done = ensemble.members[k], sum(each.recipe.steps for each in ensemble.members[:k])
    recipe = member.recipe
    budget = StepBudget(
        recipe.steps, warmup=recipe.steps // 10, schedule=recipe.schedule, validations=lambda _: set()
    )
    batches = islice(ensemble.batches(k), state.step, None)
    objective = SequenceObjective(member.network, member.seed)
    reports = updates(objective, batches, state.optimiser, schedule=budget.schedule)
    counted = (report._replace(step=done + report.step) for report in reports)
    with closing(fit(state, counted, budget, writer=writer, policy=policy)) as events:
        for event in events:
            assert isinstance(event, StepDone)  # there is no deadline
            yield replace(event, steps=ensemble.steps)


def _scored(values: Real, known: NDArray[np.bool_], origins: Whole) -> Real:
    """Replace values that were not observed by NaN."""
    return np.where(known[origins[:, None] + np.arange(values.shape[1])], values, np.nan)


def _noisy(
    x: Floats, y: Floats, rows: Whole, fold: int, noise: float, rng: np.random.Generator
) -> SequenceBatch:
    chosen = np.ascontiguousarray(x[:, rows])
    if noise:
        chosen[:, :, :fold] += np.float32(noise) * rng.standard_normal(chosen[:, :, :fold].shape, np.float32)
    return SequenceBatch(chosen, np.full(len(rows), len(x), np.int32), y[rows], None, rows)
