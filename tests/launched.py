"""Start unspool as torchrun and mpiexec do, with another instruction set on every rank, or with workers that fail.

`python launched.py FAULTS ARGUMENTS` is `unspool ARGUMENTS`; FAULTS is a JSON list of {"rank", "restart", "update", "signal"}: the
process of this rank sends itself the signal after so many updates of this attempt.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

FILE = Path(__file__).resolve()
SOURCE = FILE.parent.parent / "src"
SETS = ("UNSPOOL_ISA", "UNSPOOL_THREADS")
PATIENCE = 170
"""Seconds in which a job must end."""


def environment(**more):
    """Return an environment in which this checkout is imported, and no launcher's variables are set."""
    found = {name: value for name, value in os.environ.items() if name not in (*SETS, "OMP_NUM_THREADS")}
    paths = [str(SOURCE), *filter(None, [found.get("PYTHONPATH", "")])]
    return found | {"PYTHONPATH": os.pathsep.join(paths), "UNSPOOL_CLUSTER_TIMEOUT": "20"} | more


def torchrun(P, *arguments, restarts=0, faults=(), **more):
    """Run unspool in P processes by torchrun; return the finished process."""
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        str(P),
        "--max-restarts",
        str(restarts),
    ]
    command += [
        "--monitor-interval",
        "0.2",
        "--standalone",
        str(FILE),
        json.dumps(list(faults)),
        *map(str, arguments),
    ]
    return _run(command, environment(OMP_NUM_THREADS="1", **more))


def mpiexec(P, *arguments, isas=(), faults=(), **more):
    """Run unspool in P processes by mpiexec, each with its instruction set."""
    program, library = mpi()
    command = [program]
    for rank in range(P):
        isa = isas[rank % len(isas)] if isas else None
        command += [":"] * (rank > 0) + ["-n", "1", *(["-env", "UNSPOOL_ISA", isa] if isa else [])]
        command += [sys.executable, str(FILE), json.dumps(list(faults)), *map(str, arguments)]
    return _run(command, environment(MPI4PY_LIBMPI=library, UNSPOOL_THREADS="1", **more))


def mpi():
    """Return the program mpiexec and its MPI library from the wheels of mpi4py and MPICH; None where they are not installed."""
    spec = find_spec("mpi4py")
    if spec is None or spec.origin is None:
        return None
    place = Path(spec.origin).parents[4]
    program = shutil.which("mpiexec", path=place / "bin")
    library = place / "lib" / "libmpi.so.12"
    return (program, str(library)) if program and library.exists() else None


def _run(command, environment):
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def lines_of(done):
    """Return the lines of unspool on standard error."""
    return [line for line in done.stderr.splitlines() if "unspool: " in line]


def _inject(faults):
    from unspool.training.follow import Follower

    rank, restart = (os.environ.get(name, "0") for name in ("RANK", "TORCHELASTIC_RESTART_COUNT"))
    mine = [each for each in faults if str(each["rank"]) == rank and str(each["restart"]) == restart]
    update, count = Follower.update, [0]

    def counted(self, message):
        update(self, message)
        count[0] += 1
        for each in mine:
            if count[0] == each["update"]:
                if each["signal"] == "SIGSTOP":  # torchrun would wait half a minute for it
                    subprocess.Popen(["sh", "-c", f"sleep 8; kill -9 {os.getpid()}"])
                os.kill(os.getpid(), getattr(signal, each["signal"]))

    Follower.update = counted


if __name__ == "__main__":
    from unspool.cli.main import main

    if found := json.loads(sys.argv[1]):
        _inject(found)
    isas = os.environ.get("ISAS", "").split()
    if isas:
        os.environ["UNSPOOL_ISA"] = isas[int(os.environ.get("RANK", "0")) % len(isas)]
    sys.argv[1:] = sys.argv[2:]
    sys.exit(main())
