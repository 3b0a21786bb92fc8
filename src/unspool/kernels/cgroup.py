"""Read the memory and CPU limits of the control groups that this process runs in (Linux, versions 1 and 2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

MEMBERSHIP, MOUNT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def free_memory(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> int | None:
    """Return the bytes until the nearest memory limit of a group, without its reclaimable file cache; None: no limit."""
    names = ("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")
    found = []
    for folder in _folders("memory", membership, mount):
        for limit, used in names:
            most, now = _number(folder / limit), _number(folder / used)
            if most is not None and now is not None:
                found.append(max(0, most - now + min(now, _file_cache(folder))))
    return min(found, default=None)


def cpus(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> int | None:
    """Return how many CPUs the tightest quota of a group allows, rounded up; None: no quota."""
    found = []
    for folder in _folders("cpu", membership, mount):
        quota, period = _quota(folder)
        if quota is not None and period and quota > 0:
            found.append(max(1, math.ceil(quota / period)))
    return min(found, default=None)


def _quota(folder: Path) -> tuple[int | None, int | None]:
    """Return the microseconds of CPU time per period, and the period."""
    words = _text(folder / "cpu.max").split()  # version 2: "max 100000" or "150000 100000"
    if len(words) == 2 and all(word.isdecimal() for word in words):
        return int(words[0]), int(words[1])
    return _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")


def _folders(controller: str, membership: Path, mount: Path) -> Iterator[Path]:
    """Yield the folders of this process's groups and of all groups above them.

    A container may see the paths of its host, which do not exist inside it: the mount itself is always among the folders.
    """
    for line in _text(membership).splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        names = controllers.split(",")
        if not controllers:
            roots = [mount, mount / "unified"]
        elif controller in names:
            roots = [mount / controllers, mount / controller]
        else:
            continue
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for root in roots:
            for depth in range(len(parts), -1, -1):
                yield root.joinpath(*parts[:depth])


def _file_cache(folder: Path) -> int:
    """Return the bytes of file cache that the kernel gives up first."""
    rows = dict(line.split(maxsplit=1) for line in _text(folder / "memory.stat").splitlines() if " " in line)
    cache = rows.get("total_inactive_file", rows.get("inactive_file", "0"))
    return int(cache) if cache.isdecimal() else 0


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.removeprefix("-").isdecimal() else None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
