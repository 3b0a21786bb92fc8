"""A few networks that answer together: how they are made, trained, and how wrong they are.

Each reads windows in their own units (`windows`) and answers for all steps ahead at once, by the squared
error. Noise of standard deviation σ on what is read keeps a network from learning a short series by heart; to
first order it is a penalty of σ² on the slope of the answers.

    σ = min(0.6, 5 / √n)      n values to learn from                                          (1)

The width of an interval is an empirical quantile of the errors on values that were not trained on: with m of
them, the ⌈level (m + 1)⌉-th smallest, which holds `level` of exchangeable errors on average.       (2)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unspool.cells import CellName
from unspool.data.batches.examples import SequenceBatch
from unspool.data.series.windows import WindowScale, WindowSpec, origins_of, read_targets, read_windows
from unspool.kernels.arrays import Floats, Real, Whole
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.optimisers.base import Optimiser, OptimiserConfig
from unspool.optimisers.schedule import Cosine
from unspool.training.fit import update

STEPS_AT_ONCE = 2**18
"""So many steps of windows are read at a time: a window's answer does not depend on the windows beside it."""


@dataclass(frozen=True)
class MemberConfig:
    """How a network is made and trained."""

    cell: CellName
    hidden: int
    steps: int
    batch_size: int
    noise: float
    learning_rate: float

    @staticmethod
    def chosen(
        windows: int,
        values: int,
        *,
        cell: CellName,
        hidden: int,
        steps: int,
        noise: float,
        learning_rate: float,
    ) -> MemberConfig:
        """Choose what is not given by the number of windows and values.

        >>> MemberConfig.chosen(61, 120, cell="gru", hidden=0, steps=0, noise=-1, learning_rate=8e-3)
        MemberConfig(cell='gru', hidden=16, steps=400, batch_size=32, noise=0.45643546458763845, learning_rate=0.008)
        """
        batch_size = 32 if windows < 2000 else 64
        return MemberConfig(
            cell,
            hidden or (16 if windows < 500 else 32 if windows < 5000 else 48),
            steps or int(np.clip(6 * windows / batch_size, 400, 2400)),
            batch_size,
            min(0.6, 5 / float(np.sqrt(values))) if noise < 0 else noise,  # (1)
            learning_rate,
        )


@dataclass(frozen=True)
class FittedMember:
    """All that a training part taught."""

    layout: WindowSpec
    units: WindowScale
    networks: list[Network]

    def answers(self, z: Real, origins: Whole, phase: int) -> tuple[Real, Real, Real]:
        """Give the mean answer (n H) of the networks, and each window's level and spread; some windows at a time."""
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
    """Return what each network is made of."""
    return SequenceConfig(
        "many-to-one", "numbers", inputs=layout.inputs, outputs=layout.horizon, dense=True, cell=recipe.cell,
        hidden=recipe.hidden,
    )  # fmt: skip


def fresh_network(recipe: MemberConfig, layout: WindowSpec, seed: int) -> Network:
    """Make a network that has learned nothing: its answers are near the base."""
    network = Network.initialise(network_config(recipe, layout), seed)
    network.parameters["V"][:] *= 0.1
    return network


def train_network(
    network: Network,
    recipe: MemberConfig,
    layout: WindowSpec,
    units: WindowScale,
    z: Real,
    known: NDArray[np.bool_],
    seed: int,
) -> Iterator[float]:
    """Train a network on all windows of a series, and give the loss after every update."""
    origins = origins_of(layout, len(z))
    x, level, spread = read_windows(layout, units, z, origins, 0)
    y = _scored(read_targets(layout, units, z, origins, level, spread), known, origins).astype(np.float32)
    optimiser = Optimiser(OptimiserConfig(learning_rate=recipe.learning_rate, decay=0.05))
    schedule, rng = Cosine(recipe.steps, warmup=max(1, recipe.steps // 10)), np.random.default_rng([seed, 3])
    for step in range(recipe.steps):
        rows = rng.integers(len(origins), size=recipe.batch_size)
        batch = _noisy(x, y, rows, layout.fold, recipe.noise, rng)
        yield update(network, batch, optimiser, seed=seed, rate=schedule(step)).loss


def sizes_of_errors(fitted: FittedMember, z: Real, known: NDArray[np.bool_], count: int) -> Real:
    """Give |answer - truth| (n H) for the origins beyond the first `count` values."""
    layout = fitted.layout
    origins = np.arange(count, len(z) - layout.horizon + 1)
    y, level, spread = fitted.answers(z, origins, 0)
    truth = read_targets(layout, fitted.units, z, origins, level, spread)
    return _scored(np.abs(y - truth), known, origins)


def quantiles(errors: Real, level: float) -> Real:
    """Give the width for every step: (2), averaged over neighbouring steps.

    >>> quantiles(np.arange(1.0, 10.0)[:, None] * [1.0, 2.0], 0.8).tolist()
    [12.0, 12.0]
    """
    found = []
    for column in errors.T:
        known = np.sort(column[~np.isnan(column)])
        rank = int(np.ceil(level * (len(known) + 1)))
        found.append(known[min(rank, len(known)) - 1] if len(known) else np.inf)  # (2)
    padded = np.pad(found, 1, constant_values=np.nan)
    return np.asarray(np.nanmean([padded[:-2], padded[1:-1], padded[2:]], axis=0))


def _scored(values: Real, known: NDArray[np.bool_], origins: Whole) -> Real:
    """Put NaN in the place of what was not observed."""
    return np.where(known[origins[:, None] + np.arange(values.shape[1])], values, np.nan)


def _noisy(
    x: Floats, y: Floats, rows: Whole, fold: int, noise: float, rng: np.random.Generator
) -> SequenceBatch:
    chosen = np.ascontiguousarray(x[:, rows])
    if noise:
        chosen[:, :, :fold] += np.float32(noise) * rng.standard_normal(chosen[:, :, :fold].shape, np.float32)
    return SequenceBatch(chosen, np.full(len(rows), len(x), np.int32), y[rows], None, rows)
