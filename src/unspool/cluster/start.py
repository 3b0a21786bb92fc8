"""Join the processes that torchrun or mpiexec has started, and refuse those that do not belong together."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unspool import __version__
from unspool.cluster.gloo import Gloo
from unspool.cluster.group import Group, timeout
from unspool.cluster.launch import Launch
from unspool.cluster.message import Message
from unspool.cluster.mpi import Mpi
from unspool.errors import InputError
from unspool.kernels.machine import default_threads
from unspool.storage.files import hash_of

SOURCE = Path(__file__).resolve().parent.parent


def join(launch: Launch, arguments: Sequence[str]) -> Group:
    """Return the processes of a job; raise on all of them where they differ in version, arguments or files."""
    patience = timeout()
    transport = Gloo(patience) if launch.by == "torchrun" else Mpi(patience)
    group = Group(transport, patience)
    mine = Message("hello", {"version": version(), "arguments": list(arguments), "files": _files(arguments)})
    greetings = group.collect(mine.to_bytes())
    line = ""
    if group.rank == 0:
        line = _difference([Message.from_bytes(each).values for each in greetings])
        group.tell_all(Message("hello", {"line": line}))
    else:
        line = group.follow().values["line"]
    if line:
        raise InputError(line)
    return group


def share_cores(launch: Launch, threads: str = "") -> None:
    """Give each process `threads` threads; where no number is set, as many as there are cores for it on this machine."""
    if threads:
        os.environ["UNSPOOL_THREADS"] = threads
    elif launch.local > 1 and not {"UNSPOOL_THREADS", "OMP_NUM_THREADS"} & set(os.environ):
        os.environ["UNSPOOL_THREADS"] = str(max(1, default_threads() // launch.local))


def version() -> str:
    """Return the version of this package and a hash of its Python files."""
    digest = hashlib.sha256()
    for path in sorted(SOURCE.rglob("*.py")):
        digest.update(path.relative_to(SOURCE).as_posix().encode() + path.read_bytes())
    return f"{__version__} ({digest.hexdigest()[:8]})"


def _files(arguments: Sequence[str]) -> dict[str, str]:
    """Return the hashes of the files that the arguments name, where this process can read them."""
    found = {}
    for text in arguments:
        try:
            if Path(text).is_file():
                found[text] = hash_of(Path(text))
        except (OSError, ValueError):
            continue
    return found


def _difference(greetings: Sequence[Mapping[str, Any]]) -> str:
    """Return in what a process differs from the first one; nothing where none does.

    >>> _difference([{"version": "1", "arguments": [], "files": {}}, {"version": "2", "arguments": [], "files": {}}])
    'rank 0 runs unspool 1, rank 1 unspool 2; expected the same version everywhere: install it again'
    """
    first = greetings[0]
    for rank, other in enumerate(greetings):
        if other["version"] != first["version"]:
            return (
                f"rank 0 runs unspool {first['version']}, rank {rank} unspool {other['version']}; expected the same version "
                "everywhere: install it again"
            )
        if other["arguments"] != first["arguments"]:
            return (
                f"rank {rank} was started with other arguments than rank 0: {' '.join(other['arguments'])}; expected the same "
                "command on every machine"
            )
        for name, known in other["files"].items():
            if first["files"].get(name, known) != known:
                return (
                    f"{name}: rank {rank} has another file of this name than rank 0; expected the same text on every machine, or "
                    "none but on that of rank 0"
                )
    return ""
