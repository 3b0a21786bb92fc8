"""Benchmark MNIST as sequences of 28 rows or 784 pixels: test accuracy and time.

    python bench/mnist.py rows   FOLDER [--seeds 3]
    python bench/mnist.py pixels FOLDER

FOLDER has the four idx files. Pixels are trained in two stages: first on images of half the side (196 steps, a quarter of the
time), then on the full images, with the gates slowed down for the longer sequence.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from table import save, show
from unspool.data.batches.examples import Examples
from unspool.data.formats.idx import read_images
from unspool.kernels.native import kernel_info
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.training.recipe import FitConfig
from unspool.training.sequence_fit import evaluate, fit_network


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("way", choices=("rows", "pixels"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--epochs", type=float, nargs="+", help="rows: 6; pixels: 4 of half the side, then 1")
    parser.add_argument("--keep", type=Path, help="write the parameters here now and then")
    options = parser.parse_args()
    figures = [one(options, seed) for seed in range(options.seeds)]
    show(
        ["seed", "accuracy", "wall s", "cpu s", "parameters"],
        [[f["seed"], f"{f['accuracy']:.4f}", f["wall"], f["cpu"], f["parameters"]] for f in figures],
    )
    print(f"mean accuracy {np.mean([f['accuracy'] for f in figures]):.4f} over {len(figures)} seeds")
    save(f"mnist_{options.way}", {"runs": figures, "kernel": kernel_info()})


def one(options: argparse.Namespace, seed: int) -> dict:
    train, test = (pictures(options.folder, part) for part in ("train", "t10k"))
    wall, cpu = time.perf_counter(), time.process_time()
    learn = learn_rows if options.way == "rows" else learn_pixels
    network = learn(train, options, seed)
    spent = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    right = accuracy(network, as_rows(test) if options.way == "rows" else as_pixels(test))
    count = network.parameters.count
    return {"seed": seed, "accuracy": right, "parameters": count, "config": network.config.to_json()} | spent


def learn_rows(train: tuple, options: argparse.Namespace, seed: int) -> Network:
    config = SequenceConfig(
        "many-to-one", "classes", inputs=28, outputs=10, dense=True, cell="gru", hidden=options.hidden or 128,
        dropout=0.2, bidirectional=True,
    )  # fmt: skip
    network = Network.initialise(config, seed)
    epochs = (options.epochs or [6])[0]
    follow(
        network,
        as_rows(train),
        FitConfig(steps=steps(epochs, 100), batch_size=100, learning_rate=4e-3, seed=seed),
        None,
    )
    return network


def learn_pixels(train: tuple, options: argparse.Namespace, seed: int) -> Network:
    first, then = options.epochs or [4, 1]
    config = SequenceConfig(
        "many-to-one", "classes", inputs=1, outputs=10, dense=True, cell="gru", hidden=options.hidden or 64,
        chrono_steps=100,
    )  # fmt: skip
    network = Network.initialise(config, seed)
    follow(
        network, as_pixels(train, halved=True),
        FitConfig(steps=steps(first, 50), batch_size=50, learning_rate=4e-3, seed=seed), options.keep,
    )  # fmt: skip
    whole = as_pixels(train)
    slow_down(network, whole.part(np.arange(500)))
    follow(
        network,
        whole,
        FitConfig(steps=steps(then, 64), batch_size=64, learning_rate=2.5e-3, seed=seed),
        options.keep,
    )
    return network


def slow_down(network: Network, examples: Examples) -> None:
    """Shift the bias of the gates z so that the state is held longer, by the best of a few factors."""
    H = network.config.hidden
    z = network.parameters["encoder.layer0.b"][H : 2 * H]
    begin, found = z.copy(), []
    for factor in (1.0, 2.0, 3.0, 4.0, 6.0):
        z[:] = begin + np.float32(np.log(factor))
        found.append((evaluate(network, examples).mean, factor))
    z[:] = begin + np.float32(np.log(min(found)[1]))
    print(
        "slowed down by",
        min(found)[1],
        "of",
        [(round(loss, 3), factor) for loss, factor in found],
        flush=True,
    )


def follow(network: Network, examples: Examples, config: FitConfig, keep: Path | None) -> None:
    for report in fit_network(network, examples, config):
        if report.step % max(1, report.steps // 40) == 0:
            print(
                f"update {report.step:,} of {report.steps:,}, loss {report.train:.4f}, {report.seconds:.0f} s",
                flush=True,
            )
            if keep is not None:
                np.savez(keep, flat=network.parameters.flat, step=report.step)


def accuracy(network: Network, examples: Examples) -> float:
    weights = network.weights()
    right = [
        (network.outputs(batch, weights).argmax(1) == batch.y).sum()
        for batch in examples.batches(250, per_step=False)
    ]
    return float(sum(right) / len(examples))


def steps(epochs: float, B: int) -> int:
    return int(epochs * 60_000 / B)


def pictures(folder: Path, part: str) -> tuple:
    return read_images(folder / f"{part}-images-idx3-ubyte.gz", folder / f"{part}-labels-idx1-ubyte.gz")


def as_rows(both: tuple) -> Examples:
    x, y = both
    return Examples(scaled(x), y.astype(np.int32))


def as_pixels(both: tuple, halved: bool = False) -> Examples:
    x, y = both
    if halved:
        x = x.reshape(len(x), 14, 2, 14, 2).mean((2, 4))
    return Examples(scaled(x).reshape(len(x), -1, 1), y.astype(np.int32))


def scaled(x: np.ndarray) -> np.ndarray:
    return ((x - 33.3) / 78.6).astype(np.float32)


if __name__ == "__main__":
    main()
