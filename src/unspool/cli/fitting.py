"""What the commands for sequences do before a fit: refuse what cannot work, split rows."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from unspool import checkpoint
from unspool.cli.fit_options import Column
from unspool.config import at_least
from unspool.data.labelled import Labelled
from unspool.draw.figure import check_format, new_axes
from unspool.errors import InputError
from unspool.kernel.ops import set_threads


def as_column(name: Column) -> Any:
    """Read a column's number from 0 as a number, anything else as its name."""
    return int(name) if name is not None and name.isdecimal() else name


def check_before(out: Path | None, plot: Path | None, threads: int | None) -> None:
    """Refuse what would fail only after the work."""
    if out is not None:
        checkpoint.check_free(out)
    if plot is not None:
        check_format(plot)
        new_axes()
    if threads is not None:
        set_threads(threads)


def held_out(labels: list[str], share: float, seed: int) -> tuple[list[int], list[int]]:
    """Split rows into those to fit on and those to judge by, class by class, at random by the seed.

    >>> held_out(["a"] * 5 + ["b"] * 5, 0.2, seed=0)
    ([0, 1, 3, 4, 5, 6, 7, 8], [2, 9])
    """
    if not 0 <= share < 1:
        raise InputError(f"hold-out is {share}; expected a share of at least 0 and below 1")
    at_least("seed", seed, 0)
    rng = np.random.default_rng(seed)
    judged = set[int]()
    for name in sorted(set(labels)):
        rows = [i for i, label in enumerate(labels) if label == name]
        kept = min(round(share * len(rows)), len(rows) - 1)
        judged |= {rows[i] for i in rng.permutation(len(rows))[:kept].tolist()}
    everything = range(len(labels))
    return [i for i in everything if i not in judged], sorted(judged)


def refuse_empty(data: Labelled) -> None:
    """Raise where a sequence has no step, with its place."""
    sequences: Any = data.sequences
    for sequence, place in zip(sequences, data.places, strict=True):
        if not len(sequence):
            raise InputError(f"{place}: the sequence is empty; expected at least one step")


def refuse_unknown(labels: Iterable[str], places: Iterable[str], classes: list[str]) -> None:
    """Raise where a label was never seen in training, with its place."""
    known = set(classes)
    for label, place in zip(labels, places, strict=False):
        if label not in known:
            raise InputError(
                f"{place}: the label {label!r} was never seen in training; there are {', '.join(classes)}"
            )


def refuse_unlabelled(plot: Path | None, labels: Any, data: Path) -> None:
    """Raise where a picture of what is right and wrong is asked for and nothing says what is right."""
    if plot is not None and labels is None:
        raise InputError(f"{data}: --plot needs labels, and there are none; give a file with them")


def rows_aside(n: int, share: float, seed: int) -> tuple[list[int], list[int]]:
    """Split n rows into those to fit on and those to judge by, at random by the seed.

    >>> rows_aside(5, 0.4, seed=0)
    ([0, 1, 3], [2, 4])
    """
    if not 0 <= share < 1:
        raise InputError(f"hold-out is {share}; expected a share of at least 0 and below 1")
    at_least("seed", seed, 0)
    order = np.random.default_rng(seed).permutation(n).tolist()
    kept = min(round(share * n), n - 1)
    return sorted(order[kept:]), sorted(order[:kept])
