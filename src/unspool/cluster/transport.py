"""What a transport between processes does: four calls, which carry bytes and never add numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]


class Transport(Protocol):
    """Moves bytes between the processes of a job; every process calls the same methods in the same order."""

    name: str
    """What the job was started with."""

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""

    @property
    def size(self) -> int:
        """The number of processes."""

    def exchange(self, parts: Sequence[Bytes], sizes: Sequence[int]) -> list[Bytes]:
        """Send parts[p] to process p; return what each process has sent here, sizes[p] bytes from process p."""

    def gather(self, part: Bytes) -> Bytes:
        """Return the parts of all processes, in their order; all have the same length. P n"""

    def close(self) -> None:
        """Leave the job in order: all processes do."""


class Alone:
    """One process, which sends nothing."""

    name, rank, size = "one process", 0, 1

    def exchange(self, parts: Sequence[Bytes], sizes: Sequence[int]) -> list[Bytes]:
        """Return the part for this process."""
        return [parts[0]]

    def gather(self, part: Bytes) -> Bytes:
        """Return the part of this process."""
        return part[None]

    def close(self) -> None:
        """Do nothing."""
