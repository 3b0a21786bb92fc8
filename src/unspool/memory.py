"""Estimate how much memory a model takes, and refuse what does not fit before anything of it is allocated."""

import math
import os
import resource
from pathlib import Path

import numpy as np

from unspool import cgroup
from unspool.config import ModelConfig
from unspool.errors import InputError
from unspool.parameters import shapes_of
from unspool.values import bytes_of_tape

COPIES = 8
"""Parameters, gradient, Adam's two memories, their layouts for the kernels, a copy on its way to the disk."""

UNCHECKED = 2**25
"""So many bytes are requested without a look at the limits, which takes a millisecond: training looks at every update."""


def bytes_of_training(config: ModelConfig, B: int, tau: int, memory: str = "full") -> int:
    """Say about how much memory training takes; with memory="sqrt" about 2 √tau steps of a window are held.

    >>> bytes_of_training(ModelConfig(cell="gru", inputs=65, outputs=65, hidden=256), B=16, tau=64) // 2**20
    19
    """
    parameters = sum(int(np.prod(shape, dtype=object)) for shape in shapes_of(config).values())
    tau = min(tau, 2 * (math.isqrt(tau) + 1)) if memory == "sqrt" else tau
    layer = bytes_of_tape(config.cell, tau, B, config.hidden, keep=config.recurrent_dropout > 0)
    beside = 4 * tau * B * config.width * 6  # da, dh, outputs under dropout
    return 4 * COPIES * parameters + config.layers * (config.directions * layer + beside)


def refuse_too_large(config: ModelConfig, B: int, tau: int, memory: str = "full") -> None:
    """Raise where training would need more memory than is free."""
    require_memory(
        bytes_of_training(config, B, tau, memory),
        f"a {config.cell} with hidden {config.hidden:,}, layers {config.layers:,}, {config.inputs:,} tokens, batch {B:,} and window "
        f"{tau:,}",
        "choose smaller sizes",
    )


def require_memory(needed: int, what: str, advice: str) -> None:
    """Raise an `InputError` that names `what` and gives `advice` where it needs more bytes than are free.

    >>> require_memory(1000, "a batch of 1 row", "choose a smaller batch")
    >>> require_memory(2**70, "a batch of 1 row", "choose a smaller batch")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    unspool.errors.InputError: a batch of 1 row needs about 1,099,511,627,776.0 GiB of memory, and ... GiB are free: choose a smaller batch
    """
    if needed > UNCHECKED and needed > (free := available()):
        raise InputError(
            f"{what} needs about {_gibibytes(needed)} of memory, and {_gibibytes(free)} are free: {advice}"
        )


def available() -> int:
    """Return the bytes that this process can still allocate: the least that the machine, its control groups and its limits leave."""
    found = [_of_machine(), cgroup.free_memory(), *_of_process()]
    return max(0, min(bytes_ for bytes_ in found if bytes_ is not None))


def _of_machine() -> int:
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _of_process() -> list[int]:
    """Return what `ulimit -v` and `ulimit -d` leave."""
    used = [int(pages) * os.sysconf("SC_PAGE_SIZE") for pages in " ".join(_lines(Path("/proc/self/statm"))).split()]
    total, data = (used[0], used[5]) if len(used) > 5 else (0, 0)
    limits = (resource.RLIMIT_AS, total), (resource.RLIMIT_DATA, data)
    softs = [(resource.getrlimit(limit)[0], now) for limit, now in limits]
    return [soft - now for soft, now in softs if soft != resource.RLIM_INFINITY]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _gibibytes(size: int) -> str:
    if size < 2**80:
        return f"{size / 2**30:,.1f} GiB"
    return f"10^{len(str(size >> 30)) - 1} GiB"
