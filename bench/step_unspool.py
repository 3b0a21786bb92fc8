"""One training step of unspool for `bench/train_step.py`, part by part.

A case names the inputs (tokens, dense or lengths), the part (step or recurrent) and the sizes. `Step.parts` yields the name of
each part of the step after computing it; the profile measures the time between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from unspool import Adam, Model, ModelConfig
from unspool.model.config import INPUT_TABLE_LIMIT
from unspool.model.layer import add_layer_gradient
from unspool.model.packed import Weights

PARTS = ("packing", "forward", "output", "backward", "gradients", "update")
"""The parts of a step, in their order; the recurrent part has no output and no update."""


def window(case: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays of a case: x, targets y, dh (the gradient of h, zero after a row's end) and lengths."""
    rng = np.random.default_rng(0)
    tau, B, K = case["tau"], case["B"], case["K"]
    lengths = None
    if case["inputs"] == "tokens":
        x = rng.integers(0, K, (tau, B)).astype(np.int32)
    else:
        x = rng.standard_normal((tau, B, case["X"])).astype(np.float32)
    if case["inputs"] == "lengths":
        lengths = rng.integers(1, tau + 1, B).astype(np.int32)
        lengths[0] = tau
    dh = rng.standard_normal((tau, B, case["H"])).astype(np.float32) / (tau * B)
    if lengths is not None:
        dh[np.arange(tau)[:, None] >= lengths] = 0
    y = rng.integers(0, max(K, 1), (tau, B)).astype(np.int32)
    return {"x": x, "y": y, "dh": dh, "lengths": lengths}


def has_embedding(case: dict[str, Any]) -> bool:
    """Return whether unspool reads tokens through E: asked for, or the vocabulary is too large for a table of U."""
    return case["inputs"] == "tokens" and (case.get("embedding", False) or case["K"] > INPUT_TABLE_LIMIT)


def config(case: dict[str, Any], precision: str) -> ModelConfig:
    """Return the model of a case."""
    dense = case["inputs"] != "tokens"
    more = {} if precision == "float32" else {"precision": precision}
    return ModelConfig(
        inputs=case["X"] if dense else case["K"],
        outputs=max(case["K"], 1),
        cell=case["cell"],
        hidden=case["H"],
        dense=dense,
        embedding=case["H"] if has_embedding(case) else 0,
        **more,
    )


class Step:
    """A model, a window and what one step does with them."""

    def __init__(self, case: dict[str, Any], precision: str) -> None:
        self.model = Model.initialise(config(case, precision), seed=0)
        self.gradient = self.model.gradient()
        self.whole, self.updates = case["part"] == "step", case.get("update", True)
        self.optimiser = Adam(learning_rate=1e-5, clip=0)
        self.lengths = None
        self.__dict__ |= window(case)
        self.overwrites_dh = case["cell"] == "elman"

    def __call__(self) -> None:
        """Run one step."""
        for _ in self.parts():
            pass

    def parts(self) -> Iterator[str]:
        """Run one step; yield the name of each part after it."""
        model, gradient, weights = self.model, self.gradient, self.model.weights()
        pack(weights, output=self.whole)
        yield "packing"
        gradient.clear()
        output = model.forward(self.x, lengths=self.lengths, weights=weights)
        yield "forward"
        if self.whole:
            scale = 1 / self.y.size
            dh = model.loss(output, self.y, scale=scale, weights=weights, gradient=gradient).dh
            yield "output"
        else:
            dh = self.dh.copy() if self.overwrites_dh else self.dh
        tape = output.tape[0]
        for _, _, backs, dx in model.layer_gradients(output, dh, weights=weights, consume=True):
            yield "backward"
            add_layer_gradient(weights.layers[0][0], tape.x, tape.directions[0], backs[0].da, gradient)
            model._add_embedded(output, dx, gradient)
        model.fold_input_tables(gradient, weights)
        yield "gradients"
        if self.whole and self.updates:
            self.optimiser.update(model.parameters, gradient.flat)
            yield "update"


def pack(weights: Weights, *, output: bool) -> None:
    """Pack all weights that a step reads, for both passes."""
    layer = weights.layers[0][0]
    for each in (layer.W_forward, layer.W_backward, layer.extra_forward, layer.extra_backward):
        assert each is not None
    if weights.config.uses_input_table:
        assert layer.table is not None
    else:
        assert layer.U_forward is not None
        if weights.config.gathers:
            assert layer.U_backward is not None
    if output:
        assert weights.output is not None
