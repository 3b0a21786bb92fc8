"""All hidden units through time, as a heat map: one row a unit, one column a token."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unspool.inspect.page.png import heat
from unspool.inspect.report import InspectReport
from unspool.kernels import native

MOST_UNITS = 128
"""As many units are shown: those that move most."""


def states_png(report: InspectReport) -> bytes:
    """Draw the states of the last layer: rows are units, those that move together beside each other."""
    h = report.reading.last_h
    most = np.sort(np.argsort(-h.std(axis=0), kind="stable")[:MOST_UNITS])
    shown = h[:, most].astype(np.float64)
    order = _together(shown)
    return heat(shown[:, order].T / max(float(np.quantile(np.abs(shown), 0.99)), 1e-12))


def _together(h: NDArray[np.float64]) -> list[int]:
    """Order units so that each stands beside the one most like it: from the slowest on, greedily."""
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
