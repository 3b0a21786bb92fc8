"""Train in several processes: the same bits everywhere, after every failure, and what it costs.

    matrix     SHA-256 of the model: 1 to 4 processes, torchrun, mpiexec or none, 1 and 2 threads, another instruction set on every
               rank, for three cells and `classify`
    failures   4, then 3 processes, then 1; a worker killed three times; a worker frozen
    speed      2 processes of 1 thread and 1 process of 2 threads, alternating, for growing batches
    network    2 network namespaces whose link has 10 and 1 Gbit/s (`tbf`), with added latency: time of an update, and what the cost
               model said before the start; needs root

    python bench/cluster.py [matrix] [failures] [speed] [network] [--updates 200] [--rounds 3] [--text FILE]

Latency is added in the transport of the processes (`worker`), because not every kernel has netem.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from table import save, show

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import launched  # noqa: E402
from unspool.kernels.machine import kernel_info  # noqa: E402
from unspool.storage.log import read_log  # noqa: E402

CELLS = ("elman", "gru", "lstm")
SETS = [name for name in kernel_info()["available"] if name in ("plain", "avx2", "avx512", "neon")]
LINKS = ((10_000, 0.0), (10_000, 1.0), (1_000, 0.0), (1_000, 1.0))
"""Mbit/s, and milliseconds of added latency per call of the transport."""
NAMES = ("unspool-a", "unspool-b")


def sha_of(run: Path) -> str:
    return hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest()


def write_data(folder: Path, text: Path | None) -> None:
    draw = random.Random(1)
    words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 8))) for _ in range(400)]
    made = " ".join(draw.choices(words, weights=range(400, 0, -1), k=60_000))
    (folder / "text.txt").write_text(made if text is None else text.read_text())
    rows = [f"{''.join(draw.choices('abcd', k=draw.randint(2, 12)))},{'xy'[i % 2]}\n" for i in range(200)]
    (folder / "table.csv").write_text("text,label\n" + "".join(rows))


def command(folder: Path, task: str, out: Path, threads: int, updates: int = 20, **options: Any) -> list[str]:
    usual = {
        "shards": 8,
        "batch": 16,
        "hidden": 24,
        "steps": updates,
        "threads": threads,
        "save-every": 3,
    } | options
    flags = [text for name, value in usual.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    if task == "classify":
        head = ["classify", "fit", str(folder / "table.csv")]
    else:
        head = ["train", str(folder / "text.txt"), "--cell", task, "--order", "1", "--precision", "float32"]
        flags += ["--validations", "1", "--validation-tokens", "100", "--dropout", "0.2"]
    return [*head, *flags, "--quiet", "--out", str(out)]


def run(by: str, P: int, arguments: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in P processes; each rank has its own instruction set."""
    if by == "torchrun":
        return launched.torchrun(P, *arguments, ISAS=" ".join(SETS), **more)
    if by == "mpiexec":
        return launched.mpiexec(P, *arguments, isas=SETS, **more)
    return launched._run([sys.executable, "-m", "unspool", *arguments], launched.environment())


def matrix(folder: Path) -> list[dict[str, Any]]:
    found = []
    ways = [("none", 1), *((by, P) for by in ("torchrun", "mpiexec") for P in (1, 2, 3, 4))]
    for task in (*CELLS, "classify"):
        for by, P in ways:
            for threads in (1, 2):
                out = folder / f"{task}-{by}-{P}-{threads}"
                done = run(by, P, command(folder, task, out, threads))
                sha = sha_of(out) if done.returncode == 0 else f"failed: {done.stderr[-200:]}"
                found.append({"task": task, "by": by, "P": P, "threads": threads, "sha256": sha})
                shutil.rmtree(out, ignore_errors=True)
    print("\nsha256 of the model")
    for task in (*CELLS, "classify"):
        values = {each["sha256"] for each in found if each["task"] == task}
        print(
            f"  {task:10} {len(ways) * 2} runs, {len(values)} different: {' '.join(sorted(v[:16] for v in values))}"
        )
    return found


def failures(folder: Path) -> list[dict[str, Any]]:
    found = []
    for task in (*CELLS, "classify"):
        alone = folder / f"{task}-alone"
        run("none", 1, command(folder, task, alone, 1, updates=30))

        def note(what: str, out: Path, done: Any, task: str = task, alone: Path = alone) -> None:
            same = done.returncode == 0 and sha_of(out) == sha_of(alone)
            found.append({"task": task, "case": what, "same": same, "lines": launched.lines_of(done)})
            print(
                f"  {task:10} {what:34} {'the same bits' if same else 'DIFFERENT: ' + done.stderr[-300:]}",
                flush=True,
            )

        out = folder / f"{task}-fewer"
        stop = [{"rank": 1, "restart": 0, "update": 12, "signal": "SIGTERM"}]
        launched.torchrun(4, *command(folder, task, out, 1, updates=30), faults=stop)
        launched.torchrun(3, "resume", out, "--quiet", faults=stop)
        note("4, then 3 processes, then 1", out, run("none", 1, ["resume", str(out), "--quiet"]))
        out = folder / f"{task}-killed"
        faults = [{"rank": 1 + i % 2, "restart": i, "update": 11, "signal": "SIGKILL"} for i in range(3)]
        arguments = command(folder, task, out, 1, updates=30)
        note("a worker killed three times", out, launched.torchrun(3, *arguments, restarts=3, faults=faults))
        out = folder / f"{task}-frozen"
        faults = [{"rank": 1, "restart": 0, "update": 12, "signal": "SIGSTOP"}]
        begin = time.monotonic()
        ended = launched.torchrun(
            2, *command(folder, task, out, 1, updates=30), faults=faults, UNSPOOL_CLUSTER_TIMEOUT="5"
        )
        seconds, said = time.monotonic() - begin, launched.lines_of(ended)
        note(
            f"a worker frozen, {len(said)} line, {seconds:.0f} s",
            out,
            run("mpiexec", 2, ["resume", str(out), "--quiet"]),
        )
    return found


def rate(run: Path) -> float:
    """Return the seconds of an update of a run: the median over the stretches between two entries of its log."""
    entries = [each for each in read_log(run / "log.jsonl") if "step" in each and "loss" in each]
    entries = entries[len(entries) // 5 : -1]
    spans = [
        (b["seconds"] - a["seconds"]) / (b["step"] - a["step"])
        for a, b in itertools.pairwise(entries)
        if "valid" not in b and "sample" not in b
    ]
    return statistics.median(spans)


def speed(folder: Path, updates: int, rounds: int) -> list[dict[str, Any]]:
    rows: list[list[str]] = []
    found = []
    by = "mpiexec" if launched.mpi() is None else "torchrun"
    for cell, hidden in (("gru", 256), ("lstm", 256)):
        for B in (16, 64, 128):
            times: dict[int, list[float]] = {1: [], 2: []}
            for i in range(rounds):
                for P in (1, 2):
                    out = folder / f"speed-{cell}-{B}-{P}-{i}"
                    more = {"shards": 2, "batch": B, "hidden": hidden, "save-every": updates}
                    done = run(
                        "none" if P == 1 else by, P, command(folder, cell, out, 3 - P, updates, **more)
                    )
                    assert done.returncode == 0, done.stderr
                    times[P].append(rate(out))
            best, median = (f(times[1]) / f(times[2]) for f in (min, statistics.median))
            found.append(
                {"cell": cell, "hidden": hidden, "B": B, "seconds": times, "best": best, "median": median}
            )
            rows.append(
                [
                    cell,
                    str(hidden),
                    str(B),
                    f"{1e3 * min(times[1]):.1f}",
                    f"{1e3 * min(times[2]):.1f}",
                    f"{best:.2f}",
                    f"{median:.2f}",
                ]
            )
    show(["cell", "H", "B", "1 x 2 threads, ms", "2 x 1 thread, ms", "speed, best", "median"], rows)
    return found


@contextmanager
def linked(mbits: int) -> Iterator[None]:
    """Make two network namespaces with a link of a limited rate, and remove them at the end."""
    remove()
    ip = lambda *words: subprocess.run(["ip", *words], check=True)  # noqa: E731
    try:
        for name in NAMES:
            ip("netns", "add", name)
        ip(
            "link",
            "add",
            "link0",
            "netns",
            NAMES[0],
            "type",
            "veth",
            "peer",
            "name",
            "link0",
            "netns",
            NAMES[1],
        )
        for i, name in enumerate(NAMES):
            inside = ("netns", "exec", name)
            ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", "link0")
            for device in ("lo", "link0"):
                ip("-n", name, "link", "set", device, "up")
            ip(
                *inside,
                "tc",
                "qdisc",
                "add",
                "dev",
                "link0",
                "root",
                "tbf",
                "rate",
                f"{mbits}mbit",
                "burst",
                "256kb",
                "latency",
                "50ms",
            )
        yield
    finally:
        remove()


def remove() -> None:
    for name in NAMES:
        subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


def network(folder: Path, updates: int) -> list[dict[str, Any]]:
    rows, found = list[list[str]](), []
    for mbits, latency in LINKS:
        for B, hidden in ((16, 256), (64, 256)):
            out, about = folder / f"net-{mbits}-{latency}-{B}", folder / "cost.json"
            arguments = command(
                folder, "gru", out, 1, updates, shards=2, batch=B, hidden=hidden, **{"save-every": updates}
            )
            with linked(mbits):
                done = over_the_link(arguments, latency, about)
            assert done == 0, f"exit code {done}"
            cost, measured = json.loads(about.read_text()), rate(out)
            expected = cost["together"]
            found.append({"mbits": mbits, "latency_ms": latency, "B": B, "measured": measured, **cost})
            rows.append([
                f"{mbits / 1000:g}", f"{latency:g}", str(B), f"{cost['moved'] / 1e6:.1f}", f"{1e3 * expected:.1f}", f"{1e3 * measured:.1f}",
                f"{measured / expected - 1:+.0%}", f"{cost['speedup']:.2f}", f"{cost['alone'] / measured:.2f}",
            ])  # fmt: skip
    show(
        [
            "Gbit/s",
            "added ms",
            "B",
            "MB per update",
            "expected ms",
            "measured ms",
            "error",
            "expected speed-up",
            "measured",
        ],
        rows,
    )
    return found


def over_the_link(arguments: list[str], latency: float, about: Path) -> int:
    """Run a command in two processes, one in each namespace; return the largest exit code."""
    processes = []
    for rank, name in enumerate(NAMES):
        environment = launched.environment(
            RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="1", MASTER_ADDR="10.77.0.1", MASTER_PORT="29511", GLOO_SOCKET_IFNAME="link0",
        )  # fmt: skip
        words = [
            "ip",
            "netns",
            "exec",
            name,
            sys.executable,
            __file__,
            "worker",
            str(latency),
            str(about),
            *arguments,
        ]
        processes.append(subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL))
    return max(each.wait(600) for each in processes)


def worker(latency: float, about: Path, arguments: list[str]) -> int:
    """Be `unspool ARGUMENTS` with a slower transport; rank 0 writes the cost that it expected."""
    from unspool.cli.main import main
    from unspool.cluster.gloo import Gloo
    from unspool.cluster.group import current

    call = Gloo._call

    def delayed(self: Gloo, function: Callable[..., Any], *args: Any) -> None:
        time.sleep(latency / 1000)
        call(self, function, *args)

    if latency:
        Gloo._call = delayed  # type: ignore[method-assign]
    sys.argv[1:] = arguments
    code = main()
    if (cost := current().cost) is not None:
        more = {"alone": cost.alone, "together": cost.together, "speedup": cost.speedup}
        about.write_text(json.dumps(asdict(cost) | more))
    return code


def main() -> None:
    if sys.argv[1:2] == ["worker"]:
        sys.exit(worker(float(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]))
    parts: dict[str, Callable[..., Any]] = {
        "matrix": matrix,
        "failures": failures,
        "speed": speed,
        "network": network,
    }
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=list(parts))
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--text", type=Path)
    options = parser.parse_args()
    if "network" in options.parts and os.geteuid():
        sys.exit("network needs root, to make network namespaces; leave it out")
    launched.PATIENCE = 3600
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place, suppress(KeyboardInterrupt):
        write_data(Path(place), options.text)
        given = {"speed": (options.updates, options.rounds), "network": (options.updates,)}
        for name in options.parts:
            print(f"\n{name}", flush=True)
            found[name] = parts[name](Path(place), *given.get(name, ()))
    save("cluster", found)


if __name__ == "__main__":
    main()
