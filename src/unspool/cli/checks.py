"""Check options and data before the work starts, and refuse those that cannot be used."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from unspool.cli.options import OutputOptions
from unspool.cli.output_files import check_outputs
from unspool.data.formats.labelled import folder_files
from unspool.data.formats.table import as_number
from unspool.errors import EmptyInput, FileError, InputError
from unspool.kernels.native import set_threads
from unspool.plots.figure import check_format, new_axes
from unspool.storage import run_folder
from unspool.storage.files import check_path, why


def check_before(out: Path | None, shown: OutputOptions, inputs: Iterable[Path | None] = ()) -> None:
    """Raise for outputs that could not be written after the work; set the number of threads."""
    if out is not None:
        run_folder.require_free_folder(out)
    check_plot(shown.plot, force=shown.force, inputs=inputs, folder=out)
    if shown.threads is not None:
        set_threads(shown.threads)


def check_plot(
    plot: Path | None,
    *,
    force: bool,
    inputs: Iterable[str | Path | None] = (),
    folder: Path | None = None,
) -> None:
    """Raise unless a picture can be drawn and written; `folder` is the run that the command makes."""
    if plot is not None:
        check_format(plot)
        check_outputs(plot, force=force, inputs=inputs, folder=folder)
        new_axes()  # a missing package is reported now, not after the work


def files_of(data: Path | None) -> list[Path]:
    """Return the files that a command reads: the file itself, or the files of a folder that have classes."""
    if data is None:
        return []
    check_path(data)
    try:
        if data.is_dir():
            return folder_files(data)
        found = data.exists()
    except OSError as error:
        raise FileError(f"{data}: cannot be read: {why(error)}") from error
    if not found:
        raise FileError(f"{data}: no such file or folder")
    return [data]


def note_empty(name: str, sequences: Sequence[Any], *, fit: bool = False) -> None:
    """Print how many sequences have no step, in one line on standard error; refuse a fit where none has a step."""
    empty = sum(not len(each) for each in sequences)
    if fit and empty == len(sequences):
        raise EmptyInput(f"{name}: every sequence is empty; expected at least one with a step to learn from")
    if empty:
        count = "1 sequence is" if empty == 1 else f"{empty:,} sequences are"
        print(f"unspool: {name}: {count} empty: the prediction depends on h(0) alone", file=sys.stderr)


def refuse_unknown(labels: Iterable[str], places: Iterable[str], classes: list[str]) -> None:
    """Raise for a label that does not occur in the training data, with its position."""
    known = set(classes)
    for label, place in zip(labels, places, strict=False):
        if label not in known:
            raise InputError(
                f"{place}: the label {label!r} was never seen in training; there are {', '.join(classes)}"
            )


def refuse_broken(labels: Iterable[str], name: str) -> None:
    """Raise for a label with a tab or a line break: predictions are printed one per line, in columns."""
    for label in dict.fromkeys(labels):
        if len(label.splitlines()) > 1 or "\t" in label or label.endswith(("\n", "\r")):
            raise InputError(
                f"{name}: the label {label!r} has a tab or a line break; expected labels of one line: replace it"
            )


def refuse_numbers(name: str, labels: Sequence[str]) -> None:
    """Raise if the classes are mostly distinct real numbers: a regression."""
    numbers = [as_number(label) for label in labels]
    fractions = all(number is not None for number in numbers) and any(
        n != n // 1 for n in numbers if n is not None
    )
    if fractions and 2 * len(set(labels)) > len(labels):
        raise InputError(
            f"{name}: {len(set(labels)):,} different numbers as labels of {len(labels):,} sequences; expected classes: "
            "to predict numbers use unspool regress"
        )


def refuse_unlabelled(plot: Path | None, labels: Any, data: Path) -> None:
    """Raise if --plot needs labels and the data has none."""
    if plot is not None and labels is None:
        raise InputError(f"{data}: --plot needs labels, and there are none; give a file with them")
