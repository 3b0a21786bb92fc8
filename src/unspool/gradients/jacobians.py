"""Memory of the state: the norm of dh(t)/dh(k) by lag t - k, and the memory horizon.

One step's Jacobian is that of h(t) by h(t-1), or of (h, s) by (h, s) for a cell with two states; its formula is in the
file of the cell. Over a lag the Jacobians multiply: dh(t)/dh(k) = J(t) J(t-1) … J(k+1). The largest singular value is
the largest effect that a change of h(k) can have on h(t); the root mean square of all of them is the effect of a change
in a random direction. Up to `EXACT` values per state the products are computed; beyond, block power iteration with
products of vectors finds the largest, and random vectors estimate the root mean square.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unspool.cells import cell_named
from unspool.cells.cell import Cell
from unspool.errors import InputError
from unspool.gradients.linear import spectral_radius
from unspool.kernels import reference
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.tape import Tape
from unspool.model.equivalent import as_hidden, refuse_feedback
from unspool.model.network import Model
from unspool.model.values import State, rows_of

EXACT = 256
"""Up to this many values a state, products of Jacobians are made."""
VECTORS, ROUNDS = 8, 12
"""Vectors of a block and rounds of its power iteration, for larger states."""
ROOM = 2**31
"""The most bytes of Jacobians kept at once."""


@dataclass(frozen=True)
class Influence:
    """How much a state k steps ago still moves the state now."""

    lags: list[int]
    norm: list[float]
    """The largest singular value of dh(t)/dh(t - lag), averaged (geometrically) over the places t."""
    mean: list[float]
    """The root mean square of all singular values, averaged alike: the gain of a random direction."""
    exact: bool
    """Whether the products of Jacobians were made; else by products with vectors."""
    places: int
    """At how many steps t it was measured."""


def jacobian(tape: Tape, W: Floats | None, t: int, row: int = 0, extra: Sequence[Floats] = ()) -> Floats:
    """Return one step's Jacobian, H H of h, or 2H 2H of (h, s) for a cell with a cell state."""
    cell, H = tape.cell, tape.hs.shape[2]
    assert isinstance(cell, Cell)
    if tape.lengths is not None and t >= tape.lengths[row]:
        return np.eye(cell.parts * H)
    mask = np.ones(H) if tape.recurrent_mask is None else tape.recurrent_mask[row].astype(np.float64)
    blocks = [] if W is None else [W[g * H : (g + 1) * H] * mask for g in range(len(W) // H)]
    return cell.jacobian(tape.step(t, row), blocks, extra)


def influence(
    model: Model,
    x: Floats | Ids,
    *,
    lags: int | Sequence[int] = 64,
    state: State | None = None,
    layer: int = 0,
    row: int = 0,
    places: int = 8,
    exact: bool | None = None,
    seed: int = 0,
) -> Influence:
    """Measure dh(t)/dh(t - lag) of a layer along a window x (τ, B), at places t spread over it, by lags (or up to one).

    >>> from unspool.model.config import ModelConfig
    >>> model = Model.initialise(ModelConfig(cell="gru", inputs=4, outputs=4, hidden=6), seed=0)
    >>> seen = influence(model, np.arange(40, dtype=np.int32)[:, None] % 4, lags=20)
    >>> seen.lags[:3], seen.norm[0], seen.norm[20] < seen.norm[1], seen.exact
    ([0, 1, 2], 1.0, True, True)
    """
    refuse_feedback(model.config)
    wanted = list(range(lags + 1)) if isinstance(lags, int) else sorted(set(lags))
    tau, width = len(x), model.config.hidden * cell_named(model.config.cell).parts
    _check_lags(wanted, tau, width)
    if not 0 <= layer < model.config.layers:
        raise InputError(f"layer is {layer}; this model has {model.config.layers}, counted from 0")
    if not 0 <= row < x.shape[1]:
        raise InputError(f"row is {row}; this window has {x.shape[1]}, counted from 0")
    exact = width <= EXACT if exact is None else exact
    rows, exact_model = slice(row, row + 1), as_hidden(model.on(reference))
    weights = exact_model.weights().layers[layer][0]
    tape = exact_model.forward(x[:, rows], state and rows_of(state, rows)).tape[layer].directions[0]
    ends = sorted({int(t) for t in np.linspace(wanted[-1] - 1, tau - 1, places)}) if wanted[-1] else [tau - 1]
    measure = _by_products if exact else _by_vectors
    rng = np.random.default_rng(seed)
    found = []
    for end in ends:
        times = range(end, end - wanted[-1], -1)
        steps = [jacobian(tape, weights.W, t, extra=weights.extra) for t in times]  # J(t), J(t-1), …
        found.append(measure(steps, wanted, width, rng))
    tiny = np.finfo(np.float64).tiny
    norm, mean = np.exp(np.log(np.maximum(np.array(found), tiny)).mean(axis=0))
    return Influence(wanted, norm.tolist(), mean.tolist(), exact, len(ends))


def _check_lags(lags: list[int], tau: int, width: int) -> None:
    if not lags or lags[0] < 0:
        raise InputError(f"lags are {lags[:3]}; expected numbers of 0 or more")
    if lags[-1] > tau:
        raise InputError(
            f"a lag of {lags[-1]} is beyond the window of {tau} steps; give a longer text or a shorter lag"
        )
    if (needed := width**2 * 8 * lags[-1]) > ROOM:
        raise InputError(
            f"{lags[-1]} Jacobians of {width} by {width} need {needed / 2**30:.1f} GiB: choose a shorter lag"
        )


def _by_products(
    steps: list[Floats], lags: list[int], width: int, rng: np.random.Generator
) -> tuple[list[float], list[float]]:
    product, norm, mean = np.eye(width), [], []
    for lag in range(lags[-1] + 1):
        if lag:
            product = product @ steps[lag - 1]
        if lag in lags:
            norm.append(float(np.linalg.norm(product, 2)))
            mean.append(float(np.linalg.norm(product) / np.sqrt(width)))
    return norm, mean


def _by_vectors(
    steps: list[Floats], lags: list[int], width: int, rng: np.random.Generator
) -> tuple[list[float], list[float]]:
    norm, mean = [], []
    block = np.linalg.qr(rng.standard_normal((width, VECTORS)))[0]
    random = np.linalg.qr(rng.standard_normal((width, min(width, 4 * VECTORS))))[
        0
    ]  # carried back, lag by lag
    done = 0
    for lag in lags:
        for _ in range(ROUNDS):  # block ← orthonormal (MᵀM) block, M = J(t) … J(t-lag+1)
            moved = block
            for step in steps[:lag][::-1]:
                moved = step @ moved
            size = np.linalg.norm(moved, 2)
            for step in steps[:lag]:
                moved = step.T @ moved
            block = np.linalg.qr(moved)[0] if size > 0 else block
        norm.append(float(size))
        for step in steps[done:lag]:
            random = step.T @ random
        done = lag
        mean.append(float(np.linalg.norm(random) / np.sqrt(random.shape[1])))
    return norm, mean


def horizon(lags: Sequence[int], values: Sequence[float], fraction: float = 0.01) -> int | None:
    """Return the first lag from which on all values stay below a fraction of the first; None: not within these.

    >>> horizon([0, 1, 2, 3], [1.0, 0.5, 0.25, 0.125], 0.3), horizon([0, 1], [1.0, 0.9], 0.3)
    (2, None)
    """
    if not 0 < fraction < 1:
        raise InputError(f"fraction is {fraction}; expected a number above 0 and below 1")
    below = np.asarray(values) < fraction * values[0]
    if not below[-1]:
        return None
    stays = len(below) - int(np.argmin(below[::-1])) if not below.all() else 0
    return int(lags[stays])


def radii(model: Model, layer: int = 0) -> dict[str, float]:
    """Return the spectral radius of the block of W of every gate of a layer.

    >>> from unspool.model.config import ModelConfig
    >>> radii(Model.initialise(ModelConfig(cell="gru", inputs=4, outputs=4, hidden=6), seed=0)).keys()
    dict_keys(['r', 'z', 'n'])
    """
    refuse_feedback(model.config)
    cell, H = cell_named(model.config.cell), model.config.hidden
    W = as_hidden(model).parameters.layer(layer, False).get("W")
    return {} if W is None else {gate: spectral_radius(W[cell.block(gate, H)]) for gate in cell.gates}
