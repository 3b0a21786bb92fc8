"""Types of arrays, and an attribute that is computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.int32]
"""Tokens as numbers: what every model reads."""

Whole: TypeAlias = NDArray[np.int64]
"""Counts and positions."""

Real: TypeAlias = NDArray[np.float64]
"""Probabilities and other measurements."""

Codes: TypeAlias = NDArray[Any]
"""Code points or provisional ids: unsigned integers of any width."""

Floats = NDArray[Any]
"""An array of float32, or of float64 in the NumPy twins."""

CellName = Literal["elman", "gru", "lstm"]
Activation = Literal["tanh", "relu", "sigmoid", "identity"]


T = TypeVar("T")


class cached_attribute(Generic[T]):  # noqa: N801
    """An attribute that is worked out when it is first asked for, and then kept.

    As `functools.cached_property`, without a lock: before Python 3.12 that costs more than what it guards here.
    """

    def __init__(self, work: Callable[[Any], T]) -> None:
        self.work = work
        self.__doc__ = work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Remember under which name it is kept."""
        self.name = name

    def __get__(self, instance: Any, owner: type) -> T:
        """Work it out; from now on the instance has it."""
        if instance is None:
            return self  # type: ignore[return-value]
        value = instance.__dict__[self.name] = self.work(instance)
        return value
