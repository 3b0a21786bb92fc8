"""What a model is given, looked at before it is used: windows, lengths, states, tokens."""

from __future__ import annotations

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Floats, Ids
from unspool.model.config import ModelConfig
from unspool.model.values import State


def check_input(config: ModelConfig, x: Floats | Ids, lengths: Ids | None) -> None:
    """Refuse a window that the model cannot read."""
    if not isinstance(x, np.ndarray):
        raise InputError(f"x is a {type(x).__name__}; expected a NumPy array")
    if config.dense:
        if x.ndim != 3 or x.shape[2] != config.inputs:
            raise InputError(f"x has shape {x.shape}; expected (tau, B, {config.inputs})")
    elif config.features > 1 and (x.ndim != 3 or x.shape[2] != config.features or x.dtype.kind not in "iu"):
        raise InputError(
            f"x has shape {x.shape} of {x.dtype}; expected tokens (tau, B, {config.features}) as int32"
        )
    elif config.features == 1 and (x.ndim != 2 or x.dtype.kind not in "iu"):
        raise InputError(f"x has shape {x.shape} of {x.dtype}; expected tokens (tau, B) as int32")
    if lengths is not None and np.shape(lengths) != x.shape[1:2]:
        raise InputError(f"lengths has shape {np.shape(lengths)}; expected {x.shape[1:2]}, one for each row")


def check_state(config: ModelConfig, state: State, name: str) -> None:
    """Refuse what is not a state of this model: (h, s) for every layer and direction."""
    parts = config.layers * config.directions
    if len(state) != parts:
        raise InputError(f"{name} has {len(state)} parts; expected {parts}, one a layer and direction")
    if not all(isinstance(part, tuple) and len(part) == 2 for part in state):
        raise InputError(f"{name} must be made of (h, s), with None for s but in an LSTM")


def without_padding(ids: Ids, lengths: Ids | None) -> Ids:
    """Return the tokens as int32, with 0 beyond a row's length: what stands there is never looked at."""
    if lengths is not None:
        there = np.arange(len(ids))[:, None] < lengths
        ids = np.where(there.reshape(*there.shape, *[1] * (ids.ndim - 2)), ids, 0)
    return np.ascontiguousarray(as_int32(ids, "x"))


def as_int32(ids: Ids, name: str) -> Ids:
    """Return whole numbers as int32; one that it cannot hold is refused and not wrapped around."""
    if ids.dtype == np.int32:
        return ids
    if ids.size and not (int(ids.min()) >= -(2**31) and int(ids.max()) < 2**31):
        raise InputError(f"{name} holds a number beyond int32")
    return ids.astype(np.int32)


def describe(value: object) -> str:
    """Return what an argument is, for a message."""
    if isinstance(value, np.ndarray):
        return f"{value.shape} of {value.dtype}"
    return f"a {type(value).__name__}"
