"""Sequences with a label each, from any file that has them: what a classifier reads.

    a table with a text column and a label column      CSV, TSV …        table
    a folder with one text file a class                a line an example
    a folder with one folder of images a class         .png, .jpg …      images
    arrays of different lengths, and images            .npz, .npy        ragged, images
    time series with a class                           .ts               timeseries

>>> import pathlib, tempfile
>>> place = tempfile.TemporaryDirectory()
>>> folder = pathlib.Path(place.name)
>>> _ = (folder / "Greek.txt").write_text("Adamou\\nPapadia\\n")
>>> _ = (folder / "Irish.txt").write_text("Adam\\n\\nO'Neal\\n")
>>> found = read_labelled(folder)
>>> found.sequences, found.labels, found.blank
(['Adamou', 'Papadia', 'Adam', "O'Neal"], ['Greek', 'Greek', 'Irish', 'Irish'], 1)
>>> place.cleanup()
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from unspool.data.formats.images import image_files, is_image, read_image_files
from unspool.data.formats.npz import read_ragged
from unspool.data.formats.table import Column, Table, read_table
from unspool.data.formats.ts import read_ts
from unspool.data.text.source import read_file
from unspool.errors import EmptyInput, FileError, InputError
from unspool.storage.files import as_path

TEXTS = (".txt", ".text")


@dataclass(frozen=True)
class Labelled:
    """Sequences, texts or arrays (tau, X), and what is known about them."""

    name: str
    """What error messages call the file."""
    sequences: Sequence[str] | Sequence[NDArray[Any]]
    labels: list[str] | None
    """One a sequence; None where the file has none and none were asked for."""
    places: list[str]
    """Where each sequence stands, for messages: ``names.csv: row 3 (line 4)``."""
    blank: int = 0
    """How many lines of a folder's files hold nothing, and so no example."""

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def is_text(self) -> bool:
        """Whether the sequences are texts."""
        return isinstance(self.sequences[0], str)

    @property
    def classes(self) -> list[str]:
        """The different labels, sorted."""
        return sorted(set(self.labels or ()))


class DefaultColumns(NamedTuple):
    """The columns of a table where nobody chooses others."""

    text: Column = "text"
    label: Column = "label"


USUAL = DefaultColumns()


def read_labelled(
    path: str | Path,
    text: Column | None = None,
    label: Column | None = None,
    delimiter: str | None = None,
    missing: str = "refuse",
    need_labels: bool = True,
    usual: DefaultColumns = USUAL,
    by: str | None = None,
) -> Labelled:
    """Read sequences and their labels from a table, a folder, .npz, .npy, .ts or an image, told apart by the name.

    ``text`` and ``label`` choose a table's columns [default: the usual ones]. Without ``need_labels`` a file may
    have none, or ``none`` says so: something to predict. ``by`` says what a step of an image is, rows or pixels.
    """
    path = as_path(path)
    kind = "folder" if path.is_dir() else path.name.lower().removesuffix(".gz").rpartition(".")[2]
    kind = "image" if is_image(path) else kind
    if kind in ("folder", "image", "npz", "npy", "ts") and (text, label, delimiter) != (None, None, None):
        raise InputError(f"{path}: text, label and delimiter are for tables, as CSV and TSV")
    images = kind in ("npz", "npy") or (kind in ("folder", "image") and _has_images(path))
    if by is not None and not images:
        raise InputError(f"{path}: by={by} is for images; leave it out")
    if kind in ("folder", "image"):
        return _from_images(path, by or "rows", need_labels) if images else read_classes(path)
    if kind in ("npz", "npy"):
        found = read_ragged(path, by)
        places = [f"{path}: sequence {i}" for i in range(1, len(found.sequences) + 1)]
        sequences: Any = found.sequences
        labelled = Labelled(str(path), sequences, found.labels, places)
    elif kind == "ts":
        series = read_ts(path, missing)
        if series.numbers:
            raise InputError(
                f"{path}: @targetLabel true: its series have numbers and no classes; use unspool regress"
            )
        places = [f"{path}: line {line}" for line in series.lines]
        labelled = Labelled(str(path), series.sequences, series.labels, places)
    else:
        labelled = _from_table(read_table(path, delimiter), text, label, need_labels, usual)
    if need_labels and labelled.labels is None:
        how = ": put both into one file, np.savez(path, images=…, labels=…)" if kind == "npy" else ""
        how = "; for its targets use unspool regress" if kind == "npz" and found.targets is not None else how
        raise InputError(f"{path}: its sequences have no labels, and there is nothing to learn without{how}")
    return labelled


def read_classes(folder: str | Path) -> Labelled:
    """Read a folder with one text file a class: the file's name is the label, each line an example."""
    folder = as_path(folder)
    if not folder.is_dir():
        raise FileError(f"{folder}: no such folder")
    paths = class_files(folder)
    if not paths:
        raise EmptyInput(f"{folder}: no class in it; expected files named like LABEL.txt, a line an example")
    sequences, labels, places, blank = list[str](), list[str](), list[str](), 0
    for path in paths:
        before = len(sequences)
        for number, line in enumerate(read_file(path, newlines="lf").removesuffix("\n").split("\n"), 1):
            blank += not line.strip()
            if line.strip():
                sequences.append(line.strip())
                labels.append(_label(path))
                places.append(f"{path}: line {number}")
        if len(sequences) == before:
            raise EmptyInput(f"{path}: a class without an example; expected one a line")
    return Labelled(str(folder), sequences, labels, places, blank)


def _has_images(path: Path) -> bool:
    """Return whether a path is an image or a folder with images; refuse a folder that also has texts of classes."""
    if not path.is_dir():
        return True
    images, texts = image_files(path), class_files(path)
    if images and texts:
        raise InputError(
            f"{path}: text files as {texts[0].name} and folders of images as {next(iter(images))}; expected one of the "
            "two, a class each: move the others away"
        )
    return bool(images) or (not texts and any(map(is_image, path.iterdir())))


def _from_images(path: Path, by: str, need_labels: bool) -> Labelled:
    """Read the images of one folder a class; without ``need_labels`` also of one folder, or a single image."""
    classes = image_files(path) if path.is_dir() else {}
    paths = [each for paths in classes.values() for each in paths]
    labels = [name for name, paths in classes.items() for _ in paths]
    if not classes:
        paths = [each for each in sorted(path.iterdir()) if is_image(each)] if path.is_dir() else [path]
        if need_labels:
            raise InputError(f"{path}: images without a class; expected a folder of images for each class")
    sequences: Any = read_image_files(paths, by)
    return Labelled(str(path), sequences, labels if classes else None, list(map(str, paths)))


def may_hold_images(path: Path) -> bool:
    """Return whether a path is an image, a folder with images, or a file of arrays that may be images."""
    return (
        path.name.lower().endswith((".npz", ".npy"))
        or is_image(path)
        or (path.is_dir() and _has_images(path))
    )


def folder_files(folder: Path) -> list[Path]:
    """Return the files of a folder that are read: texts, or images."""
    images = [path for paths in image_files(folder).values() for path in paths]
    return images or class_files(folder)


def class_files(folder: Path) -> list[Path]:
    """Give the files of a folder that are read, one a class, in their order; all else in it is nothing to us."""
    return [path for path in sorted(folder.iterdir()) if _label(path) and path.is_file()]


def _label(path: Path) -> str:
    """Give the class that a file's name stands for: nothing for hidden files and those that are no text."""
    name = path.name.removesuffix(".gz")
    stem, _, suffix = name.rpartition(".")
    return "" if name.startswith(".") or f".{suffix.lower()}" not in TEXTS else stem


def _from_table(
    table: Table, text: Column | None, label: Column | None, need_labels: bool, usual: DefaultColumns
) -> Labelled:
    text, at = usual.text if text is None else text, usual.label if label is None else label
    texts = table.text(text)
    if not need_labels and _without_labels(table, text, label, at):
        labels = None
    else:
        if table.find(at) == table.find(text):
            raise InputError(
                f"{table.name}: text and label are the same column, {table.names[table.find(at)]!r}"
            )
        labels = [each.strip() for each in table.text(at)]
        for i, each in enumerate(labels):
            if not each:
                raise InputError(f"{table.place(i, at)}: the label is missing")
    places = [f"{table.name}: row {i} (line {line})" for i, line in enumerate(table.lines, 1)]
    return Labelled(table.name, texts, labels, places)


def _without_labels(table: Table, text: Column, label: Column | None, at: Column) -> bool:
    """Say whether a table has no labels: none are said to be there, or the usual column is none or the texts'."""
    if label is not None:
        return label == "none" and not table.has(label)
    return not table.has(at) or table.find(at) == table.find(text)
