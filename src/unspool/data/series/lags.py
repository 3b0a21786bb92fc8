"""Read or generate a series and cut it into lagged windows.

>>> X, y = lagged(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), tau=2)
>>> X.tolist(), y.tolist()
([[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]], [3.0, 4.0, 5.0])
"""

from pathlib import Path

import numpy as np

from unspool.data.formats.table import read_table
from unspool.errors import InputError
from unspool.kernels.arrays import Real


def read_series(path: str | Path, column: str | int | None = None) -> Real:
    """Read one column (n,) of a CSV file, by name, by number from 0, or the last one [default].

    A first row of numbers alone is data; any other first row is the heading. A line without a finite number in that
    column is an error: skipping it would shift time.
    """
    return read_table(path, ",").numbers(-1 if column is None else column)


def noisy_sine(length: int, rng: np.random.Generator, period: float = 628.3, noise: float = 0.2) -> Real:
    """Return a noisy sine (n,): sin(2π t / period) + noise · N(0, 1), t = 1 … length.

    >>> noisy_sine(3, np.random.default_rng(0), period=4, noise=0).round(3).tolist()
    [1.0, 0.0, -1.0]
    """
    t = np.arange(1, length + 1)
    return np.asarray(np.sin(2 * np.pi * t / period) + noise * rng.standard_normal(length))


def lagged(x: Real, tau: int) -> tuple[Real, Real]:
    """Return all windows of tau values, (T - tau, tau), oldest first, and the value after each, (T - tau,)."""
    if tau < 1 or len(x) <= tau:
        raise InputError(f"tau is {tau}; expected 1 … {len(x) - 1} for {len(x)} values")
    windows = np.lib.stride_tricks.sliding_window_view(x, tau + 1)  # T-tau tau+1
    return windows[:, :-1], windows[:, -1]
