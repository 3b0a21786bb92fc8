"""Types of arrays, and an attribute that is computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.int32]
"""Token ids: the input of a language model."""

Whole: TypeAlias = NDArray[np.int64]
"""Counts and positions."""

Real: TypeAlias = NDArray[np.float64]
"""Probabilities and other measurements."""

Mask: TypeAlias = NDArray[np.bool_]
"""One truth value per entry."""

Array: TypeAlias = NDArray[Any]
"""Numbers of any kind, or strings, as in a file."""

Codes: TypeAlias = NDArray[Any]
"""Code points or provisional ids: unsigned integers of any width."""

Floats = NDArray[Any]
"""An array of float32, or of float64 in the reference implementation."""

Activation = Literal["tanh", "relu", "sigmoid", "identity"]

Precision = Literal["float32", "bf16"]
"""The numbers that are multiplied in products: float32 as they are, or rounded to bf16."""

T = TypeVar("T")


class cached_attribute(Generic[T]):  # noqa: N801
    """An attribute that is computed at the first access and stored in the instance.

    Like `functools.cached_property`, without the lock that it takes before Python 3.12.
    """

    def __init__(self, work: Callable[[Any], T]) -> None:
        self.work = work
        self.__doc__ = work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Store the name of the attribute."""
        self.name = name

    def __get__(self, instance: Any, owner: type) -> T:
        """Compute the value and store it in the instance."""
        if instance is None:
            return self  # type: ignore[return-value]
        value = instance.__dict__[self.name] = self.work(instance)
        return value
