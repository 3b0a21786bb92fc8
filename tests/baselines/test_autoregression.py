"""Autoregression, against statsmodels, and prediction several steps ahead."""

import numpy as np
import pytest
from statsmodels.tsa.ar_model import AutoReg

from unspool.baselines.autoregression import fit_autoregression
from unspool.baselines.multi_step import error_by_steps, predict_after, predict_ahead
from unspool.data.series.lags import noisy_sine
from unspool.errors import InputError


@pytest.mark.parametrize("tau", [1, 2, 4, 12])
def test_the_fit_is_that_of_statsmodels(tau: int) -> None:
    x = noisy_sine(400, np.random.default_rng(tau), period=37)
    model = fit_autoregression(x, tau)
    expected = AutoReg(x, tau, trend="c").fit()
    np.testing.assert_allclose([model.intercept, *model.weights[::-1]], expected.params, atol=1e-8)
    assert model.sigma**2 == pytest.approx(expected.sigma2, abs=1e-8)
    assert model.tau == tau


def test_predictions_are_those_of_statsmodels() -> None:
    x = noisy_sine(300, np.random.default_rng(0), period=25)
    model, expected = fit_autoregression(x, 5), AutoReg(x, 5, trend="c").fit()
    np.testing.assert_allclose(predict_ahead(model, x, 1), expected.predict(5, 299), atol=1e-8)
    np.testing.assert_allclose(
        predict_after(model, x[None, -model.tau :], 20)[0], expected.predict(300, 319), atol=1e-8
    )


def test_an_observation_later_than_k_steps_before_is_not_used() -> None:
    x = noisy_sine(60, np.random.default_rng(0), period=25)
    model = fit_autoregression(x, 3)
    for k in (1, 2, 7):
        for origin in (3, 20):
            assert predict_ahead(model, x, k)[origin - 3] == pytest.approx(
                predict_after(model, x[None, origin - model.tau : origin], k)[0, -1]
            )


def test_errors_pile_up_with_the_steps_ahead() -> None:
    x = noisy_sine(1000, np.random.default_rng(0))
    errors = error_by_steps(fit_autoregression(x[:600], 4), x[600:], [1, 4, 16, 64])
    assert (np.diff(errors) > 0).all()
    assert errors[0] < 0.25
    assert errors[-1] > 2 * errors[0]


def test_all_steps_are_judged_by_the_same_targets() -> None:
    x = np.arange(30.0)
    model = fit_autoregression(x, 2)
    np.testing.assert_allclose(error_by_steps(model, x, [1, 5]), [0, 0], atol=1e-9)


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(InputError, match="finite"):
        fit_autoregression(np.array([1.0, np.nan, 2.0, 3.0]), 1)
    with pytest.raises(InputError, match="expected at least 7"):
        fit_autoregression(np.arange(5.0), 3)
    with pytest.raises(InputError, match="steps ahead"):
        predict_ahead(fit_autoregression(np.arange(9.0), 2), np.arange(5.0), 4)
