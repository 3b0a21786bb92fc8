"""How well numbers are predicted: RMSE, MAE and R² of every target, beside simple models.

    RMSE = √(mean of (ŷ - y)²),   MAE = mean of |ŷ - y|,   R² = 1 - Σ (ŷ - y)² / Σ (y - ȳ)²

>>> truth = np.array([[1.0], [2.0], [3.0]])
>>> score_numbers(truth, {"network": truth + 1.0}, ["price"])["targets"][0]["network"]
{'rmse': 1.0, 'mae': 1.0, 'r2': -0.5}
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unspool.kernels.arrays import Real


def score_numbers(truth: Real, answers: Mapping[str, Real], names: Sequence[str]) -> dict[str, Any]:
    """Compare the answers of every model, (n, O), with the truth, target by target, ready for JSON."""
    targets = [
        {"name": name} | {model: _score(truth[:, k], found[:, k]) for model, found in answers.items()}
        for k, name in enumerate(names)
    ]
    return {"rows": len(truth), "targets": targets}


def _score(truth: Real, found: Real) -> dict[str, float | None]:
    rest, total = ((found - truth) ** 2).sum(), ((truth - truth.mean()) ** 2).sum()
    return {
        "rmse": float(np.sqrt(rest / len(truth))),
        "mae": float(np.abs(found - truth).mean()),
        "r2": float(1 - rest / total) if total > 0 else None,
    }


def models_of(target: Mapping[str, Any]) -> list[str]:
    """Return the names of the models that a target was scored with."""
    return [name for name in target if name != "name"]


def better_models(target: Mapping[str, Any]) -> list[str]:
    """Return the models with a lower RMSE than the first one, which answers; the best first."""
    first, *others = models_of(target)
    better = [name for name in others if target[name]["rmse"] < target[first]["rmse"]]
    return sorted(better, key=lambda name: float(target[name]["rmse"]))
