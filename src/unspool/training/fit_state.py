"""All that changes while a network is fitted, as one value that can be written down and gone on from.

Everything else (the examples, the settings, the schedule, the batches and dropout masks, which are functions of
seed and step) is fixed. So a fit that goes on from here ends in the same bits as one that never stopped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from unspool.errors import Diverged, FileError, InputError
from unspool.kernels.arrays import Floats
from unspool.model.sequence_network import Network
from unspool.optimisers.base import Optimiser, OptimiserConfig
from unspool.storage.log import Mark
from unspool.storage.tensors import check_array
from unspool.training.recipe import FitConfig


class Saved(TypedDict):
    """The fields of a saved state, besides its arrays."""

    step: int
    loss: float
    seconds: float
    best: float | None
    since: int
    journal: Mark


@dataclass
class FitState:
    """A network on its way."""

    network: Network
    optimiser: Optimiser
    loss: float = 0.0
    """The mean over about the last epoch's updates."""
    seconds: float = 0.0
    """Spent on updates so far, in all pieces."""
    best: float = math.inf
    """The lowest loss of the rows set aside."""
    flat: Floats | None = None
    """The parameters that had it."""
    since: int = 0
    """How many validations ago that was."""

    @staticmethod
    def initial(network: Network, config: FitConfig) -> FitState:
        """Begin before the first update."""
        return FitState(
            network,
            Optimiser(
                OptimiserConfig(learning_rate=config.learning_rate, clip=config.clip, decay=config.decay)
            ),
        )

    @property
    def step(self) -> int:
        """How many updates have been made."""
        return self.optimiser.step

    def ended(self, config: FitConfig) -> bool:
        """Say whether all updates have been made, or the last ones brought nothing better for too long."""
        assert config.steps is not None
        return self.step >= config.steps or bool(config.patience and self.since >= config.patience)

    def meet(self, score: float) -> bool:
        """Keep the parameters if they are the best so far; say whether they are."""
        better = score < self.best or self.flat is None
        if better:
            self.best, self.flat, self.since = score, self.network.parameters.flat.copy(), 0
        else:
            self.since += 1
        return better

    def refuse_infinite(self) -> None:
        """Raise where a parameter is not finite: nothing like that is kept."""
        if not np.isfinite(self.network.parameters.flat).all():
            raise Diverged(f"some parameters are not finite after step {self.step}: lower the learning rate")

    def arrays(self) -> dict[str, Floats]:
        """Give all numbers that are arrays, under names."""
        memory = self.optimiser.state()
        found = {"parameters": self.network.parameters.flat, "best": self.flat} | memory
        return {name: found[name] for name in ("parameters", "best", "m", "v") if found[name] is not None}

    def about(self) -> dict[str, Any]:
        """Give everything else, ready for JSON."""
        best = self.best if math.isfinite(self.best) else None
        return {
            "step": self.step,
            "loss": self.loss,
            "seconds": self.seconds,
            "best": best,
            "since": self.since,
        }

    def restore(self, arrays: Mapping[str, Floats], about: Saved, path: object) -> None:
        """Go back to a saved state; raise FileError where its arrays are those of another network."""
        flat = self.network.parameters.flat
        for name in {"parameters", *arrays}:
            check_array(arrays, name, flat.shape, path)
        try:
            self.optimiser.restore({"step": about["step"], "m": arrays.get("m"), "v": arrays.get("v")})
        except InputError as error:
            raise FileError(f"{path}: damaged or crafted: {error}") from error
        if about["since"] < 0:
            raise FileError(f"{path}: damaged or crafted: since is {about['since']}; expected 0 or more")
        flat[:] = arrays["parameters"]
        self.flat = arrays.get("best")
        self.best = math.inf if about["best"] is None else about["best"]
        self.loss, self.seconds, self.since = about["loss"], about["seconds"], about["since"]
