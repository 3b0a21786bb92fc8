"""The input of the head from all states of the last layer, forwards and backwards.

every step   h(t) itself
last         the state after the row's last step, of each direction: one vector per row
mean         the mean of h(t) over the row's steps: one vector per row
"""

from __future__ import annotations

import numpy as np

from unspool.kernels.arrays import Floats
from unspool.kernels.backend import Backend
from unspool.model.values import FinalGradients, Output


class Pooling:
    """The head reads every h(t); subclasses make one vector per row."""

    every_step = True
    """Whether the head reads every step."""
    grows_with_steps = True
    """Whether pooling the first t steps is the head's input at step t."""

    def forward(self, output: Output, backend: Backend) -> Floats:
        """Return the input of the head: tau B width, or B width."""
        return output.h

    def backward(
        self, output: Output, dh: Floats, d_ends: FinalGradients
    ) -> tuple[Floats | None, FinalGradients]:
        """Return the gradients of every h(t) and, added to `d_ends`, of the final states."""
        return dh, d_ends


class LastState(Pooling):
    """The last layer's final state under its dropout mask; each direction ends at its own end."""

    every_step = False

    def forward(self, output: Output, backend: Backend) -> Floats:
        """Return the final states, B width."""
        ends = [tape.h_end for tape in output.tape[-1].directions]
        end: Floats = ends[0] if len(ends) == 1 else np.concatenate(ends, axis=1)
        mask = output.tape[-1].mask
        return end if mask is None else end * mask

    def backward(self, output: Output, dh: Floats, d_ends: FinalGradients) -> tuple[None, FinalGradients]:
        """Split the gradient between the directions."""
        last, d_ends = output.tape[-1], list(d_ends)
        parts = np.split(dh if last.mask is None else dh * last.mask, len(last.directions), axis=1)
        for at, part in enumerate(map(np.ascontiguousarray, parts), len(d_ends) - len(parts)):
            later, ds = d_ends[at]
            d_ends[at] = (part if later is None else part + later, ds)
        return None, d_ends


class MeanState(Pooling):
    """The mean of h(t) over each row's steps."""

    every_step = grows_with_steps = False

    def forward(self, output: Output, backend: Backend) -> Floats:
        """Return the means, B width."""
        live, inverse = _steps(output)
        h = np.where(live, output.h, inverse.dtype.type(0))
        tau, B, width = h.shape
        return backend.column_sum(h.reshape(tau, B * width)).reshape(B, width) * inverse

    def backward(self, output: Output, dh: Floats, d_ends: FinalGradients) -> tuple[Floats, FinalGradients]:
        """Give every step of a row the same part."""
        live, inverse = _steps(output)
        return np.where(live, dh * inverse, inverse.dtype.type(0)), d_ends


EVERY_STEP = Pooling()
POOLS: dict[str, Pooling] = {"last": LastState(), "mean": MeanState()}
"""All ways of pooling by name."""


def _steps(output: Output) -> tuple[Floats, Floats]:
    """Return which steps a row has, tau B 1, and 1 / their number, B 1."""
    (tau, B), lengths = output.h.shape[:2], output.tape[-1].directions[0].lengths
    lengths = np.full(B, tau, np.int32) if lengths is None else lengths
    inverse = (1 / np.maximum(lengths, 1)).astype(output.h.dtype)[:, None]
    return (np.arange(tau)[:, None] < lengths)[:, :, None], inverse
