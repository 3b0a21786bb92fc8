"""Benchmark translation of dates in words to ISO: exact matches on dates outside the training split.

    python bench/dates.py [--seeds 3] [--attention general] [--write FILE.tsv]

Each day of 1900 … 2099 belongs to one split only, in all its wordings.
"""

from __future__ import annotations

import argparse
import datetime
import time
from pathlib import Path

import numpy as np

from table import save, show
from unspool.tasks import SequenceTranslator

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--attention", choices=("none", "general", "additive"), default="general")
    parser.add_argument("--train", type=int, default=10_000)
    parser.add_argument("--test", type=int, default=1_000)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--write", type=Path, help="write the training pairs of seed 0 here, and stop")
    options = parser.parse_args()
    if options.write:
        x, y = pairs(options.train, np.random.default_rng(0))[0]
        options.write.write_text("".join(f"{a}\t{b}\n" for a, b in zip(x, y, strict=True)))
        return
    rows = [one(options, seed) for seed in range(options.seeds)]
    columns = list(rows[0])
    show(columns, [[f"{v:.4f}" if isinstance(v, float) else v for v in row.values()] for row in rows])
    exact = float(np.mean([row["exact"] for row in rows]))
    print(f"mean of exact matches on unseen dates: {exact:.4f}")
    save(f"dates_{options.attention}", {"runs": rows, "mean": exact})


def one(options: argparse.Namespace, seed: int) -> dict:
    (x, y), (test, truth) = pairs(options.train, np.random.default_rng(seed), options.test)
    model = SequenceTranslator(
        hidden=96, bidirectional=True, attention=options.attention, epochs=options.epochs, batch_size=64,
        learning_rate=6e-3, seed=seed,
    )  # fmt: skip
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(x, y)
    spent = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    exact = model.score(test, truth)
    model.beam = 4
    row = {"seed": seed, "exact": exact, "exact_beam_4": model.score(test, truth)} | spent
    print(row, flush=True)
    return row


def pairs(train: int, rng: np.random.Generator, test: int = 0) -> list[tuple[list[str], list[str]]]:
    """Return the pairs of the two splits: disjoint dates, random wordings."""
    first = datetime.date(1900, 1, 1).toordinal()
    days = rng.permutation(datetime.date(2100, 1, 1).toordinal() - first) + first
    parts = []
    for chosen in (days[:train], days[train : train + test]):
        dates = [datetime.date.fromordinal(int(day)) for day in chosen]
        parts.append(([in_words(date, rng) for date in dates], [date.isoformat() for date in dates]))
    return parts


def in_words(date: datetime.date, rng: np.random.Generator) -> str:
    """Return a date in one of ten wordings.

    >>> in_words(datetime.date(2001, 2, 3), np.random.default_rng(0))
    'saturday, 3 february 2001'
    """
    d, m, y = date.day, MONTHS[date.month - 1], date.year
    ending = "th" if 10 < d < 20 else {1: "st", 2: "nd", 3: "rd"}.get(d % 10, "th")
    ways = (
        f"{d} {m} {y}", f"{m} {d}, {y}", f"the {d}{ending} of {m} {y}", f"{m} {d}{ending}, {y}",
        f"{d} {m[:3]} {y}", f"{m[:3]} {d} {y}", f"{d}. {m} {y}", f"{y}, {m} {d}",
        f"{DAYS[date.weekday()]}, {d} {m} {y}", f"{DAYS[date.weekday()][:3]} {d} {m[:3]} {y}",
    )  # fmt: skip
    words = ways[int(rng.integers(len(ways)))]
    return words.lower() if rng.random() < 0.3 else words


if __name__ == "__main__":
    main()
