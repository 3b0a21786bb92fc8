"""Compare cells at equal seconds: the validation loss of character models, each trained for the same time.

    python bench/cells.py TEXT [TEXT …] [--seconds 10] [--models lstm:1 lnlstm:1] [--rates 0.002 0.004 0.008] [--seeds 0 1]

A model is CELL:LAYERS or CELL:LAYERS:HIDDEN. First, the seconds of one update (forward, backward, clipping, Adam) are measured: the
models alternate, and the best of all repetitions counts. The time limit divided by it is the number of updates, so the losses
do not depend on what else runs on the machine: pass --updates-of FILE to use the seconds of an earlier run. Then each
model is trained with each learning rate and each seed, on the first 80 % of the text with a cosine schedule, and scored on the
next 10 %. The last 10 % is not read. The rate with the lowest mean loss over the seeds counts, for every model alike.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from table import save, show
from unspool import Adam, Diverged, Model, ModelConfig, set_threads, train
from unspool.data import prepare
from unspool.data.batches.text_windows import sequential_batches
from unspool.evaluation.language import validation_loss
from unspool.optimisers.schedules.cosine import Cosine
from unspool.tasks.language.plan import log_frequencies

MODELS = ["lstm:1", "gru:1", "lnlstm:1", "elman:1", "lstm:2", "gru:2", "lnlstm:2"]
SPLIT = (0.8, 0.1, 0.1)
B, TAU = 16, 64
SCORED = 60_000
"""The tokens of the validation part that are scored."""


class Net(NamedTuple):
    """A network to compare."""

    cell: str
    layers: int
    hidden: int
    embedding: int

    def config(self, K: int) -> ModelConfig:
        """Return the network for K tokens."""
        return ModelConfig(
            inputs=K,
            outputs=K,
            cell=self.cell,
            layers=self.layers,
            hidden=self.hidden,
            embedding=self.embedding,
        )

    @property
    def name(self) -> str:
        """Return its name in the table."""
        return f"{self.cell} {self.layers} x {self.hidden}"


def read_net(text: str, hidden: int, embedding: int) -> Net:
    cell, layers, *size = text.split(":")
    return Net(cell, int(layers), int(size[0]) if size else hidden, embedding)


def seconds_per_update(nets: list[Net], corpus: Any, rounds: int) -> dict[str, float]:
    """Return the best seconds of one update of each network; they alternate."""
    K, runs, best = len(corpus.vocab), {}, {net.name: math.inf for net in nets}
    for net in nets:
        batches = sequential_batches(corpus.train.ids, B, TAU, np.random.default_rng(0))
        runs[net.name] = train(Model.initialise(net.config(K), seed=0), batches, Adam(learning_rate=1e-3))
    for turn, (name, run) in itertools.product(range(rounds), runs.items()):
        for _ in range(8):
            begin = time.perf_counter()
            next(run)
            best[name] = min(best[name], time.perf_counter() - begin)
        print(f"\rround {turn + 1} of {rounds} ", end="", file=sys.stderr)
    return best


def learned(net: Net, corpus: Any, updates: int, rate: float, seed: int) -> float:
    """Return the validation loss in nats per token after training."""
    model = Model.initialise(net.config(len(corpus.vocab)), seed=seed)
    model.parameters["c"][:] = log_frequencies(corpus.vocab)
    batches = sequential_batches(corpus.train.ids, B, TAU, np.random.default_rng(seed))
    try:
        for _ in train(model, itertools.islice(batches, updates), Adam(learning_rate=rate), schedule=Cosine(updates)):  # fmt: skip
            pass
    except Diverged:
        return math.inf
    return validation_loss(model, np.asarray(corpus.valid.ids), SCORED)


def compare(net: Net, corpus: Any, updates: int, rates: list[float], seeds: list[int]) -> dict[str, Any]:
    """Return the losses of a network by rate and seed, and those of its best rate."""
    losses = {rate: [learned(net, corpus, updates, rate, seed) for seed in seeds] for rate in rates}
    best = min(rates, key=lambda rate: sum(losses[rate]))
    return {"rate": best, "nats": float(np.mean(losses[best])), "spread": float(np.ptp(losses[best])), "losses": losses}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--seconds", type=float, default=10.0, help="training time of one model")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--embedding", type=int, default=0, help="width of the embedding; 0: one-hot tokens")
    parser.add_argument("--rates", nargs="+", type=float, default=[0.002, 0.004, 0.008])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--rounds", type=int, default=12, help="repetitions of the measurement of seconds")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", default="char")
    parser.add_argument(
        "--updates-of", default="", metavar="FILE", help="take the seconds per update from this file"
    )
    parser.add_argument("--name", default="cells", help="of the file of results")
    args = parser.parse_args()
    set_threads(args.threads)
    nets = [read_net(text, args.hidden, args.embedding) for text in args.models]
    earlier = json.loads(Path(args.updates_of).read_text())["figures"] if args.updates_of else []
    figures: list[dict[str, Any]] = []
    for path in args.texts:
        corpus, text = prepare(path, tokens=args.tokens, split=SPLIT), Path(path).name
        known = {each["model"]: each["seconds"] for each in earlier if each["text"] == text}
        missing = [net for net in nets if net.name not in known]
        seconds = known | seconds_per_update(missing, corpus, args.rounds)
        base = seconds[nets[0].name]
        for net in nets:
            updates = max(1, round(args.seconds / seconds[net.name]))
            found = compare(net, corpus, updates, args.rates, args.seeds)
            count = Model.initialise(net.config(len(corpus.vocab)), seed=0).parameters.count
            figures.append({"text": text, "model": net.name, "parameters": count, "seconds": seconds[net.name],
                            "ratio": seconds[net.name] / base, "updates": updates} | found)  # fmt: skip
            print(f"\r{text}, {net.name}: {updates} updates, {found['nats']:.4f} nats ", file=sys.stderr)
    rows = [[f["text"], f["model"], f"{f['parameters']:,}", f"{1e3 * f['seconds']:.2f}", f["ratio"], f["updates"],
             f"{f['rate']:g}", f"{f['nats']:.4f}", f"{f['spread']:.4f}"] for f in figures]  # fmt: skip
    show(["text", "model", "parameters", "ms/update", "ratio", "updates", "rate", "nats", "spread"], rows)
    save(args.name, figures)


if __name__ == "__main__":
    main()
