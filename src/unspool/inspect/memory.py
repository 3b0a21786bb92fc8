"""How far back a network looks: what is left of an influence by lag, and what a truncated gradient misses.

    ‖dh(t)/dh(t-k)‖        how much a change of the state is still felt k steps later
    ‖G(k)‖                 the part of ∇W that comes from a loss and a use of W k steps before it
    bias(K)                what a gradient that looks back K steps misses, as a share of its norm

The memory horizon is the lag from which on the first stays below a hundredth of its beginning; the advice is the
K from which on the third stays below a share that one is ready to lose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unspool.cells import cell_named
from unspool.gradients.by_lag import ByLag, gradient_by_lag
from unspool.gradients.jacobians import Influence, horizon, influence, radii
from unspool.kernels.arrays import Ids
from unspool.model.network import Model
from unspool.model.values import State

FARTHEST = 128
"""The largest lag that is looked at."""
STEPS = 256
"""The length of the window in which it is looked at."""
FRACTION = 0.01
BIASES = (0.1, 0.05, 0.01)
LARGE = 256
"""From this many values a state on, fewer places and lags are looked at: products of Jacobians are cubic."""


@dataclass(frozen=True)
class MemoryReport:
    """How far back a trained network looks, beside a fresh one of the same kind."""

    trained: list[Influence]
    """A layer each."""
    fresh: Influence
    """The last layer of a network with new parameters."""
    by_lag: ByLag
    radii: dict[str, float]
    """The spectral radius of each gate's W, last layer."""

    @property
    def horizons(self) -> list[int | None]:
        """The memory horizon of every layer; None: beyond what was looked at."""
        return [horizon(each.lags, each.norm, FRACTION) for each in self.trained]

    @property
    def fresh_horizon(self) -> int | None:
        """That of the fresh network."""
        return horizon(self.fresh.lags, self.fresh.norm, FRACTION)

    @property
    def advice(self) -> dict[float, int | None]:
        """By bias, how many steps a truncated gradient must look back; None: more than was looked at."""
        return {bias: self.by_lag.steps_for(bias) for bias in BIASES}


def look_back(model: Model, ids: Ids) -> MemoryReport | None:
    """Look at a window in the middle of a text, ids (n,), with the state that it has there.

    Return None where the text is too short, or where no state is carried (figure 10.4 with tokens fed back).

    >>> from unspool.model.config import ModelConfig
    >>> model = Model.initialise(ModelConfig(cell="elman", inputs=4, outputs=4, hidden=6), seed=0)
    >>> seen = look_back(model, np.arange(60, dtype=np.int32) % 4)
    >>> seen.trained[0].lags[-1], len(seen.by_lag.bias)
    (48, 50)
    """
    tau = min(STEPS, len(ids) - 1)
    if tau < 4 or model.config.feeds_tokens:
        return None
    at = (len(ids) - 1 - tau) // 2
    state: State | None = None
    if at:
        state = model.forward(np.ascontiguousarray(ids[:at, None])).state
    x, y = (np.ascontiguousarray(ids[start : start + tau, None]) for start in (at, at + 1))
    config = model.config
    width = config.hidden * cell_named(config.cell).parts
    large = width > LARGE
    farthest = min(FARTHEST // (2 if large else 1), tau - 1)
    lags = _spread(farthest)
    places = 2 if large else 3
    trained = [
        influence(model, x, lags=lags, state=state, layer=layer, places=places)
        for layer in range(config.layers)
    ]
    fresh = influence(Model.initialise(config, seed=0), x, lags=lags, layer=config.layers - 1, places=places)
    by_lag = gradient_by_lag(model, x, y, lags=lags[-1], state=state)
    return MemoryReport(trained, fresh, by_lag, radii(model, config.layers - 1))


def _spread(farthest: int) -> list[int]:
    """Give lags from 0 on, ever farther apart.

    >>> _spread(64)
    [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    """
    lags = [0, 1, 2, 3]
    step = 4
    while step <= farthest:
        lags += [step, step * 3 // 2]
        step *= 2
    return [lag for lag in lags if lag <= farthest]
