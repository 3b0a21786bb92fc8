"""RMSprop with Adam's bias correction and decoupled weight decay: Adam without a mean of the gradient.

v ← β₂ v + (1 - β₂) g²                                                              (1)
p ← (1 - η λ) p - η g / (√(v / (1 - β₂ᵗ)) + ε)                                      (2)

A mean of the gradient smooths the noise of random batches, but delays an update. For a model that learns from a text while it
reads it, the last gradient says most about the next tokens.
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
class RMSprop(Optimiser):
    """Gradient descent with each gradient divided by the root of its mean square.

    >>> RMSprop(learning_rate=0.01)
    RMSprop(learning_rate=0.01, decay=0.0, clip=1.0, beta2=0.999, epsilon=1e-08)
    """

    name: ClassVar[str] = "rmsprop"
    state_arrays: ClassVar[tuple[str, ...]] = ("v",)

    beta2: float = 0.999
    epsilon: float = 1e-8

    def apply(
        self, p: Floats, g: Floats, arrays: Mapping[str, Floats], *, rate: float, decay: float, scale: float
    ) -> None:
        """Update p and v in place: (1), (2)."""
        native.rmsprop(
            p, g, arrays["v"], step=self.step, learning_rate=rate, beta2=self.beta2, epsilon=self.epsilon,
            decay=decay, scale=scale,
        )  # fmt: skip
