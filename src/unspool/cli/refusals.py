"""What a command refuses before it works: what could only fail later, and data that cannot be used."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unspool import checkpoint
from unspool.data.labelled import Labelled
from unspool.draw.figure import check_format, new_axes
from unspool.errors import InputError
from unspool.kernel.ops import set_threads


def check_before(out: Path | None, plot: Path | None, threads: int | None) -> None:
    """Refuse what would fail only after the work."""
    if out is not None:
        checkpoint.check_free(out)
    if plot is not None:
        check_format(plot)
        new_axes()
    if threads is not None:
        set_threads(threads)


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
