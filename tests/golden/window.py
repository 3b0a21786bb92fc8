"""The networks without a state, which no command keeps in a run: the one place that names their module.

Their tanh is NumPy's and not the kernels', and its last bit depends on the processor: the hashes hold where NumPy gives the
same tanh as where they were frozen.
"""

from __future__ import annotations

import hashlib

import numpy as np

from unspool.baselines.window_network import Training, train_on_numbers, train_on_tokens

TRAINING = Training(H=9, steps=20, B=8)
TANH = "3b350fb1e875e0999e0620758575ea25e9393279cc9c2cac3f65a173f6a3ecd1"
"""The hash of NumPy's tanh where the parameters were frozen."""
WHOLE = np.arange(240) * 7919 % 1009


def trained_on_numbers() -> dict[str, np.ndarray]:
    """Give the parameters of a regression."""
    made = train_on_numbers(WHOLE / 100.0, 6, np.random.default_rng([3, 4]), TRAINING)
    return dict(sorted(made.parameters.items()))


def trained_on_tokens() -> dict[str, np.ndarray]:
    """Give the parameters of a language model."""
    ids = (WHOLE % 11).astype(np.int32)
    made = train_on_tokens(ids, 11, 4, np.random.default_rng([3, 4]), TRAINING)
    return dict(sorted(made.parameters.items()))


def has_the_same_tanh() -> bool:
    """Say whether NumPy's tanh is here, to the bit, what it was where the parameters were frozen."""
    return hash_of_tanh() == TANH


def hash_of_tanh() -> str:
    """Hash NumPy's tanh over its range."""
    return hashlib.sha256(np.tanh(np.linspace(-9, 9, 20_001, dtype=np.float32)).tobytes()).hexdigest()
