"""The interface of a kind of output layer: its parameters, their first values, and the layer that computes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from unspool.kernels.arrays import Floats, Real
from unspool.kernels.backend import Backend
from unspool.model.config import ModelConfig
from unspool.model.linear import OutputLayer

Shapes = dict[str, tuple[int, ...]]


class OutputKind(ABC):
    """One way from h to the probabilities of K tokens or classes."""

    @abstractmethod
    def names(self, config: ModelConfig) -> list[str]:
        """Return the parameters whose gradients the loss adds to: the matrix, c, then those of the clusters."""

    @abstractmethod
    def shapes(self, config: ModelConfig) -> Shapes:
        """Return the shapes of the parameters that belong to the output alone."""

    @abstractmethod
    def initialise(self, config: ModelConfig, p: Mapping[str, Floats], rng: np.random.Generator) -> None:
        """Draw the first values of the matrices; the biases stay zero."""

    @abstractmethod
    def set_bias(self, config: ModelConfig, p: Mapping[str, Floats], log_p: Real) -> None:
        """Set the biases so that the probabilities are exp(log_p) (K,) where h is zero."""

    @abstractmethod
    def layer(self, config: ModelConfig, p: Mapping[str, Floats], backend: Backend) -> OutputLayer:
        """Return the layer, its matrices packed for the kernels."""
