"""Choose the window of truncated BPTT by its measured bias: `--bptt auto`.

    g(K)    = the gradient of a window of tau steps, read as windows of K steps: state carried, detached     (1)
    bias(K) = ‖g(K) - g(tau)‖ / ‖g(tau)‖,   over U, W, b and d of every layer                                (2)

This is what training with `truncated:K` computes. Its last step backpropagates through K steps, its first through
one; so (2) is larger than the bias of looking back exactly K steps, which `unspool.gradients.by_lag` computes.

The bias depends on the parameters, and an untrained network says little about a trained one. So a probe, the run's
network without dropout and with at most 128 units, is trained for a few updates; (2) is measured at four of them,
and its median is taken: near a single point the gradient may be small, and (2) by chance large. The chosen K is the
smallest power of two with a bias of at most the tolerance. Everything depends on text, seed and length of the run.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from statistics import median
from typing import Any

import numpy as np

from unspool.data.batches.text_windows import sequential_batches
from unspool.errors import InputError
from unspool.gradients.bptt import backpropagate
from unspool.kernels.arrays import Floats, Ids
from unspool.model.config import INPUT_TABLE_LIMIT
from unspool.model.network import Model
from unspool.training.loop import Report
from unspool.training.recipe import ROWS as MOST_ROWS
from unspool.training.recipe import TAU, Recipe, choose_recipe

LENGTHS = (8, 16, 32, 64, 128, 256)
"""The windows that are tried."""
LONG = 512
"""tau in (1); less where the text is short."""
HIDDEN = 128
"""The largest probe."""
SAME = ("cell", "layers", "pattern", "feedback", "activation", "h0", "softmax")
"""What the probe has of the given recipe as it is; its sizes are capped."""
FEWEST, MOST = 40, 160
"""Updates of the probe: a run of three minutes makes most of them, a shorter run fewer."""
POINTS = 4
"""How often the bias is measured."""
ROWS = 4
"""Rows of the windows that the bias is measured on."""


def probe_recipe(vocabulary: int, tokens: int, given: Mapping[str, Any], minutes: float) -> Recipe:
    """Return how the probe is trained: one update per second of the run, or a quarter of its updates.

    A large vocabulary, which costs most of the time, gets fewer rows.

    >>> [probe_recipe(65, 10**6, {}, minutes).steps for minutes in (0.1, 1, 3)]
    [40, 60, 160]
    """
    length = given["steps"] / 4 if "steps" in given else 60 * minutes
    kept = {name: given[name] for name in SAME if name in given}
    kept |= _capped(given, vocabulary) | {"dropout": 0.0}
    kept["steps"] = round(min(MOST, max(FEWEST, length)))
    if vocabulary > INPUT_TABLE_LIMIT:
        kept["batch_size"] = max(1, min(MOST_ROWS // 4, tokens // (4 * TAU)))
    return choose_recipe(vocabulary=vocabulary, tokens=tokens, seconds=1.0, measure=lambda _: 1.0, given=kept)


def _capped(given: Mapping[str, Any], vocabulary: int) -> dict[str, Any]:
    """Return the sizes of the probe; its token table is the output's matrix exactly where that of the run is.

    With an embedding given and H still open, the run is assumed to have another H, and so untied output weights.
    """
    hidden, embedding, tied = given.get("hidden"), given.get("embedding"), given.get("tied")
    if tied is None and embedding is not None:
        tied = vocabulary > INPUT_TABLE_LIMIT and embedding == hidden
    if hidden is None:
        hidden = embedding if tied and embedding else HIDDEN
    sizes: dict[str, Any] = {"hidden": min(hidden, HIDDEN)}
    if embedding is not None:
        sizes["embedding"] = min(embedding, HIDDEN)
    return sizes if tied is None else sizes | {"tied": tied}


def rows_for(K: int, tokens: int) -> int:
    """Return B for windows of K steps: an update reads no more tokens than with the usual window, nor more rows.

    Longer windows with as many rows would make fewer updates of the same text.

    >>> [rows_for(K, 10**6) for K in (8, 64, 128, 256)], rows_for(64, 1000)
    ([16, 16, 8, 4], 3)
    """
    return max(1, min(MOST_ROWS, MOST_ROWS * TAU // K, tokens // (4 * K)))


def measure_bias(
    model: Model, updates: Iterator[Report], total: int, ids: Ids, seed: int
) -> dict[int, float]:
    """Train a probe by `total` updates; return the median bias (2) of every K over the points of measurement."""
    rows = max(1, min(ROWS if model.config.outputs <= INPUT_TABLE_LIMIT else 1, (len(ids) - 1) // (4 * LONG)))
    tau = min(LONG, 1 << ((len(ids) - 1) // rows).bit_length() - 1)
    tried = [K for K in LENGTHS if tau >= 2 * K]
    if not tried:
        raise InputError(
            f"text too short for bptt auto: the training split has {len(ids)} tokens; expected {2 * LENGTHS[0] + 1} "
            "or more: give more text, or a bptt such as truncated:8"
        )
    windows = sequential_batches(ids, rows, tau, np.random.default_rng(seed))
    points = {total * i // POINTS for i in range(1, POINTS + 1)}
    found: list[dict[int, float]] = []
    for report in islice(updates, total):
        if report.step in points:
            window = next(windows)
            found.append(bias_of(model, window.x, window.y, tried))
    return {K: median(bias[K] for bias in found) for K in tried}


def bias_of(model: Model, x: Ids, y: Ids, lengths: list[int]) -> dict[int, float]:
    """Return the bias (2) of reading one window as windows of K steps, for every K of `lengths`.

    >>> from unspool.model.config import ModelConfig
    >>> model = Model.initialise(ModelConfig(cell="elman", inputs=4, outputs=4, hidden=6), seed=0)
    >>> ids = np.arange(65, dtype=np.int32)[:, None] % 4
    >>> {K: round(bias, 2) for K, bias in bias_of(model, ids[:-1], ids[1:], [1, 4, 16, 64]).items()}
    {1: 0.7, 4: 0.36, 16: 0.06, 64: 0.0}
    """
    full = truncated_gradient(model, x, y, len(x))
    norm = float(np.linalg.norm(full)) or 1.0
    return {K: float(np.linalg.norm(truncated_gradient(model, x, y, K) - full)) / norm for K in lengths}


def truncated_gradient(model: Model, x: Ids, y: Ids, K: int) -> Floats:
    """Return (1) as one float64 vector, over the parameters of the recurrence."""
    gradient, weights, state = model.gradient(), model.weights(), None
    for at in range(0, len(x), K):
        here = slice(at, at + K)
        passed = backpropagate(model, x[here], y[here], state, gradient, scale=1 / x.size, weights=weights)
        state = passed.state
    model.fold_input_tables(gradient, weights)
    parts = [gradient.values[name] for name in gradient.values.shapes if name.startswith("layer")]
    return np.concatenate([part.reshape(-1) for part in parts]).astype(np.float64)


def shortest(bias: Mapping[int, float], tolerance: float) -> int:
    """Return the smallest K from which on no bias is above the tolerance; the largest K where all are above.

    >>> shortest({8: 0.20, 16: 0.04, 32: 0.06, 64: 0.03, 128: 0.01}, 0.05)
    64
    >>> shortest({8: 0.20, 16: 0.15}, 0.05)
    16
    """
    lengths = sorted(bias)
    over = [i for i, K in enumerate(lengths) if bias[K] > tolerance]
    return lengths[min(over[-1] + 1, len(lengths) - 1)] if over else lengths[0]
