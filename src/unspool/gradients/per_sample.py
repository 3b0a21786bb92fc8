"""Compute the gradient of each row of a batch, or only its norm.

    ∇W(b) = Σ_t da(t, b) h(t-1, b)ᵀ        row b's share of Σ_t Σ_b: the sum over rows is left out

Forward and backward passes read the whole batch at once; only the sums over time are taken row by row. A row's states
and their gradients do not depend on the batch that it sits in, so its gradient has the same bits as that of a batch of
this row alone. Norms are computed from a few gradients at a time, and no more of them are stored.

>>> from unspool.model.config import ModelConfig
>>> model = Model.initialise(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=8), seed=1)
>>> x, y = np.random.default_rng(0).integers(0, 5, (2, 7, 4)).astype(np.int32)  # tau B
>>> found = per_sample_gradients(model, x, y)
>>> found["layer0.W"].shape, found.losses.shape
((4, 24, 8), (4,))
>>> bool(np.allclose(per_sample_norms(model, x, y), np.linalg.norm(found.flat, axis=1)))
True
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from unspool.errors import InputError
from unspool.kernels import native
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.memory import available
from unspool.kernels.tape import Loss
from unspool.model.gradient import Gradient
from unspool.model.inputs import as_int32, check_input, describe
from unspool.model.network import Model
from unspool.model.packed import Weights
from unspool.model.parameters import TRANSPOSED, Parameters, Shapes
from unspool.model.values import Masks, Output, State, rows_of

ROWS = 64
"""Rows that are read at once: enough for whole tiles of the kernels."""
ROOM = 2**28
"""Bytes of the gradients that are stored at once for their norms alone."""


@dataclass(frozen=True)
class PerSample(Mapping[str, Floats]):
    """The gradients of all rows under the names of the parameters."""

    shapes: Shapes
    flat: Floats
    """Each row's gradient as a flat vector, laid out like `Parameters.flat`. B P."""
    losses: NDArray[np.float64]
    """The sum of each row's losses in nats, not scaled. B."""
    counts: NDArray[np.int64]
    """How many targets each row has. B."""

    def __getitem__(self, name: str) -> Floats:
        """Return the gradients of a parameter, B and the parameter's shape."""
        row = self.row(0) if len(self.flat) else Parameters(self.shapes)
        stored = self.flat[:, row.slices[name]].reshape(len(self.flat), *row.stored(name).shape)
        return stored.swapaxes(1, 2) if name.endswith(TRANSPOSED) else stored

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    def row(self, b: int) -> Parameters:
        """Return one row's gradient, every parameter under its name."""
        return Parameters(self.shapes, self.flat[b])


class WindowOptions(TypedDict, total=False):
    """Optional arguments of both functions."""

    scale: float
    """What every loss is multiplied by (1)."""
    lengths: Ids | None
    """int32 (B,): valid steps per row."""
    masks: Masks | None
    """Dropout."""
    xi: Floats | None
    """(tau, B): random truncation."""


def per_sample_gradients(
    model: Model, x: Floats | Ids, y: Ids, state: State | None = None, **more: Unpack[WindowOptions]
) -> PerSample:
    """Return the gradient of `scale` times the sum of each row's losses: B gradients of all parameters.

    x        int32 (tau, B) or float32 (tau, B, X): the window; y int32 (tau, B) or (B,): the targets
    state    the state before the first step; without it h(0), which has a gradient where it is learned
    """
    window = _SampleWindow(model, x, y, state, **more)
    B, size = x.shape[1], model.parameters.flat.size
    needed, free = 4 * B * size, available()
    if needed > free:
        raise InputError(
            f"the gradients of {B} rows and {size:,} values need {needed / 2**30:,.1f} GiB, and {free / 2**30:,.1f} are "
            "free: pass fewer rows, or take per_sample_norms"
        )
    flat = native.zeros((B, size))
    losses, counts = np.zeros(B), np.zeros(B, np.int64)
    for begin in range(0, B, ROWS):
        rows = slice(begin, min(begin + ROWS, B))
        made = [model.gradient(Parameters(model.parameters.shapes, each)) for each in flat[rows]]
        found = window.rows(rows, made)
        losses[rows], counts[rows] = [each.sum for each in found], [each.count for each in found]
    return PerSample(model.parameters.shapes, flat, losses, counts)


def per_sample_norms(
    model: Model, x: Floats | Ids, y: Ids, state: State | None = None, **more: Unpack[WindowOptions]
) -> NDArray[np.float64]:
    """Return the global norm of each row's gradient, (B,); see `per_sample_gradients` for the arguments.

    At most 256 MiB of gradients are stored at a time, or one.
    """
    window = _SampleWindow(model, x, y, state, **more)
    B = x.shape[1]
    most = max(1, min(ROWS, B, ROOM // (4 * model.parameters.flat.size)))
    made = [model.gradient() for _ in range(most)]
    norms = np.zeros(B)
    for begin in range(0, B, most):
        rows = slice(begin, min(begin + most, B))
        here = made[: rows.stop - begin]
        for each in here:
            each.clear()
        window.rows(rows, here)
        norms[rows] = [native.global_norm(each.flat) for each in here]
    return norms


@dataclass
class _SampleWindow:
    """A batch of windows, read some rows at a time."""

    model: Model
    x: Floats | Ids
    y: Ids
    state: State | None
    scale: float = 1.0
    lengths: Ids | None = None
    masks: Masks | None = None
    xi: Floats | None = None

    def __post_init__(self) -> None:
        check_input(self.model.config, self.x, self.lengths)
        expected = self.x.shape[1:2] if self.model.config.pattern == "last" else self.x.shape[:2]
        if not isinstance(self.y, np.ndarray) or self.y.shape != expected or self.y.dtype.kind not in "iu":
            raise InputError(f"y is {describe(self.y)}; expected {expected} of int32")
        self.y = as_int32(self.y, "y")
        self.weights: Weights = self.model.weights()

    def rows(self, rows: slice, gradients: list[Gradient]) -> list[Loss]:
        """Write the gradients of some rows; return their losses."""
        model, y = self.model, self.y[..., rows]
        masks = self.masks and Masks(*(part and [mask[rows] for mask in part] for part in self.masks))
        output = model.forward(
            np.ascontiguousarray(self.x[:, rows]),
            self.state and rows_of(self.state, rows),
            lengths=None if self.lengths is None else self.lengths[rows],
            masks=masks,
            weights=self.weights,
            y=y,
        )
        losses = self._losses(output, y, gradients)
        dh = np.concatenate([each.dh for each in losses if each.dh is not None], axis=1)
        xi = None if self.xi is None else np.ascontiguousarray(self.xi[:, rows])
        _, starts = model.backward(
            output, dh[0] if y.ndim == 1 else dh, gradients, weights=self.weights, xi=xi, consume=True
        )
        for b, each in enumerate(gradients):
            if self.state is None:
                model.add_initial_state_gradient(rows_of(starts, slice(b, b + 1)), each)
            model.fold_input_tables(each, self.weights)
        return losses

    def _losses(self, output: Output, y: Ids, gradients: list[Gradient]) -> list[Loss]:
        """Score the rows one by one: the gradients of V and c of each are its own."""
        h = self.model.head_input(output)
        found = []
        for b, gradient in enumerate(gradients):
            here = np.ascontiguousarray(h[..., b, :].reshape(-1, 1, h.shape[-1]))
            targets = np.ascontiguousarray(y[..., b]).reshape(-1, 1)
            into = self.model.output_gradient(gradient, self.scale)
            found.append(self.model.head.loss(self.weights.output, here, targets, into))
        return found
