"""The transport of jobs that torchrun starts: the backend gloo of torch.distributed, over TCP."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from unspool.cluster.transport import Bytes
from unspool.errors import InputError, MissingExtra, ProcessLost

CONNECT = 300.0
"""Seconds in which all processes must have started: imports can take long on a busy machine."""


class Gloo:
    """The processes of a job of torchrun, found by its environment: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT."""

    name = "torchrun"

    def __init__(self, timeout: float) -> None:
        try:
            import torch
            from torch import distributed
        except ImportError:
            raise MissingExtra("torchrun needs the extra: pip install 'unspool[torch]'") from None
        torch.set_num_threads(1)  # it copies bytes; the cores are for the kernels
        dist: Any = distributed
        self._torch, self._dist = torch, dist
        try:
            patience = timedelta(seconds=max(timeout, CONNECT))
            store, rank, size = next(dist.rendezvous("env://", timeout=patience))
            # torchrun keeps the store when it starts the processes again: addresses of the last attempt would be found in it
            attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
            store = dist.PrefixStore(f"unspool-{attempt}", store)
            dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=patience)
            self._own = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout))
        except (RuntimeError, ValueError) as error:
            where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
            reason = " ".join(str(error).split())
            if "EADDRINUSE" in reason or "address already in use" in reason.lower():
                reason = "the port is in use; start the processes with another port"
            raise InputError(f"the processes cannot be connected at {where}: {reason[:300]}") from None
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def exchange(self, parts: Sequence[Bytes], sizes: Sequence[int]) -> list[Bytes]:
        """Send parts[p] to process p; return what each process has sent here."""
        received = np.empty(sum(sizes), np.uint8)
        sent = np.concatenate(parts)
        self._call(
            self._dist.all_to_all_single,
            self._torch.from_numpy(received),
            self._torch.from_numpy(sent),
            list(sizes),
            [len(part) for part in parts],
        )
        return np.split(received, np.cumsum(sizes)[:-1])

    def gather(self, part: Bytes) -> Bytes:
        """Return the parts of all processes."""
        received = np.empty((self.size, len(part)), np.uint8)
        flat = self._torch.from_numpy(received.reshape(-1))
        gather = getattr(self._dist, "all_gather_single", None) or self._dist.all_gather_into_tensor
        self._call(gather, flat, self._torch.from_numpy(part))
        return received

    def close(self) -> None:
        """Leave the job."""
        self._dist.destroy_process_group()

    def _call(self, function: Any, *args: Any) -> None:
        try:
            function(*args, group=self._own)
        except RuntimeError as error:
            raise ProcessLost(_reason(str(error))) from None


def _reason(text: str) -> str:
    """Return what gloo says, without the place in its source.

    >>> _reason("[/a/pair.cc:537] Read error [127.0.0.1]:21738: Connection reset by peer. This is typically caused by …")
    'Read error [127.0.0.1]:21738: Connection reset by peer'
    """
    text = " ".join(text.split())
    return text[text.find("] ") + 2 if text.startswith("[") else 0 :].split(". This is")[0][:120]
