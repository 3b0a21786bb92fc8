"""Which levels a band can have: the errors it is made of bound them.

With m errors on values that were not trained on, the width of a band is the ⌈level (m + 1)⌉-th smallest, so the
highest level is m / (m + 1). A higher one is refused. The usual level is always answered, by the widest error where m is
too small for it, and `level_reached` gives the level that was reached.
"""

import math

import numpy as np
from numpy.typing import NDArray

from unspool.errors import InputError
from unspool.kernels.arrays import Real

USUAL = 0.8
"""The level of a band where none is given."""


def check_level(level: float) -> None:
    """Refuse a level that is no share."""
    if not 0 < level < 1:
        raise InputError(f"level is {level}; expected a share between 0 and 1, as {USUAL}")


def fewest_errors(errors: Real) -> int:
    """Return how many errors the step with the fewest has.

    >>> fewest_errors(np.array([[1.0, 2.0], [3.0, np.nan]]))
    1
    """
    return int((~np.isnan(errors)).sum(axis=0).min())


def errors_to_come(known: NDArray[np.bool_], count: int, horizon: int) -> int:
    """Return the same before a fit whose first training sees `count` values.

    >>> errors_to_come(np.ones(30, bool), count=18, horizon=4)
    9
    """
    origins = np.arange(count, len(known) - horizon + 1)
    return int(known[origins[:, None] + np.arange(horizon)].sum(axis=0).min())


def level_reached(level: float, count: int) -> float:
    """Return the level that a band holds which is asked for `level` and made of `count` errors."""
    return min(level, count / (count + 1))


def refuse_level(level: float, count: int) -> None:
    """Raise where a level above the usual one takes more errors than there are.

    >>> refuse_level(0.9, 9)
    >>> refuse_level(0.99, 9)
    Traceback (most recent call last):
    ...
    unspool.errors.InputError: level 0.99 needs at least 99 errors on values not trained on, there are 9; the highest level here is 0.9: use it, or give a longer series
    """
    check_level(level)
    highest = max(USUAL, count / (count + 1))
    if level > highest:
        need = math.ceil(level / (1 - level) - 1e-6)
        raise InputError(
            f"level {level:.12g} needs at least {need:,} errors on values not trained on, there are {count:,}; "
            f"the highest level here is {math.floor(highest * 1e6) / 1e6:g}: use it, or give a longer series"
        )
