"""From states to answers, and from answers to a loss: classes, numbers, or a mean and a spread.

    o = c + V h                                                                       (10.10)
    classes        L = -log softmax(o)[y]               ∇o = softmax(o) - 1[y]        (10.18)
    numbers        L = Σ (o - y)²                       ∇o = 2 (o - y)
    distribution   o = (μ, ρ), σ = floor + squareplus(ρ)
                   L = Σ log σ + (y - μ)² / 2σ² + ½ log 2π
                   ∇μ = (μ - y) / σ²,  ∇ρ = (1/σ - (y - μ)²/σ³) squareplus'(ρ)

Losses come as a sum and a count, of targets or of numbers. Rows that are not scored change nothing.
"""

from __future__ import annotations

import math

import numpy as np

from unspool.errors import InputError
from unspool.kernels import native
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.elementwise import squareplus
from unspool.kernels.tape import Loss
from unspool.model.sequence_config import SequenceConfig

PackedHead = tuple[native.Packed, native.Packed]


def output(h: Floats, V: PackedHead, c: Floats) -> Floats:
    """Return o = c + V h for rows of any arrangement, … K."""
    width = h.shape[-1]
    return native.matmul(h.reshape(-1, width), V[0], start=c).reshape(*h.shape[:-1], len(c))


def head_loss(
    config: SequenceConfig,
    h: Floats,
    y: Floats | Ids,
    V: PackedHead,
    c: Floats,
    *,
    scale: float = 1.0,
    dV: Floats | None = None,
    dc: Floats | None = None,
) -> Loss:
    """Score targets: classes (…) with negative ones masked, or numbers (…, outputs) with NaN masked.

    With `dV` and `dc`, gradients of `scale` times the sum are added to them and that of h comes back.
    """
    if config.head == "classes":
        if y.shape != h.shape[:-1]:
            raise InputError(f"y has shape {y.shape}; expected {h.shape[:-1]}, one class a target")
        return native.softmax_cross_entropy(h, V, c, y, scale=scale, dV=dV, dc=dc)
    if y.shape != (*h.shape[:-1], config.outputs):
        raise InputError(f"y has shape {y.shape}; expected {(*h.shape[:-1], config.outputs)}")
    o = output(h, V, c)
    each, do = (_squared if config.head == "numbers" else _gaussian)(config, o, y)
    scored = ~np.isnan(y)
    dh = None
    if dV is not None and dc is not None:
        rows = (do * scale).astype(np.float32).reshape(-1, config.K)
        native.matmul(rows, h.reshape(len(rows), -1), transpose_a=True, out=dV)
        native.column_sum(rows, out=dc)
        dh = native.matmul(rows, V[1]).reshape(h.shape)
    return Loss(math.fsum(each[scored].tolist()), int(scored.sum()), each, dh)


def _squared(config: SequenceConfig, o: Floats, y: Floats) -> tuple[Floats, Floats]:
    error = np.where(np.isnan(y), 0.0, o.astype(np.float64) - y)
    return error * error, 2 * error


def _gaussian(config: SequenceConfig, o: Floats, y: Floats) -> tuple[Floats, Floats]:
    mean, spread, slope = mean_and_std(config, o)
    scored = ~np.isnan(y)
    error = np.where(scored, mean - y, 0.0)
    each = np.log(spread) + error * error / (2 * spread * spread) + 0.5 * math.log(2 * math.pi)
    dmean = error / (spread * spread)
    dspread = (1 - error * error / (spread * spread)) / spread * slope
    do = np.where(np.concatenate([scored, scored], axis=-1), np.concatenate([dmean, dspread], axis=-1), 0.0)
    return np.where(scored, each, 0.0), do


def mean_and_std(config: SequenceConfig, o: Floats) -> tuple[Floats, Floats, Floats]:
    """Return μ, σ and dσ/dρ from the output of a distribution's head, each (…, outputs) in float64."""
    raw, slope = squareplus(o[..., config.outputs :])
    return o[..., : config.outputs].astype(np.float64), raw + config.floor, slope
