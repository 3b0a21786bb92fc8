"""The models of a forecaster besides its networks, and which of them answers.

    network           the ensemble of recurrent networks (`unspool.tasks.forecast.ensemble`)
    autoregression    the mean of autoregressions with different transforms (`unspool.tasks.forecast.choose`)
    smoothing         exponential smoothing, its form chosen by the corrected criterion of Akaike
    theta             the Theta method
    naive             the last season, repeated; the last value, if there is no season

All models forecast a part of the series that none was fitted to. The answer is the mean of their forecasts with the weights

    w(i) = (1/e(i))³ / Σ (1/e(j))³                                                           (1)

where e(i) is the mean absolute error there. Models of a weight below `LEAST_WEIGHT` are left out, and so is naive, unless its
error is the least. Weights change less from one part of a series to the next than the name of the best model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import numpy as np

from unspool.baselines.autoregression import Autoregression
from unspool.baselines.exponential_smoothing import Smoothing, fit_smoothing
from unspool.baselines.forecast import ForecastBaseline, Naive, Stepwise, fit_autoregressive
from unspool.baselines.theta import Theta, fit_theta
from unspool.data.series.season import guess_second_season
from unspool.data.series.transform import Transform
from unspool.errors import InputError
from unspool.kernels.arrays import Real, Whole
from unspool.tasks.forecast.choose import season_of

NETWORK, NAIVE = "network", "naive"
AVERAGED = (NETWORK, "autoregression", "smoothing", "theta")
MODELS = (*AVERAGED, NAIVE)
CHOICES = ("best", "mean", *MODELS)
LEAST_WEIGHT = 0.05
LONGEST_SEASON = 400
"""Longest season that smoothing and the Theta method use."""

Answer = dict[str, float]
"""Weights of models by name; their sum is 1."""


class StoredAutoregression(TypedDict):
    """An autoregression on a transform, in a config."""

    change: Transform
    mean: float
    std: float
    intercept: float
    weights: tuple[float, ...]
    sigma: float


class StoredModels(TypedDict):
    """The models besides the networks, and the answer, in a config."""

    answer: dict[str, float]
    autoregression: NotRequired[list[StoredAutoregression]]
    smoothing: NotRequired[Smoothing]
    theta: NotRequired[Theta]
    naive: NotRequired[Naive]


@dataclass(frozen=True)
class MeanOf:
    """The mean forecast of several models."""

    models: tuple[Stepwise, ...]

    @property
    def reach(self) -> int:
        """Number of values that an origin needs before it."""
        return max(model.reach for model in self.models)

    def forecast(self, y: Real, origins: Whole, steps: int, phase: int = 0) -> Real:
        """Return forecasts (n, steps), each from y[:origin]."""
        found = [model.forecast(y, origins, steps, phase) for model in self.models]
        return np.asarray(sum(found[1:], found[0]) / len(found))


def fit_models(y: Real, changes: Sequence[Transform], seed: int = 0) -> dict[str, ForecastBaseline]:
    """Fit the models besides the networks to a training split; the transforms are those of the autoregressions."""
    naive = season_of(changes)
    season = naive if naive <= LONGEST_SEASON else 1
    lines = [fit_autoregressive(y, each, guess_second_season(y, each.season)) for each in changes]
    return {
        "autoregression": MeanOf(tuple(lines)),
        "smoothing": fit_smoothing(y, season, seed),
        "theta": fit_theta(y, season),
        NAIVE: Naive(naive),
    }


def choose_answer(forecasts: Mapping[str, Real], truth: Real, model: str = "best") -> Answer:
    """Return the weights of the models in the answer: by their errors (1), or as `model` says."""
    averaged = [name for name in AVERAGED if name in forecasts]
    if model == "mean":
        return dict.fromkeys(averaged, 1 / len(averaged))
    if model != "best":
        if model not in forecasts:
            raise InputError(f"model is {model!r}: this forecaster has {', '.join(forecasts)}")
        return {model: 1.0}
    errors = {name: float(np.nanmean(np.abs(each - truth))) for name, each in forecasts.items()}
    least = min(errors.values())
    chosen = [name for name in forecasts if name in averaged or errors[name] == least]
    if not 0 < least < np.inf:
        return {next(name for name in chosen if errors[name] == least): 1.0}
    weights = {name: (least / errors[name]) ** 3 for name in chosen}  # (1)
    enough = LEAST_WEIGHT * sum(weights.values())
    weights = {name: weight for name, weight in weights.items() if weight >= enough}
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


def mean_of(forecasts: Mapping[str, Real], answer: Answer) -> Real:
    """Return the weighted mean of the forecasts of some models."""
    parts = [forecasts[name] if weight == 1 else weight * forecasts[name] for name, weight in answer.items()]
    return np.asarray(sum(parts[1:], parts[0]))


def name_of(answer: Answer) -> str:
    """Return the name of an answer for people.

    >>> name_of({"theta": 1.0}), name_of({"network": 0.253, "smoothing": 0.247, "theta": 0.5})
    ('theta', 'mean of network (25%), smoothing (25%) and theta (50%)')
    """
    if len(answer) == 1:
        return next(iter(answer))
    parts = [f"{name} ({weight:.0%})" for name, weight in answer.items()]
    return f"mean of {', '.join(parts[:-1])} and {parts[-1]}"


def stored(models: Mapping[str, ForecastBaseline], answer: Answer) -> StoredModels:
    """Return the models for a config."""
    found: dict[str, object] = {"answer": answer}
    for name, model in models.items():
        found[name] = [_line(each) for each in model.models] if isinstance(model, MeanOf) else vars(model)
    return found  # type: ignore[return-value]


def _line(model: Stepwise) -> dict[str, object]:
    assert isinstance(model.model, Autoregression)
    return {
        "change": vars(model.change), "mean": model.mean, "std": model.std,
        "intercept": model.model.intercept, "weights": model.model.weights.tolist(), "sigma": model.model.sigma,
    }  # fmt: skip


def restored(content: StoredModels) -> tuple[dict[str, ForecastBaseline], Answer]:
    """Return the models and the answer of a config; raise InputError where they do not belong together."""
    models: dict[str, ForecastBaseline] = {}
    lines = []
    for line in content.get("autoregression", []):
        weights = np.array(line["weights"])
        if not len(weights) or not line["std"] > 0:
            raise InputError("autoregression: expected one weight or more, and a standard deviation above 0")
        model = Autoregression(line["intercept"], weights, line["sigma"])
        lines.append(Stepwise(model, line["change"], line["mean"], line["std"]))
    if lines:
        models["autoregression"] = MeanOf(tuple(lines))
    for name in ("smoothing", "theta", NAIVE):
        if (found := content.get(name)) is not None:
            models[name] = found  # type: ignore[assignment]
    answer = content["answer"]
    if (
        not answer
        or not set(answer) <= {NETWORK, *models}
        or not all(0 < each <= 1 for each in answer.values())
    ):
        raise InputError(f"answer is {answer}: expected weights of {', '.join([NETWORK, *models])}")
    return models, answer
