"""From a gradient to an update: clipping by global norm, weight decay, SGD with momentum, Adam.

Clipping keeps the direction: g ← g min(1, limit / ‖g‖). Weight decay shrinks matrices, never biases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from unspool.errors import Diverged, InputError
from unspool.kernels import native
from unspool.kernels.arrays import Floats
from unspool.model.parameters import Parameters
from unspool.optimisers import options
from unspool.options import at_least, check_fields, declared


@declared(options)
@dataclass(frozen=True)
class OptimiserConfig:
    """How parameters follow their gradient.

    >>> OptimiserConfig(learning_rate=0.1, kind="sgd", momentum=0.9).kind
    'sgd'
    """

    learning_rate: float = 2e-3
    kind: str = options.OPTIMISER.field("adam")
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    momentum: float = 0.0
    decay: float = 0.0
    clip: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)


class Optimiser:
    """Keeps what an update needs from the ones before it.

    >>> p = Parameters({"W": (1, 2)})
    >>> g = p.like()
    >>> p["W"][:], g["W"][:] = [1, 2], [2, 0]
    >>> Optimiser(OptimiserConfig(kind="sgd", learning_rate=0.5, clip=0)).update(p, g.flat)
    2.0
    >>> p["W"].tolist()
    [[0.0, 2.0]]
    """

    def __init__(self, config: OptimiserConfig) -> None:
        self.config = config
        self.step = 0
        self.m: Floats | None = None
        self.v: Floats | None = None

    def update(self, parameters: Parameters, g: Floats, *, rate: float = 1.0) -> float:
        """Move the parameters; return the gradient's norm before clipping. `rate` comes from a schedule."""
        norm = native.global_norm(g)
        config = self.config
        if g.shape != parameters.flat.shape:
            raise InputError(f"the gradient has {g.size} values; the parameters have {parameters.flat.size}")
        if not math.isfinite(norm):
            raise Diverged(
                f"the gradient's norm is {norm} at step {self.step + 1}: lower the learning rate, "
                "or look for values in the input that are not finite"
            )
        scale = config.clip / norm if config.clip and norm > config.clip else 1.0
        self.step += 1
        if self.m is None:
            self.m = native.zeros(parameters.flat.shape)
            self.v = native.zeros(parameters.flat.shape) if config.kind == "adam" else None
        n = parameters.matrices
        for part, decay in ((slice(0, n), config.decay), (slice(n, None), 0.0)):
            self._update_part(parameters.flat[part], g[part], part, decay, config.learning_rate * rate, scale)
        return norm

    def _update_part(
        self, p: Floats, g: Floats, part: slice, decay: float, rate: float, scale: float
    ) -> None:
        config = self.config
        assert self.m is not None
        if config.kind == "sgd":
            m = self.m[part] if config.momentum else None
            native.sgd(p, g, m, learning_rate=rate, momentum=config.momentum, decay=decay, scale=scale)
            return
        assert self.v is not None
        native.adam(
            p, g, self.m[part], self.v[part], step=self.step, learning_rate=rate, beta1=config.beta1,
            beta2=config.beta2, epsilon=config.epsilon, decay=decay, scale=scale,
        )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return all that has to be saved to go on to the same bits."""
        return {"step": self.step, "m": _copy(self.m), "v": _copy(self.v)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        at_least("step", state["step"], 0)
        m, v = _copy(state["m"]), _copy(state["v"])
        if state["step"] and (m is None or (self.config.kind == "adam" and v is None)):
            raise InputError(
                f"a state after {state['step']} updates has what {self.config.kind} remembers: m or v is missing"
            )
        self.step, self.m, self.v = state["step"], m, v


def _copy(value: Floats | None) -> Floats | None:
    """Copy what updates write over, onto a cache line."""
    if value is None:
        return None
    copied = native.zeros(value.shape)
    copied[:] = value
    return copied
