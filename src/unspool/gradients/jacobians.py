"""How much of the past is left in the state: the norm of dh(t)/dh(k) by lag t - k, and the memory horizon.

One step's Jacobian, of h(t) by h(t-1) for Elman and GRU and of (h, s) by (h, s) for the LSTM, whose memory is both:

    Elman   diag(act'(a)) W
    GRU     diag(z) + diag((h' - n) z(1-z)) W_z + diag((1-z)(1-n²)) (diag(q r(1-r)) W_r + diag(r) W_n),  h' = h(t-1)
    LSTM    ∂s/∂s' = diag(f),   ∂s/∂h' = diag(s' f(1-f)) W_f + diag(g i(1-i)) W_i + diag(i (1-g²)) W_g
            ∂h/∂·  = diag(o (1 - tanh²s)) ∂s/∂·  and, by h' alone, + diag(tanh(s) o(1-o)) W_o

Over a lag the Jacobians multiply: dh(t)/dh(k) = J(t) J(t-1) … J(k+1). Its largest singular value is the most that
any change of h(k) is still felt at t; the root mean square of all of them is what a change in a random direction
is. Up to `EXACT` values a state the products are made; beyond, block power iteration with products of vectors
finds the largest, and random vectors estimate the root mean square.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unspool.errors import InputError
from unspool.gradients.linear import spectral_radius
from unspool.kernels import reference
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.reference import slope
from unspool.kernels.tape import Tape
from unspool.model.equivalent import as_hidden, refuse_feedback
from unspool.model.network import Model
from unspool.model.parameters import prefix
from unspool.model.values import State

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


def jacobian(tape: Tape, W: Floats, t: int, row: int = 0) -> Floats:
    """Return one step's Jacobian, H H; 2H 2H of (h, s) for the LSTM."""
    H = tape.hs.shape[2]
    keep = np.ones(H) if tape.keep is None else tape.keep[row].astype(np.float64)
    before, after = (t + 1, t) if tape.reverse else (t, t + 1)
    found: Floats
    blocks = [W[g * H : (g + 1) * H] * keep for g in range(len(W) // H)]
    if tape.lengths is not None and t >= tape.lengths[row]:
        return np.eye(2 * H if tape.cell == "lstm" else H)
    if tape.cell == "elman":
        found = slope(tape.hs[after, row], tape.activation)[:, None] * blocks[0]
        return found
    assert tape.gates is not None
    if tape.cell == "gru":
        r, z, n, q = np.split(tape.gates[t, row], 4)
        W_r, W_z, W_n = blocks
        inner = (q * r * (1 - r))[:, None] * W_r + r[:, None] * W_n
        by_z = ((tape.hs[before, row] - n) * z * (1 - z))[:, None] * W_z
        found = np.diag(z) + by_z + ((1 - z) * (1 - n * n))[:, None] * inner
        return found
    assert tape.ss is not None
    i, f, g, o = np.split(tape.gates[t, row], 4)
    W_i, W_f, W_g, W_o = blocks
    s_before, squashed = tape.ss[before, row], np.tanh(tape.ss[after, row])
    s_by_h = (
        (g * i * (1 - i))[:, None] * W_i
        + (s_before * f * (1 - f))[:, None] * W_f
        + (i * (1 - g * g))[:, None] * W_g
    )
    out = (o * (1 - squashed**2))[:, None]
    h_by_h = out * s_by_h + (squashed * o * (1 - o))[:, None] * W_o
    return np.block([[h_by_h, out * np.diag(f)], [s_by_h, np.diag(f)]])


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
    """Measure dh(t)/dh(t - lag) of a layer along a window x, at places t spread over it, by lags (or up to one).

    >>> from unspool.model.config import ModelConfig
    >>> model = Model.initialise(ModelConfig(cell="gru", inputs=4, outputs=4, hidden=6), seed=0)
    >>> seen = influence(model, np.arange(40, dtype=np.int32)[:, None] % 4, lags=20)
    >>> seen.lags[:3], seen.norm[0], seen.norm[20] < seen.norm[1], seen.exact
    ([0, 1, 2], 1.0, True, True)
    """
    refuse_feedback(model.config)
    wanted = list(range(lags + 1)) if isinstance(lags, int) else sorted(set(lags))
    tau = len(x)
    _check_lags(wanted, tau)
    if not 0 <= layer < model.config.layers:
        raise InputError(f"layer is {layer}; this model has {model.config.layers}, counted from 0")
    if not 0 <= row < x.shape[1]:
        raise InputError(f"row is {row}; this window has {x.shape[1]}, counted from 0")
    width = model.config.hidden * (2 if model.config.cell == "lstm" else 1)
    exact = width <= EXACT if exact is None else exact
    if width**2 * 8 * wanted[-1] > ROOM:
        raise InputError(
            f"{wanted[-1]} Jacobians of {width} by {width} need {width**2 * 8 * wanted[-1] / 2**30:.1f} GiB: "
            "choose a shorter lag"
        )
    exact_model = as_hidden(model.on(reference))
    tape = exact_model.forward(x[:, row : row + 1], _row(state, row)).tape[layer].directions[0]
    W = exact_model.parameters[prefix(layer, False) + "W"]
    ends = sorted({int(t) for t in np.linspace(wanted[-1] - 1, tau - 1, places)}) if wanted[-1] else [tau - 1]
    measure = _by_products if exact else _by_vectors
    rng = np.random.default_rng(seed)
    found = []
    for end in ends:
        steps = [jacobian(tape, W, t) for t in range(end, end - wanted[-1], -1)]  # J(t), J(t-1), …
        found.append(measure(steps, wanted, width, rng))
    tiny = np.finfo(np.float64).tiny
    norm, mean = np.exp(np.log(np.maximum(np.array(found), tiny)).mean(axis=0))
    return Influence(wanted, norm.tolist(), mean.tolist(), exact, len(ends))


def _row(state: State | None, row: int) -> State | None:
    if state is None:
        return None
    return [(h[row : row + 1], None if s is None else s[row : row + 1]) for h, s in state]


def _check_lags(lags: list[int], tau: int) -> None:
    if not lags or lags[0] < 0:
        raise InputError(f"lags are {lags[:3]}; expected numbers of 0 or more")
    if lags[-1] > tau:
        raise InputError(
            f"a lag of {lags[-1]} is beyond the window of {tau} steps; give a longer text or a shorter lag"
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
    """Return the spectral radius of W's block for every gate of a layer.

    >>> from unspool.model.config import ModelConfig
    >>> radii(Model.initialise(ModelConfig(cell="gru", inputs=4, outputs=4, hidden=6), seed=0)).keys()
    dict_keys(['r', 'z', 'n'])
    """
    from_gates = {"elman": "a", "gru": "rzn", "lstm": "ifgo"}[model.config.cell]
    refuse_feedback(model.config)
    W, H = as_hidden(model).parameters[prefix(layer, False) + "W"], model.config.hidden
    return {gate: spectral_radius(W[g * H : (g + 1) * H]) for g, gate in enumerate(from_gates)}
