"""Interrupt and kill runs, and check that resumed runs are bit-identical and no file is half-written.

Two experiments. *Interrupted*: for every cell of `unspool train`, and for the `fit` of every command
for sequences, the command and `unspool resume` as processes are ended by Ctrl-C, SIGTERM, SIGHUP and SIGKILL in turn, at random
updates, with one and two threads in turn, until the run is done; its parameters and its training state (a finished fit has
none) must be bit-identical to those of an uninterrupted run. *Killed*: a process that saves after every update
is killed (SIGKILL) at random moments; after each kill the run must load, model and training state, and no file under its
own name may be half-written.

    python bench/killing.py [--interrupts 20] [--kills 200] [--seed 0] [--only train classify …]
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
from collections.abc import Callable, Iterable
from pathlib import Path

from table import save, show
from unspool.errors import FileError
from unspool.storage.run_folder import MODEL, TRAINING
from unspool.storage.tensors import read_arrays
from unspool.tasks import (
    SequenceClassifier,
    SequenceGenerator,
    SequenceRegressor,
    SequenceTagger,
    SequenceTranslator,
)
from unspool.tasks.language.run import resume, run
from unspool.tasks.language.text_model import TextModel
from unspool.tasks.store import load
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.events import RunConfig

TEXT = "the time traveller spoke of time and space, and space and time listened.\n" * 100
WORDS = ["ab" * (1 + i % 4) + "cd"[i % 2] for i in range(60)]
DATA = {
    "train": ("story.txt", TEXT),
    "classify": ("names.csv", "text,label\n" + "".join(f"{word},{word[-1]}\n" for word in WORDS)),
    "tag": ("tags.conll", "\n\n".join("\n".join(f"{c} {c.upper()}" for c in word) for word in WORDS) + "\n"),
    "translate": ("pairs.tsv", "".join(f"{word}\t{word.upper()}\n" for word in WORDS)),
    "regress": (
        "flats.csv",
        "rooms,area,target\n" + "".join(f"{i % 4},{i},{i * (i % 4)}\n" for i in range(60)),
    ),
    "generate-from": ("words.csv", "text,label\n" + "".join(f"{word},{word[-1]}\n" for word in WORDS)),
}
SIZES = ["--hidden", "40", "--batch", "4", "--window", "16", "--dropout", "0.1", "--recurrent-dropout", "0.1"]
SMALL = ["--hidden", "24", "--batch", "4", "--dropout", "0.1", "--validation", "0.2", "--patience", "0"]
CELLS = ("elman", "gru", "lstm")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
STEPS = 400


def command(arguments: Iterable[object], threads: int) -> subprocess.Popen[bytes]:
    environment = os.environ | {"UNSPOOL_THREADS": str(threads)}
    line = [sys.executable, "-m", "unspool", *map(str, arguments)]
    return subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def step_of(out: Path) -> int:
    """Return the update of the last saved state; 0 if the run has none."""
    try:
        return int(read_arrays(out / TRAINING)[1]["step"])
    except FileError:
        return 0


def state_of(out: Path) -> dict[str, bytes]:
    arrays = read_arrays(out / TRAINING)[0] if (out / TRAINING).exists() else {}
    return {name: array.tobytes() for name, array in arrays.items()}


def interrupted(
    name: str, begin: list[object], place: Path, times: int, rng: random.Random
) -> dict[str, object]:
    """Interrupt a run repeatedly and compare it with an uninterrupted one."""
    whole, out = place / f"{name}-whole", place / f"{name}-cut"
    settings = [*begin, "--steps", STEPS, "--save-every", 1]
    command([*settings, "--out", whole], 1).wait()
    at = sorted(rng.sample(range(1, STEPS - 5), times))
    ended: dict[str, int] = {}
    for number, step in enumerate(at):
        kind = SIGNALS[number % len(SIGNALS)]
        line = ["resume", out, "--save-every", 1] if number else [*settings, "--out", out]
        process = command(line, 1 + number % 2)
        while process.poll() is None and step_of(out) < step:
            time.sleep(0.001)
        process.send_signal(kind)
        code = process.wait()
        ended[kind.name] = ended.get(kind.name, 0) + (code != 0)
        print(f"\r{name}: {number + 1} of {times} ", end="", file=sys.stderr)
    command(["resume", out], 2).wait()
    same_model = (whole / MODEL).read_bytes() == (out / MODEL).read_bytes()
    return {
        "command": name,
        "ended": ended,
        "same training state": state_of(whole) == state_of(out),
        "same model": same_model,
    }


def language(story: Path, out: Path) -> tuple[Callable[[], object], Callable[[], object]]:
    """Start a run of a language model; return its resume command and loader."""
    given = {"cell": "lstm", "hidden": 64, "B": 4, "tau": 8, "steps": 10_000_000}
    events = run(RunConfig(sources=(str(story),), given=given, validations=5000), out=out)
    while not out.exists():
        next(events)
    events.close()
    return lambda: list(resume(out, policy=CheckpointPolicy(steps=1))), lambda: TextModel.load(out)


def fitted(name: str, out: Path) -> tuple[Callable[[], object], Callable[[], object]]:
    """Start a fit in a run; return its resume command and loader."""
    make, targets = {
        "classify": (SequenceClassifier, [word[-1] for word in WORDS]),
        "tag": (SequenceTagger, [list(word.upper()) for word in WORDS]),
        "translate": (SequenceTranslator, [word.upper() for word in WORDS]),
        "regress": (SequenceRegressor, [float(len(word)) for word in WORDS]),
        "generate-from": (SequenceGenerator, WORDS),
    }[name]
    inputs = [word[-1] for word in WORDS] if name == "generate-from" else WORDS
    model = make(hidden=64, batch_size=4, steps=10_000_000, validation=0.2, patience=0)
    model.fit_iter(inputs, targets, run=out).close()
    return lambda: list(model.fit_iter(inputs, targets, run=out, save_every=1)), lambda: load(out)


def killed(name: str, story: Path, place: Path, times: int, rng: random.Random) -> dict[str, object]:
    """Kill a process that saves after every update, repeatedly, and load its run each time."""
    out = place / f"{name}-killed"
    go_on, look = language(story, out) if name == "train" else fitted(name, out)
    halves = refused = 0
    for number in range(times):
        before, child = step_of(out), os.fork()
        if child == 0:
            go_on()
            os._exit(1)
        while step_of(out) == before:
            time.sleep(0.001)
        time.sleep(0.05 * rng.random())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        halves += any(out.glob("*unfinished*"))
        try:
            look()
            read_arrays(out / TRAINING)
        except Exception as error:
            print(error)
            refused += 1
        print(f"\r{name} killed: {number + 1} of {times} ", end="", file=sys.stderr)
    return {
        "command": name,
        "kills": times,
        "in the middle of a save": halves,
        "not loadable": refused,
        "updates": step_of(out),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--interrupts", type=int, default=20)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(DATA), default=list(DATA))
    options = parser.parse_args()
    rng = random.Random(options.seed)
    rows, kills = list[dict[str, object]](), list[dict[str, object]]()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in options.only:
            data = place / DATA[name][0]
            data.write_text(DATA[name][1])
            trained = {f"train {cell}": ["train", data, "--cell", cell, *SIZES] for cell in CELLS}
            begins = trained if name == "train" else {name: [name, "fit", data, *SMALL]}
            for called, begin in begins.items():
                rows.append(interrupted(called, begin, place, options.interrupts, rng))
            kills.append(killed(name, data, place, options.kills, rng))
    print(file=sys.stderr)
    show(list(rows[0]), [list(row.values()) for row in rows])
    show(list(kills[0]), [list(row.values()) for row in kills])
    save("killing", {"interrupted": rows, "killed": kills})
    same = all(row["same model"] and row["same training state"] for row in rows)
    if not same or any(row["not loadable"] for row in kills):
        sys.exit(1)


if __name__ == "__main__":
    main()
