"""Compare the speed of two checkouts: one training step per cell, one token, and `unspool --help`, in turns.

    python bench/versions.py OLD NEW [--pairs 20] [--only step]

OLD and NEW are Python interpreters in whose environments the two versions are installed. Each version runs in a
process of its own; the two are measured in turns, so that other load on the machine hits both. A ratio is the median
over the pairs of new / old.
"""

import argparse
import statistics
import subprocess
import time

from table import save, show

WORKER = r"""
import sys, time
import numpy as np
import unspool
from unspool import Model, ModelConfig, Optimiser, OptimiserConfig, Stream, set_threads, train
initialise = getattr(Model, "initialise", None) or Model.fresh
set_threads(int(sys.argv[1]))

class Window:
    def __init__(self, x, y):
        self.x, self.y, self.lengths = x, y, None
        self.fresh = self.reset = np.zeros(x.shape[1], bool)

def steps(cell):
    model = initialise(ModelConfig(cell=cell, inputs=64, outputs=64, hidden=256), seed=0)
    rng = np.random.default_rng(0)
    x = rng.integers(64, size=(65, 32)).astype(np.int32)
    window = Window(x[:-1], x[1:])
    def endless():
        while True:
            yield window
    reports = train(model, endless(), Optimiser(OptimiserConfig()))
    return lambda: [next(reports) for _ in range(8)]

def tokens(cell):
    model = initialise(ModelConfig(cell=cell, inputs=64, outputs=64, hidden=256), seed=0)
    stream = Stream(model)
    def run():
        for i in range(2000):
            stream.advance(i % 64, seed=1, index=i)
    return run

tasks = {}
for cell in ("elman", "gru", "lstm"):
    tasks[f"step {cell}"] = steps(cell)
    tasks[f"token {cell}"] = tokens(cell)
for task in tasks.values():
    task()
print(" ".join(name.replace(" ", "/") for name in tasks), flush=True)
for line in sys.stdin:
    begin = time.perf_counter()
    tasks[line.strip().replace("/", " ")]()
    print(time.perf_counter() - begin, flush=True)
"""


class Worker:
    """A process with one version."""

    def __init__(self, python: str, threads: int) -> None:
        self.python = python
        self.process = subprocess.Popen(
            [python, "-c", WORKER, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout and self.process.stdin
        self.tasks = self.process.stdout.readline().split()

    def seconds(self, task: str) -> float:
        """Return how long one run of a task takes."""
        if task == "help":
            begin = time.perf_counter()
            subprocess.run([self.python, "-m", "unspool", "--help"], stdout=subprocess.DEVNULL, check=True)
            return time.perf_counter() - begin
        assert self.process.stdout and self.process.stdin
        self.process.stdin.write(task + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    old, new = Worker(arguments.old, arguments.threads), Worker(arguments.new, arguments.threads)
    rows, figures = [], []
    for task in [name for name in [*old.tasks, "help"] if arguments.only in name]:
        pairs = []
        for i in range(arguments.pairs):
            first, second = (old, new) if i % 2 == 0 else (new, old)
            found = {first: first.seconds(task)}
            found[second] = second.seconds(task)
            pairs.append((found[old], found[new]))
        ratio = statistics.median(b / a for a, b in pairs)
        best_old, best_new = min(a for a, _ in pairs), min(b for _, b in pairs)
        rows.append(
            [
                task,
                f"{1e3 * best_old:.3f}",
                f"{1e3 * best_new:.3f}",
                f"{ratio:.3f}",
                f"{best_new / best_old:.3f}",
            ]
        )
        figures.append({"task": task, "old": best_old, "new": best_new, "median": ratio})
    show(["task", "old ms", "new ms", "median new/old", "best new/old"], rows)
    save("versions", figures)


if __name__ == "__main__":
    main()
