"""Find out how much memory is free, and refuse what does not fit before anything of it is allocated."""

import os
import resource
from pathlib import Path

from unspool.errors import InputError
from unspool.kernels import cgroup

UNCHECKED = 2**25
"""So many bytes are requested without a look at the limits, which takes a millisecond: training looks at every update."""


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
    used = [
        int(pages) * os.sysconf("SC_PAGE_SIZE")
        for pages in " ".join(_lines(Path("/proc/self/statm"))).split()
    ]
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
