"""Compare the quality of float32 and bf16: validation loss at equal updates and at equal seconds, error of the gradients.

    python bench/precision.py [--texts shakespeare words] [--cells gru lstm] [--seeds 0 1 2] [--short]
    python bench/precision.py --join FILE [FILE …]

The texts are read from the folder that UNSPOOL_DATA names, or --data. For every text, cell and seed three models start with the same
parameters and read the same windows: float32 and bf16 with the same number of updates, and bf16 with as many updates as fit
into the seconds of float32 (by the median seconds per update, measured alternately). All have the learning rate of `unspool train`,
Adam, clipping and a cosine schedule; nothing is tuned. They are trained on the first 80 % of the text and scored on the next 10 %.
The gradients of one window are compared with those of the reference implementation in float64, for the model before and after
training: ‖g - g64‖ / ‖g64‖ per parameter. Parts of a run can be made with --texts, --cells, --seeds and --name, and joined with --join.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from precision_tables import print_tables
from table import save
from unspool import Adam, Model, ModelConfig, kernel_info, train
from unspool.cells import cell_named
from unspool.data import prepare
from unspool.data.batches.text_windows import Batch, sequential_batches
from unspool.evaluation.language import validation_loss
from unspool.gradients import backpropagate
from unspool.kernels import native_bf16, reference
from unspool.kernels.backend import Backend
from unspool.model.config import INPUT_TABLE_LIMIT
from unspool.optimisers.schedules.cosine import Cosine
from unspool.tasks.language.plan import log_frequencies

SPLIT = (0.8, 0.1, 0.1)
B, TAU = 16, 64
SCORED = 60_000
"""The tokens of the validation split that are scored."""


class Text(NamedTuple):
    """A text, its tokens, and how many updates a model of it gets."""

    file: str
    tokens: str
    updates: int
    min_freq: int = 0


TEXTS = {
    "shakespeare": Text("tinyshakespeare.txt", "char", 1500),
    "hongloumeng": Text("hongloumeng.txt", "char", 500),
    "enwik8": Text("enwik8_10m", "byte", 1500),
    "words": Text("wikitext2/train.txt", "space", 400, min_freq=20),
}


def config(K: int, cell: str, hidden: int, precision: str) -> ModelConfig:
    """Return the model of a vocabulary: one-hot tokens, or a tied embedding where there are many, as `unspool train` has it."""
    many = K > INPUT_TABLE_LIMIT
    embedding = hidden if many else 0
    return ModelConfig(K, K, cell=cell, hidden=hidden, embedding=embedding, tied=many, precision=precision)


class Trained(NamedTuple):
    """A training run: its updates, its batches and how to start it."""

    corpus: Any
    cell: str
    hidden: int
    seed: int
    precision: str

    def model(self) -> Model:
        """Return the model before the first update."""
        K = len(self.corpus.vocab)
        model = Model.initialise(config(K, self.cell, self.hidden, self.precision), seed=self.seed)
        model.parameters["c"][:] = log_frequencies(self.corpus.vocab)
        return model

    def batches(self) -> Iterator[Batch]:
        """Return the windows, the same in both precisions."""
        return iter(sequential_batches(self.corpus.train.ids, B, TAU, np.random.default_rng(self.seed)))

    def reports(self, model: Model, updates: int) -> Iterator[Any]:
        """Train a model; yield a report per update."""
        highest, per_unit = cell_named(self.cell).learning_rate
        rate = min(highest, per_unit / self.hidden)
        schedule = Cosine(updates, warmup=max(1, min(100, updates // 10)))
        windows = itertools.islice(self.batches(), updates)
        return train(model, windows, Adam(learning_rate=rate), schedule=schedule)

    def after(self, updates: int) -> tuple[Model, float]:
        """Return the model after its updates and its validation loss in nats per token."""
        model = self.model()
        for _ in self.reports(model, updates):
            pass
        return model, validation_loss(model, np.asarray(self.corpus.valid.ids), SCORED)


def seconds_per_update(runs: list[Trained], rounds: int) -> list[float]:
    """Return the median seconds of one update of each run; they alternate."""
    reports = [run.reports(run.model(), 4 * (rounds + 1)) for run in runs]
    spent: list[list[float]] = [[] for _ in runs]
    for turn in range(rounds + 1):
        for report, each in zip(reports, spent, strict=True):
            begin = time.perf_counter()
            for _ in range(4):
                next(report)
            if turn:  # the first four allocate
                each.append((time.perf_counter() - begin) / 4)
    return [statistics.median(each) for each in spent]


def gradient(model: Model, batch: Batch, backend: Backend | None = None) -> dict[str, np.ndarray]:
    """Return the gradients of the mean loss of one window."""
    model = model if backend is None else model.on(backend)
    found = model.gradient()
    backpropagate(model, batch.x, batch.y, None, found, scale=1 / batch.y.size)
    model.fold_input_tables(found)
    return {name: np.array(found.values[name]) for name in found.values.shapes}


def gradient_errors(run: Trained, model: Model) -> dict[str, dict[str, float]]:
    """Return ‖g - g64‖ / ‖g64‖ per parameter and for all, in both precisions, at the parameters of `model` (float32)."""
    batch = next(run.batches())
    exact = gradient(model, batch, reference)
    found: dict[str, dict[str, float]] = {}
    for precision in ("float32", "bf16"):
        made = run._replace(precision=precision)
        other = made.model()
        other.parameters.flat[:] = model.parameters.flat
        g = gradient(other, batch)
        found[precision] = {name: relative_error(g[name], exact[name]) for name in exact}
        flat = [np.concatenate([part[name].reshape(-1) for name in exact]) for part in (g, exact)]
        found[precision]["all"] = relative_error(*flat)
    return found


def relative_error(found: np.ndarray, exact: np.ndarray) -> float:
    """Return the norm of the error divided by that of the exact value."""
    return float(np.linalg.norm(found.astype(np.float64) - exact) / np.linalg.norm(exact))


def compare(run: Trained, updates: int, seconds: list[float], *, errors: bool) -> dict[str, Any]:
    """Train the three models of a text, a cell and a seed."""
    at_equal_seconds = max(1, round(updates * seconds[0] / seconds[1]))
    bf16 = run._replace(precision="bf16")
    model, nats = run.after(updates)
    found: dict[str, Any] = {
        "float32": nats,
        "bf16": bf16.after(updates)[1],
        "bf16_at_equal_seconds": bf16.after(at_equal_seconds)[1],
        "updates": updates,
        "updates_at_equal_seconds": at_equal_seconds,
    }
    if errors:
        found["errors"] = {
            "before": gradient_errors(run, run.model()),
            "after": gradient_errors(run, model),
        }
    return found


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("UNSPOOL_DATA"), help="folder of the texts"
    )
    parser.add_argument("--texts", nargs="+", choices=list(TEXTS), default=list(TEXTS))
    parser.add_argument("--cells", nargs="+", default=["gru", "lstm"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--updates", type=float, default=1.0, help="factor of the number of updates")
    parser.add_argument("--rounds", type=int, default=10, help="of the measurement of seconds per update")
    parser.add_argument("--short", action="store_true", help="one cell (gru) and 0.6 of the updates")
    parser.add_argument(
        "--join", nargs="+", type=Path, metavar="FILE", help="print and save one table of these files"
    )
    parser.add_argument("--name", default="precision", help="of the file of results")
    if parser.parse_args().short:
        parser.set_defaults(cells=["gru"], updates=0.6)
    return parser.parse_args()


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the figures of all texts, cells and seeds; print the progress and the time left on standard error."""
    if args.data is None:
        raise SystemExit("no texts: set UNSPOOL_DATA, or pass --data, to the folder that holds them")
    figures: list[dict[str, Any]] = []
    total, begin = len(args.texts) * len(args.cells) * len(args.seeds), time.perf_counter()
    for name in args.texts:
        text = TEXTS[name]
        path = Path(args.data) / text.file
        if not path.exists():
            raise SystemExit(f"{path}: there is no such text; expected one of --texts in the folder --data")
        corpus = prepare(path, tokens=text.tokens, split=SPLIT, min_freq=text.min_freq)
        updates = max(1, round(text.updates * args.updates))
        for cell in args.cells:
            first = Trained(corpus, cell, args.hidden, args.seeds[0], "float32")
            seconds = seconds_per_update([first, first._replace(precision="bf16")], args.rounds)
            for seed in args.seeds:
                run = first._replace(seed=seed)
                found = compare(run, updates, seconds, errors=seed == args.seeds[0])
                sizes = {
                    "text": name,
                    "tokens": text.tokens,
                    "K": len(corpus.vocab),
                    "cell": cell,
                    "seed": seed,
                }
                figures.append(sizes | {"hidden": args.hidden, "seconds": seconds} | found)
                left = (time.perf_counter() - begin) / len(figures) * (total - len(figures)) / 60
                print(f"{name}, {cell}, seed {seed}: float32 {found['float32']:.4f}, bf16 {found['bf16']:.4f} nats; "
                      f"{len(figures)} of {total}, about {left:.0f} min left", file=sys.stderr)  # fmt: skip
    return figures


def main() -> None:
    args = options()
    if args.join:
        figures = [each for path in args.join for each in json.loads(path.read_text())["figures"]]
    else:
        native_bf16.matmul(
            *(np.ones((8, 8), np.float32) for _ in range(2))
        )  # the first kernel in bf16 tests the tiles
        print(kernel_info())
        figures = measure(args)
    print_tables(figures)
    save(args.name, figures)


if __name__ == "__main__":
    main()
