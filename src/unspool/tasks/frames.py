"""Data frames as inputs of estimators: the names of their columns, which must be those of the fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from unspool.errors import InputError

NAMES = "feature_names_in_"
"""The attribute of an estimator that holds the names of the columns of the fit."""


def column_names(X: Any) -> Any:
    """Return the names of the columns of a data frame, if all are strings; else None."""
    names = list(X.columns) if hasattr(X, "columns") and hasattr(X, "shape") else []
    return np.array(names, object) if names and all(isinstance(name, str) for name in names) else None


def check_names(estimator: Any, X: Any) -> None:
    """Raise where a data frame has other columns than that of the fit, or the same in another order."""
    known, found = getattr(estimator, NAMES, None), column_names(X)
    if known is None or found is None or found.tolist() == known.tolist():
        return
    wrong = [name for name in found.tolist() if name not in set(known.tolist())]
    missing = [name for name in known.tolist() if name not in set(found.tolist())]
    why = f"unseen in the fit: {', '.join(wrong[:5])}; " if wrong else ""
    why += f"missing: {', '.join(missing[:5])}; " if missing else ""
    why = why or "they are in another order; "
    raise InputError(
        f"The feature names should match those that were passed during fit: {why}expected X[{known.tolist()[:5]}"
        f"{' …' if len(known) > 5 else ''}]"
    )


def row_weights(sample_weight: Any, n: int) -> Any:
    """Return weights (n,) with the mean 1, float32; None where all rows count the same."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample_weight holds something that is not a number: {error}") from error
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise InputError(f"sample_weight has shape {weights.shape}; expected one for each of {n} sequences")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.sum() > 0:
        raise InputError("sample_weight: expected finite numbers of zero or more, not all of them zero")
    if (weights == weights[0]).all():
        return None
    return (weights * (n / weights.sum())).astype(np.float32)
