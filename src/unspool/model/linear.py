"""A linear layer, forwards and backwards: the output layer, and the products of attention.

o = c + V h                                      (10.10)
∇V = Σ ∇o hᵀ,   ∇c = Σ ∇o,   ∇h = Vᵀ ∇o         (10.22, 10.24)
"""

from __future__ import annotations

from typing import NamedTuple

from unspool.kernels.arrays import Floats
from unspool.kernels.backend import Backend, Packed


class OutputGradient(NamedTuple):
    """Where a loss puts the gradients of V and c of `scale` times its sum."""

    dV: Floats
    dc: Floats
    scale: float = 1.0
    accumulate: bool = True
    """Add to what is there; else replace it."""


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

    def backward(self, h: Floats, do: Floats, dV: Floats, dc: Floats | None = None) -> Floats:
        """Add the gradients of V and c to dV and dc; return the gradient of h."""
        rows = do.reshape(-1, do.shape[-1])
        self.backend.matmul(rows, h.reshape(len(rows), -1), transpose_a=True, out=dV)
        if dc is not None:
            self.backend.column_sum(rows, out=dc)
        return self.backend.matmul(rows, self.V[1]).reshape(h.shape)
