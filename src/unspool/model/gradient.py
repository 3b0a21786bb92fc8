"""The gradient of all parameters of a model, filled window by window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
    """The gradient of the rows of E, if they are read one by one. K X."""
    fed_back: Floats | None = None
    """The gradient of W = R V, if o(t-1) is fed back. H H."""
    written: set[str] = field(default_factory=set)
    """The parameters whose gradient has been written since the last `clear`."""

    @property
    def flat(self) -> Floats:
        """The flat vector."""
        return self.values.flat

    def clear(self) -> None:
        """Reset to zero, for the next update."""
        self.written.clear()
        for table in self.tables.values():
            table[:] = 0
        if self.embedded is not None:
            self.embedded[:] = 0

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

    def add_to_E(self, part: Floats) -> None:
        """Add a part of the gradient of the embedding."""
        dE = self.values["E"]
        if self.claim("E"):
            dE += part
        else:
            dE[:] = part


Gradients = Gradient | Sequence[Gradient]
"""One gradient for a whole batch, or one per row."""


def by_rows(gradient: Gradients) -> list[tuple[slice, Gradient]]:
    """Return pairs of rows of a batch and the gradient that they add to."""
    if isinstance(gradient, Gradient):
        return [(slice(None), gradient)]
    return [(slice(b, b + 1), each) for b, each in enumerate(gradient)]
