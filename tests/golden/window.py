"""The networks without a state, which no command keeps in a run: the one place that names their module."""

from __future__ import annotations

import numpy as np

from unspool.counting.window import Training, train_on_numbers, train_on_tokens

TRAINING = Training(H=9, steps=20, B=8)
WHOLE = np.arange(240) * 7919 % 1009


def trained_on_numbers() -> dict[str, np.ndarray]:
    """Give the parameters of a regression."""
    return train_on_numbers(WHOLE / 100.0, 6, np.random.default_rng([3, 4]), TRAINING).parameters


def trained_on_tokens() -> dict[str, np.ndarray]:
    """Give the parameters of a language model."""
    ids = (WHOLE % 11).astype(np.int32)
    return train_on_tokens(ids, 11, 4, np.random.default_rng([3, 4]), TRAINING).parameters
