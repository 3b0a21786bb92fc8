"""Read and write sequences in one ``.npz`` without pickled objects: nothing in the file can run code.

    values    N X or N       the steps of all sequences, concatenated, N = Σ lengths
    lengths   n              number of steps of each sequence; may be 0
    images    n h w (c)      instead of both: images of one size, read by rows or by pixels
    labels    n              optional: integers or strings
    targets   n or n O       optional: real values to predict

Without ``lengths``, ``values`` of three or four axes is read like ``images``, and so is the array of an ``.npy`` file.

>>> import pathlib, tempfile
>>> temporary = tempfile.TemporaryDirectory()
>>> path = pathlib.Path(temporary.name) / "two.npz"
>>> write_ragged(path, [np.zeros((3, 2)), np.ones((1, 2))], labels=["low", "high"])
>>> found = read_ragged(path)
>>> [each.shape for each in found.sequences], found.labels
([(3, 2), (1, 2)], ['low', 'high'])
>>> temporary.cleanup()
"""

import io
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from unspool.data.formats.base import Sequences, errors_name
from unspool.data.formats.images import image_sequences
from unspool.errors import EmptyInput, FileError, InputError
from unspool.kernels.arrays import Array, Real, Whole
from unspool.storage.files import as_path, write_atomic

KEYS = ("values", "lengths", "images", "labels", "targets")
LARGEST = 1 << 31
"""Most bytes of a compressed array: a small file can claim any number."""
UNREADABLE = (
    OSError, EOFError, ValueError, KeyError, TypeError, SyntaxError, NotImplementedError, RuntimeError, MemoryError,
    OverflowError, struct.error, zlib.error, tokenize.TokenError, zipfile.BadZipFile,
)  # fmt: skip
"""Exceptions of zipfile and NumPy for files that are not .npz, truncated, encrypted or crafted."""
LAYOUT = (
    "expected arrays values (N X or N) and lengths (n), or images (n h w or n h w c), "
    "and perhaps labels (n) or targets (n or n O)"
)


def read_ragged(path: str | Path, by: str | None = None) -> Sequences:
    """Read sequences and, if present, their labels as strings or their targets as float64 (n, O)."""
    arrays = _load(path)
    with errors_name(path):
        sequences = _images(arrays, by) if _holds_images(arrays) else _cut(arrays, by)
        labels = _labels(arrays.get("labels"), len(sequences))
        targets = _targets(arrays.get("targets"), len(sequences))
    locations = [f"{path}: sequence {i}" for i in range(1, len(sequences) + 1)]
    return Sequences(sequences, labels, targets, locations)


def _holds_images(arrays: dict[str, Array]) -> bool:
    """Return whether a file has images instead of sequences; raise InputError for unknown or missing arrays."""
    if unknown := sorted(set(arrays) - set(KEYS)):
        raise InputError(f"an array {unknown[0]!r} in it; {LAYOUT}")
    if len(found := [key for key in ("values", "images") if key in arrays]) != 1:
        which = "an array 'values' and an array 'images'" if found else "no array 'values'"
        raise InputError(f"{which} in it; {LAYOUT}")
    return found == ["images"] or (arrays["values"].ndim in (3, 4) and "lengths" not in arrays)


def _images(arrays: dict[str, Array], by: str | None) -> Array:
    if "lengths" in arrays:
        raise InputError(f"images have no lengths; {LAYOUT}")
    key = "images" if "images" in arrays else "values"
    with errors_name(key):
        return image_sequences(arrays[key], by or "rows")


def _cut(arrays: dict[str, Array], by: str | None) -> list[Array]:
    """Split the values into sequences."""
    if by is not None:
        raise InputError(f"by={by} is for images, and the file has sequences; remove it")
    if "lengths" not in arrays:
        raise InputError(f"no array 'lengths' in it; {LAYOUT}")
    values, lengths = _values(arrays["values"]), arrays["lengths"]
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or (lengths.size and int(lengths.min()) < 0):
        raise InputError(f"lengths is {_describe(lengths)}; expected n whole numbers of 0 or more")
    if not lengths.size:
        raise EmptyInput("no sequence in it")
    if (total := sum(lengths.tolist())) != len(values):
        raise InputError(f"lengths add up to {total:,}, but values has {len(values):,} rows")
    ends = np.cumsum(lengths, dtype=np.int64)
    _require_finite(values, ends)
    return np.split(values, ends[:-1])


def write_ragged(
    path: str | Path,
    sequences: Sequence[Array],
    labels: Sequence[str] | Sequence[int] | Array | None = None,
    targets: Sequence[float] | Array | None = None,
) -> None:
    """Write sequences in the layout of `read_ragged`; an existing file is replaced.

    A sequence is (steps,) or (steps, D); `labels` are (n,), `targets` (n,) or (n, O).
    """
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


def _load(path: str | Path) -> dict[str, Array]:
    try:
        with as_path(path).open("rb") as raw:
            magic = raw.read(2)
            raw.seek(0)
            if magic == b"\x93N":
                return {"images": _image_array(path, raw)}
            if magic != b"PK":
                raise InputError(f"{path}: not an .npz file; {LAYOUT}")
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


def _array(archive: zipfile.ZipFile, name: str) -> Array:
    """Read one array of an archive; raise ValueError for a compressed one that exceeds `LARGEST` bytes."""
    entry = archive.getinfo(name)
    if entry.compress_type != zipfile.ZIP_STORED and entry.file_size > LARGEST:
        raise ValueError(f"{name} has {entry.file_size:,} bytes unpacked; write it with np.savez, not packed")
    with archive.open(entry) as file:
        _check_claim(file, entry.file_size)
    with archive.open(entry) as file:
        found: Array = np.lib.format.read_array(file, allow_pickle=False)
        return found


def _check_claim(file: IO[bytes], size: int) -> None:
    """Raise ValueError if the header of an array claims more values than its file holds, before they are allocated."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"its header claims shape {shape} of {dtype}, in {size:,} bytes")


def _image_array(path: str | Path, file: IO[bytes]) -> Array:
    """Read the images of an .npy file."""
    _check_claim(file, os.fstat(file.fileno()).st_size)
    file.seek(0)
    found: Array = np.lib.format.read_array(file, allow_pickle=False)
    if found.ndim not in (3, 4):
        raise InputError(f"{path}: one array alone, {_describe(found)}; {LAYOUT} in one .npz")
    return found


def _values(values: Array) -> Array:
    if values.ndim not in (1, 2) or values.dtype.kind not in "iufb":
        raise InputError(f"values is {_describe(values)}; expected numbers, N X or N")
    if values.dtype.kind == "f" and values.ndim == 1:
        return values[:, None]
    return values


def _require_finite(values: Array, ends: Whole) -> None:
    """Raise InputError for a NaN or infinite value, with its sequence and step, both counted from 1."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        at = np.argwhere(~np.isfinite(values))[0]
        row, number = int(at[0]), int(np.searchsorted(ends, at[0], side="right"))
        step = row - (int(ends[number - 1]) if number else 0)
        raise InputError(
            f"sequence {number + 1:,}, step {step + 1:,}: the value is {values[tuple(at)]}; "
            "expected finite numbers: fill or cut what is missing"
        )


def _labels(labels: Array | None, count: int) -> list[str] | None:
    if labels is None:
        return None
    if labels.shape == (count, 1):
        labels = labels[:, 0]
    if labels.shape != (count,) or labels.dtype.kind not in "iuUb":
        raise InputError(f"labels is {_describe(labels)}; expected {count} whole numbers or strings")
    return [str(label) for label in labels.tolist()]


def _targets(targets: Array | None, count: int) -> Real | None:
    if targets is None:
        return None
    if len(targets.shape) not in (1, 2) or len(targets) != count or targets.dtype.kind not in "iufb":
        raise InputError(
            f"targets is {_describe(targets)}; expected numbers, ({count},) or ({count}, numbers)"
        )
    numbers = targets.reshape(count, -1).astype(np.float64)
    if not np.isfinite(numbers).all() or not numbers.shape[1]:
        row = int(np.argwhere(~np.isfinite(numbers))[0][0]) if numbers.shape[1] else 0
        raise InputError(f"targets: row {row + 1:,} has no finite number; expected one for each sequence")
    return numbers


def _describe(array: Array) -> str:
    return f"{array.shape} of {array.dtype}"
