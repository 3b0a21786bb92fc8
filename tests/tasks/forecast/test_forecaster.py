"""The forecaster, its backtest and its run: contracts, not luck."""

from pathlib import Path

import numpy as np
import pytest

from unspool.errors import FileError, InputError
from unspool.tasks.forecast.backtest import Backtesting, backtest, holdout_backtest, rolling_origins
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.forecast.run import ForecastRun

QUICK = {"members": 1, "steps": 40, "hidden": 4}


def series(n: int = 120, season: int = 6, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    return 10 + np.sin(2 * np.pi * t / season) + 0.1 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def fitted() -> Forecaster:
    return Forecaster(horizon=6, **QUICK).fit(series())


def test_it_learns_a_wave_better_than_repeating_the_last_value() -> None:
    y = series(126)
    model = Forecaster(horizon=6, members=1, steps=120).fit(y[:120])
    assert model.season_ == 6
    assert np.abs(model.predict() - y[120:]).mean() < 0.25
    low, high = model.predict_interval(0.9)
    assert ((low <= model.predict()) & (model.predict() <= high)).all()
    narrow = model.predict_interval(0.5)
    assert (narrow[0] >= low).all() and (narrow[1] <= high).all()


def test_the_same_seed_gives_the_same_bits_and_another_one_others(fitted: Forecaster) -> None:
    again = Forecaster(horizon=6, **QUICK).fit(series())
    assert (again.predict() == fitted.predict()).all()
    assert (Forecaster(horizon=6, seed=1, **QUICK).fit(series()).predict() != fitted.predict()).any()


def test_a_fit_that_does_not_end_leaves_the_forecaster_as_it_was() -> None:
    model = Forecaster(horizon=6, **QUICK)
    events = model.fit_iter(series())
    next(events)
    assert model.unfinished_
    events.close()
    with pytest.raises(InputError, match="not fitted yet: call fit first"):
        model.predict()
    with pytest.raises(InputError, match="nothing to save"):
        model.save("run")
    before = model.fit(series()).predict()
    events = model.fit_iter(series(90, seed=1))
    next(events)
    events.close()
    assert not model.unfinished_ and (model.predict() == before).all()


def test_the_time_of_the_last_save_goes_on_from_network_to_network() -> None:
    ensemble = Forecaster(horizon=6, **QUICK).begin(series())
    state = ensemble.state(0)
    state.saved -= 20
    assert ensemble.state(1, before=state).saved == state.saved


def test_many_origins_at_once_are_each_alone(fitted: Forecaster) -> None:
    y = series()
    together = fitted.predict_at(y, np.array([60, 90, 120]))
    for row, origin in zip(together, (60, 90, 120), strict=True):
        assert (fitted.predict(history=y[:origin]) == row).all()
    assert fitted.predict(3).tolist() == fitted.predict()[:3].tolist()


def test_the_phase_of_a_history_is_told() -> None:
    y = series(400)
    model = Forecaster(horizon=6, model="network", **QUICK).fit(y)  # 66 seasons: the phase is read
    assert model.fitted_.layout.seasons == (6,)
    assert (model.predict(history=y[12:]) == model.predict()).all()
    assert (model.predict(history=y[13:], phase=13) == model.predict()).all()
    assert (model.predict(history=y[13:]) != model.predict()).any()


def test_arguments_follow_scikit_learn() -> None:
    model = Forecaster(horizon=3, season=12)
    assert model.get_params()["season"] == 12
    assert model.set_params(season="guess", cell="lstm").get_params()["cell"] == "lstm"
    assert Forecaster(**model.get_params()).get_params() == model.get_params()
    with pytest.raises(InputError, match="no argument 'sesaon'"):
        model.set_params(sesaon=3)
    clone = pytest.importorskip("sklearn.base").clone
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize(
    ("y", "arguments", "message"),
    [
        (series(10), {"horizon": 12}, "horizon is 12, longer than the series, which has 10 values"),
        (series(20), {"horizon": 12}, "the series has 20 values; .* need"),
        (np.ones(50), {}, "all 50 values are 1; expected values that differ"),
        (np.r_[series(), np.nan], {}, "value 121 is nan; expected finite numbers"),
        (np.r_[np.inf, series()], {}, "value 1 is inf"),
        ([], {}, "is empty"),
        ([[1.0, 2.0]], {}, "expected one axis"),
        (["a", "b"], {}, "expected numbers"),
        (series(), {"season": 100}, r"season is 100; expected guess, or 1 … 60"),
        (series(), {"season": "year"}, "season is 'year'"),
        (series() - 10, {"power": "log"}, "power is 'log', but the series has the value"),
        (series(), {"power": "cube"}, "power is 'cube'"),
        (series(), {"season": 1, "differences": (0, 1)}, r"differences are \(0, 1\)"),
        (series(), {"horizon": 0}, "horizon is 0"),
    ],
)
def test_what_cannot_be_forecast_is_said(y: object, arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Forecaster(**(QUICK | arguments)).fit(y)


def test_a_series_that_is_too_short_is_told_how_long_it_must_be() -> None:
    model = Forecaster(horizon=3, season=4, **QUICK)
    with pytest.raises(InputError, match=r"a season of 4 and a horizon of 3 need (\d+)") as told:
        model.fit(series(15))
    need = int(str(told.value).rsplit(" ", 1)[1])
    assert len(model.fit(series(need)).predict()) == 3
    with pytest.raises(InputError, match=f"need {need}"):
        model.fit(series(need - 1))


def test_use_before_and_after_the_fit_is_checked(fitted: Forecaster) -> None:
    with pytest.raises(InputError, match="not fitted yet"):
        Forecaster().predict()
    with pytest.raises(InputError, match=r"steps is 7; this model was fitted for 1 … 6"):
        fitted.predict(7)
    with pytest.raises(InputError, match="the history has 5 values; this model reads the last"):
        fitted.predict(history=series(5))
    with pytest.raises(InputError, match="level is 1"):
        fitted.predict_interval(1.0)
    plain = Forecaster(horizon=6, calibration=0, **QUICK).fit(series())
    with pytest.raises(InputError, match="no values were kept for intervals"):
        plain.predict_interval()
    logs = Forecaster(horizon=6, power="log", **QUICK).fit(series())
    with pytest.raises(InputError, match="takes its log, which needs values above 0"):
        logs.predict(history=series() - 10)


def test_a_perfect_repetition_is_forecast_as_one() -> None:
    y = np.tile([1.0, 4.0, 2.0, 8.0], 20)
    model = Forecaster(horizon=4, season=4, differences=(0, 1), **QUICK).fit(y)
    assert model.predict() == pytest.approx([1, 4, 2, 8], abs=0.5)
    assert holdout_backtest(model, y) is None
    with pytest.raises(InputError, match="repeats itself every 4 steps"):
        backtest(Forecaster(horizon=4, season=4, **QUICK), y, test=20)


def test_what_is_not_scored_is_never_learned_from() -> None:
    """Values that were filled in may be anything as targets: windows that read none of them stay as they were."""
    y, known = series(), np.ones(120, bool)
    known[119] = False  # the last value is never read by a window with a target
    other = y.copy()
    other[119] += 0.001
    layout = {"season": 6, "power": "none", "differences": (0, 0), "calibration": 0}
    layout |= {"model": "network"}
    one = Forecaster(horizon=3, **QUICK, **layout).fit(y, known)
    two = Forecaster(horizon=3, **QUICK, **layout).fit(other, known)
    scored = Forecaster(horizon=3, **QUICK, **layout).fit(other)
    fixed = series(60)
    assert np.abs(one.predict(history=fixed) - two.predict(history=fixed)).max() < 1e-4  # units alone
    assert np.abs(one.predict(history=fixed) - scored.predict(history=fixed)).max() > 1e-4


def test_a_backtest_never_looks_ahead() -> None:
    """Whatever happens after an origin, forecasts from it and all that was learned have the same bits."""
    y = series()
    other = y.copy()
    other[110:] = 50 * np.random.default_rng(5).standard_normal(10)
    one, two = (backtest(Forecaster(horizon=4, **QUICK), each, test=24) for each in (y, other))
    early = one.origins <= 110
    assert early.sum() > 5
    for name in one.forecasts:
        assert (one.forecasts[name][early] == two.forecasts[name][early]).all(), name
    assert one.low is not None and two.low is not None
    assert (one.low[early] == two.low[early]).all()
    assert one.scale == two.scale
    assert (one.forecasts["network"][~early] != two.forecasts["network"][~early]).any()


def test_a_backtest_scores_every_model_on_the_same_values() -> None:
    y = series()
    found = backtest(Forecaster(horizon=4, **QUICK), y, test=24, stride=3)
    assert found.origins.tolist() == list(range(96, 117, 3))
    names = [row.name for row in found.rows]
    every = {"network", "autoregression", "smoothing", "theta", "seasonal naive", "last value", "window MLP"}
    assert set(names) == every | {found.answer}
    naive = np.abs(found.forecasts["seasonal naive"] - found.truth).mean()
    train = y[:96]
    assert found.scale == pytest.approx(np.abs(train[6:] - train[:-6]).mean())
    assert found.row("seasonal naive").mase == pytest.approx(naive / found.scale)
    assert found.row("seasonal naive").relative == pytest.approx(1)
    assert found.by_step("network").mean() == pytest.approx(found.row("network").mase)
    assert [row.name for row in found.rows if row.coverage is not None] == [found.answer]


def test_masked_values_are_not_scored() -> None:
    y, known = series(), np.ones(120, bool)
    known[[100, 105]] = False
    found = backtest(Forecaster(horizon=4, **QUICK), y, test=24, scored=known)
    assert np.isnan(found.truth).sum() == 8
    assert np.isfinite(found.row("network").mase)


def test_origins_lie_in_the_test_part() -> None:
    assert rolling_origins(30, 10, 4, 1).tolist() == list(range(20, 27))
    for test, stride, wrong in ((3, 1, "test"), (30, 1, "test"), (10, 0, "stride")):
        with pytest.raises(InputError, match=f"{wrong} is"):
            rolling_origins(30, test, 4, stride)


def test_progress_ends_at_its_total() -> None:
    work = Backtesting(Forecaster(horizon=4, members=2, steps=5, hidden=4), series(), 24)
    reports = list(work.steps())
    assert [report.step for report in reports] == list(range(1, reports[-1].steps + 1))
    assert reports[-1].steps == 15  # one network for the intervals, two to keep


def test_a_trial_judges_networks_that_saw_less() -> None:
    model = Forecaster(horizon=4, **QUICK).fit(series())
    found = holdout_backtest(model, series())
    assert found is not None and found.origins[0] == 96
    later = model.forecasts_at(series(), found.origins)
    assert all(
        (found.forecasts[name] != later[name]).any() for name in ("network", "autoregression", "smoothing")
    )
    assert holdout_backtest(Forecaster(horizon=4, calibration=0, **QUICK).fit(series()), series()) is None


def test_a_run_gives_back_the_same_bits(tmp_path: Path, fitted: Forecaster) -> None:
    ForecastRun({"a": fitted, "b": fitted}).save(tmp_path / "run")
    again = ForecastRun.load(tmp_path / "run").forecasters["b"]
    assert (again.predict() == fitted.predict()).all()
    assert (again.predict_interval(0.7)[1] == fitted.predict_interval(0.7)[1]).all()
    assert again.get_params() == fitted.get_params()
    with pytest.raises(InputError, match="a run of 2 columns, a, b"):
        Forecaster.load(tmp_path / "run")
    fitted.save(tmp_path / "alone")
    assert (Forecaster.load(tmp_path / "alone").predict() == fitted.predict()).all()
    with pytest.raises(FileError, match="a run already exists here"):
        ForecastRun({"a": fitted}).save(tmp_path / "run")
    damaged = tmp_path / "run" / "model.safetensors"
    content = bytearray(damaged.read_bytes())
    content[-3] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(FileError, match="damaged"):
        ForecastRun.load(tmp_path / "run")
    with pytest.raises(InputError, match="not fitted yet"):
        ForecastRun({"a": Forecaster()}).save(tmp_path / "other")


def test_a_level_beyond_the_errors_is_refused_before_and_after_the_fit() -> None:
    model, y = Forecaster(horizon=6, **QUICK), series(72)
    model.fit(y)
    assert model.errors_ is not None
    count = len(model.errors_)
    highest = count / (count + 1)
    model.predict_interval(highest)
    assert (model.level_reached(highest), model.level_reached(0.5)) == (highest, 0.5)
    line = f"level 0.999 needs at least 999 errors on values not trained on, there are {count}; the highest level here is 0"
    with pytest.raises(InputError, match=line):
        model.predict_interval(0.999)
    with pytest.raises(InputError, match=line):
        Forecaster(horizon=6, **QUICK).check(y, level=0.999)


def test_the_usual_level_is_answered_with_too_few_errors_and_says_what_it_reached() -> None:
    y, known = series(72), np.ones(72, bool)
    known[-14:-1] = False
    known[[-9, -4]] = True
    model = Forecaster(horizon=6, season=1, **QUICK).fit(y, known)
    assert model.errors_ is not None
    count = int((~np.isnan(model.errors_)).sum(axis=0).min())
    assert 0 < count < 4
    assert model.level_reached() == count / (count + 1)
    assert np.isfinite(model.predict_interval()).all()


def test_a_series_of_very_small_values_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"the series: its values differ by .*e-199 at most: values too small"
    ):
        Forecaster(horizon=6, **QUICK).fit(series() * 1e-199)
    Forecaster(horizon=6, **QUICK).fit(series() * 1e-140)


@pytest.mark.parametrize(
    "y",
    [
        np.r_[np.zeros(119), 1.0],
        np.r_[1.0, np.zeros(119)],
        1e15 + (1 + np.arange(120) // 12) * 4.0 * (np.arange(120) % 3),
    ],
)
@pytest.mark.filterwarnings("error")
def test_no_series_makes_numpy_warn(y: np.ndarray) -> None:
    Forecaster(horizon=6, **QUICK).fit(y).predict_interval()


def test_quantiles_are_the_ends_of_intervals_and_paths_are_errors_that_occurred(fitted: Forecaster) -> None:
    low, high = fitted.predict_interval(0.8)
    found = fitted.predict_quantiles([0.1, 0.5, 0.9], 4)
    assert found.shape == (3, 4)
    assert (found == np.stack([low, fitted.predict(), high])[:, :4]).all()
    paths = fitted.sample_paths(400, seed=1)
    assert paths.shape == (400, 6) and (paths == fitted.sample_paths(400, seed=1)).all()
    assert (paths != fitted.sample_paths(400, seed=2)).any()
    assert fitted.residuals_ is not None
    rows = fitted._relative(paths, fitted.history_, np.full(400, 120), fitted.fitted_)
    centre = fitted._relative(fitted.predict()[None], fitted.history_, np.array([120]), fitted.fitted_)
    assert (
        np.abs(((rows - centre) / fitted._factors(np.array([120])))[:, None] - fitted.residuals_)
        .max(axis=2)
        .min(axis=1)
        .max()
        < 1e-6
    )
    with pytest.raises(InputError, match="quantiles is 1"):
        fitted.predict_quantiles([1.0])
    with pytest.raises(InputError, match="count is 0"):
        fitted.sample_paths(0)
    with pytest.raises(InputError, match="no errors of whole forecasts"):
        Forecaster(horizon=6, calibration=0, **QUICK).fit(series()).sample_paths(3)


def test_appended_values_are_taken_in_without_a_new_fit(tmp_path: Path) -> None:
    y = series(140)
    model = Forecaster(horizon=6, **QUICK).fit(y[:120])
    expected, band = model.predict(history=y), model.predict_interval(history=y)
    model.append(y[120:])
    assert (model.predict() == expected).all() and (model.predict_interval()[1] == band[1]).all()
    model.save(tmp_path / "run")
    again = Forecaster.load(tmp_path / "run")
    assert again.learned_ == 120 and (again.predict_interval()[0] == band[0]).all()
    with pytest.raises(InputError, match="value 141 is nan"):
        model.append([np.nan])
