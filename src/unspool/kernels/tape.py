"""What the kernels take and return: table look-ups, the tape of a window, its gradients, losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.arrays import Activation, CellName, Floats, Ids


class Lookup(NamedTuple):
    """The input's part of the pre-activations, b + U x(t), as rows of a table: x(t) is a token.

    >>> import numpy as np
    >>> Lookup(table=np.zeros((65, 128), np.float32), ids=np.zeros((35, 32), np.int32)).ids.shape
    (35, 32)
    """

    table: Floats  # K G*H
    ids: Ids  # tau B


class Tape(NamedTuple):
    """What a window leaves behind: all that BPTT needs, and all that there is to look at.

    A backward pass that consumes it leaves gradients where the gates were: it cannot be used again.
    """

    cell: CellName
    activation: Activation
    reverse: bool
    lengths: Ids | None  # B
    keep: Floats | None  # B H, the dropout mask on h(t-1)
    hs: Floats  # tau+1 B H, the starting state included
    ss: Floats | None  # tau+1 B H, the LSTM's cell state
    gates: Floats | None  # tau B 4H: i f g o, or r z n q
    kept: Floats | None  # tau B H, h(t-1) under the mask

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
        """h(t-1) for every step, as the products see it, tau B H."""
        if self.kept is not None:
            return self.kept
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
        """How much memory it holds. See `bytes_of_tape` for the formula."""
        parts = (self.hs, self.ss, self.gates, self.kept)
        return sum(part.nbytes for part in parts if part is not None)


def bytes_of_tape(cell: CellName, tau: int, B: int, H: int, *, keep: bool = False) -> int:
    """Return the bytes of a window's tape in float32: linear in tau.

    >>> bytes_of_tape("elman", 35, 32, 256)  # 4 (tau + 1) B H
    1179648
    >>> bytes_of_tape("lstm", 35, 32, 256)  # 4 (2 (tau + 1) + 4 tau) B H
    6946816
    """
    steps = {"elman": tau + 1, "gru": tau + 1 + 4 * tau, "lstm": 2 * (tau + 1) + 4 * tau}[cell]
    return 4 * (steps + (tau if keep else 0)) * B * H


class Backward(NamedTuple):
    """The gradients that a window's backward pass finds."""

    da: Floats  # tau B G*H of the pre-activations; for the GRU tau B 4H: r z n q
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
        """The sum divided by the count, once; NaN where nothing was scored."""
        return self.sum / self.count if self.count else float("nan")
