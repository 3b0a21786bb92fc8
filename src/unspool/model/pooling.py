"""Pooling: one vector per row from all states of the last layer, forwards and backwards.

last    the state after the row's last step, of each direction
mean    the mean of h(t) over the row's steps
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.backend import Backend
from unspool.model.values import Output


class PoolGradient(NamedTuple):
    """The gradients that pooling passes back; one of them is None."""

    dh: Floats | None  # of every h(t), tau B width
    d_ends: list[Floats] | None  # of the last layer's final states, per direction, B H


class Pooling(ABC):
    """One vector per row, B width, from the output of the last layer."""

    grows_with_steps = False
    """Whether pooling the first t steps is the head's input at step t."""

    @abstractmethod
    def forward(self, output: Output, lengths: Ids | None, backend: Backend) -> Floats:
        """Return the pooled vectors, B width."""

    @abstractmethod
    def backward(self, output: Output, lengths: Ids | None, dh: Floats) -> PoolGradient:
        """Return the gradients of the states from that of the pooled vectors."""


class LastState(Pooling):
    """The last layer's final state under its dropout mask; each direction ends at its own end."""

    grows_with_steps = True

    def forward(self, output: Output, lengths: Ids | None, backend: Backend) -> Floats:
        """Return the final states, B width."""
        ends = [tape.h_end for tape in output.tape[-1].directions]
        end: Floats = ends[0] if len(ends) == 1 else np.concatenate(ends, axis=1)
        mask = output.tape[-1].mask
        return end if mask is None else end * mask

    def backward(self, output: Output, lengths: Ids | None, dh: Floats) -> PoolGradient:
        """Split the gradient between the directions."""
        last = output.tape[-1]
        dh = dh if last.mask is None else dh * last.mask
        parts = np.split(dh, len(last.directions), axis=1)
        return PoolGradient(None, [np.ascontiguousarray(part) for part in parts])


class MeanState(Pooling):
    """The mean of h(t) over each row's steps."""

    def forward(self, output: Output, lengths: Ids | None, backend: Backend) -> Floats:
        """Return the means, B width."""
        live, inverse = _steps(output, lengths)
        h = np.where(live, output.h, inverse.dtype.type(0))
        tau, B, width = h.shape
        return backend.column_sum(h.reshape(tau, B * width)).reshape(B, width) * inverse

    def backward(self, output: Output, lengths: Ids | None, dh: Floats) -> PoolGradient:
        """Give every step of a row the same part."""
        live, inverse = _steps(output, lengths)
        return PoolGradient(np.where(live, dh * inverse, inverse.dtype.type(0)), None)


POOLS: dict[str, Pooling] = {"last": LastState(), "mean": MeanState()}
"""All ways of pooling by name."""


def _steps(output: Output, lengths: Ids | None) -> tuple[Floats, Floats]:
    """Return which steps a row has, tau B 1, and 1 / their number, B 1."""
    tau, B = output.h.shape[:2]
    lengths = np.full(B, tau) if lengths is None else lengths
    inverse = (1 / np.maximum(lengths, 1)).astype(output.h.dtype)[:, None]
    return (np.arange(tau)[:, None] < lengths)[:, :, None], inverse
