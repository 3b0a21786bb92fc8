"""The values that kernels take and return: table look-ups, the tape of a window, its gradients, losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.arrays import Activation, Floats, Ids
from unspool.kernels.recurrence import Recurrence, StepTape


class Lookup(NamedTuple):
    """b + U x(t) as rows of a table, where x(t) is a token.

    >>> import numpy as np
    >>> Lookup(table=np.zeros((65, 128), np.float32), ids=np.zeros((35, 32), np.int32)).ids.shape
    (35, 32)
    """

    table: Floats  # K G*H
    ids: Ids  # tau B


class Tape(NamedTuple):
    """What the forward pass of a window stores for the backward pass.

    A backward pass that consumes it overwrites `gates` with gradients: the tape cannot be used again.
    """

    cell: Recurrence
    activation: Activation
    reverse: bool
    lengths: Ids | None  # B
    recurrent_mask: Floats | None  # B H, the dropout mask on h(t-1)
    hs: Floats  # tau+1 B H, the initial state included
    ss: Floats | None  # tau+1 B H, the cell state
    gates: Floats | None  # tau B T, the columns that the cell stores, for example its gates
    h_masked: Floats | None  # tau B H, h(t-1) under the mask
    P: int = 0  # the columns of p

    @property
    def tau(self) -> int:
        """The number of steps."""
        return len(self.hs) - 1

    @property
    def h(self) -> Floats:
        """h(t) for every step, tau B H."""
        now: Floats = self.hs[:-1] if self.reverse else self.hs[1:]
        return now

    @property
    def h_before(self) -> Floats:
        """h(t-1) for every step, under the dropout mask, tau B H."""
        if self.h_masked is not None:
            return self.h_masked
        past: Floats = self.hs[1:] if self.reverse else self.hs[:-1]
        return past

    @property
    def h_end(self) -> Floats:
        """The state after the last step read, B H."""
        end: Floats = self.hs[0 if self.reverse else -1]
        return end

    @property
    def s_end(self) -> Floats | None:
        """The cell state after the last step read, B H."""
        return None if self.ss is None else self.ss[0 if self.reverse else -1]

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays. See `bytes_of_tape` for the formula."""
        parts = (self.hs, self.ss, self.gates, self.h_masked)
        return sum(part.nbytes for part in parts if part is not None)

    def step(self, t: int, row: int | slice = slice(None)) -> StepTape:
        """Return step t of all rows, or of one."""
        before, after = (t + 1, t) if self.reverse else (t, t + 1)
        s_before = s = taped = None
        if self.ss is not None:
            s_before, s = self.ss[before, row], self.ss[after, row]
        if self.gates is not None:
            taped = self.gates[t, row]
        return StepTape(self.activation, self.hs[before, row], self.hs[after, row], s_before, s, taped)


def bytes_of_tape(cell: Recurrence, tau: int, B: int, H: int, *, X: int = 0, masked: bool = False) -> int:
    """Return the bytes of a window's tape in float32, linear in tau; X is the width of the input.

    >>> from unspool.cells import cell_named
    >>> bytes_of_tape(cell_named("elman"), 35, 32, 256)  # 4 (tau + 1) B H
    1179648
    >>> bytes_of_tape(cell_named("lstm"), 35, 32, 256)  # 4 (2 (tau + 1) + 4 tau) B H
    6946816
    """
    taped = cell.tape.of(H, cell.p_columns(X, H)) + (H if masked else 0)
    return 4 * B * (cell.parts * (tau + 1) * H + tau * taped)


class Backward(NamedTuple):
    """The gradients that the backward pass of a window computes."""

    da: Floats  # tau B columns: of p = b + U x(t), then those that the cell adds
    dh0: Floats  # B H
    ds0: Floats | None  # B H


@dataclass(frozen=True)
class Loss:
    """Negative log-likelihood in nats: the sum and the count, so that sum and mean are never confused."""

    sum: float
    count: int
    per_target: NDArray[np.float64]  # of every target, zero where masked
    dh: Floats | None  # gradient of the hidden states

    @property
    def mean(self) -> float:
        """The sum divided by the count; NaN if nothing was scored."""
        return self.sum / self.count if self.count else float("nan")
