"""Read and write safetensors and JSON files with a checksum.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> path = Path(folder.name) / "numbers.safetensors"
>>> write_arrays(path, {"m": np.arange(3, dtype=np.float32)}, {"step": 7})
>>> read_arrays(path)
({'m': array([0., 1., 2.], dtype=float32)}, {'step': 7})
>>> folder.cleanup()
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from unspool.errors import FileError
from unspool.kernels.arrays import Floats
from unspool.storage.files import (
    CHECKSUM_PLACEHOLDER,
    checksum_ok,
    has_checksum,
    read_bytes,
    with_checksum,
    write_atomic,
)
from unspool.storage.schema import parse_json, read_as

METADATA_KEY = "unspool"
"""Key of the plain values in the metadata of a safetensors header."""
DTYPES = (np.float32, np.float64, np.int32, np.int64)
Header = TypedDict("Header", {"__metadata__": dict[str, str]})
"""Header of a safetensors file without its arrays."""


def write_arrays(path: str | Path, arrays: Mapping[str, Floats], metadata: Mapping[str, Any]) -> None:
    """Write named arrays and plain values into one safetensors file with a checksum."""
    from safetensors.numpy import save

    words = json.dumps({"sha256": CHECKSUM_PLACEHOLDER} | dict(metadata))
    # safetensors ignores strides.
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    write_atomic(path, with_checksum(save(tensors, {METADATA_KEY: words})))


def read_arrays(
    path: str | Path, kind: str = "a file of unspool"
) -> tuple[dict[str, Floats], dict[str, Any]]:
    """Return the arrays and plain values that `write_arrays` wrote; raise FileError if the checksum does not match.

    `kind` names the file in the message for one that has no checksum.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    content = read_bytes(path)
    if not has_checksum(content):
        raise FileError(f"{path}: not {kind}, or damaged: it has no checksum")
    _refuse_damage(path, content)
    header = parse_json(content[8 : 8 + int.from_bytes(content[:8], "little")], path)
    text = read_as(Header, header, path)["__metadata__"].get(METADATA_KEY)
    metadata = read_as(dict[str, Any], parse_json(read_as(str, text, path, METADATA_KEY), path), path)
    try:
        arrays: dict[str, Floats] = load(content)  # checks every size against the length of the file
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise FileError(f"{path}: not a file of unspool: {error}") from error
    for name, array in arrays.items():
        if array.dtype not in DTYPES:
            raise FileError(f"{path}: damaged or manipulated: {name} is of {array.dtype}")
    metadata.pop("sha256", None)
    return arrays, metadata


def check_array(
    arrays: Mapping[str, Floats],
    name: str,
    shape: tuple[int | None, ...],
    path: object,
    dtype: Any = np.float32,
    *,
    finite: bool = True,
) -> Floats:
    """Return the array `name`; raise FileError unless it has this shape (None: any length), this dtype and no NaN."""
    array = arrays.get(name)
    if (
        array is None
        or array.ndim != len(shape)
        or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True))
    ):
        wanted = " ".join("n" if n is None else str(n) for n in shape)
        found = "missing" if array is None else f"of shape {array.shape}"
        raise FileError(f"{path}: damaged or manipulated: {name} is {found}; expected ({wanted})")
    if array.dtype != dtype or (finite and array.dtype.kind == "f" and not np.isfinite(array).all()):
        raise FileError(
            f"{path}: damaged or manipulated: {name} must hold finite numbers of {np.dtype(dtype)}"
        )
    return array


def write_json(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write plain values as indented JSON with a checksum."""
    text = json.dumps(
        {"sha256": CHECKSUM_PLACEHOLDER} | dict(content),
        ensure_ascii=False,
        indent=1,
        allow_nan=False,
        default=as_plain,
    )
    write_atomic(path, with_checksum(text.encode("utf-8", "surrogatepass") + b"\n"))


def as_plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python number, for `json.dumps(default=…)`."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


def read_json(path: str | Path) -> dict[str, Any]:
    """Return the values that `write_json` wrote; raise FileError if the checksum does not match."""
    content = read_bytes(path)
    _refuse_damage(path, content)
    values = read_as(dict[str, Any], parse_json(content, path), path)
    values.pop("sha256", None)
    return values


def _refuse_damage(path: str | Path, content: bytes) -> None:
    if not checksum_ok(content):
        raise FileError(
            f"{path}: damaged or edited: its SHA-256 does not match its contents; "
            "restore it from a copy, or train again"
        )
