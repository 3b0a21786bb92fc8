"""All that changes while a model is trained, as one value that can be written down and gone on from.

Everything else (the text, the settings, the schedule, the dropout masks, which are a function of seed and step)
is fixed. So a run that goes on from here ends in the same bits as one that never stopped.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unspool.data.batches import Batches
from unspool.errors import FileError
from unspool.model import Model
from unspool.optimise import Optimiser
from unspool.truncation import Past
from unspool.values import Floats


@dataclass
class Training:
    """A model on its way."""

    model: Model
    optimiser: Optimiser
    batches: Batches
    past: Past
    """What the next update goes on from: the carried state, and the steps that are looked back on."""
    best: float = math.inf
    """The lowest validation loss so far."""
    best_step: int = 0
    """After which update that was."""
    train: float = 0.0
    """The mean nats of about the last updates."""
    seconds: float = 0.0
    """Spent on the run so far, in all its pieces."""

    @property
    def step(self) -> int:
        """How many updates have been made."""
        return self.optimiser.step

    def arrays(self) -> dict[str, Floats]:
        """Give all numbers that are arrays, under names."""
        memory = self.optimiser.state()
        found = {"parameters": self.model.parameters.flat}
        found |= {name: memory[name] for name in ("m", "v") if memory[name] is not None}
        return found | self.past.state()

    def about(self) -> dict[str, Any]:
        """Give everything else, ready for JSON."""
        return {
            "step": self.step,
            "batches": self.batches.state(),
            "best": self.best if math.isfinite(self.best) else None,
            "best_step": self.best_step,
            "train": self.train,
            "seconds": self.seconds,
        }

    def restore(self, arrays: Mapping[str, Floats], about: Mapping[str, Any], path: object) -> None:
        """Go back to what was written down."""
        flat = self.model.parameters.flat
        if "parameters" not in arrays or arrays["parameters"].shape != flat.shape:
            raise FileError(f"{path}: it belongs to a model of other sizes")
        flat[:] = arrays["parameters"]
        self.optimiser.restore({"step": about["step"], "m": arrays.get("m"), "v": arrays.get("v")})
        self.batches.restore(about["batches"])
        self.past.restore(dict(arrays))
        self.best = math.inf if about["best"] is None else about["best"]
        self.best_step = about["best_step"]
        self.train, self.seconds = about["train"], about["seconds"]
