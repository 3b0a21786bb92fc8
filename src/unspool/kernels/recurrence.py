"""The interface between kernels and cells: the columns of a cell's arrays, and one step of it in NumPy.

A kernel runs any cell over a window. Step t computes h(t) (and s(t)) from p(t) = b + U x(t) and W h(t-1):

    forward     h(t), s(t), tape(t) = step(p(t), W h(t-1), h(t-1), s(t-1))
    backward    da(t), dh(t-1), ds(t-1) = step_back(tape(t), dh(t), ds(t)),   then Wᵀ da(t) is added to dh(t-1)

A row of da holds the gradient of p(t), then further columns that the cell declares. The gradients of W and of the
further parameters are sums over these columns, so the caller computes them without knowing the cell.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from unspool.kernels.arrays import Activation, Floats, cached_attribute


class Width(NamedTuple):
    """A number of columns: multiples of H, the hidden units, and of P, the columns of p.

    >>> Width(4).of(H=3, P=9), Width(P=1).of(H=3, P=9)
    (12, 9)
    """

    H: int = 0
    P: int = 0

    def of(self, H: int, P: int) -> int:
        """Return the number of columns for these sizes."""
        return self.H * H + self.P * P


class Extra(NamedTuple):
    """A parameter of a cell beyond U, W and b, and where its gradient is found.

    The gradient of a vector is the sum of `rows` columns of da; that of a matrix is the sum of the outer products of
    these columns with `columns` columns of the tape.
    """

    name: str
    rows: Width
    columns: Width = Width()
    """No columns: a vector."""
    da: Width = Width()
    """The first of its columns of da."""
    tape: Width = Width()
    """The first of its columns of the tape."""
    read_by_backward: bool = False

    def shape(self, H: int, P: int) -> tuple[int, ...]:
        """Return (rows,) or (rows, columns)."""
        rows, columns = self.rows.of(H, P), self.columns.of(H, P)
        return (rows, columns) if columns else (rows,)

    def columns_of_da(self, da: Floats, H: int, P: int) -> Floats:
        """Return the columns of da whose sum is the gradient."""
        first = self.da.of(H, P)
        return da[..., first : first + self.rows.of(H, P)]

    def columns_of_tape(self, tape: Floats, H: int, P: int) -> Floats:
        """Return the columns of the tape that a matrix was multiplied with."""
        first = self.tape.of(H, P)
        return tape[..., first : first + self.columns.of(H, P)]


class StepTape(NamedTuple):
    """One step of a tape: all rows (B, …), or one row of it."""

    activation: Activation
    h_before: Floats  # B H
    h: Floats  # B H
    s_before: Floats | None  # B H
    s: Floats | None  # B H
    taped: Floats | None  # B columns of the cell's tape


class Recurrence(ABC):
    """What the kernels ask of a cell. The order of `gates` is the order of the blocks in U, W and b, everywhere."""

    name: ClassVar[str]
    gates: ClassVar[tuple[str, ...]]
    """The blocks of H columns of p = b + U x(t); none: the cell reads p = x(t) itself and has no U and b."""
    has_W: ClassVar[bool] = True
    """Whether there is a W (G*H, H) in front of h(t-1)."""
    has_cell_state: ClassVar[bool] = False
    """Whether there is a state s beside h."""
    has_activation: ClassVar[bool] = False
    """Whether the activation can be chosen."""
    tape: ClassVar[Width] = Width()
    """The columns that forward stores of each step."""
    da: ClassVar[Width]
    """The columns of da: those of p, then others."""
    W_gap: ClassVar[tuple[int, int]] = (0, 0)
    """(first, blocks): the blocks of da that do not belong to W; W has those before and those after."""
    da_over: ClassVar[Literal["tape", "dh"] | None] = None
    """The array that backward may write da over."""
    extra: ClassVar[tuple[Extra, ...]] = ()

    @abstractmethod
    def step(
        self,
        p: Floats,
        Wh: Floats | None,
        h: Floats,
        s: Floats | None,
        extra: Sequence[Floats],
        activation: Activation,
    ) -> tuple[Floats, Floats | None, Floats | None]:
        """Return h(t), s(t) and the columns of the tape, from p(t), W h(t-1), h(t-1) and s(t-1)."""

    @abstractmethod
    def step_back(
        self, step: StepTape, dh: Floats, ds: Floats | None, extra: Sequence[Floats]
    ) -> tuple[Floats, Floats | None, Floats | None]:
        """Return da(t) and the gradients of h(t-1), without the part through W, and of s(t-1)."""

    @cached_attribute
    def read_by_backward(self) -> bool:
        """Whether the backward pass reads any of the further parameters."""
        return any(each.read_by_backward for each in self.extra)

    @cached_attribute
    def summed_with_W(self) -> Extra | None:
        """The vector whose gradient is the sum of the columns of da after the gap: one pass finds it and W's."""
        first, gap = self.W_gap
        wanted = (Width(first + gap), Width(len(self.gates) - first), Width())
        return next((e for e in self.extra if gap and (e.da, e.rows, e.columns) == wanted), None)

    def p_columns(self, X: int, H: int) -> int:
        """Return P, the columns of p in a layer that reads X values."""
        return len(self.gates) * H or X

    def da_of_W(self, da: Floats, H: int) -> Floats:
        """Return the columns of da that belong to the rows of W."""
        first, gap = (H * blocks for blocks in self.W_gap)
        end = gap + H * len(self.gates)
        if not gap:
            return da if end == da.shape[-1] else da[..., :end]
        return np.concatenate([da[..., :first], da[..., first + gap : end]], axis=-1)

    def W_cut(self, H: int) -> int:
        """Return the row of W from which on Wᵀ da is a second product, after the gap; 0: there is one product."""
        first, gap = self.W_gap
        return first * H if gap else 0

    @property
    def parts(self) -> int:
        """The vectors of H values in a state: 1 for h, 2 for h and s."""
        return 2 if self.has_cell_state else 1
