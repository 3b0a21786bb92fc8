"""Parameters as the kernels read them: matrices in panels, tables of b + U x; made once an update."""

from __future__ import annotations

import copyreg
from dataclasses import dataclass

from unspool.kernels.arrays import Floats, cached_attribute
from unspool.kernels.backend import Backend
from unspool.kernels.machine import refuse_copy
from unspool.model.config import ModelConfig
from unspool.model.output_layer import OutputLayer
from unspool.model.parameters import Parameters, prefix
from unspool.model.unroll import LayerWeights


def recurrence(config: ModelConfig, p: Parameters, backend: Backend) -> tuple[Floats, Floats]:
    """Return W (H, H) and b (H,) of the network of figure 10.3 that computes the states of one of figure 10.4.

    R o(t-1) = R (c + V h(t-1)), so that W = R V and b is b + R c. Where tokens are fed back, W is R itself (H, K).
    """
    at = prefix(0, False)
    if not config.feeds_logits:
        return p[at + "R"], p[at + "b"]
    R, V = p.stored(at + "R"), p["E" if config.tied else "V"]
    return backend.matmul(R, V, transpose_a=True), backend.matmul(p["c"][None], R, start=p[at + "b"])[0]


@dataclass
class Weights:
    """Parameters laid out for the kernels. Made once an update; stale when the parameters change."""

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
        at, config = prefix(layer, reverse), self.config
        E = p["E"] if layer == 0 and config.embedding and config.uses_input_table else None
        d = p[at + "d"] if at + "d" in p.shapes else None
        fed_back = config.pattern == "output"
        W, b = recurrence(config, p, self.backend) if fed_back else (p[at + "W"], p[at + "b"])
        return LayerWeights(
            config.cell, config.activation, reverse, p.stored(at + "U"), W, b, d, E, self.backend
        )

    @cached_attribute
    def output(self) -> OutputLayer:
        """The output layer, V packed for both passes."""
        V = self.parameters["E" if self.config.tied else "V"]
        return OutputLayer.of(V, self.parameters["c"], self.backend)


for packed in (Weights, LayerWeights):
    copyreg.pickle(packed, refuse_copy)
