"""Backpropagation through time, by hand: one layer through one window, backwards.

With da(t) the gradient of the pre-activations (from the kernels, equations 10.20 and 10.21),

    ∇b = Σ da(t)                    (10.23)
    ∇W = Σ da(t) h(t-1)ᵀ            (10.26)
    ∇U = Σ da(t) x(t)ᵀ              (10.28)
    ∇x(t) = Uᵀ da(t)

The sums run from tau to 1. Gradients are added to what is there: a long sequence in several windows, the last
one first, gives the same bits as in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.tape import Backward, Lookup, Tape
from unspool.model.config import ModelConfig
from unspool.model.parameters import Parameters, prefix
from unspool.model.unroll import LayerWeights


@dataclass
class Gradient:
    """The gradient of all parameters, and the sums that are folded into it at the end.

    Nothing is set to zero before it is needed: what has not been written yet is written over.
    """

    config: ModelConfig
    values: Parameters
    tables: dict[bool, Floats] = field(default_factory=dict)
    """Where tokens are looked up in E Uᵀ + b: the gradient of that table, by direction. K G*H."""
    embedded: Floats | None = None
    """Where rows of E are read: the gradient of those rows. K X."""
    fed_back: Floats | None = None
    """Where o(t-1) is fed back: the gradient of W = R V. H H."""
    written: set[str] = field(default_factory=set)
    """The parameters whose gradient has been written since it was last cleared."""

    @property
    def flat(self) -> Floats:
        """The flat vector."""
        return self.values.flat

    def clear(self) -> None:
        """Back to zero, for the next update."""
        self.written.clear()
        for table in self.tables.values():
            table[:] = 0
        if self.embedded is not None:
            self.embedded[:] = 0

    def holds(self, name: str) -> bool:
        """Return whether this gradient holds something already; from now on it does."""
        held = name in self.written
        self.written.add(name)
        return held

    def zeroed(self, name: str) -> Floats:
        """Return a gradient that can be added to, as it is stored."""
        stored = self.values.stored(name)
        if not self.holds(name):
            stored[:] = 0
        return stored

    def recurrent(self, name: str) -> Floats:
        """Return where the gradient of W adds up: in the parameters, or aside where W is R V."""
        if not self.config.feeds_logits:
            return self.values[name]
        if self.fed_back is None:
            self.fed_back = self.values.zeros((self.config.hidden, self.config.hidden))
        return self.fed_back

    def to_add(self, *names: str) -> tuple[list[Floats], bool]:
        """Return gradients as they are stored, and whether to add to them: else they are written over."""
        held = any(name in self.written for name in names)
        if held:
            return [self.zeroed(name) for name in names], True
        self.written.update(names)
        return [self.values.stored(name) for name in names], False

    def finish(self, E: Floats | None, first: list[LayerWeights]) -> None:
        """Fold the gradients of tables into those of U, b and E: table = E Uᵀ + b."""
        values = self.values
        for weights in first:
            at = prefix(0, weights.reverse)
            table = self.tables.get(weights.reverse)
            if E is None and at + "U" in self.written:
                table = values.stored(at + "U")
            if table is None or not self.config.uses_input_table:
                continue
            weights.backend.column_sum(table, out=values[at + "b"], accumulate=self.holds(at + "b"))
            if E is not None:
                weights.backend.matmul(
                    E, table, transpose_a=True, out=values.stored(at + "U"), accumulate=self.holds(at + "U")
                )
                self._add_to_E(weights.backend.matmul(weights.U, table, transpose_b=True).T)
        if self.embedded is not None:
            self._add_to_E(self.embedded)
        for name in values.shapes.keys() - self.written:
            values.stored(name)[:] = 0

    def _add_to_E(self, part: Floats) -> None:
        dE = self.values["E"]
        if self.holds("E"):
            dE += part
        else:
            dE[:] = part


Gradients = Gradient | Sequence[Gradient]
"""One gradient for a whole batch, or one for each row of it."""


def by_rows(gradient: Gradients) -> list[tuple[slice, Gradient]]:
    """Return which rows of a batch add to which gradient."""
    if isinstance(gradient, Gradient):
        return [(slice(None), gradient)]
    return [(slice(b, b + 1), each) for b, each in enumerate(gradient)]


def layer_backward(
    weights: LayerWeights,
    x: Floats | Ids,
    tape: Tape,
    *,
    dh: Floats | None,
    dh_end: Floats | None = None,
    ds_end: Floats | None = None,
    xi: Floats | None = None,
    want_dx: bool = True,
    consume: bool = False,
) -> tuple[Floats | None, Backward]:
    """Return the gradient of x, where there is one, and those of the pre-activations and of the initial state."""
    back = weights.backend.window_backward(
        tape, weights.W_backward, dh=dh, dh_end=dh_end, ds_end=ds_end, xi=xi, consume=consume
    )
    if x.ndim == 2 or not want_dx:
        return None, back
    da = back.da.reshape(-1, back.da.shape[2])[:, : len(weights.b)]
    return weights.backend.matmul(da, weights.U_backward).reshape(x.shape), back


def add_layer_gradient(
    weights: LayerWeights, layer: int, x: Floats | Ids, tape: Tape, da: Floats, gradient: Gradients
) -> None:
    """Add one window's gradients of U, W, b and d.

    With a gradient for each row, row b adds to the b-th alone, with the same bits as a batch of that one row.
    """
    if x.ndim == 3:
        x = values_without_padding(x, tape.lengths)
    for rows, each in by_rows(gradient):
        add_sums(weights, layer, x[:, rows], tape.h_before[:, rows], da[:, rows], each)


def add_sums(
    weights: LayerWeights, layer: int, x: Floats | Ids, h_before: Floats, da: Floats, gradient: Gradient
) -> None:
    """Add the sums over all steps and rows: ∇W, ∇U, ∇b and ∇d."""
    at, rows = prefix(layer, weights.reverse), da.shape[0] * da.shape[1]
    da = da.reshape(rows, da.shape[2])
    looked_up, held = None, False
    if x.ndim == 2:
        table, held = table_gradient(weights, gradient, at)
        looked_up = Lookup(table, x.reshape(-1))
    dd = None if weights.d is None else gradient.values[at + "d"]
    weights.backend.sum_over_time(
        da,
        h_before.reshape(rows, h_before.shape[2]),
        gradient.recurrent(at + "W"),
        accumulate=gradient.holds(at + "W"),
        lookup=looked_up,
        accumulate_lookup=held,
        d=dd,
        accumulate_d=dd is not None and gradient.holds(at + "d"),
    )
    if looked_up is not None:
        return
    da, inputs = da[:, : len(weights.b)], x.reshape(rows, x.shape[2])
    weights.backend.column_sum(da, out=gradient.values[at + "b"], accumulate=gradient.holds(at + "b"))
    dU = gradient.values.stored(at + "U")
    weights.backend.matmul(inputs, da, transpose_a=True, out=dU, accumulate=gradient.holds(at + "U"))


def table_gradient(weights: LayerWeights, gradient: Gradient, at: str) -> tuple[Floats, bool]:
    """Return where the gradients of b + U x add up, for every token, and whether anything is there already."""
    if weights.E is None:
        return gradient.values.stored(at + "U"), gradient.holds(at + "U")
    if weights.reverse not in gradient.tables:
        gradient.tables[weights.reverse] = weights.backend.zeros((len(weights.E), len(weights.b)))
    return gradient.tables[weights.reverse], True


def values_without_padding(x: Floats, lengths: Ids | None) -> Floats:
    """Beyond a row's length there may be anything, NaN included; zero times NaN would not be zero."""
    if lengths is None:
        return x
    return np.where((np.arange(len(x))[:, None] < lengths)[:, :, None], x, x.dtype.type(0))
