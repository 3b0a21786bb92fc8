"""The embedding of tokens: one row of E per step, or several whose sum has the size of one.

x(t) = F^(-1/2) Σ_f E[id(t, f)],   ∇E[k] = F^(-1/2) Σ over the t and f with id(t, f) = k of ∇x(t)        for F tokens per step
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.backend import Backend


def embed(E: Floats, ids: Ids, features: int, backend: Backend) -> Floats:
    """Return x (tau, B, X) of tokens (tau, B), or (tau, B, F) for F features."""
    if features == 1:
        return backend.gather(E, ids.reshape(-1)).reshape(*ids.shape, E.shape[1])
    x = backend.gather(E, ids[..., 0].reshape(-1))
    for f in range(1, features):
        x += backend.gather(E, ids[..., f].reshape(-1))
    return np.asarray(x * _share(features, backend)).reshape(*ids.shape[:2], E.shape[1])


def add_embedded(dE: Floats, ids: Ids, dx: Floats, features: int, backend: Backend) -> None:
    """Add the gradient of E for that of x, (tau, B, X)."""
    rows = dx.reshape(-1, dE.shape[1])
    if features > 1:
        rows = np.repeat(rows * _share(features, backend), features, axis=0)
    backend.scatter_add(dE, ids.reshape(-1), rows)


def _share(features: int, backend: Backend) -> Any:
    return backend.DTYPE(features**-0.5)
