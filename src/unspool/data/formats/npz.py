"""Sequences in one ``.npz``, without objects: nothing in the file can run code.

    values    N X or N       the steps of all sequences behind each other, N = Σ lengths
    lengths   n              how many steps each sequence has; 0 is fine
    images    n h w (c)      instead of both: images of one size, read by rows or by pixels
    labels    n              optional: whole numbers, or strings
    targets   n or n O       optional: numbers to predict

Without ``lengths``, ``values`` of three or four axes is read like ``images``, and so is the array of an ``.npy`` file.

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
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from unspool.data.formats.images import image_sequences
from unspool.errors import EmptyInput, FileError, InputError
from unspool.kernels.arrays import Real
from unspool.storage.files import as_path, write_atomic

KEYS = ("values", "lengths", "images", "labels", "targets")
LARGEST = 1 << 31
"""Bytes of an array that is packed: a small file can claim any number of them."""
UNREADABLE = (
    OSError, EOFError, ValueError, KeyError, TypeError, SyntaxError, NotImplementedError, RuntimeError, MemoryError,
    OverflowError, struct.error, zlib.error, tokenize.TokenError, zipfile.BadZipFile,
)  # fmt: skip
"""What zipfile and NumPy raise for files that are not .npz, cut off, encrypted or crafted."""
LAYOUT = (
    "expected arrays values (N X or N) and lengths (n), or images (n h w or n h w c), "
    "and perhaps labels (n) or targets (n or n O)"
)


@dataclass(frozen=True)
class Ragged:
    """Sequences (tau X), each with its own tau, or whole numbers (tau) that are tokens."""

    sequences: list[NDArray[Any]] | NDArray[Any]
    labels: list[str] | None
    targets: Real | None = None  # n O


def read_ragged(path: str | Path, by: str | None = None) -> Ragged:
    """Read sequences and, where there are some, their labels as strings or their targets as numbers."""
    arrays = _load(path)
    if unknown := sorted(set(arrays) - set(KEYS)):
        raise InputError(f"{path}: an array {unknown[0]!r} in it; {LAYOUT}")
    if len(found := [key for key in ("values", "images") if key in arrays]) != 1:
        which = "an array 'values' and an array 'images'" if found else "no array 'values'"
        raise InputError(f"{path}: {which} in it; {LAYOUT}")
    images = found == ["images"] or (arrays["values"].ndim in (3, 4) and "lengths" not in arrays)
    if by is not None and not images:
        raise InputError(f"{path}: by={by} is for images, and it has sequences; leave it out")
    sequences = _images(path, arrays, found[0], by or "rows") if images else _cut(path, arrays)
    labels = _labels(path, arrays.get("labels"), len(sequences))
    return Ragged(sequences, labels, _targets(path, arrays.get("targets"), len(sequences)))


def _images(path: str | Path, arrays: dict[str, NDArray[Any]], key: str, by: str) -> NDArray[Any]:
    if "lengths" in arrays:
        raise InputError(f"{path}: images have no lengths; {LAYOUT}")
    try:
        return image_sequences(arrays[key], by)
    except InputError as error:
        raise type(error)(f"{path}: {key}: {error}") from error


def _cut(path: str | Path, arrays: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """Cut the values into sequences."""
    if "lengths" not in arrays:
        raise InputError(f"{path}: no array 'lengths' in it; {LAYOUT}")
    values, lengths = _values(path, arrays["values"]), arrays["lengths"]
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or (lengths.size and int(lengths.min()) < 0):
        raise InputError(f"{path}: lengths is {_told(lengths)}; expected n whole numbers of 0 or more")
    if not lengths.size:
        raise EmptyInput(f"{path}: no sequence in it")
    if (total := sum(lengths.tolist())) != len(values):
        raise InputError(f"{path}: lengths add up to {total:,}, but values has {len(values):,} rows")
    ends = np.cumsum(lengths, dtype=np.int64)
    _refuse_holes(path, values, ends)
    return np.split(values, ends[:-1])


def write_ragged(
    path: str | Path,
    sequences: Sequence[NDArray[Any]],
    labels: Sequence[str] | Sequence[int] | NDArray[Any] | None = None,
    targets: Sequence[float] | NDArray[Any] | None = None,
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
    if targets is not None:
        arrays["targets"] = np.asarray(targets)
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_atomic(path, content.getvalue())


def _load(path: str | Path) -> dict[str, NDArray[Any]]:
    place = as_path(path)
    try:
        with place.open("rb") as raw:
            if not raw.read(2).startswith((b"PK", b"\x93N")):
                raise InputError(f"{path}: not an .npz file; {LAYOUT}")
            raw.seek(0)
            if raw.read(2) == b"\x93N":
                raw.seek(0)
                return {"images": _image_array(path, raw)}
            raw.seek(0)
            with zipfile.ZipFile(raw) as archive:
                return {name.removesuffix(".npy"): _array(archive, name) for name in archive.namelist()}
    except FileNotFoundError as error:
        raise FileError(f"{path}: no such file") from error
    except InputError:
        raise
    except UNREADABLE as error:
        if "Object arrays" in str(error):
            raise InputError(
                f"{path}: an array of objects in it, which could run code: write it with write_ragged; {LAYOUT}"
            ) from error
        raise FileError(f"{path}: cannot be read as .npz: {str(error).splitlines()[0]}") from error


def _array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Read one array of an archive; refuse a packed one that is larger than memory should hold."""
    entry = archive.getinfo(name)
    if entry.compress_type != zipfile.ZIP_STORED and entry.file_size > LARGEST:
        raise ValueError(f"{name} has {entry.file_size:,} bytes unpacked; write it with np.savez, not packed")
    with archive.open(entry) as file:
        _check_claim(file, entry.file_size)
    with archive.open(entry) as file:
        found: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return found


def _check_claim(file: IO[bytes], size: int) -> None:
    """Raise where the header of an array claims more values than its file holds, before they are allocated."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"its header claims shape {shape} of {dtype}, in {size:,} bytes")


def _image_array(path: str | Path, file: IO[bytes]) -> NDArray[Any]:
    """Read an .npy file, which holds images."""
    _check_claim(file, os.fstat(file.fileno()).st_size)
    file.seek(0)
    found: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    if found.ndim not in (3, 4):
        raise InputError(f"{path}: one array alone, {_told(found)}; {LAYOUT} in one .npz")
    return found


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
    if labels.shape == (count, 1):
        labels = labels[:, 0]
    if labels.shape != (count,) or labels.dtype.kind not in "iuUb":
        raise InputError(f"{path}: labels is {_told(labels)}; expected {count} whole numbers or strings")
    return [str(label) for label in labels.tolist()]


def _targets(path: str | Path, targets: NDArray[Any] | None, count: int) -> Real | None:
    if targets is None:
        return None
    if len(targets.shape) not in (1, 2) or len(targets) != count or targets.dtype.kind not in "iufb":
        raise InputError(
            f"{path}: targets is {_told(targets)}; expected numbers, ({count},) or ({count}, numbers)"
        )
    numbers = targets.reshape(count, -1).astype(np.float64)
    if not np.isfinite(numbers).all() or not numbers.shape[1]:
        row = int(np.argwhere(~np.isfinite(numbers))[0][0]) if numbers.shape[1] else 0
        raise InputError(
            f"{path}: targets: row {row + 1:,} has no finite number; expected one for each sequence"
        )
    return numbers


def _told(array: NDArray[Any]) -> str:
    return f"{array.shape} of {array.dtype}"
