"""Validate a series: finite numbers, not all equal, and small enough to be squared."""

from os import PathLike
from typing import Any

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Real

LARGEST = 1e150
"""Largest absolute value whose square is finite; differences below 1 / LARGEST have a square of 0."""


def check_series(y: Any, name: str) -> Real:
    """Return a series as float64 (n,); raise InputError if it is not numeric, not finite or constant."""
    if isinstance(y, str | PathLike):
        raise InputError(
            f"{name} is {str(y)!r}; expected numbers: read a file with read_series({str(y)!r}) from unspool.data"
        )
    try:
        values = np.asarray(y, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: expected numbers: {error}") from error
    if values.ndim != 1:
        raise InputError(f"{name} has shape {values.shape}; expected one axis, one value per step")
    if not len(values):
        raise InputError(f"{name} is empty; expected one value per step")
    if not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(
            f"{name}: value {at + 1} is {values[at]}; expected finite numbers: fill the missing values"
        )
    if np.abs(values).max() > LARGEST:
        at = int(np.argmax(np.abs(values)))
        raise InputError(
            f"{name}: value {at + 1} is {values[at]:g}: values too large; expected none beyond ±{LARGEST:g}: "
            "divide them all by a power of ten"
        )
    if np.ptp(values) == 0:
        raise InputError(f"{name}: all {len(values)} values are {values[0]:g}; expected values that differ")
    if np.ptp(values) < 1 / LARGEST:
        raise InputError(
            f"{name}: its values differ by {np.ptp(values):g} at most: values too small; expected differences of "
            f"{1 / LARGEST:g} or more: multiply them all by a power of ten"
        )
    return values
