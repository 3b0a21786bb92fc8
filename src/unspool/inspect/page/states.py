"""Heat map of the hidden units over time: one row per unit, one column per token."""

from __future__ import annotations

import numpy as np

from unspool.inspect.page.png import heat
from unspool.inspect.report import InspectReport
from unspool.kernels import native
from unspool.kernels.arrays import Real

MOST_UNITS = 128
"""Most units that are shown, by standard deviation."""


def states_png(report: InspectReport) -> bytes:
    """Return a PNG of the states of the last layer: one row per unit, similar units adjacent."""
    h = report.reading.last_h
    most = np.sort(np.argsort(-h.std(axis=0), kind="stable")[:MOST_UNITS])
    shown = h[:, most].astype(np.float64)
    order = _similarity_order(shown)
    return heat(shown[:, order].T / max(float(np.quantile(np.abs(shown), 0.99)), 1e-12))


def _similarity_order(h: Real) -> list[int]:
    """Return an order of units in which similar ones are adjacent: greedy, starting with the slowest."""
    z = (h - h.mean(axis=0)) / np.maximum(h.std(axis=0), 1e-12)
    rows = z.astype(np.float32)
    like = native.matmul(rows, rows, transpose_a=True) / len(z)
    slow = np.mean(z[1:] * z[:-1], axis=0)
    order = [int(slow.argmax())]
    left = set(range(h.shape[1])) - set(order)
    while left:
        near = max(sorted(left), key=lambda i: like[order[-1], i])
        order.append(near)
        left.remove(near)
    return order
