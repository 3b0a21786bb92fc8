"""Whether a model fits in memory: known from its sizes, before anything of it is made."""

import math
import os
from pathlib import Path

import numpy as np

from unspool.config import ModelConfig
from unspool.errors import InputError
from unspool.parameters import shapes_of
from unspool.values import bytes_of_tape

COPIES = 8
"""Parameters, gradient, Adam's two memories, their layouts for the kernels, a copy on its way to the disk."""


def bytes_of_training(config: ModelConfig, B: int, tau: int, memory: str = "full") -> int:
    """Say about how much memory training takes; with memory="sqrt" about 2 √tau steps of a window are held.

    >>> bytes_of_training(ModelConfig(cell="gru", inputs=65, outputs=65, hidden=256), B=16, tau=64) // 2**20
    19
    """
    parameters = sum(int(np.prod(shape, dtype=object)) for shape in shapes_of(config).values())
    tau = min(tau, 2 * (math.isqrt(tau) + 1)) if memory == "sqrt" else tau
    layer = bytes_of_tape(config.cell, tau, B, config.hidden, keep=config.masks_state)
    beside = 4 * tau * B * config.width * 6  # da, dh, outputs under dropout
    return 4 * COPIES * parameters + config.layers * (config.directions * layer + beside)


def refuse_too_large(config: ModelConfig, B: int, tau: int, memory: str = "full") -> None:
    """Raise where training would need more memory than there is."""
    needed, there = bytes_of_training(config, B, tau, memory), available()
    if needed > there:
        raise InputError(
            f"a {config.cell} with hidden {config.hidden:,}, layers {config.layers}, {config.inputs:,} tokens, batch {B} and window "
            f"{tau} needs about {_told(needed)} of memory, and {_told(there)} are free: choose smaller sizes"
        )


def available() -> int:
    """Give the bytes of memory that are free for use, as the system says it."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _told(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"
