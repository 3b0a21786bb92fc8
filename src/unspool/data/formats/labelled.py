"""Read sequences with one label each, for classification.

    a table with a text column and a label column      CSV, TSV …        table
    a folder with one text file per class              one example per line
    a folder with one folder of images per class       .png, .jpg …      images
    arrays of different lengths, and images            .npz, .npy        npz, images
    time series with a class                           .ts               ts

>>> import pathlib, tempfile
>>> temporary = tempfile.TemporaryDirectory()
>>> folder = pathlib.Path(temporary.name)
>>> _ = (folder / "Greek.txt").write_text("Adamou\\nPapadia\\n")
>>> _ = (folder / "Irish.txt").write_text("Adam\\n\\nO'Neal\\n")
>>> found = read_labelled(folder)
>>> found.sequences, found.labels, found.blank
(['Adamou', 'Papadia', 'Adam', "O'Neal"], ['Greek', 'Greek', 'Irish', 'Irish'], 1)
>>> temporary.cleanup()
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from unspool.data.formats.base import ending
from unspool.data.formats.images import image_files, is_image, read_image_files
from unspool.data.formats.registry import array_format
from unspool.data.formats.table import Column, Table, read_table
from unspool.data.text.decoding import read_file
from unspool.errors import EmptyInput, FileError, InputError
from unspool.kernels.arrays import Array
from unspool.storage.files import as_path

TEXT_ENDINGS = ("txt", "text")


@dataclass(frozen=True)
class Labelled:
    """Sequences (texts, or arrays (tau, X)) and their labels."""

    name: str
    """The file, for messages."""
    sequences: Sequence[str] | Sequence[Array]
    labels: list[str] | None
    """One per sequence; None if the file has none and `need_labels` was false."""
    locations: list[str]
    """The location of each sequence, for messages: ``names.csv: row 3 (line 4)``."""
    blank: int = 0
    """Number of blank lines in the files of a folder."""

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def is_text(self) -> bool:
        """Whether the sequences are texts."""
        return isinstance(self.sequences[0], str)

    @property
    def classes(self) -> list[str]:
        """The distinct labels, sorted."""
        return sorted(set(self.labels or ()))


class DefaultColumns(NamedTuple):
    """The columns of a table that are read by default."""

    text: Column = "text"
    label: Column = "label"


DEFAULTS = DefaultColumns()


def read_labelled(
    path: str | Path,
    text: Column | None = None,
    label: Column | None = None,
    delimiter: str | None = None,
    missing: str = "refuse",
    need_labels: bool = True,
    defaults: DefaultColumns = DEFAULTS,
    by: str | None = None,
) -> Labelled:
    """Read sequences and labels from a table, a folder, a file of arrays or an image, distinguished by the file ending.

    ``text`` and ``label`` choose columns of a table [default: ``defaults``]. Without ``need_labels`` the file may have no
    labels, and ``label="none"`` ignores them. ``by``: a step of an image is one of its rows or pixels.
    """
    path = as_path(path)
    format, folder_or_image = array_format(path), path.is_dir() or is_image(path)
    if (format or folder_or_image) and (text, label, delimiter) != (None, None, None):
        raise InputError(f"{path}: text, label and delimiter are for tables (CSV, TSV); remove them")
    images = format.may_hold_images if format else folder_or_image and _has_images(path)
    if by is not None and not images:
        raise InputError(f"{path}: by={by} is for images; remove it")
    if folder_or_image:
        return _from_images(path, by or "rows", need_labels) if images else read_classes(path)
    if format is None:
        return _from_table(read_table(path, delimiter), text, label, need_labels, defaults)
    found = format.read(path, by, missing)
    if need_labels and found.labels is None:
        how = f"expected {format.labels}" if found.targets is None else "for its targets use unspool regress"
        raise InputError(f"{path}: its sequences have no labels; {how}")
    sequences: Any = found.sequences
    return Labelled(str(path), sequences, found.labels, found.locations)


def read_classes(folder: str | Path) -> Labelled:
    """Read a folder with one text file per class: the file's name is the label, each line is an example."""
    folder = as_path(folder)
    if not folder.is_dir():
        raise FileError(f"{folder}: no such folder")
    paths = class_files(folder)
    if not paths:
        raise EmptyInput(
            f"{folder}: no class in it; expected files named LABEL.txt with one example per line"
        )
    sequences, labels, locations, blank = list[str](), list[str](), list[str](), 0
    for path in paths:
        before = len(sequences)
        for number, line in enumerate(read_file(path, newlines="lf").removesuffix("\n").split("\n"), 1):
            blank += not line.strip()
            if line.strip():
                sequences.append(line.strip())
                labels.append(_label(path))
                locations.append(f"{path}: line {number}")
        if len(sequences) == before:
            raise EmptyInput(f"{path}: a class without an example; expected one example per line")
    return Labelled(str(folder), sequences, labels, locations, blank)


def _has_images(path: Path) -> bool:
    """Return whether a path is an image or a folder with images; raise InputError for a folder that also has texts."""
    if not path.is_dir():
        return True
    images, texts = image_files(path), class_files(path)
    if images and texts:
        raise InputError(
            f"{path}: text files as {texts[0].name} and folders of images as {next(iter(images))}; expected one of "
            "the two: move the others away"
        )
    return bool(images) or (not texts and any(map(is_image, path.iterdir())))


def _from_images(path: Path, by: str, need_labels: bool) -> Labelled:
    """Read one folder of images per class; without ``need_labels`` also one folder, or a single image."""
    classes = image_files(path) if path.is_dir() else {}
    paths = [each for paths in classes.values() for each in paths]
    labels = [name for name, paths in classes.items() for _ in paths]
    if not classes:
        paths = [each for each in sorted(path.iterdir()) if is_image(each)] if path.is_dir() else [path]
        if need_labels:
            raise InputError(f"{path}: images without a class; expected one folder of images per class")
    sequences: Any = read_image_files(paths, by)
    return Labelled(str(path), sequences, labels if classes else None, list(map(str, paths)))


def may_hold_images(path: Path) -> bool:
    """Return whether a path is an image, a folder with images, or a file of arrays that may be images."""
    format = array_format(path)
    return bool(format and format.may_hold_images) or is_image(path) or (path.is_dir() and _has_images(path))


def folder_files(folder: Path) -> list[Path]:
    """Return the files of a folder that `read_labelled` reads: texts, or images."""
    images = [path for paths in image_files(folder).values() for path in paths]
    return images or class_files(folder)


def class_files(folder: Path) -> list[Path]:
    """Return the text files of a folder, one per class, sorted; other files are ignored."""
    return [path for path in sorted(folder.iterdir()) if _label(path) and path.is_file()]


def _label(path: Path) -> str:
    """Return the class that a file name stands for; empty for hidden files and other endings."""
    hidden = path.name.startswith(".")
    return "" if hidden or ending(path) not in TEXT_ENDINGS else Path(path.name.removesuffix(".gz")).stem


def _from_table(
    table: Table, text: Column | None, label: Column | None, need_labels: bool, defaults: DefaultColumns
) -> Labelled:
    text, at = defaults.text if text is None else text, defaults.label if label is None else label
    texts = table.text(text)
    if not need_labels and table.lacks(label, at, text):
        labels = None
    else:
        table.find_two(at, text, "text and label")
        labels = table.labels(at, "label")
    return Labelled(table.name, texts, labels, table.locations)
