"""Adam, with decoupled weight decay (AdamW).

m ← β₁ m + (1 - β₁) g,      v ← β₂ v + (1 - β₂) g²                                  (1)
p ← (1 - η λ) p - η m / (1 - β₁ᵗ) / (√(v / (1 - β₂ᵗ)) + ε)                          (2)
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
class Adam(Optimiser):
    """Adam; AdamW where decay is set.

    >>> Adam(learning_rate=0.01)
    Adam(learning_rate=0.01, decay=0.0, clip=1.0, beta1=0.9, beta2=0.999, epsilon=1e-08)
    """

    name: ClassVar[str] = "adam"
    state_arrays: ClassVar[tuple[str, ...]] = ("m", "v")

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def apply(
        self, p: Floats, g: Floats, arrays: Mapping[str, Floats], *, rate: float, decay: float, scale: float
    ) -> None:
        """Update p, m and v in place: (1), (2)."""
        native.adam(
            p, g, arrays["m"], arrays["v"], step=self.step, learning_rate=rate, beta1=self.beta1,
            beta2=self.beta2, epsilon=self.epsilon, decay=decay, scale=scale,
        )  # fmt: skip
