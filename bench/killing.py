"""Runs that are interrupted and killed: do they go on to the same bits, and is there ever a half-written file?

Two experiments. *Interrupted*: for every cell, `unspool train` and `unspool resume` as processes are ended by
Ctrl-C, SIGTERM and SIGKILL in turn, at random updates, with one and two threads in turn, until the run is done;
its parameters and its training state must equal those of a run never stopped, bit for bit. *Killed*: a process
that saves after every update is killed (SIGKILL) at random moments; after each kill the run must load, model and
training state, and no file under its own name may be half-written.

    python bench/killing.py [--interrupts 20] [--kills 200] [--seed 0]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from table import save, show
from unspool.checkpoint import MODEL, TRAINING, read_arrays
from unspool.events import RunConfig
from unspool.keeping import Keeping
from unspool.language import TextModel
from unspool.run import resume, run

TEXT = "the time traveller spoke of time and space, and space and time listened.\n" * 100
SIZES = ["--hidden", "40", "--batch", "4", "--window", "16", "--dropout", "0.1", "--recurrent-dropout", "0.1"]
STEPS = 400


def command(arguments: list[object], threads: int) -> subprocess.Popen[bytes]:
    environment = os.environ | {"UNSPOOL_THREADS": str(threads)}
    line = [sys.executable, "-m", "unspool", *map(str, arguments)]
    return subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def step_of(out: Path) -> int:
    return read_arrays(out / TRAINING)[1]["step"] if (out / TRAINING).exists() else 0


def interrupted(cell: str, story: Path, place: Path, times: int, rng: random.Random) -> dict[str, object]:
    """Interrupt one cell's run so many times, and compare it with the one never stopped."""
    whole, out = place / f"{cell}-whole", place / f"{cell}-cut"
    settings = ["--steps", STEPS, "--cell", cell, "--save-every", 1, *SIZES]
    command(["train", story, "--out", whole, *settings], 1).wait()
    at = sorted(rng.sample(range(1, STEPS - 5), times))
    ended: dict[str, int] = {}
    for number, step in enumerate(at):
        kind = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[number % 3]
        begin = ["resume", out, "--save-every", 1] if number else ["train", story, "--out", out, *settings]
        process = command(begin, 1 + number % 2)
        while process.poll() is None and step_of(out) < step:
            time.sleep(0.001)
        process.send_signal(kind)
        code = process.wait()
        ended[kind.name] = ended.get(kind.name, 0) + (code != 0)
        print(f"\r{cell}: {number + 1} of {times} ", end="", file=sys.stderr)
    command(["resume", out], 2).wait()
    one, two = (read_arrays(each / TRAINING)[0] for each in (whole, out))
    same = one.keys() == two.keys() and all((one[name] == two[name]).all() for name in one)
    same_model = (whole / MODEL).read_bytes() == (out / MODEL).read_bytes()
    return {"cell": cell, "ended": ended, "same training state": same, "same model": same_model}


def killed(story: Path, place: Path, times: int, rng: random.Random) -> dict[str, object]:
    """Kill a process that saves after every update, so many times, and load what it left."""
    out = place / "killed"
    given = {"cell": "lstm", "hidden": 64, "B": 4, "tau": 8, "steps": 10_000_000}
    events = run(RunConfig(sources=(str(story),), given=given, validations=5000), out=out)
    while not out.exists():
        next(events)
    events.close()
    halves = refused = 0
    for number in range(times):
        child = os.fork()
        if child == 0:
            for _ in resume(out, keeping=Keeping(steps=1)):
                pass
            os._exit(1)
        time.sleep(0.03 + 0.1 * rng.random())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        halves += any(out.glob("*unfinished*"))
        try:
            TextModel.load(out)
            read_arrays(out / TRAINING)
        except Exception as error:
            print(error)
            refused += 1
        print(f"\rkilled: {number + 1} of {times} ", end="", file=sys.stderr)
    next(resume(out))
    return {
        "kills": times,
        "in the middle of a save": halves,
        "not loadable": refused,
        "updates": step_of(out),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interrupts", type=int, default=20)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        story = place / "story.txt"
        story.write_text(TEXT)
        rows = [interrupted(cell, story, place, options.interrupts, rng) for cell in ("elman", "gru", "lstm")]
        kills = killed(story, place, options.kills, rng)
    print(file=sys.stderr)
    show(list(rows[0]), [list(row.values()) for row in rows])
    show(list(kills), [list(kills.values())])
    save("killing", {"interrupted": rows, "killed": kills})
    if not all(row["same model"] and row["same training state"] for row in rows) or kills["not loadable"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
