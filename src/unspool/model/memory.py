"""Estimate how much memory it takes to train a model: from its sizes, before anything of it is made."""

import math

import numpy as np

from unspool.cells import cell_named
from unspool.kernels.memory import require_memory
from unspool.kernels.tape import bytes_of_tape
from unspool.model.config import ModelConfig
from unspool.model.parameters import shapes_of

COPIES = 8
"""Parameters, gradient, Adam's two memories, their layouts for the kernels, a copy on its way to the disk."""


def bytes_of_training(config: ModelConfig, B: int, tau: int, recompute: str = "none") -> int:
    """Say about how much memory training takes; with recompute="sqrt" about 2 √tau steps of a window are held.

    >>> bytes_of_training(ModelConfig(cell="gru", inputs=65, outputs=65, hidden=256), B=16, tau=64) // 2**20
    19
    """
    parameters = count_parameters(config)
    tau = min(tau, 2 * (math.isqrt(tau) + 1)) if recompute == "sqrt" else tau
    cell = cell_named(config.cell)
    layer = bytes_of_tape(cell, tau, B, config.hidden, X=config.width, masked=config.masks_state)
    beside = 4 * tau * B * config.width * 6  # da, dh, outputs under dropout
    return 4 * COPIES * parameters + config.layers * (config.directions * layer + beside)


def count_parameters(config: ModelConfig) -> int:
    """Return how many parameters a model has, without making them."""
    return sum(int(np.prod(shape, dtype=object)) for shape in shapes_of(config).values())


def refuse_too_large(config: ModelConfig, B: int, tau: int, recompute: str = "none") -> None:
    """Raise where training would need more memory than is free."""
    require_memory(
        bytes_of_training(config, B, tau, recompute),
        f"a network with cell {config.cell}, hidden {config.hidden:,}, layers {config.layers:,}, {config.inputs:,} tokens, "
        f"batch {B:,} and window {tau:,}",
        "choose smaller sizes",
    )
