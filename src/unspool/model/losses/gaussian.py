"""Negative log-likelihood of a normal distribution with mean μ and standard deviation σ.

o = (μ, ρ),   σ = floor + squareplus(ρ)
L = Σ log σ + (y - μ)² / 2σ² + ½ log 2π
∇μ = (μ - y) / σ²,   ∇ρ = (1/σ - (y - μ)²/σ³) squareplus'(ρ)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unspool.kernels.arrays import Floats
from unspool.kernels.elementwise import squareplus
from unspool.model.losses.base import NumericLoss


@dataclass(frozen=True)
class GaussianLikelihood(NumericLoss):
    """The negative log-likelihood of the targets in nats."""

    name: ClassVar[str] = "gaussian"
    floor: float = 1e-3
    """The smallest standard deviation."""

    def per_target(self, o: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return the loss of every target and the gradient of o."""
        mean, std, slope = self.mean_and_std(o)
        scored = ~np.isnan(y)
        error = np.where(scored, mean - y, 0.0)
        each = np.log(std) + error * error / (2 * std * std) + 0.5 * math.log(2 * math.pi)
        d_mean = error / (std * std)
        d_rho = (1 - error * error / (std * std)) / std * slope
        do = np.where(
            np.concatenate([scored, scored], axis=-1), np.concatenate([d_mean, d_rho], axis=-1), 0.0
        )
        return np.where(scored, each, 0.0), do

    def mean_and_std(self, o: Floats) -> tuple[Floats, Floats, Floats]:
        """Return μ, σ and dσ/dρ, each (…, K / 2) in float64."""
        mean, rho = np.split(o, 2, axis=-1)
        raw, slope = squareplus(rho)
        return mean.astype(np.float64), raw + self.floor, slope
