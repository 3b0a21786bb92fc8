"""A loss whose targets have weights, one per row: L = Σ w L(row), ∇o = w ∇o(row).

The kernel of the cross-entropy computes no weights: here o is stored, and its gradient multiplied.
"""

from __future__ import annotations

import math

import numpy as np

from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.elementwise import log, softmax
from unspool.kernels.tape import Loss
from unspool.model.heads.base import Head
from unspool.model.linear import Linear, OutputGradient
from unspool.model.losses.base import NumericLoss


def weighted_loss(
    head: Head, layer: Linear, h: Floats, y: Floats | Ids, w: Floats, into: OutputGradient | None = None
) -> Loss:
    """Return the weighted sum of the loss and the number of targets: h (…, B, width), weights (B,).

    With `into`, write the gradients of V and c there and return that of h.
    """
    o, scored = layer(h), head.loss.is_scored(y)
    if isinstance(head.loss, NumericLoss):
        each, do = head.loss.per_target(o, np.asarray(y))
        own = w[:, None]
    else:
        p = softmax(o, layer.backend).astype(np.float64)
        at = np.maximum(y, 0)[..., None].astype(np.int64)
        each = np.where(scored, -log(np.take_along_axis(p, at, -1)[..., 0]), 0.0)
        do = p
        np.put_along_axis(do, at, np.take_along_axis(do, at, -1) - 1, -1)
        do, own = np.where(scored[..., None], do, 0.0), w
    each = each * own
    dh = None
    if into is not None:
        if not into.accumulate:
            into.dV[:], into.dc[:] = 0, 0
        do = do * (w[:, None] * into.scale)
        dh = layer.backward(h, np.ascontiguousarray(do.astype(layer.backend.DTYPE)), into.dV, into.dc)
    return Loss(math.fsum(each[scored].tolist()), int(scored.sum()), each, dh)
