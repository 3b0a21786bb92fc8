"""`make arm`: the results of all kernels have the same bits on x86-64 and on ARM.

    python tests/arm/run.py

Builds the program of this folder twice: for this machine, and for aarch64 with a cross compiler. Runs it on every instruction set
with one and three threads, the second one in the emulator QEMU, and compares the hashes that it prints. Exit code 0: all are
equal; 1: some differ, or a kernel of csrc/kernels.h has no hash; 2: a tool is missing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {  # of Debian and Ubuntu, by the program that they install
    "cmake": "cmake",
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "qemu-aarch64-static": "qemu-user-static",
}
CROSS = [
    "-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
    "-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++", "-DCMAKE_EXE_LINKER_FLAGS=-static",
]  # fmt: skip
THREADS = (1, 3)


def run_quietly(*command: str) -> None:
    """Run a command; print its output only if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}\narm: {' '.join(command)} failed")


def build(name: str, options: list[str]) -> str:
    """Build the program and return its path."""
    folder = ROOT / "build" / "arm" / name
    run_quietly("cmake", "-S", str(ROOT), "-B", str(folder), "-DUNSPOOL_HASHES=ON", *options)
    run_quietly("cmake", "--build", str(folder), "--parallel", str(os.cpu_count() or 1))
    return str(folder / "hashes")


def hashes(command: list[str], isa: str, threads: int) -> dict[str, str]:
    """Return the hash of every kernel by its name."""
    done = subprocess.run(
        [*command, str(threads)],
        env=os.environ | {"UNSPOOL_ISA": isa},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return dict(line.rsplit(maxsplit=1) for line in done.stdout.splitlines())


def kernels_without_a_hash(found: dict[str, str]) -> set[str]:
    """Return the kernels of csrc/kernels.h, but for the one that measures time, that no hash is named after."""
    kernels = set(re.findall(r"\(\*(\w+)\)\(", (ROOT / "csrc" / "kernels.h").read_text(encoding="utf-8")))
    return kernels - {name.split()[0] for name in found} - {"fma_peak"}


def compare(programs: dict[str, list[str]]) -> bool:
    """Run each program on each of its instruction sets; print the total hashes, and the kernels that differ."""
    first: dict[str, str] = {}
    equal = True
    for machine, command in programs.items():
        available = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
        for isa, threads in ((isa, threads) for isa in available for threads in THREADS):
            found = hashes(command, isa, threads)
            first = first or found
            different = [name for name in first | found if first.get(name) != found.get(name)]
            print(f"arm: {machine:8} {isa:11} threads {threads}  {found['total']}", *different, flush=True)
            equal = equal and not different
    if forgotten := kernels_without_a_hash(first):
        print(f"arm: no hash of {', '.join(sorted(forgotten))}; add them to the program in tests/arm")
    return equal and not forgotten


def main() -> int:
    """Build both programs and compare their hashes."""
    if missing := [package for program, package in PACKAGES.items() if not shutil.which(program)]:
        print(f"make arm needs {', '.join(missing)}: install with apt install {' '.join(missing)}")
        return 2
    print("arm: building for two machines, which takes some minutes", flush=True)
    here, cross = build("host", []), build("aarch64", CROSS)
    equal = compare({os.uname().machine: [here], "aarch64": ["qemu-aarch64-static", cross]})
    print("arm: all hashes are equal" if equal else "arm: hashes differ or are missing", flush=True)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
