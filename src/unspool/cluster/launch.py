"""How this process was started: alone, or with others by torchrun or mpiexec. This module imports nothing slow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

VARIABLES = {
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
    "mpiexec": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),
    "mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
}
"""The variables with the rank, the number of processes and that on this machine: of torch, MPICH and Open MPI."""


class Launch(NamedTuple):
    """How this process was started."""

    by: str
    rank: int
    size: int
    local: int
    """The number of processes on this machine."""


def launch_of(environment: Mapping[str, str]) -> Launch | None:
    """Return how a process was started; None where it is alone.

    >>> launch_of({"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "localhost"})
    Launch(by='torchrun', rank=1, size=4, local=1)
    >>> launch_of({"PMI_RANK": "0", "PMI_SIZE": "1"}), launch_of({"RANK": "1", "WORLD_SIZE": "4"})
    (None, None)
    """
    for by, names in VARIABLES.items():
        rank, size, local = (environment.get(name, "") for name in names)
        if not (rank.isdecimal() and size.isdecimal()) or int(size) < 2:
            continue
        if by != "torchrun" or "MASTER_ADDR" in environment:
            return Launch(by, int(rank), int(size), int(local) if local.isdecimal() else 1)
    return None


def restarted() -> bool:
    """Return whether torchrun has started the processes again after one had failed."""
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
