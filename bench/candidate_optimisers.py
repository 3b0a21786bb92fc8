"""Optimisers that are candidates of `bench/bakeoff.py` and not part of the package; each costs about as much as Adam.

    m ← β₁ m + (1 - β₁) g,   v ← β₂ v + (1 - β₂) g²,   m̂ = m / (1 - β₁ᵗ),   v̂ = v / (1 - β₂ᵗ)       (1)
    adam       p ← p - η m̂ / (√v̂ + ε)                                                                 (2)
    nadam      m̂ is replaced by β₁ m / (1 - β₁ᵗ⁺¹) + (1 - β₁) g / (1 - β₁ᵗ)   (Dozat 2016)             (3)
    cautious   the parts of (2) whose sign is not that of g are left out, the others divided by their share (Liang et al. 2024)

Written in NumPy: compare them by `--steps`, not by time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unspool.kernels.arrays import Floats
from unspool.optimisers import OPTIMISERS, settings
from unspool.optimisers.adam import Adam
from unspool.options import declared


@declared(settings)
@dataclass(eq=False)
class NumpyAdam(Adam):
    """Adam in NumPy, with a hook for the direction of an update."""

    name: ClassVar[str] = "numpy-adam"

    def direction(self, m: Floats, v: Floats, g: Floats) -> Floats:
        """Return what is subtracted from p, per learning rate: (2)."""
        m_hat = m / (1 - self.beta1**self.step)
        return m_hat / self.root(v)

    def root(self, v: Floats) -> Floats:
        """Return the denominator of (2)."""
        return np.sqrt(v / (1 - self.beta2**self.step)) + self.epsilon

    def apply(
        self, p: Floats, g: Floats, arrays: Mapping[str, Floats], *, rate: float, decay: float, scale: float
    ) -> None:
        """Update p, m and v in place: (1), then the direction."""
        m, v, g = arrays["m"], arrays["v"], g * np.float32(scale)
        m += np.float32(1 - self.beta1) * (g - m)
        v += np.float32(1 - self.beta2) * (g * g - v)
        p *= np.float32(1 - rate * decay)
        p -= np.float32(rate) * self.direction(m, v, g).astype(np.float32)


class NAdam(NumpyAdam):
    """Adam with Nesterov's momentum."""

    name: ClassVar[str] = "nadam"

    def direction(self, m: Floats, v: Floats, g: Floats) -> Floats:
        """Return (3)."""
        b1, t = self.beta1, self.step
        return (b1 * m / (1 - b1 ** (t + 1)) + (1 - b1) * g / (1 - b1**t)) / self.root(v)


class CautiousAdam(NumpyAdam):
    """Adam without the parts that go against the gradient."""

    name: ClassVar[str] = "cautious-adam"

    def direction(self, m: Floats, v: Floats, g: Floats) -> Floats:
        """Return (2) where its sign is that of g, divided by the share of these places."""
        agree = (m * g > 0).astype(np.float32)
        return super().direction(m, v, g) * agree / max(float(agree.mean()), 1e-3)


@declared(settings)
@dataclass(eq=False)
class Adam99(Adam):
    """Adam with β₂ = 0.99."""

    name: ClassVar[str] = "adam-0.99"
    beta2: float = 0.99


def register() -> None:
    """Make the candidates known to this process, under their names."""
    OPTIMISERS.update({each.name: each for each in (NAdam, CautiousAdam, Adam99)})
