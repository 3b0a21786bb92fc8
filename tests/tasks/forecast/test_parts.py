"""Seasons, changes, windows, baselines and measures, against brute force and statsmodels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.tsa.ar_model import AutoReg
from statsmodels.tsa.stattools import acf

from unspool.baselines.autoregression import fit_lags
from unspool.baselines.forecast import Naive, choose_lags, fit_autoregressive, fit_window_mlp
from unspool.data.series.season import autocorrelation, detrend, guess_season, guess_second_season
from unspool.data.series.transform import Transform, choose_power, choose_transform
from unspool.data.series.windows import (
    WindowSpec,
    fit_scale,
    origins_of,
    plan_windows,
    read_targets,
    read_windows,
    to_series,
)
from unspool.errors import InputError
from unspool.evaluation.forecast import coverage, mase, naive_scale, rmse
from unspool.evaluation.intervals import RECENT, adapted_widths, phase_factors, quantiles


def seasonal(n: int, season: int, seed: int = 0, noise: float = 0.1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    return 5 + 0.02 * t + np.sin(2 * np.pi * t / season) + noise * rng.standard_normal(n)


def test_the_autocorrelation_is_that_of_statsmodels() -> None:
    x = seasonal(200, 9)
    expected = acf(detrend(x), nlags=40, fft=False)
    assert autocorrelation(x, 40) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("season", [4, 7, 12, 24])
def test_a_season_is_found(season: int) -> None:
    assert guess_season(seasonal(20 * season, season, noise=0.3)) == season


def test_what_has_no_season_gets_none() -> None:
    rng = np.random.default_rng(3)
    noise = [guess_season(rng.standard_normal(150)) for _ in range(40)]
    walks = [guess_season(np.cumsum(rng.standard_normal(150))) for _ in range(40)]
    assert np.mean(np.array(noise) > 1) <= 0.05
    assert np.mean(np.array(walks) > 1) <= 0.15
    assert guess_season(np.ones(50)) == 1
    assert guess_season(np.arange(5.0)) == 1


def test_a_week_of_days_is_found() -> None:
    rng = np.random.default_rng(0)
    t = np.arange(24 * 7 * 12)
    weekend = (t // 24 % 7 >= 5) * 1.0
    x = np.sin(2 * np.pi * t / 24) * (2 - weekend) + 0.1 * rng.standard_normal(len(t))
    assert guess_season(x) == 24
    assert guess_second_season(x, 24) == 168
    assert guess_second_season(seasonal(300, 12), 12) == 1


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["none", "root", "log"]), st.integers(0, 1), st.integers(0, 1), st.integers(2, 7),
    st.integers(1, 17), st.integers(0, 99),
)  # fmt: skip
def test_a_change_is_undone_exactly(power: str, d: int, D: int, season: int, steps: int, seed: int) -> None:
    y = np.random.default_rng(seed).uniform(1, 9, 40)
    change = Transform(power, d, D, season)  # type: ignore[arg-type]
    z = change.forward(y)
    w = change.differences(z)
    origins = np.array([17, 20, 40 - steps])
    ahead = w[origins[:, None] - change.dropped + np.arange(steps)]
    again = change.inverse(change.undo(ahead, z, origins))
    assert again == pytest.approx(y[origins[:, None] + np.arange(steps)], rel=1e-9)


def test_the_base_is_what_differences_repeat() -> None:
    z = np.array([1.0, 5.0, 2.0, 7.0])
    at = np.array([4])
    assert Transform("none", 0, 0, 2).base(z, at, 3).tolist() == [[0, 0, 0]]
    assert Transform("none", 1, 0, 2).base(z, at, 3).tolist() == [[7, 7, 7]]
    assert Transform("none", 0, 1, 2).base(z, at, 3).tolist() == [[2, 7, 2]]
    assert Transform("none", 1, 1, 2).base(z, at, 3).tolist() == [[4, 9, 6]]


def test_the_spread_decides_about_log_and_root() -> None:
    rng = np.random.default_rng(1)
    level = np.repeat(np.linspace(1, 20, 30), 12)
    ripple = np.tile(np.sin(np.arange(12) * np.pi / 6), 30) * rng.uniform(0.9, 1.1, 360)
    assert choose_power(level * (2 + ripple), 12) == "log"
    assert choose_power(level * (1 + np.maximum(ripple, -1)), 12) == "root"  # zeros have no logarithm
    assert choose_power(4 * level + 2 * np.sqrt(level) * ripple, 12) == "root"
    assert choose_power(30 + level + ripple, 12) == "none"
    assert choose_power(level * ripple, 12) == "none"


def test_differences_follow_their_rules() -> None:
    short, long = seasonal(120, 12), seasonal(900, 12)
    assert (choose_transform(short, 12).d, choose_transform(short, 12).D) == (0, 1)
    assert choose_transform(long, 12).D == 0
    walk = np.cumsum(np.random.default_rng(0).standard_normal(300))
    assert (choose_transform(walk, 1).d, choose_transform(walk, 1).D) == (1, 0)
    assert choose_transform(np.random.default_rng(0).standard_normal(300), 1).d == 0


@pytest.mark.parametrize(
    "change", [Transform("none", 0, 0, 6), Transform("none", 0, 1, 6), Transform("none", 1, 1, 6)]
)
def test_targets_become_the_series_again(change: Transform) -> None:
    z = seasonal(120, 6)
    layout = plan_windows(change, 1, 5, len(z))
    units, origins = fit_scale(layout, z), origins_of(layout, len(z))
    x, level, spread = read_windows(layout, units, z, origins, 0)
    y = read_targets(layout, units, z, origins, level, spread)
    assert x.shape == (layout.length // layout.fold, len(origins), layout.inputs)
    again = to_series(layout, units, z, origins, level, spread, y)
    assert again == pytest.approx(z[origins[:, None] + np.arange(5)], rel=1e-12)
    assert np.sqrt((y**2).mean(axis=0)) == pytest.approx(np.ones(5))


def test_a_window_holds_the_last_values_in_their_own_units() -> None:
    z = np.arange(40.0) ** 1.5
    layout = WindowSpec(Transform("none", 0, 0, 1), 4, 2, (), 3)
    units = fit_scale(layout, z)
    x, level, spread = read_windows(layout, units, z, np.array([20]), 0)
    window = z[16:20]
    assert level[0] == window.mean()
    assert spread[0] == pytest.approx(window.std() + 0.1 * z.std())
    assert x[:, 0].ravel() == pytest.approx((window - level[0]) / spread[0], rel=1e-6)


def test_a_series_that_climbs_is_read_the_same() -> None:
    """Level and size do not change what the network sees: windows have units of their own."""
    z = seasonal(120, 6)
    layout = plan_windows(Transform("none", 0, 0, 6), 1, 5, len(z))
    one = read_windows(layout, fit_scale(layout, z), z, np.array([60]), 0)[0]
    other = 1000 + 7 * z
    two = read_windows(layout, fit_scale(layout, other), other, np.array([60]), 0)[0]
    assert one == pytest.approx(two, abs=1e-5)


def test_autoregression_is_that_of_statsmodels() -> None:
    w = seasonal(200, 12)
    for lags in ([1, 2, 3], [1, 12, 13]):
        ours = fit_lags(w, lags)
        theirs = AutoReg(w, lags, trend="c").fit()
        weights = [ours.weights[-lag] for lag in lags]
        assert [ours.intercept, *weights] == pytest.approx(theirs.params, rel=1e-6, abs=1e-8)
    model = fit_autoregressive(w, Transform("none", 0, 0, 12))
    lags = [i for i in range(1, model.model.tau + 1) if model.model.weights[-i] != 0]
    theirs = AutoReg(w, lags, trend="c").fit().predict(200, 211)
    assert model.forecast(w, np.array([200]), 12)[0] == pytest.approx(theirs, rel=1e-5)


def test_lags_are_chosen_by_the_criterion() -> None:
    rng = np.random.default_rng(0)
    w = np.zeros(600)
    for t in range(12, 600):
        w[t] = 0.3 * w[t - 1] + 0.6 * w[t - 12] + rng.standard_normal()
    assert 12 in choose_lags(w, 12)
    second = np.zeros(600)
    for t in range(2, 600):
        second[t] = 1.2 * second[t - 1] - 0.5 * second[t - 2] + rng.standard_normal()
    assert 2 <= len(choose_lags(second, 1)) <= 6
    with pytest.raises(InputError, match="lags: 5 lags need more than 6 values"):
        fit_lags(np.arange(6.0), [1, 2, 3, 4, 5])


def test_naive_forecasts_by_hand() -> None:
    y = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert Naive(1).forecast(y, np.array([3]), 2).tolist() == [[3, 3]]
    assert Naive(2).forecast(y, np.array([3, 4]), 3).tolist() == [[2, 3, 2], [3, 4, 3]]


def test_the_window_mlp_learns_a_wave() -> None:
    y = 10 + np.sin(np.arange(150) * 2 * np.pi / 10)
    model = fit_window_mlp(y[:140], Transform("none", 0, 0, 10), 10, np.random.default_rng(0))
    assert np.abs(model.forecast(y, np.array([140]), 10)[0] - y[140:]).max() < 0.3


def test_measures_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(0)
    y, y_hat = rng.standard_normal((2, 5, 3))
    y[2, 1] = np.nan
    train = rng.standard_normal(30)
    scale = sum(abs(train[t] - train[t - 4]) for t in range(4, 30)) / 26
    known = [(i, k) for i in range(5) for k in range(3) if (i, k) != (2, 1)]
    assert naive_scale(train, 4) == pytest.approx(scale)
    expected = sum(abs(y_hat[at] - y[at]) for at in known) / len(known) / scale
    assert mase(y_hat, y, scale) == pytest.approx(expected)
    assert rmse(y_hat, y) == pytest.approx(
        (sum((y_hat[at] - y[at]) ** 2 for at in known) / len(known)) ** 0.5
    )
    inside = sum(y_hat[at] - 1 <= y[at] <= y_hat[at] + 1 for at in known) / len(known)
    assert coverage(y_hat - 1, y_hat + 1, y) == pytest.approx(inside)
    with pytest.raises(InputError, match="season: 30 steps need more than 30 values"):
        naive_scale(train, 30)


def test_quantiles_hold_their_share() -> None:
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(300):
        seen, new = np.abs(rng.standard_normal((2, 19, 1)))
        shares.append(np.mean(new <= quantiles(seen, 0.8)))
    assert np.mean(shares) == pytest.approx(0.8, abs=0.02)
    assert quantiles(np.array([[1.0, np.nan], [2.0, np.nan]]), 0.9).tolist()[0] == np.inf


def test_levels_adapt_to_errors_that_grow() -> None:
    rng = np.random.default_rng(0)
    trained = np.abs(rng.standard_normal((200, 3)))
    later = 1.7 * np.abs(rng.standard_normal((600, 3)))  # larger than those that were measured
    fixed, adapted = quantiles(trained, 0.8), adapted_widths(trained, 0.8, later)
    assert (later <= fixed).mean() < 0.65
    assert (later <= adapted)[100:].mean(axis=0) == pytest.approx([0.8, 0.8, 0.8], abs=0.04)
    assert (adapted[0] == quantiles(trained[-RECENT:], 0.8)).all()
    other = later.copy()
    other[50:] = 99  # what is known at an origin alone counts: step k of origin 50 at origin 50 + k
    assert (adapted_widths(trained, 0.8, other)[:51] == adapted[:51]).all()
    assert np.isfinite(adapted_widths(trained, 0.8, np.full((9, 3), np.nan))).all()


def test_phases_of_larger_errors_have_wider_intervals_where_the_errors_show_it() -> None:
    rng = np.random.default_rng(0)
    phases = (np.arange(200)[:, None] + np.arange(4)) % 4
    sizes = np.array([1.0, 1.0, 1.0, 3.0])
    found = phase_factors(rng.standard_normal((200, 4)) * sizes[phases], phases, 4)
    assert found / found[0] == pytest.approx(sizes, rel=0.35) and found.mean() == pytest.approx(1, abs=0.05)
    halves = rng.standard_normal((200, 4)) * np.where(
        np.arange(200)[:, None] < 100, sizes[phases], 1 / sizes[phases]
    )
    assert (phase_factors(halves, phases, 4) == 1).all()  # the second half contradicts the first
    assert (phase_factors(np.full((9, 4), np.nan), phases[:9], 4) == 1).all()
    assert phase_factors(np.ones((9, 4)), np.zeros((9, 4), int), 1).tolist() == [1.0]
