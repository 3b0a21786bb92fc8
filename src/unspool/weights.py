"""Parameters as the kernels read them: matrices in panels, tables of b + U x; made once an update."""

from __future__ import annotations

from dataclasses import dataclass

from unspool.config import ModelConfig
from unspool.kernel import ops
from unspool.parameters import Parameters, prefix
from unspool.unroll import LayerWeights
from unspool.values import once


@dataclass
class Weights:
    """Parameters laid out for the kernels. Made once an update; stale when the parameters change."""

    config: ModelConfig
    parameters: Parameters

    @once
    def layers(self) -> list[list[LayerWeights]]:
        """By layer, then by direction."""
        config, p = self.config, self.parameters
        return [
            [self._layer(p, layer, bool(reverse)) for reverse in range(config.directions)]
            for layer in range(config.layers)
        ]

    def _layer(self, p: Parameters, layer: int, reverse: bool) -> LayerWeights:
        at, config = prefix(layer, reverse), self.config
        E = p["E"] if layer == 0 and config.embedding and config.looks_up else None
        d = p[at + "d"] if at + "d" in p.shapes else None
        W = p[at + ("R" if config.pattern == "output" else "W")]
        return LayerWeights(config.cell, config.activation, reverse, p.stored(at + "U"), W, p[at + "b"], d, E)

    @once
    def V(self) -> tuple[ops.Packed, ops.Packed]:
        """The output's matrix, for o(t) and for the gradient of h(t)."""
        V = self.parameters["E" if self.config.tied else "V"]
        return ops.pack(V, transposed=True), ops.pack(V)
