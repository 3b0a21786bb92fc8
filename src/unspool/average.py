"""The average of the parameters over the last updates: nearer to the middle of the valley than any one of them.

Of the parameters θ(1), θ(2), … after the updates, the n-th enters with a share that gives late ones more weight
(a power γ of their number; γ = 0 is the plain mean, γ = 9 counts about the last tenth):

    mean(n) = mean(n-1) + (γ + 1) / (n + γ) · (θ(n) - mean(n-1)),    mean(1) = θ(1)                  (1)

No number of updates has to be known beforehand. Training goes on from θ and never sees the mean: the mean is what
is scored, saved and used. Every value takes part in three operations of float32, so the bits are the same always.

    for report in train(model, windows, optimiser):
        average.add(model.parameters)
    judged = average.model(model)
"""

from typing import Any

import numpy as np

from unspool.config import at_least
from unspool.errors import InputError
from unspool.kernel import ops
from unspool.model import Model
from unspool.parameters import Parameters
from unspool.values import Floats


class Average:
    """The weighted mean of all parameters that were added: (1).

    >>> p, average = Parameters({"W": (1, 2)}), Average(power=1)
    >>> for value in (1, 2, 4):
    ...     p["W"][:] = value, -value
    ...     average.add(p)
    >>> average.parameters(p)["W"].tolist()  # (1 · 1 + 2 · 2 + 3 · 4) / 6
    [[2.8333332538604736, -2.8333332538604736]]
    """

    def __init__(self, power: float) -> None:
        if not 0 <= power <= 1e6:
            raise InputError(f"power is {power!r}; expected a number of 0 or more")
        self.power = power
        self.count = 0
        """How many were added."""
        self.mean: Floats | None = None

    def add(self, parameters: Parameters) -> None:
        """Let the parameters as they are now enter the mean."""
        self.count += 1
        if self.mean is None:
            self.mean = _copy(parameters.flat)
            return
        share = np.float32((self.power + 1) / (self.count + self.power))
        self.mean += share * (parameters.flat - self.mean)  # (1)

    def parameters(self, like: Parameters) -> Parameters:
        """Return a copy of the mean, or of these parameters where none were added yet."""
        return Parameters(like.shapes, _copy(like.flat if self.mean is None else self.mean))

    def model(self, model: Model) -> Model:
        """Return a model of the same make with the mean as its parameters."""
        return Model(model.config, self.parameters(model.parameters))

    def state(self) -> dict[str, Any]:
        """Return all that has to be saved to go on to the same bits."""
        return {"count": self.count, "mean": None if self.mean is None else _copy(self.mean)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        at_least("count", state["count"], 0)
        if (state["mean"] is None) != (state["count"] == 0):
            raise InputError(f"a mean of {state['count']} goes with values where there are any: state is damaged")
        self.count, self.mean = state["count"], None if state["mean"] is None else _copy(state["mean"])


def _copy(values: Floats) -> Floats:
    """Copy onto a cache line."""
    copied = ops.zeros(values.shape)
    copied[:] = values
    return copied
