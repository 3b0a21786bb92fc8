"""Which precision trains faster here: bf16 needs an instruction of the CPU for it to be faster than float32."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from unspool.gradients.bptt import backpropagate
from unspool.gradients.check import window
from unspool.kernels.arrays import Precision
from unspool.kernels.machine import BF16_INSTRUCTIONS, kernel_info
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.training.timing import measure_update_rate

SECONDS = 0.3
"""The time of one measurement; there are two of each precision, in turn."""


def faster_precision(config: ModelConfig, B: int, tau: int) -> Precision:
    """Return bf16 if this machine has an instruction for it and windows of this network take less time in it; else float32."""
    if kernel_info()["bf16"] not in BF16_INSTRUCTIONS:
        return "float32"
    rates: dict[Precision, float] = {"float32": 0.0, "bf16": 0.0}
    for _ in range(2):
        for precision in rates:
            found = measure_update_rate(_windows(replace(config, precision=precision), B, tau), SECONDS)
            rates[precision] = max(rates[precision], found)
    if (
        kernel_info()["bf16"] not in BF16_INSTRUCTIONS
    ):  # the first kernel in bf16 has found that the instruction does not work
        return "float32"
    return max(rates, key=lambda precision: rates[precision])


def _windows(config: ModelConfig, B: int, tau: int) -> Iterator[None]:
    """Run a random window forward and backward, again and again."""
    model = Model.initialise(config, seed=0)
    x, y = window(config, tau, B, np.random.default_rng(0))
    gradient = model.gradient()
    while True:
        gradient.clear()
        weights = model.weights()
        backpropagate(model, x, y, None, gradient, weights=weights)
        model.fold_input_tables(gradient, weights)
        yield
