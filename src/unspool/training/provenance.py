"""Record what a run was made with: versions, machine, data and time. No parameter depends on any of it.

>>> made_with = provenance("9f86d0…")
>>> sorted(made_with)
['bf16', 'cpu', 'data_sha256', 'isa', 'numpy', 'platform', 'python', 'started', 'threads', 'unspool']
"""

import hashlib
import platform
import time
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from unspool.kernels.machine import kernel_info


def provenance(data_sha256: str | None) -> dict[str, Any]:
    """Return plain values for a run's config; `data_sha256` is the hash of what the run learns from, where known."""
    kernel = kernel_info()
    return {
        "unspool": _version(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "cpu": _cpu(),
        "isa": kernel["isa"],
        "bf16": kernel["bf16"],
        "threads": kernel["threads"],
        "data_sha256": data_sha256,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def sha256_of(blocks: Iterable[bytes]) -> str:
    """Return the SHA-256 of blocks of bytes, one after the other: of one file, what `sha256sum` prints.

    >>> sha256_of([b"te", b"st"])[:16]
    '9f86d081884c7d65'
    """
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def _version() -> str:
    try:
        return version("unspool")
    except PackageNotFoundError:
        return "unknown"


def _cpu() -> str:
    """Return the model of the processor; where the system does not say, its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
