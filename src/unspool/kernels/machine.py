"""Which instruction set and how many threads the kernels use; neither changes a bit of any result."""

from __future__ import annotations

import copyreg
import os
from typing import Any, NoReturn

from unspool.errors import InputError
from unspool.kernels import _native, cgroup, checks

MOST_THREADS = 256
BF16_INSTRUCTIONS = ("amx", "avx512_bf16")
"""Instruction sets with an instruction for bf16: products can be faster than in float32. The others use multiply-adds."""


def kernel_info() -> dict[str, Any]:
    """Return the instruction sets in use, those that this machine has, and the threads of a call.

    isa        the instruction set of the kernels in float32
    bf16       that of products in bf16: "amx", "avx512_bf16", or the same as `isa`
    available  names for `choose_isa` and `UNSPOOL_ISA`; "amx" is AVX-512 with the tiles of AMX for products in bf16, "avx512_bf16"
               AVX-512 with the instruction VDPBF16PS for them (AMD CPUs from Zen 4 on)

    The first kernel in bf16 tests the instruction; for "amx", it asks the system for tiles and tests them in a child process. Until then,
    `bf16` is what processor and system report; if the test fails, it is "avx512" for the rest of the process.
    `UNSPOOL_ISA` forces an instruction set, `UNSPOOL_THREADS` or else `OMP_NUM_THREADS` a number of threads.
    """
    if checks.refusal is not None:
        raise checks.refusal
    return {
        "isa": _native.isa(),
        "bf16": _native.isa_bf16(),
        "available": _native.available().split(),
        "threads": _native.threads(),
    }


def threads() -> int:
    """Return the number of threads of a call."""
    return _native.threads()


def set_threads(count: int) -> None:
    """Use this many threads from now on. The results are the same bits for any number."""
    try:
        _native.set_threads(count)
    except TypeError:
        raise InputError(f"count is {count!r}; expected a whole number from 1 to 256") from None


def set_alone(alone: bool) -> None:
    """Compute the calls of this Python thread in one thread from now on, or with the others of the pool again.

    A thread of less importance leaves the pool to the others in this way. The results are the same bits.
    """
    _native.set_alone(bool(alone))


def choose_isa(name: str) -> None:
    """Use this instruction set, one of `kernel_info()["available"]`, from now on. The results are the same bits for any."""
    try:
        _native.choose_isa(name)
    except TypeError:
        raise InputError(f"name is {name!r}; expected one of {_native.available()}") from None


def default_threads() -> int:
    """Return the number of threads without `UNSPOOL_THREADS`: `OMP_NUM_THREADS`, or else the CPUs that this process may use.

    These are the CPUs of its affinity mask, or fewer where a control group has a smaller quota of CPU time.
    """
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if first.isdecimal() and len(first) < 10 and int(first) >= 1:  # anything else is for OpenMP to refuse
        return min(int(first), MOST_THREADS)
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(affinity, cgroup.cpus() or affinity, MOST_THREADS))


def heed_environment() -> None:
    """Follow UNSPOOL_ISA and UNSPOOL_THREADS. A bad value is an error when the kernels are first used."""
    set_threads(default_threads())
    if isa := os.environ.get("UNSPOOL_ISA"):
        if isa not in _native.available().split():
            raise InputError(f"UNSPOOL_ISA is {isa!r}; this machine has {_native.available()}")
        choose_isa(isa)
    if threads := os.environ.get("UNSPOOL_THREADS"):
        if not (threads.isdecimal() and len(threads) < 10 and 1 <= int(threads) <= MOST_THREADS):
            raise InputError(f"UNSPOOL_THREADS is {threads!r}; expected a number from 1 to {MOST_THREADS}")
        set_threads(int(threads))


def refuse_copy(packed: object) -> NoReturn:
    """Raise: a packed layout belongs to one machine and one state of the parameters."""
    raise InputError(
        f"{type(packed).__name__}: weights packed for the kernels cannot be copied or pickled: "
        "copy the model, and pack its weights again"
    )


for native in (_native.Panels, _native.Stream):
    copyreg.pickle(native, refuse_copy)
try:
    heed_environment()
except InputError as error:  # importing must not fail: the command line could not say why in one line
    checks.refusal = error
