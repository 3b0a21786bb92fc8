"""Check arrays for the kernels: the type, C-contiguous memory, the number of dimensions."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Floats, Ids

refusal: InputError | None = None
"""The error that every kernel raises, if a value in the environment is invalid. See `machine.heed_environment`."""

FLOAT, ID = np.dtype(np.float32), np.dtype(np.int32)

COPIED = 2**28
"""Arrays that are not C-contiguous are copied up to this many values: 1 GiB of float32."""


def as_needed(value: Any, dtype: np.dtype[Any]) -> TypeGuard[Floats]:
    """Check everything at once, the usual case: each further check costs as much as a small product."""
    return type(value) is np.ndarray and value.dtype is dtype and value.flags.carray and refusal is None


def typed(value: Any, name: str, dtype: type[np.generic]) -> Any:
    """Check that a value is an array of this type."""
    if refusal is not None:
        raise refusal
    if not isinstance(value, np.ndarray):
        raise InputError(f"{name} is a {type(value).__name__}; expected a NumPy array of {dtype.__name__}")
    if value.dtype != dtype:
        raise InputError(
            f"{name} holds {value.dtype}; expected {dtype.__name__}: "
            f"convert it with {name}.astype(numpy.{dtype.__name__})"
        )
    return value


def laid_out(value: Any, name: str, dtype: type[np.generic]) -> Any:
    """Return a C-contiguous array: the same one, or a copy."""
    flags = typed(value, name, dtype).flags
    if flags.c_contiguous and flags.aligned:
        return value
    if value.size > COPIED:
        raise InputError(
            f"{name} of shape {value.shape} is not C-contiguous, and too large to be copied here"
        )
    return np.array(value, order="C")


def as_written(value: Any, name: str) -> Floats:
    """Check an array that is written in place."""
    if as_needed(value, FLOAT):
        return value
    flags = typed(value, name, np.float32).flags
    if not (flags.c_contiguous and flags.aligned and flags.writeable):
        raise InputError(f"{name} must be C-contiguous and writeable: it is written in place")
    return value  # type: ignore[no-any-return]


def as_written_table(value: Any) -> Floats:
    """Check a table that is written in place; its rows may have any stride."""
    if as_rows(value, "table") is not value or not value.flags.writeable:
        raise InputError("table must have contiguous rows and be writeable: it is written in place")
    return value


def as_floats(value: Any, name: str) -> Floats:
    """Return a C-contiguous array of float32."""
    if as_needed(value, FLOAT):
        return value
    return laid_out(value, name, np.float32)  # type: ignore[no-any-return]


def as_ids(value: Any, name: str) -> Ids:
    """Return a C-contiguous array of int32."""
    if as_needed(value, ID):
        return value
    return laid_out(value, name, np.int32)  # type: ignore[no-any-return]


def maybe_floats(value: Any, name: str) -> Floats | None:
    """Return a C-contiguous array of float32, or None."""
    return None if value is None else as_floats(value, name)


def as_rows(value: Any, name: str) -> Floats:
    """Check a matrix whose rows may have any stride: a slice of columns needs no copy."""
    if type(value) is np.ndarray and value.dtype is FLOAT and value.ndim == 2 and refusal is None:
        if value.flags.carray and value.size:
            return value
        near, far = value.strides[1], value.strides[0]
        if near == 4 and far % 4 == 0 and far >= 4 * value.shape[1] > 0 and value.flags.aligned:
            return value
    return as_matrix(as_floats(value, name), name)


def as_matrix(value: Floats, name: str) -> Floats:
    """Check that an array has two dimensions."""
    if value.ndim != 2:
        raise InputError(f"{name} has shape {value.shape}; expected two dimensions")
    return value


def chosen(value: str, among: dict[str, int], name: str) -> int:
    """Return the number of a name in the native module."""
    if not isinstance(value, str) or value not in among:
        raise InputError(f"{name} is {value!r}; expected one of {', '.join(among)}")
    return among[value]


def as_flat(value: Floats, name: str) -> Floats:
    """Check that an array is one flat vector."""
    if value.ndim != 1:
        raise InputError(f"{name} has shape {value.shape}; expected one flat vector")
    return value
