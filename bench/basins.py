"""Count starts from which a model of text does not recover: bad basins of its state.

    python bench/basins.py TEXT [TEXT …] [--seconds 30 | --steps 2000] [--seeds 10] [--cells gru lstm] [--restarts 0 default]
    python bench/basins.py TEXT --runs RUN [RUN …]

Each model is trained with the default options of `unspool train` on the first 90 % of a text. Then it starts 1,000 times from
h(0), all starts in one batch: it reads 20 random tokens, and then 2,000 tokens of the last 10 % from a random place. A start
is lost if the last 200 of these tokens cost more than 0.5 nats above the same tokens read with the carried state, that is by a
model that has read the whole part from its beginning. `--restarts` lists the values of `--restart` to compare; `default` is the
default. The figures are written after every model.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np

from table import save, show
from unspool import LanguageModel, Model
from unspool.data import prepare
from unspool.evaluation.language import log_prob
from unspool.kernels.arrays import Ids
from unspool.tasks.language.text_model import TextModel

SPLIT = (0.9, 0.1, 0.0)
NOISE, LENGTH, LAST, STARTS = 20, 2000, 200, 1000
LOST = 0.5
"""So many nats a token above the carried figure, a start counts as lost."""
WINDOW = 100


def excess_of_starts(model: Model, ids: Ids, starts: int = STARTS, seed: int = 0) -> tuple[Any, float]:
    """Return the nats per token of the last tokens of every start above the carried figure, and the carried figure of all ids."""
    carried, rng, weights = -log_prob(model, ids), np.random.default_rng(seed), model.weights()
    length = min(LENGTH, len(ids) - 2)
    at = rng.integers(0, len(ids) - length, starts)
    noise = rng.integers(0, model.config.inputs, (NOISE + 1, starts)).astype(np.int32)
    state = model.forward(noise[:-1], weights=weights, y=noise[1:]).state
    own = []
    for begin in range(0, length, WINDOW):
        steps = at + np.arange(begin, min(begin + WINDOW, length))[:, None]
        x, y = (np.ascontiguousarray(ids[steps + i], np.int32) for i in (0, 1))
        output = model.forward(x, state, weights=weights, y=y)
        state = output.state
        own.append(model.loss(output, y, weights=weights).per_target)
    last = at + np.arange(max(0, length - LAST), length)[:, None]
    return np.concatenate(own)[-len(last) :].mean(axis=0) - carried[last].mean(axis=0), float(carried.mean())


def trained(text: str, cell: str, seed: int, restart: str, args: argparse.Namespace) -> LanguageModel:
    """Train a model with the default options."""
    chosen: dict[str, Any] = {} if restart == "default" else {"restart": float(restart)}
    limit = {"steps": args.steps} if args.steps else {"minutes": args.seconds / 60}
    model = LanguageModel(cell=cell, seed=seed, split=SPLIT, order=1, tokens=args.tokens, **limit, **chosen)
    return model.fit(Path(text))


def measured(model: Model, ids: Ids, starts: int) -> dict[str, Any]:
    """Return the figures of one model."""
    excess, carried = excess_of_starts(model, ids, starts)
    return {
        "starts": starts, "lost": int((excess > LOST).sum()), "worst": float(excess.max()), "mean": float(excess.mean()),
        "carried": carried,
    }  # fmt: skip


def rows_of(figures: list[dict[str, Any]]) -> list[list[Any]]:
    """Return a row of the table for each text, cell and value of restart."""
    rows = []
    for key in dict.fromkeys((each["text"], each["cell"], each["restart"]) for each in figures):
        own = [each for each in figures if (each["text"], each["cell"], each["restart"]) == key]
        carried = [each["carried"] for each in own]
        error = statistics.stdev(carried) / math.sqrt(len(own)) if len(own) > 1 else math.nan
        rows.append(
            [*key, len(own), sum(each["starts"] for each in own), sum(each["lost"] for each in own),
             sum(each["lost"] > 0 for each in own), f"{max(each['worst'] for each in own):.3f}",
             f"{statistics.mean(carried):.4f}", f"{error:.4f}"]
        )  # fmt: skip
    return rows


def of_runs(text: str, runs: list[str], starts: int) -> list[dict[str, Any]]:
    """Return the figures of trained runs on the last tenth of a text."""
    found = []
    for run in runs:
        loaded = TextModel.load(run)
        whole = loaded.encode(Path(text).read_text(encoding="utf-8"))
        about = {"text": Path(text).name, "cell": loaded.model.config.cell, "restart": run, "seed": None}
        found.append(about | measured(loaded.model, whole[-len(whole) // 10 :], starts))
    return found


def of_trained(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Train and measure all models; write the figures after each."""
    figures: list[dict[str, Any]] = []
    cases = [
        (t, c, s, r) for t in args.texts for c in args.cells for s in range(args.seeds) for r in args.restarts
    ]
    for i, (text, cell, seed, restart) in enumerate(cases):
        print(
            f"{i + 1} of {len(cases)}: {Path(text).name}, {cell}, seed {seed}, restart {restart}",
            file=sys.stderr,
        )
        made = trained(text, cell, seed, restart, args)
        valid = prepare(text, tokens=args.tokens, split=SPLIT).valid.ids
        recipe = made.config_.fixed
        about = {"text": Path(text).name, "cell": cell, "restart": restart, "seed": seed}
        about |= {"probability": recipe.restart, "hidden": recipe.hidden, "steps": recipe.steps}
        figures.append(about | measured(made.fitted.model, np.asarray(valid), args.starts))
        save("basins", figures)
    return figures


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--runs", nargs="+", help="measure these runs on the first text instead of training")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--steps", type=int, default=0, help="updates, instead of seconds")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--starts", type=int, default=STARTS)
    parser.add_argument("--tokens", default="char")
    parser.add_argument("--cells", nargs="+", default=["gru", "lstm"])
    parser.add_argument("--restarts", nargs="+", default=["0", "default"])
    args = parser.parse_args()
    figures = of_runs(args.texts[0], args.runs, args.starts) if args.runs else of_trained(args)
    show(
        [
            "text",
            "cell",
            "restart",
            "models",
            "starts",
            "lost",
            "models that lost",
            "worst excess",
            "carried nats",
            "±",
        ],
        rows_of(figures),
    )
    save("basins", figures)


if __name__ == "__main__":
    main()
