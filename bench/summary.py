"""Measure the capacity of the state: adding, copying, recovery, probing, and generalisation to other lengths.

python bench/summary.py adding      [--length 200]          against predicting the mean
python bench/summary.py copy        [--delays 10 30 100]    against guessing, with no memory
python bench/summary.py autoencoder [--length 8]            exact recovery of unseen strings of 26 letters
python bench/summary.py recovery                            by length and by state size
python bench/summary.py probe       [--length 8]            how many of the last symbols h still holds
python bench/summary.py lengths     [--length 8]            trained up to n, tested at n, 2n and 4n
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from table import save, show
from unspool.data.batches.examples import Examples
from unspool.inspect.probes import probe
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.tasks import SequenceTranslator
from unspool.training.recipe import FitConfig
from unspool.training.sequence_fit import evaluate, fit_network

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("adding", "copy", "autoencoder", "recovery", "probe", "lengths"))
    parser.add_argument("--length", type=int)
    parser.add_argument("--delays", type=int, nargs="+", default=[10, 30, 100])
    parser.add_argument("--cells", nargs="+", default=["elman", "gru", "lstm"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, help="updates of a training")
    options = parser.parse_args()
    tasks = {
        "adding": adding,
        "copy": copy,
        "autoencoder": autoencoder,
        "recovery": recovery,
        "probe": probes,
    }
    rows = (tasks | {"lengths": lengths})[options.task](options)
    columns = list(rows[0])
    show(columns, [[f"{v:.4f}" if isinstance(v, float) else v for v in row.values()] for row in rows])
    save(f"summary_{options.task}", rows)


def timed(network: Network, examples: Examples, config: FitConfig) -> dict:
    wall, cpu = time.perf_counter(), time.process_time()
    for report in fit_network(network, examples, config):
        if report.step % max(1, report.steps // 10) == 0:
            print(f"  update {report.step:,} of {report.steps:,}, loss {report.train:.5f}", flush=True)
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def adding_examples(n: int, length: int, rng: np.random.Generator) -> Examples:
    """Return values from [0, 1) with marks, two of which are set; the target is the sum of the marked values."""
    x = np.zeros((n, length, 2), np.float32)
    x[:, :, 0] = rng.random((n, length))
    rows = np.arange(n)
    first, second = rng.integers(0, length // 2, n), rng.integers(length // 2, length, n)
    x[rows, first, 1] = x[rows, second, 1] = 1
    return Examples(x, (x[rows, first, 0] + x[rows, second, 0])[:, None])


def adding_up_to(n: int, longest: int, rng: np.random.Generator) -> Examples:
    """Return such examples with lengths from a fifth of the longest to the longest."""
    parts = [adding_examples(n // 20, k, rng) for k in rng.integers(longest // 5, longest + 1, 20).tolist()]
    return Examples([x for part in parts for x in part.x], np.concatenate([part.y for part in parts]))


def adding(options: argparse.Namespace) -> list[dict]:
    length, rows = options.length or 200, []
    for seed in range(options.seeds):
        rng = np.random.default_rng(seed)
        config = SequenceConfig(
            "many-to-one",
            "numbers",
            inputs=2,
            dense=True,
            outputs=1,
            cell="gru",
            hidden=64,
            chrono_steps=length,
        )
        network = Network.initialise(config, seed)
        updates = FitConfig(steps=options.steps or 2000, batch_size=50, learning_rate=4e-3, seed=seed)
        spent = timed(network, adding_examples(20_000, length, rng), updates)
        test = adding_examples(2_000, length, rng)
        error = evaluate(network, test).mean
        rows.append({"length": length, "seed": seed, "mse": error, "mean alone": float(test.y.var())} | spent)
        print(rows[-1], flush=True)
    return rows


def copy_examples(
    n: int, delay: int, rng: np.random.Generator, symbols: int = 8, items: int = 10
) -> Examples:
    """Return ten symbols, a delay of blanks (8), a sign (9), and the ten symbols again."""
    x = np.full((n, 2 * items + delay), symbols, np.int32)
    y = np.full_like(x, symbols)
    x[:, :items] = rng.integers(0, symbols, (n, items))
    x[:, items + delay - 1] = symbols + 1
    y[:, items + delay :] = x[:, :items]
    return Examples(list(x), list(y))


def copy(options: argparse.Namespace) -> list[dict]:
    rows = []
    for delay in options.delays:
        for cell in options.cells:
            rng = np.random.default_rng(0)
            more = {} if cell == "elman" else {"chrono_steps": delay + 20}
            config = SequenceConfig(
                "many-to-many", "classes", inputs=10, outputs=9, cell=cell, hidden=96, **more
            )
            network = Network.initialise(config, 0)
            updates = FitConfig(steps=options.steps or 1500, batch_size=50, learning_rate=4e-3)
            spent = timed(network, copy_examples(20_000, delay, rng), updates)
            loss = evaluate(network, copy_examples(500, delay, rng)).mean
            guess = 10 * math.log(8) / (20 + delay)
            rows.append({"delay": delay, "cell": cell, "nats": loss, "without memory": guess} | spent)
            print(rows[-1], flush=True)
    return rows


def strings(n: int, low: int, high: int, rng: np.random.Generator) -> list[str]:
    return ["".join(rng.choice(LETTERS, length)) for length in rng.integers(low, high + 1, n).tolist()]


def recover(
    cell: str, hidden: int, low: int, high: int, steps: int, seed: int, n: int = 60_000
) -> tuple[SequenceTranslator, dict]:
    x = strings(n, low, high, np.random.default_rng(seed))
    model = SequenceTranslator(
        cell=cell, hidden=hidden, steps=steps, batch_size=64, learning_rate=4e-3, seed=seed,
    )  # fmt: skip
    wall, cpu = time.perf_counter(), time.process_time()
    for report in model.fit_iter(x, x):
        if report.step % max(1, report.steps // 10) == 0:
            print(f"  update {report.step:,} of {report.steps:,}, loss {report.train:.5f}", flush=True)
    model.max_length_ = 8 * high
    return model, {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def exact(model: SequenceTranslator, length: int, n: int = 1000) -> float:
    x = strings(n, length, length, np.random.default_rng(10**6 + length))
    return model.score(x, x)


def autoencoder(options: argparse.Namespace) -> list[dict]:
    length, rows = options.length or 8, []
    for seed in range(options.seeds):
        model, spent = recover("gru", 192, length, length, options.steps or 6000, seed)
        rows.append({"length": length, "hidden": 192, "seed": seed, "exact": exact(model, length)} | spent)
        print(rows[-1], flush=True)
    return rows


def recovery(options: argparse.Namespace) -> list[dict]:
    rows = []
    for hidden in (32, 64, 128):
        row = {"hidden": hidden}
        model, spent = recover("gru", hidden, 1, 12, options.steps or 4000, 0)
        row |= {f"length {length}": exact(model, length, 300) for length in (2, 4, 6, 8, 10, 12)}
        rows.append(row | spent)
        print(rows[-1], flush=True)
    return rows


def probes(options: argparse.Namespace) -> list[dict]:
    length, rows = options.length or 8, []
    for cell in options.cells:
        for trained in (False, True):
            model, _ = recover(cell, 128, length, length, (options.steps or 4000) if trained else 1, 0)
            x = strings(4000, length, length, np.random.default_rng(5))
            found = probe(model.network_, model.coder_.encode(x), lags=length)
            row = {
                "cell": cell,
                "trained": "yes" if trained else "no",
                "exact": exact(model, length, 300),
                "held": found.held(),
                "amount": found.amount,
            }
            rows.append(row | {f"lag {k}": float(found.accuracy[k]) for k in range(length)})
            print(rows[-1], flush=True)
    return rows


def lengths(options: argparse.Namespace) -> list[dict]:
    n, rows = options.length or 8, []
    for cell in options.cells:
        model, spent = recover(cell, 128, 1, n, options.steps or 4000, 0)
        recovered = {f"exact at {k}": exact(model, k, 300) for k in (n, 2 * n, 4 * n)}
        rows.append({"cell": cell, "trained up to": n} | recovered | spent)
        print(rows[-1], flush=True)
    for cell in options.cells:
        config = SequenceConfig(
            "many-to-one", "numbers", inputs=2, dense=True, outputs=1, cell=cell, hidden=64,
            **({} if cell == "elman" else {"chrono_steps": 50}),
        )  # fmt: skip
        network, rng = Network.initialise(config, 0), np.random.default_rng(0)
        spent = timed(
            network, adding_up_to(20_000, 50, rng),
            FitConfig(steps=options.steps or 2000, batch_size=50, learning_rate=4e-3),
        )  # fmt: skip
        errors = {
            f"adding at {k}": evaluate(network, adding_examples(500, k, rng)).mean for k in (50, 100, 200)
        }
        print({"cell": cell} | errors | spent, flush=True)
        next(row for row in rows if row["cell"] == cell).update(errors)
    return rows


if __name__ == "__main__":
    main()
