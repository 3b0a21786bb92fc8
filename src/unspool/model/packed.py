"""Parameters as the kernels read them: matrices in panels, tables of b + U x; made once an update."""

from __future__ import annotations

from dataclasses import dataclass

from unspool.kernels import native
from unspool.kernels.arrays import Floats, cached_attribute
from unspool.model.config import ModelConfig
from unspool.model.parameters import Parameters, prefix
from unspool.model.unroll import LayerWeights


def recurrence(config: ModelConfig, p: Parameters) -> tuple[Floats, Floats]:
    """Return W (H, H) and b (H,) of the network of figure 10.3 that computes the states of one of figure 10.4.

    R o(t-1) = R (c + V h(t-1)), so that W = R V and b is b + R c. Where tokens are fed back, W is R itself (H, K).
    """
    at = prefix(0, False)
    if not config.feeds_logits:
        return p[at + "R"], p[at + "b"]
    R, V = p.stored(at + "R"), p["E" if config.tied else "V"]
    return native.matmul(R, V, transpose_a=True), native.matmul(p["c"][None], R, start=p[at + "b"])[0]


@dataclass
class Weights:
    """Parameters laid out for the kernels. Made once an update; stale when the parameters change."""

    config: ModelConfig
    parameters: Parameters

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
        W, b = recurrence(config, p) if config.pattern == "output" else (p[at + "W"], p[at + "b"])
        return LayerWeights(config.cell, config.activation, reverse, p.stored(at + "U"), W, b, d, E)

    @cached_attribute
    def V(self) -> tuple[native.Packed, native.Packed]:
        """The output's matrix, for o(t) and for the gradient of h(t)."""
        V = self.parameters["E" if self.config.tied else "V"]
        return native.pack(V, transposed=True), native.pack(V)
