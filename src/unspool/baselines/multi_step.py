"""Predict k steps ahead with any model of a window of the last tau values.

One step ahead, the window holds observations. Further ahead, predictions replace future observations:

    x̂(t+1) = f(x(t-τ+1), …, x(t)),   x̂(t+2) = f(x(t-τ+2), …, x(t), x̂(t+1)),  …             (1)

so errors accumulate with k.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Real


class WindowModel(Protocol):
    """Predicts the value after a window."""

    @property
    def tau(self) -> int:
        """Length of the window."""

    def predict(self, X: Real) -> Real:
        """Return the prediction (n,) for each row of ``X`` (n, tau), oldest value first."""


def predict_ahead(model: WindowModel, x: Real, k: int) -> Real:
    """Return predictions of each value of a series x (n,) from the observations up to k steps before it: (1).

    Entry i predicts x[tau + k - 1 + i].

    >>> class Double:
    ...     tau = 1
    ...     def predict(self, X): return 2 * X[:, 0]
    >>> predict_ahead(Double(), np.array([1.0, 2.0, 4.0, 9.0]), k=2).tolist()
    [4.0, 8.0]
    """
    if k < 1 or len(x) < model.tau + k:
        raise InputError(f"k is {k}; expected 1 … {len(x) - model.tau} steps ahead for {len(x)} values")
    windows = np.lib.stride_tricks.sliding_window_view(x, model.tau)[: len(x) - model.tau - k + 1]
    return predict_after(model, np.array(windows), k)[:, -1]


def predict_after(model: WindowModel, window: Real, steps: int) -> Real:
    """Return the predictions (n, steps) of the values after windows (n, tau): (1)."""
    found = np.empty((len(window), steps))
    for k in range(steps):
        found[:, k] = model.predict(window)
        window = np.column_stack([window[:, 1:], found[:, k]])
    return found


def error_by_steps(model: WindowModel, x: Real, steps: Sequence[int]) -> Real:
    """Return the root mean squared error on a series x (n,) for each k of `steps`, over the same targets."""
    furthest = max(steps)
    truth = x[model.tau + furthest - 1 :]
    predictions = [predict_ahead(model, x[furthest - k :], k) for k in steps]
    return np.array([np.sqrt(np.mean((predicted - truth) ** 2)) for predicted in predictions])
