"""The gradient of all parameters of a model, filled window by window."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from unspool.errors import CutWarning, InputError
from unspool.kernels.arrays import Floats
from unspool.model.config import ModelConfig
from unspool.model.parameters import Parameters


@dataclass
class Gradient:
    """The gradient of all parameters, and the sums that are folded into it at the end.

    Buffers are not zeroed in advance: the first write to a parameter overwrites, later ones accumulate.
    """

    config: ModelConfig
    values: Parameters
    tables: dict[bool, Floats] = field(default_factory=dict)
    """The gradient of the input table E Uᵀ + b, by direction, if tokens are looked up in it. K G*H."""
    embedded: Floats | None = None
    """The gradient of the rows of E, if they are read one by one: a separate array where E is the output's matrix too. K X."""
    head: Floats | None = None
    """The gradient of the head of a tied adaptive softmax: rows of E, then V. (shortlist + clusters) X."""
    fed_back: Floats | None = None
    """The gradient of W = R V, if o(t-1) is fed back. H H."""
    written: set[str] = field(default_factory=set)
    """The parameters whose gradient has been written since the last `clear`."""
    block: int = 1
    """`Backend.BLOCK`: so many rows are summed at a time."""
    folded: bool = False
    """Whether `fold_input_tables` has been called since the last `clear`."""
    rows: int = 0
    """The rows of all steps that have been added since the last `clear`."""

    @property
    def flat(self) -> Floats:
        """The flat vector."""
        return self.values.flat

    def clear(self) -> None:
        """Reset to zero, for the next update."""
        self.written.clear()
        self.rows, self.folded = 0, False
        for table in self.tables.values():
            table[:] = 0
        if self.embedded is not None:
            self.embedded[:] = 0

    def continue_window(self, tau: int, B: int) -> None:
        """Note that a part of a window is added; warn where its bits in bf16 are not those of the whole window."""
        self._refuse_folded()
        grid = steps_between_cuts(self.block, B)
        if self.rows % self.block:
            warnings.warn(
                f"a part of a window is added after {self.rows} rows; in bf16, the gradients of its parameters have the bits of the "
                f"whole window only if it is cut at multiples of {grid} steps from its end (B = {B}); for another window, make "
                "another gradient and add it with Gradient.add",
                CutWarning,
                stacklevel=3,
            )
        self.rows += tau * B

    def begin_window(self) -> None:
        """Mark the end of a separate window, whose sums in bf16 start a new block."""
        self.rows = 0

    def _refuse_folded(self) -> None:
        """Raise in bf16 if the sums hold more than one window: tiles would read them otherwise than multiply-adds."""
        if self.folded and self.block > 1:
            raise InputError(
                "this gradient is complete (fold_input_tables): call clear(), or make another gradient for the next window and "
                "add it with Gradient.add"
            )

    def add(self, other: Gradient) -> None:
        """Add the gradient of another window, after `fold_input_tables` of both: one addition per value."""
        self.flat[:] += other.flat

    def claim(self, name: str) -> bool:
        """Mark a parameter's gradient as written; return whether it already was."""
        written = name in self.written
        self.written.add(name)
        return written

    def accumulator(self, name: str) -> Floats:
        """Return the stored gradient of a parameter, zeroed at the first call: the caller adds to it."""
        stored = self.values.stored(name)
        if not self.claim(name):
            stored[:] = 0
        return stored

    def accumulators(self, *names: str) -> tuple[list[Floats], bool]:
        """Return the stored gradients of parameters, and whether to add to them; else the caller overwrites them."""
        self._refuse_folded()
        if not self.written.isdisjoint(names):
            return [self.accumulator(name) for name in names], True
        self.written.update(names)
        return [self.values.stored(name) for name in names], False

    def recurrent(self, name: str) -> Floats:
        """Return the gradient of W: one of the values, or a separate array if W is R V."""
        if not self.config.feeds_logits:
            return self.values[name]
        if self.fed_back is None:
            self.fed_back = self.values.zeros((self.config.hidden, self.config.hidden))
        return self.fed_back

    def fold_head(self) -> None:
        """Add the gradient of the head of a tied adaptive softmax to those of E and V."""
        if self.head is not None and "V" in self.written:
            V = self.values["V"]
            n = len(self.head) - len(V)
            self.values["E"][:n] += self.head[:n]
            V[:] = self.head[n:]

    def add_to_E(self, part: Floats) -> None:
        """Add a part of the gradient of the embedding."""
        dE, written = self.values["E"], self.claim("E")
        if np.may_share_memory(part, dE):
            return
        if written:
            dE += part
        else:
            dE[:] = part


def steps_between_cuts(block: int, B: int) -> int:
    """Return where a window of B rows can be cut without changing a bit: at multiples of so many steps from its end.

    >>> steps_between_cuts(1, B=24), steps_between_cuts(32, B=24)
    (1, 4)
    """
    return block // math.gcd(B, block)


Gradients = Gradient | Sequence[Gradient]
"""One gradient for a whole batch, or one per row."""


def by_rows(gradient: Gradients) -> list[tuple[slice, Gradient]]:
    """Return pairs of rows of a batch and the gradient that they add to."""
    if isinstance(gradient, Gradient):
        return [(slice(None), gradient)]
    return [(slice(b, b + 1), each) for b, each in enumerate(gradient)]
