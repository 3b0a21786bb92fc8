"""File endings, and the sequences that every file of arrays holds."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from unspool.errors import InputError
from unspool.kernels.arrays import Array, Real


@dataclass(frozen=True)
class Sequences:
    """Sequences of a file, with labels or targets if the file has them."""

    sequences: list[Array] | Array
    """Arrays (tau, X) of different lengths, integer arrays (tau,) of token ids, or one array (n, tau, X)."""
    labels: list[str] | None
    """One class per sequence."""
    targets: Real | None  # n O
    locations: list[str]
    """The location of each sequence, for messages."""


@contextmanager
def errors_name(path: str | PathLike[str]) -> Iterator[None]:
    """Put the name of a file before the message of an InputError."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"{path}: {error}") from error


def ending(path: str | PathLike[str]) -> str:
    """Return the ending of a file name in lower case, without the dot and without a final .gz.

    >>> ending("Digits.NPZ"), ending("names.csv.gz"), ending("README")
    ('npz', 'csv', '')
    """
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix.removeprefix(".")
