"""What no command reaches, through the public names of the package: scheduled sampling, rows of different lengths, dense
input, many tokens with an embedding, both directions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from unspool import Model, ModelConfig, Optimiser, OptimiserConfig, train

TAU, B, UPDATES = 7, 5, 20


@dataclass(frozen=True)
class Window:
    """One minibatch."""

    x: np.ndarray
    y: np.ndarray
    lengths: np.ndarray | None = None
    reset: bool = True


def _numbers(count: int, start: int) -> np.ndarray:
    return (np.arange(count, dtype=np.int64) + start) * 7919 % 10007


def _window(config: ModelConfig, update: int, ragged: bool) -> Window:
    if config.dense:
        values = _numbers(TAU * B * config.inputs, update).reshape(TAU, B, config.inputs)
        x = (values / 5003.5 - 1).astype(np.float32)
    else:
        x = (_numbers(TAU * B, update).reshape(TAU, B) % config.inputs).astype(np.int32)
    y = (_numbers(TAU * B, update + 1).reshape(TAU, B) % config.outputs).astype(np.int32)
    if not ragged:
        return Window(x, y)
    lengths = np.array([TAU, 1, 4, TAU, 3], np.int32)
    return Window(x, np.where(np.arange(TAU)[:, None] < lengths, y, -1).astype(np.int32), lengths)


def _trained(ragged: bool, share: float | None, fields: dict[str, Any]) -> dict[str, np.ndarray]:
    config = ModelConfig(**{"hidden": 9, "inputs": 11, "outputs": 11} | fields)
    model = Model.initialise(config, seed=3)
    windows = [_window(config, update, ragged) for update in range(UPDATES)]
    own = None if share is None else lambda step: share
    optimiser = Optimiser(OptimiserConfig(learning_rate=0.01))
    assert sum(1 for _ in train(model, windows, optimiser, seed=3, scheduled_sampling=own)) == UPDATES
    return dict(model.parameters)


FED_BACK = {"cell": "elman", "pattern": "output", "feedback": "token", "dropout": 0.1}
FROM_PYTHON = {
    "scheduled sampling, half of the steps": partial(_trained, False, 0.5, FED_BACK),
    "scheduled sampling, running freely": partial(_trained, False, 1.0, FED_BACK),
} | {
    f"from Python, {cell}, {name}": partial(_trained, ragged, None, {"cell": cell} | fields)
    for cell in ("elman", "gru", "lstm")
    for name, ragged, fields in (
        ("rows of different lengths", True, {"dropout": 0.2}),
        ("both directions, two layers", True, {"bidirectional": True, "layers": 2, "dropout": 0.2}),
        ("dense input", False, {"dense": True, "inputs": 4}),
        ("many tokens", False, {"inputs": 1500, "outputs": 19, "embedding": 5}),
    )
}
"""By case, what trains a model and gives its parameters."""
