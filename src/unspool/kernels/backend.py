"""The interface of a backend: the kernels that a network calls, in one precision.

`unspool.kernels.native` (C++, float32) and `unspool.kernels.reference` (NumPy, float64) implement it, and `native_bf16` and
`reference_bf16` with products in bf16. A network takes one of them as an argument and runs the same code on all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from unspool.kernels import native, native_bf16, reference, reference_bf16
from unspool.kernels.arrays import Activation, Floats, Ids, Precision
from unspool.kernels.recurrence import Recurrence
from unspool.kernels.tape import Backward, Lookup, Loss, Tape

Packed = Any
"""A matrix in the layout of one backend: the result of `Backend.pack`."""


class Backend(Protocol):
    """The kernels of one precision; `native` documents each function."""

    @property
    def DTYPE(self) -> type[Any]:
        """The precision of parameters, states and gradients."""

    @property
    def BLOCK(self) -> int:
        """A sum over rows goes on, to the bits of one sum, after a multiple of so many rows."""

    def zeros(self, shape: tuple[int, ...]) -> Floats:
        """Return zeros of the backend's precision."""

    def pack(self, W: Any, *, transposed: bool = False, groups: int = 1, cut: int = 0) -> Packed:
        """Lay out a matrix for products with rows on the left."""

    def matmul(
        self,
        a: Floats,
        b: Any,
        *,
        transpose_a: bool = False,
        transpose_b: bool = False,
        start: Floats | None = None,
        out: Floats | None = None,
        accumulate: bool = True,
    ) -> Floats:
        """Return a product of matrices."""

    def sum_over_time(
        self,
        da: Floats,
        past: Floats,
        out: Floats,
        *,
        accumulate: bool,
        lookup: Lookup | None = None,
        accumulate_lookup: bool = True,
        gap: tuple[int, int] = (0, 0),
        total: Floats | None = None,
        accumulate_total: bool = True,
    ) -> None:
        """Add the gradients of W, of a table and of a vector over all steps."""

    def column_sum(self, a: Floats, *, out: Floats | None = None, accumulate: bool = True) -> Floats:
        """Return the sum over rows."""

    def gather(self, table: Floats, ids: Ids) -> Floats:
        """Return rows of a table."""

    def shift_rows(self, x: Floats, b: Floats) -> Floats:
        """Return x with b added to each row."""

    def scatter_add(self, table: Floats, ids: Ids, rows: Floats, *, accumulate: bool = True) -> None:
        """Add rows to rows of a table."""

    def scale_rows(self, x: Floats, mask: Floats) -> Floats:
        """Multiply every step by the same mask."""

    def dropout_mask(self, shape: tuple[int, ...], *, seed: int, stream: int, rate: float) -> Floats:
        """Draw a dropout mask."""

    def activate(self, a: Floats, activation: Activation) -> Floats:
        """Apply an activation."""

    def slope(self, h: Floats, activation: Activation) -> Floats:
        """Return the derivative of an activation from its value."""

    def window_forward(
        self,
        cell: Recurrence,
        p: Floats | Lookup,
        W: Any,
        h0: Floats,
        *,
        s0: Floats | None = None,
        extra: Sequence[Any] = (),
        lengths: Ids | None = None,
        activation: Activation = "tanh",
        reverse: bool = False,
        recurrent_mask: Floats | None = None,
    ) -> Tape:
        """Run one layer over a window."""

    def window_backward(
        self,
        tape: Tape,
        W: Any,
        *,
        extra: Sequence[Any] = (),
        dh: Floats | None = None,
        dh_end: Floats | None = None,
        ds_end: Floats | None = None,
        xi: Floats | None = None,
        consume: bool = False,
    ) -> Backward:
        """Backpropagate through one layer of a window."""

    def softmax_cross_entropy(
        self,
        h: Floats,
        V: Any,
        c: Floats | None,
        y: Ids,
        *,
        scale: float = 1.0,
        dV: Floats | None = None,
        dc: Floats | None = None,
        accumulate: bool = True,
    ) -> Loss:
        """Compute the cross-entropy of softmax(c + V h) and its gradients."""

    def log_softmax_rows(self, o: Floats, start: Floats) -> Floats:
        """Return start + log softmax(o) of each row."""


BACKENDS: dict[str, Backend] = {
    "native": native,
    "native_bf16": native_bf16,
    "reference": reference,
    "reference_bf16": reference_bf16,
}
UNROUNDED: dict[Any, Backend] = {native_bf16: native, reference_bf16: reference}
"""The backend without bf16 that goes with one in bf16."""
PRECISIONS: dict[Precision, Backend] = {"float32": native, "bf16": native_bf16}
"""The backend of a network, by the precision of its config."""


class OnBackend:
    """An object that computes on a backend. It is copied and pickled with the backend's name: a module cannot be pickled."""

    backend: Backend

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, with the name of the backend."""
        name = next(name for name, each in BACKENDS.items() if each is self.backend)
        return self.__dict__ | {"backend": name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes of a copied or unpickled object."""
        self.__dict__.update(state | {"backend": BACKENDS[state["backend"]]})
