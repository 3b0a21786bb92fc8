"""Exponential smoothing and the Theta method, against statsmodels; the answer of a forecaster."""

import numpy as np
import pytest
from statsmodels.tsa.exponential_smoothing.ets import ETSModel
from statsmodels.tsa.forecasting.theta import ThetaModel

from unspool.baselines.exponential_smoothing import (
    Errors,
    Smoothing,
    deviance,
    first_states,
    fit_smoothing,
    seasonal_indices,
)
from unspool.baselines.theta import fit_theta
from unspool.errors import InputError
from unspool.tasks.forecast.answer import choose_answer, mean_of, restored, stored

FORMS = [(e, t, d, s) for e, s in (("add", 1), ("add", 6), ("mul", 1)) for t, d in ((0, 0), (1, 0), (1, 1))]


def wave(n: int = 72, season: int = 6, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    return (20 + 0.2 * t) * (1 + 0.2 * np.sin(2 * np.pi * t / season)) + 0.5 * rng.standard_normal(n)


def theirs(y: np.ndarray, error: str, model: Smoothing) -> ETSModel:
    errors: Errors = "additive" if error == "add" else "multiplicative"
    level, trend, s = first_states(y, model.season, model.trend, errors)
    return ETSModel(
        y, error=error, trend="add" if model.trend else None, damped_trend=model.phi < 1,
        seasonal=error if model.season > 1 else None, seasonal_periods=model.season if model.season > 1 else None,
        initialization_method="known", initial_level=level, initial_trend=trend if model.trend else None,
        initial_seasonal=s if model.season > 1 else None,
    )  # fmt: skip


@pytest.mark.parametrize(("error", "trend", "damped", "season"), FORMS)
def test_every_form_of_smoothing_is_that_of_statsmodels(
    error: str, trend: int, damped: int, season: int
) -> None:
    y = wave()
    errors: Errors = "additive" if error == "add" else "multiplicative"
    model = Smoothing(
        errors, bool(trend), season, 0.3, 0.1 * trend, 0.2 * (season > 1), 0.9 if damped else 1.0
    )
    given = {"smoothing_level": 0.3, "smoothing_trend": 0.1, "smoothing_seasonal": 0.2, "damping_trend": 0.9}
    other = theirs(y, error, model)
    fit = other.smooth([given[name] for name in other.param_names if name in given])
    assert model.forecast(y, np.array([len(y)]), 9)[0] == pytest.approx(fit.forecast(9), rel=1e-9)
    level, line, s = first_states(y, season, bool(trend), errors)
    point = np.array([[model.alpha, model.beta, model.gamma, model.phi]])
    found = deviance(y, season, errors, point, np.array([level]), np.array([line]), s)
    assert found[0] == pytest.approx(-2 * fit.llf, rel=1e-9)


def test_a_season_that_is_a_factor_follows_the_textbook() -> None:
    """In the weighted form of the equations; statsmodels divides by the new level instead of the old one."""
    y, model = wave(), Smoothing("multiplicative", True, 6, 0.3, 0.1, 0.2, 0.9)
    level, trend, s = first_states(y, 6, True, "multiplicative")
    for t, value in enumerate(y):
        base = level + 0.9 * trend
        before, level = level, 0.3 * value / s[t % 6] + 0.7 * base
        s[t % 6] = 0.2 * value / base + 0.8 * s[t % 6]
        trend = 0.1 / 0.3 * (level - before) + (1 - 0.1 / 0.3) * 0.9 * trend
    expected = [
        (level + sum(0.9**i for i in range(1, k + 1)) * trend) * s[(len(y) + k - 1) % 6] for k in range(1, 10)
    ]
    assert model.forecast(y, np.array([len(y)]), 9)[0] == pytest.approx(expected, rel=1e-9)
    point, (level, trend, s) = np.array([[0.3, 0.1, 0.2, 0.9]]), first_states(y, 6, True, "multiplicative")
    found = deviance(y, 6, "multiplicative", point, np.array([level]), np.array([trend]), s)
    ahead = np.concatenate([model.forecast(y, np.array([t]), 1)[0] for t in range(30, len(y))])
    e = y[30:] / ahead - 1
    assert np.isfinite(found).all() and e.std() < 0.1


def test_the_search_finds_what_an_optimiser_finds() -> None:
    for seed, season in enumerate((1, 6)):
        y = wave(seed=seed) - 40
        model = fit_smoothing(y, season)
        other = theirs(y, "add" if model.errors == "additive" else "mul", model)
        best = other.fit(disp=False)
        found = np.array([[model.alpha, model.beta, model.gamma, model.phi]])
        level, line, s = first_states(y, model.season, model.trend, model.errors)
        ours = deviance(y, model.season, model.errors, found, np.array([level]), np.array([line]), s)[0]
        assert ours <= -2 * best.llf + 0.5


def test_forms_are_chosen_by_the_criterion() -> None:
    rng = np.random.default_rng(0)
    assert fit_smoothing(50 + rng.standard_normal(120)).trend is False
    assert fit_smoothing(50 + 2 * np.arange(120) + rng.standard_normal(120)).trend
    assert fit_smoothing(wave(), 6).season == 6
    assert fit_smoothing(50 + rng.standard_normal(120), 6).season == 1
    assert fit_smoothing(wave() - 40, 6).errors == "additive"  # negative values have no factors


def test_many_origins_are_each_alone_and_extreme_series_stay_finite() -> None:
    y = wave(120)
    for model in (fit_smoothing(y, 6), fit_theta(y, 6)):
        together = model.forecast(y, np.array([60, 60, 90]), 5)
        assert (together[1] == model.forecast(y[:60], np.array([60]), 5)[0]).all()
        assert (together[2] == model.forecast(y[:90], np.array([90]), 5)[0]).all()
    for y in (np.r_[np.zeros(60), 1.0], np.r_[1e-200, np.ones(60) * 1e100], np.tile([1.0, 0, 0], 20)):
        assert np.isfinite(fit_smoothing(y, 3).forecast(y, np.array([len(y)]), 4)).all()
        assert np.isfinite(fit_theta(y, 3).forecast(y, np.array([len(y)]), 4)).all()


@pytest.mark.parametrize("shift", [0, 60])
def test_the_theta_method_is_that_of_statsmodels(shift: float) -> None:
    y = wave() - shift
    ours = fit_theta(y, 6)
    assert len(ours.indices) == 6 and ours.times == (not shift)
    again = np.resize(ours.indices, len(y))
    x = y / again if ours.times else y - again
    fit = ThetaModel(x, period=1, deseasonalize=False).fit(use_mle=False)
    t, k = len(y), np.arange(5)
    line = ours.slope / 2 * (k + (1 - (1 - ours.alpha) ** t) / ours.alpha)
    assert ours.slope == pytest.approx(fit.params["b0"], rel=1e-6)
    assert ours.alpha == pytest.approx(fit.params["alpha"], abs=0.02)
    found = ours.forecast(y, np.array([t]), 5)[0]
    season = np.resize(ours.indices, t + 5)[t:]
    level = (found / season if ours.times else found - season) - line
    assert np.ptp(level) == pytest.approx(0, abs=1e-9)
    assert fit_theta(np.random.default_rng(0).standard_normal(60), 6).indices == (0.0,)


def test_a_phase_turns_the_season_of_the_theta_method() -> None:
    y = wave(120)
    model = fit_theta(y, 6)
    assert model.forecast(y[1:], np.array([90]), 3, phase=1) == pytest.approx(
        model.forecast(y, np.array([91]), 3), rel=1e-3
    )


def test_seasonal_indices_are_those_of_statsmodels() -> None:
    from statsmodels.tsa.seasonal import seasonal_decompose

    y = wave(71)
    for kind in ("additive", "multiplicative"):
        for season in (5, 6):
            expected = seasonal_decompose(y, model=kind, period=season).seasonal[:season]
            assert seasonal_indices(y, season, kind) == pytest.approx(expected, rel=1e-9)


def test_the_weights_of_the_answer_follow_the_errors() -> None:
    truth = np.zeros((4, 2))
    forecasts = {
        "network": truth + 1, "autoregression": truth - 2, "smoothing": truth + 90, "theta": truth + 2, "naive": truth + 1.5,
    }  # fmt: skip
    found = choose_answer(forecasts, truth)
    assert found == pytest.approx({"network": 0.8, "autoregression": 0.1, "theta": 0.1})  # 1 : 1/8 : 1/8
    assert mean_of(forecasts, found) == pytest.approx(truth + 0.8)
    assert "naive" in choose_answer(forecasts | {"naive": truth + 0.5}, truth)
    assert choose_answer(forecasts | {"naive": truth}, truth) == {"naive": 1.0}
    assert choose_answer(forecasts, truth, "theta") == {"theta": 1.0}
    assert choose_answer(forecasts, truth, "mean") == dict.fromkeys(list(forecasts)[:4], 0.25)
    with pytest.raises(InputError, match="model is 'theta': this forecaster has network"):
        choose_answer({"network": truth}, truth, "theta")
    holed = truth.copy()
    holed[0, 0] = np.nan
    assert choose_answer(forecasts, holed) == pytest.approx(found)


def test_what_a_config_says_of_models_must_belong_together() -> None:
    y = wave()
    content = stored({"theta": fit_theta(y, 6)}, {"theta": 1.0})
    assert content["answer"] == {"theta": 1.0}
    for wrong in ({"smoothing": 1.0}, {}, {"network": -1.0}):
        with pytest.raises(InputError, match="answer is"):
            restored({"answer": wrong})
