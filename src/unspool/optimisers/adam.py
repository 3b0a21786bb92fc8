"""Adam, with decoupled weight decay (AdamW).

m ← β₁ m + (1 - β₁) g,      v ← β₂ v + (1 - β₂) g²                                  (1)
p ← (1 - η λ) p - η m / (1 - β₁ᵗ) / (√(v / (1 - β₂ᵗ)) + ε)                          (2)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from unspool.errors import InputError
from unspool.kernels import native
from unspool.kernels.arrays import Floats
from unspool.optimisers.base import Optimiser
from unspool.options import check_fraction, check_positive


@dataclass(eq=False)
class Adam(Optimiser):
    """Adam; AdamW where decay is set.

    >>> Adam(learning_rate=0.01)
    Adam(learning_rate=0.01, decay=0.0, clip=1.0, beta1=0.9, beta2=0.999, epsilon=1e-08)
    """

    name: ClassVar[str] = "adam"
    state_arrays: ClassVar[tuple[str, ...]] = ("m", "v")

    beta1: float = 0.9
    """The decay of the gradient's mean."""
    beta2: float = 0.999
    """The decay of the squared gradient's mean."""
    epsilon: float = 1e-8
    """Added to the denominator, so that it is never zero."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon == 0:
            raise InputError("epsilon is 0; expected a number above 0: it keeps Adam from dividing by zero")
        check_positive("epsilon", self.epsilon)
        check_fraction("beta1", self.beta1)
        check_fraction("beta2", self.beta2)

    def apply(
        self, p: Floats, g: Floats, arrays: Mapping[str, Floats], *, rate: float, decay: float, scale: float
    ) -> None:
        """Update p, m and v in place: (1), (2)."""
        native.adam(
            p, g, arrays["m"], arrays["v"], step=self.step, learning_rate=rate, beta1=self.beta1,
            beta2=self.beta2, epsilon=self.epsilon, decay=decay, scale=scale,
        )  # fmt: skip
