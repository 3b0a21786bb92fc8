"""Compare recipes of `unspool train` on several texts and seeds; resumable, with a verdict.

    python bench/bakeoff.py TEXT[:TOKENS] … [--stage screen | final] [--candidates NAME …] [--more FILE.json]
                            [--seconds S | --steps N] [--seeds N] [--list]

The last tenth of every text is cut off before anything reads it: a recipe is not chosen on what is reported. A candidate trains on the
first 80 % of the text and is scored on the tenth after that, state carried, in nats per token. `screen` gives each 30 s and one
seed, on the first two texts; `final` 150 s and three seeds, on all. Time limits need a quiet machine. With `--steps`, all candidates
make the same number of updates with the same size, and the result does not depend on the load.

A run is a text, a candidate (all its options), a seed and a limit. Every run is written to `bench/results/bakeoff.json` when it ends;
the script skips the runs that are there. A candidate is adopted if it is better than `default` by two standard errors of
the difference on at least two texts, and worse by as much on none. `--more` names a file {"NAME": {option: value, …}, …} of
further candidates; options are the arguments of `LanguageModel`.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from candidate_optimisers import register
from table import RESULTS, show
from unspool import LanguageModel
from unspool.cells import CELLS
from unspool.errors import UnspoolError
from unspool.storage.files import write_atomic

STAGES = {"screen": (30.0, 1, 2), "final": (150.0, 3, None)}
"""Seconds, seeds, and how many of the texts."""
CANDIDATES: dict[str, dict[str, Any]] = {
    "default": {},
    **{f"cell {name}": {"cell": name} for name in CELLS},
    "gru as before": {"cell": "gru", "input_scale": 0.0, "learning_rate": 0.006},
    "gru, rate 0.01": {"cell": "gru", "input_scale": 0.0, "learning_rate": 0.01},
    "two layers": {"layers": 2},
    "batch 8": {"batch_size": 8},
    "batch 32": {"batch_size": 32},
    "window 32": {"window": 32},
    "window 128": {"window": 128},
    "dropout 0": {"dropout": 0.0},
    "dropout 0.1": {"dropout": 0.1},
    "dropout 0.3": {"dropout": 0.3},
    "dropout 0.45": {"dropout": 0.45},
    "rate 0.006": {"learning_rate": 0.006},
    "rate 0.01": {"learning_rate": 0.01},
    "rate 0.02": {"learning_rate": 0.02},
    "rate 0.03": {"learning_rate": 0.03},
    "input scale 0": {"input_scale": 0.0},
    "input scale 1": {"input_scale": 1.0},
    "warm-up 20": {"warmup": 20},
    "warm-up 400": {"warmup": 400},
    "clip 0.5": {"clip": 0.5},
    "decay 0.01": {"decay": 0.01},
    "decay 0.1": {"decay": 0.1},
    "recurrent dropout 0.2": {"recurrent_dropout": 0.2},
    "learned h0": {"h0": "learned"},
    "restart 0": {"restart": 0.0},
    "restart 0.1": {"restart": 0.1},
    "nadam": {"optimiser": "nadam"},
    "cautious": {"optimiser": "cautious-adam"},
    "beta2 0.99": {"optimiser": "adam-0.99"},
}
HELD_OUT = 0.1
"""The end of every text that is cut off."""
SPLIT = (8 / 9, 1 / 9, 0.0)
"""Of the rest: eight tenths of the text to train, one to score."""


class Case(NamedTuple):
    """One run."""

    text: str
    tokens: str
    candidate: str
    options: dict[str, Any]
    seed: int
    limit: dict[str, Any]
    """Steps or minutes, and the hidden units that equal updates are compared with."""

    def key(self) -> str:
        """Return what names this run in the file of results."""
        return json.dumps(
            [Path(self.text).name, self.tokens, self.options, self.seed, self.limit], sort_keys=True
        )


def run_case(case: Case, folder: Path) -> dict[str, Any]:
    """Train and score one candidate; a candidate that fails scores no nats."""
    data = Path(case.text).read_bytes()
    part = folder / (Path(case.text).name + ".part.txt")
    part.write_bytes(data[: int(len(data) * (1 - HELD_OUT))])
    options: dict[str, Any] = {
        "seed": case.seed,
        "tokens": case.tokens,
        "order": 1,
        "split": SPLIT,
        "errors": "replace",
    }
    begin = time.perf_counter()
    try:
        model = LanguageModel(**options | case.limit | case.options).fit(part)
    except UnspoolError as error:
        return case._asdict() | {"nats": None, "error": str(error)}
    recipe = model.config_.to_json()["recipe"]
    seconds = round(time.perf_counter() - begin, 1)
    return case._asdict() | {"nats": model.measure_.nats, "seconds": seconds, "recipe": recipe}


def cases_of(args: argparse.Namespace, candidates: dict[str, dict[str, Any]]) -> list[Case]:
    """Return the runs of a stage, seed by seed, so that an early stop leaves whole comparisons."""
    seconds, seeds, count = STAGES[args.stage]
    limit: dict[str, Any] = {"minutes": (args.seconds or seconds) / 60}
    if args.steps:
        limit = {"steps": args.steps, "hidden": args.hidden}
    texts = [each.rpartition(":")[::2] if ":" in each else (each, "char") for each in args.texts[:count]]
    return [
        Case(text, tokens, name, candidates[name], seed, limit)
        for seed in range(args.seeds or seeds)
        for text, tokens in texts
        for name in dict.fromkeys(["default", *args.candidates])
    ]


def compared(own: list[float], usual: list[float]) -> tuple[float, float]:
    """Return the difference of two means and its standard error; NaN where a mean is of one figure.

    >>> compared([1.0, 1.2], [2.0, 2.2])[0]
    -1.0
    """
    if not own or not usual:
        return math.nan, math.nan
    difference = statistics.mean(own) - statistics.mean(usual)
    if min(len(own), len(usual)) < 2:
        return difference, math.nan
    return difference, math.sqrt(sum(statistics.variance(each) / len(each) for each in (own, usual)))


def verdict(differences: list[tuple[float, float]]) -> str:
    """Apply the rule: better by two standard errors on at least two texts, worse by as much on none.

    >>> verdict([(-0.1, 0.01), (-0.1, 0.02), (0.01, 0.01)]), verdict([(-0.1, 0.01), (-0.1, 0.01), (0.1, 0.01)])
    ('adopt', 'reject')
    """
    if any(math.isnan(error) for _, error in differences):
        return "too few seeds"
    wins = sum(difference < -2 * error for difference, error in differences)
    losses = sum(difference > 2 * error for difference, error in differences)
    return "reject" if losses else "adopt" if wins >= 2 else "no difference"


def table(done: list[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Return the columns and rows of the comparison: mean ± standard error and the difference to the default."""
    texts = list(dict.fromkeys(each["text"] for each in done))
    nats: dict[tuple[str, str], list[float]] = {}
    for each in done:
        if each["nats"] is not None:
            nats.setdefault((each["candidate"], each["text"]), []).append(each["nats"])
    rows = []
    for name in dict.fromkeys(each["candidate"] for each in done):
        cells, differences = [], []
        for text in texts:
            own, usual = nats.get((name, text), []), nats.get(("default", text), [])
            differences.append(compared(own, usual))
            error = statistics.stdev(own) / math.sqrt(len(own)) if len(own) > 1 else math.nan
            cells += [
                f"{statistics.mean(own):.4f} ± {error:.4f}" if own else "failed",
                f"{differences[-1][0]:+.4f}",
            ]
        rows.append([name, *cells, "" if name == "default" else verdict(differences)])
    heads = [head for text in texts for head in (Path(text).name, "difference")]
    return ["candidate", *heads, "verdict"], rows


def main() -> None:
    """Run what has not been run yet, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("texts", nargs="*", help="a file, with :TOKENS if these are not characters")
    parser.add_argument("--stage", choices=list(STAGES), default="screen")
    parser.add_argument("--candidates", nargs="+", default=None)
    parser.add_argument("--more", type=Path)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--hidden", type=int, default=128, help="units of a network with --steps")
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--results", type=Path, default=RESULTS / "bakeoff.json")
    parser.add_argument("--list", action="store_true", help="print the candidates and end")
    args = parser.parse_args()
    register()
    candidates = CANDIDATES | (json.loads(args.more.read_text()) if args.more else {})
    if args.list:
        print("\n".join(f"{name}: {options}" for name, options in candidates.items()))
        return
    args.candidates = args.candidates or list(candidates)
    if unknown := [name for name in args.candidates if name not in candidates]:
        parser.error(f"{unknown[0]}: no such candidate; there are {', '.join(candidates)}")
    known: dict[str, Any] = json.loads(args.results.read_text()) if args.results.exists() else {}
    cases = cases_of(args, candidates)
    with tempfile.TemporaryDirectory() as folder:
        for i, case in enumerate(cases):
            if case.key() in known:
                continue
            print(
                f"{i + 1} of {len(cases)}: {case.candidate}, {Path(case.text).name}, seed {case.seed}",
                file=sys.stderr,
            )
            known[case.key()] = run_case(case, Path(folder))
            args.results.parent.mkdir(exist_ok=True)
            write_atomic(args.results, (json.dumps(known, indent=1) + "\n").encode())
    show(*table([known[case.key()] | {"candidate": case.candidate} for case in cases]))
    print(f"all runs: {args.results}")


if __name__ == "__main__":
    main()
