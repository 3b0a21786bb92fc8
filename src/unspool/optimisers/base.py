"""Update parameters from their gradient: clipping by global norm, weight decay, and the state of an optimiser.

Clipping keeps the direction: g ← g min(1, clip / ‖g‖). Weight decay shrinks matrices, never biases. A new optimiser is a
subclass with its own settings, the names of its state arrays and `apply`, and one line in `unspool.optimisers`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from unspool.errors import Diverged, InputError
from unspool.kernels import native
from unspool.kernels.arrays import Floats
from unspool.model.parameters import Parameters
from unspool.optimisers import settings
from unspool.options import at_least, check_fields, declared


@declared(settings)
@dataclass(eq=False)
class Optimiser:
    """Settings of every optimiser, and its state between updates."""

    name: ClassVar[str]
    state_arrays: ClassVar[tuple[str, ...]] = ()
    """The names of its arrays of state, each as long as the parameters."""

    learning_rate: float = 2e-3
    decay: float = 0.0
    clip: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        self.step = 0
        """The number of updates so far."""
        self.arrays: dict[str, Floats] = {}

    def apply(
        self, p: Floats, g: Floats, arrays: Mapping[str, Floats], *, rate: float, decay: float, scale: float
    ) -> None:
        """Update p and the state arrays in place; the gradient is `scale` times g, the learning rate `rate`."""
        raise NotImplementedError

    def update(self, parameters: Parameters, g: Floats, *, rate: float = 1.0) -> float:
        """Update the parameters in place; return the gradient's norm before clipping. `rate` comes from a schedule."""
        norm, flat = native.global_norm(g), parameters.flat
        if g.shape != flat.shape:
            raise InputError(f"the gradient has {g.size} values; the parameters have {flat.size}")
        if not math.isfinite(norm):
            raise Diverged(
                f"the gradient's norm is {norm} at step {self.step + 1}: lower the learning rate, "
                "or look for values in the input that are not finite"
            )
        scale = self.clip / norm if self.clip and norm > self.clip else 1.0
        self.step += 1
        if not self.arrays:
            self.arrays = {name: native.zeros(flat.shape) for name in self.state_arrays}
        n = parameters.matrices if self.decay else 0
        parts = [(slice(0, n), self.decay), (slice(n, None), 0.0)]
        for part, decay in parts if n else parts[1:]:  # only matrices decay
            arrays = {name: array[part] for name, array in self.arrays.items()}
            self.apply(flat[part], g[part], arrays, rate=self.learning_rate * rate, decay=decay, scale=scale)
        return norm

    def state(self) -> dict[str, Any]:
        """Return a copy of the state: the step, and the arrays by name once there was an update."""
        return {"step": self.step} | {name: _copy(array) for name, array in self.arrays.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state; names that are not part of it are ignored."""
        at_least("step", state["step"], 0)
        found = {name: state[name] for name in self.state_arrays if state.get(name) is not None}
        if state["step"] and len(found) < len(self.state_arrays):
            missing = " or ".join(self.state_arrays)
            raise InputError(f"the state of {self.name} after {state['step']} updates: {missing} is missing")
        self.step, self.arrays = state["step"], {name: _copy(array) for name, array in found.items()}


def _copy(value: Floats) -> Floats:
    """Copy an array onto a cache line."""
    copied = native.zeros(value.shape)
    copied[:] = value
    return copied
