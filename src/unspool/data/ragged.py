"""Sequences of different lengths in one ``.npz``, without objects: nothing in the file can run code.

    values    N X or N       the steps of all sequences behind each other, N = Σ lengths
    lengths   n              how many steps each sequence has; 0 is fine
    labels    n              optional: whole numbers, or strings

>>> import pathlib, tempfile
>>> place = tempfile.TemporaryDirectory()
>>> path = pathlib.Path(place.name) / "two.npz"
>>> write_ragged(path, [np.zeros((3, 2)), np.ones((1, 2))], labels=["low", "high"])
>>> found = read_ragged(path)
>>> [each.shape for each in found.sequences], found.labels
([(3, 2), (1, 2)], ['low', 'high'])
>>> place.cleanup()
"""

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.errors import EmptyInput, FileError, InputError
from unspool.files import write_whole

KEYS = ("values", "lengths", "labels")
LAYOUT = "expected arrays values (N X or N), lengths (n) and perhaps labels (n)"


@dataclass(frozen=True)
class Ragged:
    """Sequences (tau X), each with its own tau, or whole numbers (tau) that are tokens."""

    sequences: list[NDArray[Any]]
    labels: list[str] | None


def read_ragged(path: str | Path) -> Ragged:
    """Read sequences and, where there are some, their labels as strings."""
    arrays = _load(path)
    if unknown := sorted(set(arrays) - set(KEYS)):
        raise InputError(f"{path}: an array {unknown[0]!r} in it; {LAYOUT}")
    for key in ("values", "lengths"):
        if key not in arrays:
            raise InputError(f"{path}: no array {key!r} in it; {LAYOUT}")
    values, lengths = _values(path, arrays["values"]), arrays["lengths"]
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or (lengths.size and int(lengths.min()) < 0):
        raise InputError(f"{path}: lengths is {_told(lengths)}; expected n whole numbers of 0 or more")
    if not lengths.size:
        raise EmptyInput(f"{path}: no sequence in it")
    if (total := sum(lengths.tolist())) != len(values):
        raise InputError(f"{path}: lengths add up to {total:,}, but values has {len(values):,} rows")
    ends = np.cumsum(lengths, dtype=np.int64)
    _refuse_holes(path, values, ends)
    cut = np.split(values, ends[:-1])
    return Ragged(cut, _labels(path, arrays.get("labels"), len(lengths)))


def write_ragged(
    path: str | Path,
    sequences: Sequence[NDArray[Any]],
    labels: Sequence[str] | Sequence[int] | NDArray[Any] | None = None,
) -> None:
    """Write sequences in the layout that `read_ragged` reads; an existing file is replaced."""
    if not len(sequences):
        raise EmptyInput(f"{path}: no sequence to write")
    arrays: dict[str, Any] = {
        "values": np.concatenate([np.asarray(each) for each in sequences]),
        "lengths": np.array([len(each) for each in sequences], np.int64),
    }
    if labels is not None:
        arrays["labels"] = np.asarray(labels)
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_whole(path, content.getvalue())


def _load(path: str | Path) -> dict[str, NDArray[Any]]:
    try:
        with Path(path).open("rb") as raw:
            if not raw.read(2).startswith((b"PK", b"\x93N")):
                raise InputError(f"{path}: not an .npz file; {LAYOUT}")
            raw.seek(0)
            file = np.load(raw, allow_pickle=False)
            if isinstance(file, np.ndarray):
                raise InputError(f"{path}: one array alone; {LAYOUT} in one .npz")
            return {key: file[key] for key in file.files}
    except FileNotFoundError as error:
        raise FileError(f"{path}: no such file") from error
    except InputError:
        raise
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        if "Object arrays" in str(error):
            raise InputError(
                f"{path}: an array of objects in it, which could run code: write it with write_ragged; {LAYOUT}"
            ) from error
        raise FileError(f"{path}: cannot be read as .npz: {str(error).splitlines()[0]}") from error


def _values(path: str | Path, values: NDArray[Any]) -> NDArray[Any]:
    if values.ndim not in (1, 2) or values.dtype.kind not in "iufb":
        raise InputError(f"{path}: values is {_told(values)}; expected numbers, N X or N")
    if values.dtype.kind == "f" and values.ndim == 1:
        return values[:, None]
    return values


def _refuse_holes(path: str | Path, values: NDArray[Any], ends: NDArray[np.int64]) -> None:
    """Raise where a value is NaN or infinite, with its sequence and step, both counted from 1."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        at = np.argwhere(~np.isfinite(values))[0]
        row, number = int(at[0]), int(np.searchsorted(ends, at[0], side="right"))
        step = row - (int(ends[number - 1]) if number else 0)
        raise InputError(
            f"{path}: sequence {number + 1:,}, step {step + 1:,}: the value is {values[tuple(at)]}; "
            "expected finite numbers: fill or cut what is missing"
        )


def _labels(path: str | Path, labels: NDArray[Any] | None, count: int) -> list[str] | None:
    if labels is None:
        return None
    if labels.shape != (count,) or labels.dtype.kind not in "iuUb":
        raise InputError(f"{path}: labels is {_told(labels)}; expected {count} whole numbers or strings")
    return [str(label) for label in labels.tolist()]


def _told(array: NDArray[Any]) -> str:
    return f"{array.shape} of {array.dtype}"
