"""`unspool regress`: numbers from vectors, series, texts, arrays and .ts files, beside simple models."""

import json
import signal

import numpy as np
import pytest
from sklearn.linear_model import Ridge as SklearnRidge

from unspool.baselines.ridge import Ridge, features
from unspool.cli.main import app
from unspool.cli.output import terminal
from unspool.cli.views.regression import show_regression
from unspool.data.formats.npz import write_ragged
from unspool.data.formats.numeric import Columns, read_measured
from unspool.errors import InputError
from unspool.storage import run_folder
from unspool.tasks.registry import load
from unspool.tasks.regress import SequenceRegressor

QUICK = ["--hidden", "8", "--steps", "40", "--validation", "0", "--learning-rate", "0.01"]
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _signals():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def run(*arguments):
    app(list(map(str, arguments)), exit_on_error=False, print_error=False, result_action="return_value")


def _of(steps):
    return [str(steps) if each == "40" else each for each in QUICK]


def told(capsys, *arguments):
    capsys.readouterr()
    run(*arguments, "--json")
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def flats(tmp_path):
    """A table whose rent is a curve of rooms and area, and whose price is a line."""
    X = np.random.default_rng(1).uniform(-1, 1, (120, 2))
    rows = [f"{a:.4f},S{i},{b:.4f},{a * b:.4f},{a + 2 * b:.4f}" for i, (a, b) in enumerate(X.tolist())]
    path = tmp_path / "flats.csv"
    path.write_text("\n".join(["rooms,street,area,rent,price", *rows]) + "\n")
    return path


def test_vectors_become_several_numbers_and_simple_models_stand_beside(flats, tmp_path, capsys):
    out, plot = tmp_path / "run", tmp_path / "p.png"
    both = ["--target", "rent", "price"]
    found = told(capsys, "regress", "fit", flats, "--out", out, *both, *_of(400), "--plot", plot)
    assert found["steps"] == 400 and found["scores"]["rows"] == 24 and plot.stat().st_size > 1000
    rent, price = found["scores"]["targets"]
    assert (rent["name"], price["name"]) == ("rent", "price")
    assert rent["network"]["rmse"] < 0.5 * rent["ridge"]["rmse"]  # a product is no line
    assert price["ridge"]["r2"] > 0.999 and abs(price["mean"]["r2"]) < 0.3
    assert json.loads((out / "config.json").read_text())["columns"]["features"] == ["rooms", "area"]


def test_predict_reads_the_columns_of_the_fit_by_name_in_any_order(flats, tmp_path, capsys):
    out, other = tmp_path / "run", tmp_path / "other.csv"
    run("regress", "fit", flats, "--out", out, "--target", "price", "--features", "rooms", "area", *QUICK)
    whole = told(capsys, "regress", "predict", out, flats)
    assert whole["targets"] == ["price"] and whole["scores"]["targets"][0]["network"]["r2"] > 0.5
    lines = [line.split(",") for line in flats.read_text().splitlines()]
    swapped = [f"{row[2]},{'id' if i == 0 else i},{row[0]}\n" for i, row in enumerate(lines)]
    other.write_text("".join(swapped))
    found = told(capsys, "regress", "predict", out, other)
    assert found["answers"] == whole["answers"] and "scores" not in found
    assert load(out).predict([[[0.5, -0.5]]]).shape == (1, 1)
    run("regress", "predict", out, other)
    assert float(capsys.readouterr().out.splitlines()[0]) == pytest.approx(whole["answers"][0][0], rel=1e-4)
    other.write_text("rooms\n0.5\n")
    with pytest.raises(InputError, match="no column 'area'; there are 'rooms'"):
        run("regress", "predict", out, other)


def test_series_texts_arrays_and_ts_files_are_read(tmp_path, capsys):
    x = RNG.uniform(-1, 1, (60, 5)).round(3)
    wide = tmp_path / "wide.csv"
    wide.write_text("a,b,c,d,e,target\n" + "".join(f"{','.join(map(str, row))},{row[-1]}\n" for row in x))
    found = read_measured(wide, Columns(series=True))
    assert found.sequences.shape == (60, 5, 1) and (found.sequences[:, :, 0] == x).all()
    texts = tmp_path / "texts.csv"
    texts.write_text("what,target\n" + "".join(f"{'ab' * (i % 5)}c,{i % 5}\n" for i in range(60)))
    arrays = tmp_path / "a.npz"
    write_ragged(arrays, [row[: 1 + i % 5, None] for i, row in enumerate(x)], targets=x[:, :2])
    series = tmp_path / "a.ts"
    series.write_text("@targetLabel true\n@data\n" + "".join(f"{row[0]},{row[1]}:{row[1]}\n" for row in x))
    for path, options in (
        (wide, ["--series"]),
        (texts, ["--text", "what"]),
        (arrays, []),
        (series, ["--spread"]),
    ):
        out = tmp_path / f"run {path.name}"
        made = told(capsys, "regress", "fit", path, "--out", out, *QUICK, *options)
        assert made["scores"]["rows"] == 12
        again = told(capsys, "regress", "predict", out, path)
        assert len(again["answers"]) == 60 and "scores" in again
        assert ("spreads" in again) == (options == ["--spread"])
        assert again["targets"] == (["target 1", "target 2"] if path == arrays else ["target"])


def test_a_stopped_regression_is_resumed_to_the_same_bits(flats, tmp_path, monkeypatch, capsys):
    options = ["--target", "rent", *QUICK]
    whole = told(capsys, "regress", "fit", flats, "--out", tmp_path / "whole", *options)
    with monkeypatch.context() as patch:
        patch.setattr("unspool.cli.signals.Stop.__call__", lambda _: True)
        with pytest.raises(SystemExit):
            run("regress", "fit", flats, "--out", tmp_path / "run", *options)
    assert (tmp_path / "run" / run_folder.TRAINING).exists()
    assert told(capsys, "resume", tmp_path / "run") | {"run": ""} == whole | {"run": ""}
    models = [(tmp_path / name / run_folder.MODEL).read_bytes() for name in ("whole", "run")]
    assert models[0] == models[1]


@pytest.mark.parametrize(
    ("content", "options", "line"),
    [
        ("a,target\n1,2\n", ["--target", "price"], "no column 'price'; there are 'a', 'target'"),
        ("a,target\n1,2\nx,3\n", [], "no numeric column besides the targets"),
        ("a,target\n1,2\n,3\n", [], r"row 2 \(line 3\), column 'a': the value is missing"),
        ("a,target\n1,2\n3,high\n", [], r"row 2 \(line 3\), column 'target': expected a finite number, got 'high'"),
        ("a,target\n1,2\n", ["--features", "target"], "column 'target' is both input and target"),
        ("a,target\n1,2\n", ["--target", "a", "0"], "a target is given twice"),
        ("a,target\n1,2\n", ["--text", "a", "--features", "a"], "text or features; expected one of them"),
        ("a,target\n1,2\n", ["--by", "rows"], "by=rows is for images"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused_in_one_line(content, options, line, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=line) as caught:
        run("regress", "fit", path, "--out", tmp_path / "run", *options)
    assert "\n" not in str(caught.value) and not (tmp_path / "run").exists()


def test_classes_and_missing_targets_are_no_regression(tmp_path):
    path = tmp_path / "a.ts"
    path.write_text("@classLabel true x\n@data\n1,2:x\n")
    with pytest.raises(InputError, match=r"no targets; for its labels use unspool classify"):
        read_measured(path)
    path.write_text("@targetLabel true\n@data\n1,2:high\n")
    with pytest.raises(InputError, match=r"line 3: expected a finite number as the target, got 'high'"):
        read_measured(path)
    write_ragged(tmp_path / "a.npz", [np.zeros((2, 1))], labels=["x"])
    with pytest.raises(InputError, match="no targets; for its labels use unspool classify"):
        read_measured(tmp_path / "a.npz")
    write_ragged(tmp_path / "a.npz", [np.zeros((2, 1))], targets=[np.nan])
    with pytest.raises(InputError, match="targets: row 1 has no finite number"):
        read_measured(tmp_path / "a.npz")


def test_ridge_regression_is_that_of_scikit_learn_and_finds_its_lambda():
    X, noise = RNG.standard_normal((80, 6)), RNG.standard_normal((80, 2))
    y = X @ RNG.standard_normal((6, 2)) + 0.1 * noise
    ours = Ridge.fit(X, y)
    Z = (X - ours.mean) / ours.std
    distances = []
    for share in 10.0 ** np.arange(-6, 4):
        theirs = SklearnRidge(alpha=80 * share).fit(Z, y)
        distances.append(np.abs(theirs.predict(Z) - ours.predict(X)).max())
    assert min(distances) < 1e-9  # one λ of the grid
    assert np.abs(Ridge.fit(X, noise).w).max() < 0.3 < np.abs(ours.w).max()  # noise asks for a large one


def test_features_are_values_or_a_summary():
    even, ragged = [np.arange(4.0)[:, None]] * 8, [np.arange(float(n))[:, None] for n in (3, 0, 2)]
    assert features(even, None)[0].tolist() == [0, 1, 2, 3]
    assert features(ragged, None)[0].tolist() == [1, pytest.approx(0.8164966), 0, 2, 0, 2, 3]
    assert features(ragged, None)[1].tolist() == [0] * 7
    assert features([np.array([1, 1, 2])], 4)[0].tolist() == [
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
        0,
        0,
        3,
    ]


def test_a_simple_model_that_is_better_is_named(capsys):
    worse, better = {"rmse": 2.0, "mae": 1.0, "r2": None}, {"rmse": 1.0, "mae": 1.0, "r2": 0.5}
    target = {"name": "price", "network": worse, "mean": {**better, "rmse": 1.5}, "ridge": better}
    show_regression(terminal(), {"rows": 3, "targets": [target]}, "held out")
    printed = capsys.readouterr().out
    assert "price: the ridge regression has the lower RMSE: use it" in printed and "–" in printed
    show_regression(
        terminal(), {"rows": 3, "targets": [target | {"network": {**better, "rmse": 0.5}}]}, "held out"
    )
    assert "lower RMSE" not in capsys.readouterr().out


def test_predictions_of_large_numbers_are_printed_with_all_their_digits(tmp_path, capsys):
    rows = [f"{a},{1_000_000_100 + 10 * a}" for a in np.random.default_rng(0).uniform(-1, 1, 40).tolist()]
    (tmp_path / "large.csv").write_text("\n".join(["a,target", *rows]) + "\n")
    run("regress", "fit", tmp_path / "large.csv", "--out", tmp_path / "run", *QUICK)
    answers = told(capsys, "regress", "predict", tmp_path / "run", tmp_path / "large.csv")["answers"]
    run("regress", "predict", tmp_path / "run", tmp_path / "large.csv")
    assert [float(line) for line in capsys.readouterr().out.splitlines()] == [row[0] for row in answers]


def test_a_constant_target_is_refused(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(20, 4))
    with pytest.raises(
        InputError, match="the target y is constant: all 20 values are 7; there is nothing to learn"
    ):
        SequenceRegressor(steps=2).fit(X, np.full(20, 7.0))
    with pytest.raises(InputError, match="target 2 of y is constant"):
        SequenceRegressor(steps=2).fit(X, np.stack([X[:, 0], np.zeros(20)], axis=1))
    with pytest.raises(InputError, match="the target y is constant: all 80 values are 7"):
        SequenceRegressor(steps=2, every_step=True).fit(X, [[7.0] * 4] * 20)
    path = tmp_path / "same.csv"
    path.write_text("a,price\n" + "".join(f"{a},7\n" for a in X[:, 0]))
    with pytest.raises(InputError, match=r"same.csv: the target 'price' is constant: all \d+ values are 7"):
        run("regress", "fit", path, "--target", "price", "--out", tmp_path / "run", *QUICK)
    assert not (tmp_path / "run").exists()


def test_targets_and_inputs_of_very_small_numbers_are_refused():
    X = np.random.default_rng(0).normal(size=(20, 4))
    with pytest.raises(InputError, match=r"y has values that differ by .*e-198 at most: values too small"):
        SequenceRegressor(steps=2).fit(X, X[:, 0] * 1e-198)
    with pytest.raises(InputError, match=r"X has values that differ by .*e-198 at most: values too small"):
        SequenceRegressor(steps=2).fit(X * 1e-198, X[:, 0])
    SequenceRegressor(steps=2).fit(X * 1e-140, X[:, 0] * 1e-140)
