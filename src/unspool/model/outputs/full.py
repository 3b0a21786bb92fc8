"""A softmax over all K tokens: o = c + V h, with V = E where tied."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unspool.kernels.arrays import Floats, Real
from unspool.kernels.backend import Backend
from unspool.model.config import ModelConfig
from unspool.model.linear import Linear
from unspool.model.outputs.base import OutputKind, Shapes


class FullSoftmax(OutputKind):
    """V (K, width) and c (K,)."""

    def names(self, config: ModelConfig) -> list[str]:
        """Return V, or E where tied, and c."""
        return [config.output_matrix, "c"]

    def shapes(self, config: ModelConfig) -> Shapes:
        """Return the shapes of V, unless it is E, and c."""
        own: Shapes = {} if config.tied else {"V": (config.outputs, config.width)}
        return own | {"c": (config.outputs,)}

    def initialise(self, config: ModelConfig, p: Mapping[str, Floats], rng: np.random.Generator) -> None:
        """Draw V from a normal distribution of variance 1/width."""
        if not config.tied:
            p["V"][:] = rng.standard_normal(p["V"].shape) * config.width**-0.5

    def set_bias(self, config: ModelConfig, p: Mapping[str, Floats], log_p: Real) -> None:
        """Set c to log_p."""
        p["c"][:] = log_p

    def layer(self, config: ModelConfig, p: Mapping[str, Floats], backend: Backend) -> Linear:
        """Pack V for both passes."""
        return Linear.of(p[config.output_matrix], p["c"], backend)
