"""The transport of jobs that mpiexec starts: MPI, by mpi4py."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from unspool.cluster.transport import Bytes
from unspool.errors import MissingExtra, ProcessLost

SPIN, PAUSE = 0.005, 1e-4
"""Seconds for which the processor is only yielded while waiting, and the pauses after them."""


class Mpi:
    """The processes of a job of mpiexec."""

    name = "mpiexec"

    def __init__(self, timeout: float) -> None:
        try:
            import mpi4py

            mpi4py.rc.finalize = False  # a lost process would let it wait for ever
            from mpi4py import MPI
        except (ImportError, RuntimeError):
            raise MissingExtra(
                "mpiexec needs mpi4py and an MPI library: pip install 'unspool[mpi]'"
            ) from None
        self._mpi, self._comm, self._timeout = MPI, MPI.COMM_WORLD, timeout
        self.rank, self.size = self._comm.Get_rank(), self._comm.Get_size()

    def exchange(self, parts: Sequence[Bytes], sizes: Sequence[int]) -> list[Bytes]:
        """Send parts[p] to process p; return what each process has sent here."""
        received, sent = np.empty(sum(sizes), np.uint8), np.concatenate(parts)
        lengths, byte = [len(part) for part in parts], self._mpi.BYTE
        self._wait(
            lambda: self._comm.Ialltoallv(
                [sent, lengths, _starts(lengths), byte], [received, list(sizes), _starts(sizes), byte]
            )
        )
        return np.split(received, np.cumsum(sizes)[:-1])

    def gather(self, part: Bytes) -> Bytes:
        """Return the parts of all processes."""
        received = np.empty((self.size, len(part)), np.uint8)
        self._wait(lambda: self._comm.Iallgather([part, self._mpi.BYTE], [received, self._mpi.BYTE]))
        return received

    def close(self) -> None:
        """Leave the job."""
        self._mpi.Finalize()

    def _wait(self, begin: Any) -> None:
        """Wait for a call that does not block, so that a frozen process is noticed."""
        started = time.monotonic()
        try:
            request = begin()
            while not request.Test():
                waited = time.monotonic() - started
                if waited > self._timeout:
                    raise ProcessLost(f"no answer in {self._timeout:g} s")
                if waited < SPIN:
                    os.sched_yield()
                else:
                    time.sleep(PAUSE)
        except self._mpi.Exception as error:
            raise ProcessLost(" ".join(str(error).split())[:200]) from None


def _starts(sizes: Sequence[int]) -> list[int]:
    return [0, *np.cumsum(sizes)[:-1].tolist()]
