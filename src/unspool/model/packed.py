"""Parameters packed for the kernels: matrices in panels, tables of b + U x; made once per update."""

from __future__ import annotations

import copyreg
from dataclasses import dataclass

import numpy as np

from unspool.cells import cell_named
from unspool.kernels.arrays import Floats, cached_attribute
from unspool.kernels.backend import Backend
from unspool.kernels.machine import refuse_copy
from unspool.model.config import ModelConfig
from unspool.model.layer import LayerWeights
from unspool.model.linear import Linear, OutputLayer, require_linear
from unspool.model.outputs import output_of
from unspool.model.parameters import Parameters, prefix


def recurrence(config: ModelConfig, p: Parameters, backend: Backend) -> tuple[Floats, Floats]:
    """Return W (H, H) and b (H,) of the network of figure 10.3 that computes the states of one of figure 10.4.

    R o(t-1) = R (c + V h(t-1)), so W = R V, and b is b + R c. If tokens are fed back, W is R itself (H, K).
    """
    R, b = prefix(0, False) + "R", p[prefix(0, False) + "b"]
    if not config.feeds_logits:
        return p[R], b
    V = p[config.output_matrix]
    W = backend.matmul(p.stored(R), V, transpose_a=True)
    return W, backend.matmul(p["c"][None], p.stored(R), start=b)[0]


@dataclass
class Weights:
    """Parameters packed for the kernels. Made once per update; stale when the parameters change."""

    config: ModelConfig
    parameters: Parameters
    backend: Backend

    @cached_attribute
    def layers(self) -> list[list[LayerWeights]]:
        """By layer, then by direction."""
        config, p = self.config, self.parameters
        return [
            [self._layer(p, layer, bool(reverse)) for reverse in range(config.directions)]
            for layer in range(config.layers)
        ]

    def _layer(self, p: Parameters, layer: int, reverse: bool) -> LayerWeights:
        config, cell, name = self.config, cell_named(self.config.cell), prefix(layer, reverse)
        E = None
        if layer == 0 and config.uses_input_table:
            one_hot = None if cell.gates else np.eye(config.inputs, dtype=self.backend.DTYPE)
            E = p["E"] if config.embedding else one_hot
        U, b = (p.stored(name + "U"), p[name + "b"]) if cell.gates else (None, None)
        W = None
        if config.pattern == "output":
            W, b = recurrence(config, p, self.backend)
        elif cell.has_W:
            W = p[name + "W"]
        extra = tuple(p[name + each.name] for each in cell.extra)
        return LayerWeights(cell, config.activation, reverse, name, U, W, b, extra, E, self.backend)

    @cached_attribute
    def output(self) -> OutputLayer:
        """The output layer, packed for both passes."""
        return output_of(self.config).layer(self.config, self.parameters, self.backend)

    @property
    def linear_output(self) -> Linear:
        """The output layer o = c + V h; raise where it is an adaptive softmax."""
        return require_linear(self.output)


for packed in (Weights, LayerWeights):
    copyreg.pickle(packed, refuse_copy)
