"""The kinds of arrays that the data layer hands on."""

from typing import Any, TypeAlias

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
