"""The models of a forecaster besides its networks, and which of them answers.

    network           the ensemble of recurrent networks (`unspool.tasks.forecast.ensemble`)
    autoregression    least squares on lags, with season and transform chosen by held-aside error
    smoothing         exponential smoothing, its form chosen by the corrected criterion of Akaike
    theta             the Theta method
    naive             the last season, repeated; the last value, if there is no season

All models forecast a part of the series that none was fitted to. The answer is the set of models whose mean forecast has the
least mean absolute error there, of all sets of the first four models and of each model alone. Sets of two or more are
preferred: the error of a single model counts `ALONE` times, since which model is best changes more from one part of a series to the next
than how good their mean is.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import numpy as np

from unspool.baselines.autoregression import Autoregression
from unspool.baselines.exponential_smoothing import Smoothing, fit_smoothing
from unspool.baselines.forecast import ForecastBaseline, Naive, Stepwise, fit_autoregressive
from unspool.baselines.theta import Theta, fit_theta
from unspool.data.series.season import guess_second_season
from unspool.data.series.transform import Transform
from unspool.errors import InputError
from unspool.kernels.arrays import Real

NETWORK, NAIVE = "network", "naive"
AVERAGED = (NETWORK, "autoregression", "smoothing", "theta")
MODELS = (*AVERAGED, NAIVE)
CHOICES = ("best", "mean", *MODELS)
ALONE = 1.05
LEAST_SEASON = 400
"""Longest season that smoothing and the Theta method use."""


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

    answer: tuple[str, ...]
    autoregression: NotRequired[StoredAutoregression]
    smoothing: NotRequired[Smoothing]
    theta: NotRequired[Theta]
    naive: NotRequired[Naive]


def fit_models(y: Real, change: Transform, seed: int = 0) -> dict[str, ForecastBaseline]:
    """Fit the models besides the networks to a training split."""
    season = change.season if change.season <= LEAST_SEASON else 1
    return {
        "autoregression": fit_autoregressive(y, change, guess_second_season(y, change.season)),
        "smoothing": fit_smoothing(y, season, seed),
        "theta": fit_theta(y, season),
        NAIVE: Naive(change.season),
    }


def choose_answer(forecasts: Mapping[str, Real], truth: Real, model: str = "best") -> tuple[str, ...]:
    """Return the names of the models whose mean is the answer: by their errors, or as `model` says."""
    if model == "mean":
        return tuple(name for name in AVERAGED if name in forecasts)
    if model != "best":
        if model not in forecasts:
            raise InputError(f"model is {model!r}: this forecaster has {', '.join(forecasts)}")
        return (model,)
    averaged = [name for name in AVERAGED if name in forecasts]
    sets: list[tuple[str, ...]] = [(name,) for name in forecasts]
    sets += [each for size in range(2, len(averaged) + 1) for each in itertools.combinations(averaged, size)]
    errors = [np.nanmean(np.abs(mean_of(forecasts, each) - truth)) for each in sets]
    return sets[
        int(np.argmin([error * (ALONE if len(s) == 1 else 1) for error, s in zip(errors, sets, strict=True)]))
    ]


def mean_of(forecasts: Mapping[str, Real], names: Sequence[str]) -> Real:
    """Return the mean forecast of some models."""
    total = sum((forecasts[name] for name in names[1:]), forecasts[names[0]])
    return np.asarray(total / len(names))


def name_of(answer: Sequence[str]) -> str:
    """Return the name of an answer for tables.

    >>> name_of(("theta",)), name_of(("network", "smoothing", "theta"))
    ('theta', 'mean of network, smoothing and theta')
    """
    return answer[0] if len(answer) == 1 else f"mean of {', '.join(answer[:-1])} and {answer[-1]}"


def stored(models: Mapping[str, ForecastBaseline], answer: Sequence[str]) -> StoredModels:
    """Return the models for a config."""
    found: dict[str, object] = {"answer": list(answer)}
    for name, model in models.items():
        if isinstance(model, Stepwise):
            assert isinstance(model.model, Autoregression)
            found[name] = {
                "change": vars(model.change), "mean": model.mean, "std": model.std,
                "intercept": model.model.intercept, "weights": model.model.weights.tolist(), "sigma": model.model.sigma,
            }  # fmt: skip
        else:
            found[name] = vars(model)
    return found  # type: ignore[return-value]


def restored(content: StoredModels) -> tuple[dict[str, ForecastBaseline], tuple[str, ...]]:
    """Return the models and the answer of a config; raise InputError where they do not belong together."""
    models: dict[str, ForecastBaseline] = {}
    if (line := content.get("autoregression")) is not None:
        weights = np.array(line["weights"])
        if not len(weights) or not line["std"] > 0:
            raise InputError("autoregression: expected one weight or more, and a standard deviation above 0")
        model = Autoregression(line["intercept"], weights, line["sigma"])
        models["autoregression"] = Stepwise(model, line["change"], line["mean"], line["std"])
    for name in ("smoothing", "theta", NAIVE):
        if (found := content.get(name)) is not None:
            models[name] = found  # type: ignore[assignment]
    answer = content["answer"]
    if not answer or not set(answer) <= {NETWORK, *models}:
        raise InputError(f"answer is {answer}: expected names of {', '.join([NETWORK, *models])}")
    return models, answer
