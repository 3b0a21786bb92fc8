"""A linear layer, forwards and backwards: the output layer, and the products of attention.

o = c + V h                                      (10.10)
∇V = Σ ∇o hᵀ,   ∇c = Σ ∇o,   ∇h = Vᵀ ∇o         (10.22, 10.24)
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from unspool.errors import InputError
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.backend import Backend, Packed
from unspool.kernels.tape import Loss


class TailGradient(NamedTuple):
    """The gradients of P, V and c of one cluster of an adaptive softmax."""

    dP: Floats
    dV: Floats
    dc: Floats


class OutputGradient(NamedTuple):
    """Where a loss puts the gradients of the output's parameters, each of `scale` times its sum."""

    dV: Floats
    dc: Floats
    scale: float = 1.0
    accumulate: bool = True
    """Add to what is there; else replace it."""
    tails: tuple[TailGradient, ...] = ()
    """Of each cluster of an adaptive softmax."""


class OutputLayer(Protocol):
    """A layer from h to unnormalised log-probabilities."""

    @property
    def backend(self) -> Backend:
        """The kernels that compute it."""

    def __call__(self, h: Floats) -> Floats:
        """Return o (…, K) of h (…, width): softmax(o) are the probabilities."""

    def cross_entropy(self, h: Floats, y: Ids, into: OutputGradient | None = None) -> Loss:
        """Return -log softmax(o)[y]; with `into`, write the gradients of the parameters there and return that of h."""


class Linear(NamedTuple):
    """V, packed for both passes, and c, if there is one."""

    V: tuple[Packed, Packed]
    c: Floats | None
    backend: Backend

    @classmethod
    def of(cls, V: Floats, c: Floats | None, backend: Backend) -> Linear:
        """Pack V (K, width)."""
        return cls((backend.pack(V, transposed=True), backend.pack(V)), c, backend)

    def __call__(self, h: Floats) -> Floats:
        """Return o (…, K) of h (…, width)."""
        o = self.backend.matmul(h.reshape(-1, h.shape[-1]), self.V[0], start=self.c)
        return o.reshape(*h.shape[:-1], o.shape[1])

    def cross_entropy(self, h: Floats, y: Ids, into: OutputGradient | None = None) -> Loss:
        """Return the loss of targets y (…), negative ones masked. One kernel computes it without storing o."""
        if into is None:
            return self.backend.softmax_cross_entropy(h, self.V, self.c, y)
        return self.backend.softmax_cross_entropy(
            h, self.V, self.c, y, scale=into.scale, dV=into.dV, dc=into.dc, accumulate=into.accumulate
        )

    def backward(self, h: Floats, do: Floats, dV: Floats, dc: Floats | None = None) -> Floats:
        """Add the gradients of V and c to dV and dc; return the gradient of h."""
        rows = do.reshape(-1, do.shape[-1])
        self.backend.matmul(rows, h.reshape(len(rows), -1), transpose_a=True, out=dV)
        if dc is not None:
            self.backend.column_sum(rows, out=dc)
        return self.backend.matmul(rows, self.V[1]).reshape(h.shape)


def require_linear(layer: OutputLayer) -> Linear:
    """Return the layer as o = c + V h; raise where it is an adaptive softmax."""
    if not isinstance(layer, Linear):
        raise InputError(
            "this needs an output layer o = c + V h, and the model has an adaptive softmax; train with softmax full"
        )
    return layer
