"""Stochastic gradient descent with momentum.

m ← μ m + g + λ p,      p ← p - η m                                                 (1)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from unspool.kernels import native
from unspool.kernels.arrays import Floats
from unspool.optimisers import settings
from unspool.optimisers.base import Optimiser
from unspool.options import declared


@declared(settings)
@dataclass(eq=False)
class SGD(Optimiser):
    """Gradient descent with momentum, 0.9 unless it is set.

    >>> from unspool.model.parameters import Parameters
    >>> p = Parameters({"W": (1, 2)})
    >>> g = p.like()
    >>> p["W"][:], g["W"][:] = [1, 2], [2, 0]
    >>> SGD(learning_rate=0.5, momentum=0, clip=0).update(p, g.flat)
    2.0
    >>> p["W"].tolist()
    [[0.0, 2.0]]
    """

    name: ClassVar[str] = "sgd"
    state_arrays: ClassVar[tuple[str, ...]] = ("m",)

    momentum: float = 0.9

    def apply(
        self, p: Floats, g: Floats, arrays: Mapping[str, Floats], *, rate: float, decay: float, scale: float
    ) -> None:
        """Update p and m in place: (1)."""
        m = arrays["m"] if self.momentum else None
        native.sgd(p, g, m, learning_rate=rate, momentum=self.momentum, decay=decay, scale=scale)
