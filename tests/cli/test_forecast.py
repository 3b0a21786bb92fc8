"""`unspool forecast`: a table in, forecasts out, and one clear line for what is wrong."""

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from unspool.cli.main import main
from unspool.errors import InputError
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.forecast.run import ForecastRun
from unspool.tasks.forecast.store import ForecastWriter

QUICK = ["--members", "1", "--steps", "20", "--hidden", "4", "--horizon", "6"]
WAVE = "".join(f"{t},{t % 7},{'{}' if t == 40 else t % 5}\n" for t in range(80))


def run(*arguments: object) -> int:
    return main(["forecast", *map(str, arguments)])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    lines = ["month,sales,place,cost"]
    for t in range(96):
        wave = np.sin(2 * np.pi * t / 12)
        sales, cost = 20 + 5 * wave + rng.normal(), 9 - 2 * wave + 0.1 * rng.normal()
        lines.append(f"{2000 + t // 12}-{t % 12 + 1:02},{sales:.3f},here,{cost:.3f}")
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_fit_predict_and_pictures(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, plot = tmp_path / "run", tmp_path / "p.png"
    assert run("fit", data, "--out", out, "--plot", plot, *QUICK) == 0
    printed = capsys.readouterr().out
    for said in (
        "96 steps, 2000-01 to 2007-12; sales, cost",
        "ignored, not numeric: place",
        "season 12",
    ):
        assert said in printed
    for name in (
        "network",
        "last value",
        "seasonal naive",
        "autoregression",
        "window MLP",
        "2008-01",
        "80% interval",
    ):
        assert name in printed
    assert {path.name for path in tmp_path.glob("*.png")} == {"p-sales.png", "p-cost.png"}
    assert run("predict", out, "--steps", 2) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "month,sales,sales low,sales high,cost,cost low,cost high"
    assert [line.split(",")[0] for line in lines[1:]] == ["2008-01", "2008-02"]
    assert run("predict", out, data, "--steps", 2) == 0
    assert capsys.readouterr().out.splitlines() == lines
    assert run("predict", out, "--json") == 0
    found = json.loads(capsys.readouterr().out)["columns"]["cost"]
    assert len(found["forecast"]) == 6 and all(np.array(found["low"]) <= found["high"])


def test_a_later_history_goes_on_from_its_own_end(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert run("fit", data, "--out", out, "--columns", "sales", *QUICK) == 0
    later = tmp_path / "later.csv"
    lines = data.read_text().splitlines()
    later.write_text("\n".join([lines[0], *lines[8:], "2008-01,21,here,9", "2008-02,23,here,9"]) + "\n")
    capsys.readouterr()
    assert run("predict", out, later, "--steps", 1) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("2008-03,")


def test_a_backtest_as_a_table_json_and_picture(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plot = tmp_path / "b.svg"
    assert run("backtest", data, "--columns", "cost", "--test", 12, "--json", "--plot", plot, *QUICK) == 0
    found = json.loads(capsys.readouterr().out)["columns"]["cost"]
    assert found["origins"] == 7 and len(found["models"]["network"]["mase_by_step"]) == 6
    assert plot.read_bytes().startswith(b"<?xml")
    assert run("backtest", data, "--columns", "cost", "--test", "25%", "--stride", 6, *QUICK) == 0
    assert "80% coverage" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("t,a\n1,1\n2,two\n3,3\n", [], "row 2 (line 3), column 'a': expected a finite number, got 'two'"),
        ("t,a\n1,1\n2,inf\n3,3\n", [], "row 2 (line 3), column 'a': expected a finite number, got 'inf'"),
        ("t,a\n1,1\n2,\n3,3\n", [], "row 2 (line 3), column 'a': the value is missing"),
        ("t,a\n1,1\n2,2\n3,4\n", [], "column 'a': horizon is 12, longer than the series, which has 3 values"),
        ("t,a\n" + "".join(f"{i},5\n" for i in range(90)), [], "column 'a': the series: all 90 values are 5"),
        ("t,a\n" + "".join(f"{i},{i % 5}\n" for i in range(20)), [], "column 'a': the series has 20 values"),
        ("t,a\n1,1\n2,2\n", ["--columns", "b"], "no column 'b'; there are 't', 'a'"),
        ("t,a\n1,1\n2,2\n", ["--season", "x"], "season is 'x'"),
        ("t,a\n1,1\n2,2\n", ["--differences", "2,0"], "differences is '2,0'"),
        ("t,a\n", [], "no row below its heading"),
        (
            "month,a\n2000-03,1\n2000-02,2\n2000-01,3\n",
            [],
            "column 'month': '2000-02' comes before the row above it",
        ),
        (
            "t;a\n1;1,5\n2;2,5\n",
            [],
            "column 'a': expected a finite number, got '1,5': a number has a decimal point",
        ),
        (
            "t,n,a\n" + WAVE.format("1e308"),
            [],
            "column 'a': the series: value 41 is 1e+308: values too large",
        ),
        (
            "t,n,a\n" + WAVE.format("1"),
            ["--window", "-1"],
            "window is -1; expected a whole number of 0 or more",
        ),
        ("t,n,a\n" + WAVE.format("1"), ["--seed", "-1"], "seed is -1; expected a whole number of 0 or more"),
        ("t,a\n1,1\n2,2\n", ["--level", "1"], "level is 1.0; expected a share between 0 and 1"),
        ("t,a\n1,1\n2,2\n", ["--level", "nan"], "level is nan; expected a finite number"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(
    content: str, arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    assert run("fit", path, "--out", tmp_path / "run", *arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("unspool: ") and len(error.splitlines()) == 1
    assert message in error
    assert not (tmp_path / "run").exists()


def test_other_slips_are_said(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "p.png"
    folder.mkdir()
    for arguments, message in [
        (["predict", tmp_path / "none"], "no such run"),
        (["backtest", data, "--test", "x"], "test is 'x'"),
        (["backtest", data, "--test", "3"], "test is 3: expected 12 (the horizon)"),
        (["fit", data, "--out", tmp_path], "this path already exists"),
        (["fit", data, "--out", tmp_path / "r", "--plot", "a.txt"], "expected a name that ends with"),
        (["fit", data, "--out", tmp_path / "r", "--plot", folder], "a folder of that name is there"),
        (["fit", data, "--out", data / "below"], "data.csv is no folder; give another --out"),
        (["fit", tmp_path, "--out", tmp_path / "r"], "a folder; expected a file"),
        (["backtest", data, "--stride", "0"], "stride is 0; expected a whole number of 1 or more"),
    ]:
        assert run(*arguments) == 2
        assert message in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"data.csv", "p.png"}
    assert run("fit", data, "--out", tmp_path / "r", "--columns", "cost", *QUICK) == 0
    capsys.readouterr()
    assert run("fit", data, "--out", tmp_path / "r") == 2
    assert "a run already exists here; give another --out\n" in capsys.readouterr().err


@pytest.mark.parametrize("act", ["fit", "backtest"])
def test_all_columns_that_cannot_be_used_are_named_at_once_and_before_any_is_learned(
    act: str,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = ["--out", tmp_path / "run"] if act == "fit" else []
    monkeypatch.setattr(
        "unspool.tasks.forecast.forecaster.Forecaster.fit_iter", lambda *_: pytest.fail("learned")
    )
    assert run(act, data, *out, "--columns", "sales", "profit", "cost", "9", *QUICK) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"unspool: {data}: no columns 'profit', 9; there are 'month', 'sales'")
    rows = "".join(f"{t},{t % 7 + t % 3},5,{t % 5 if t > 90 else 3}\n" for t in range(96))
    table = tmp_path / "flat.csv"
    table.write_text("t,good,flat,late\n" + rows)
    assert run(act, table, *out, *QUICK) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"unspool: {table}: column 'flat': the series: all 96 values are 5; expected")
    late = (
        "column 'late': the series: all 77 values are 3"  # before the first origin, and so for backtest alone
    )
    assert (late in said) == (act == "backtest")
    assert len(said.splitlines()) == 1 and not (tmp_path / "run").exists()
    assert run(act, table, *out, *QUICK, "--seed", "-1") == 2
    assert (
        "column 'flat': " in (said := capsys.readouterr().err) and "'good'" in said and "seed is -1" in said
    )


def test_all_columns_of_a_run_that_are_missing_are_named_at_once(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert run("fit", data, "--out", out, *QUICK) == 0
    capsys.readouterr()
    (tmp_path / "other.csv").write_text("month,price\n2008-01,1\n2008-02,2\n")
    assert run("predict", out, tmp_path / "other.csv") == 2
    assert "no columns 'sales', 'cost'; there are 'month', 'price'" in capsys.readouterr().err


def test_forecasts_of_large_values_are_printed_with_all_their_digits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wave = 1_000_000_100 + 10 * np.sin(np.arange(80)) + np.random.default_rng(0).normal(size=80)
    path, out = tmp_path / "large.csv", tmp_path / "run"
    path.write_text("v\n" + "".join(f"{y}\n" for y in wave))
    assert run("fit", path, "--out", out, *QUICK) == 0
    assert "1e+09" not in capsys.readouterr().out
    assert run("predict", out, "--json") == 0
    told = json.loads(capsys.readouterr().out)["columns"]["v"]
    assert run("predict", out) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()[1:]]
    for place, name in enumerate(("forecast", "low", "high"), 1):
        assert [float(row[place]) for row in rows] == told[name]


def test_a_share_of_a_naive_forecast_without_an_error_is_a_dash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "flat-end.csv"
    path.write_text("v\n" + "".join(f"{t * t % 11 if t < 60 else 3}\n" for t in range(90)))
    given = ["backtest", path, "--test", "20", "--season", "1", *QUICK]
    assert run(*given) == 0
    printed = capsys.readouterr().out
    assert "nan" not in printed and "–" in printed


def test_a_level_that_the_data_cannot_support_is_refused_before_anything_is_learned(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    for command in (["fit", data, "--out", out], ["backtest", data, "--test", "24"]):
        assert run(*command, *QUICK, "--level", "0.999999") == 2
        said = capsys.readouterr().err
        assert "level 0.999999 needs at least 999,999 errors" in said and said.count("\n") == 1
    assert not out.exists()
    assert run("fit", data, "--out", out, *QUICK) == 0
    capsys.readouterr()
    assert run("predict", out, "--level", "0.999") == 2
    assert "the highest level here is 0.9" in capsys.readouterr().err


def test_a_band_that_holds_less_than_its_level_says_so(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = data.read_text().splitlines()
    for i in range(81, len(lines) - 1):
        if i not in (82, 88):
            lines[i] = ",".join([*lines[i].split(",")[:1], "", "here", lines[i].split(",")[3]])
    data.write_text("\n".join(lines) + "\n")
    given = ["fit", data, "--out", tmp_path / "run", *QUICK, "--missing", "mask", "--json"]
    assert run(*given) == 0
    printed = capsys.readouterr()
    columns = json.loads(printed.out)["columns"]
    assert columns["sales"]["level_reached"] < 0.8 == columns["cost"]["level_reached"]
    assert "column 'sales': too few errors for a prediction interval of level 0.8" in printed.err
    assert printed.err.count("\n") == 1


def test_a_warning_of_a_library_is_one_line_of_this_program(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(*_: object) -> None:
        warnings.warn("invalid value\n  met", RuntimeWarning, stacklevel=1)

    monkeypatch.setattr(Forecaster, "check", check)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        assert run("fit", data, "--out", tmp_path / "run", *QUICK) == 0
    assert capsys.readouterr().err == "unspool: warning: invalid value met\n"


def test_an_interrupted_fit_is_resumed_to_the_same_bits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "two.csv"
    rows = [f"{t},{3 + np.sin(t)},{2 + np.cos(t / 2)}" for t in range(70)]
    data.write_text("\n".join(["t,a,b", *rows]) + "\n")
    told = ["forecast", "fit", str(data), "--horizon", "4", "--members", "2", "--steps", "5", "--json"]
    assert main([*told, "--out", str(tmp_path / "whole")]) == 0
    whole = json.loads(capsys.readouterr().out)
    for update in (
        1,
        5,
        14,
        15,
        16,
        29,
    ):  # 15 updates of each column: one network for the band, two for the forecast
        out = tmp_path / f"stopped{update}"
        asked = iter(range(1, 100))
        with monkeypatch.context() as signalled:
            signalled.setattr(
                "unspool.cli.signals.Stop.__call__", lambda _, at=update, n=asked: next(n) == at
            )
            assert main([*told, "--out", str(out)]) == 130
        printed = capsys.readouterr()
        assert json.loads(printed.out)["stopped"] == update and f"unspool resume {out}" in printed.err
        assert main(["forecast", "predict", str(out)]) == 0  # it can be loaded at any moment
        assert f"after update {update}; resume with" in capsys.readouterr().err
        column = ForecastRun.load(out).forecasters["b"]
        assert column.unfinished_
        with pytest.raises(InputError, match="has not ended"):
            column.predict_interval()
        with pytest.raises(InputError, match="has not ended"):
            column.save(tmp_path / "other")
        assert main(["resume", str(out), "--json"]) == 0
        again = json.loads(capsys.readouterr().out)
        assert again["columns"] == whole["columns"]
        assert main(["resume", str(out), "--json"]) == 0  # it has ended: the same again
        assert json.loads(capsys.readouterr().out) == again
        one, two = ((place / "model.safetensors").read_bytes() for place in (out, tmp_path / "whole"))
        assert one == two
        assert not (out / "training.safetensors").exists()


def test_a_fit_says_what_its_updates_are_for(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ["--members", "2", "--steps", "3", "--out", str(tmp_path / "run")]
    assert main(["forecast", "fit", str(data), *told]) == 0
    said = "9 updates planned for 2 networks of the forecast and 1 that only measure"
    assert said in capsys.readouterr().out


def test_the_number_of_saves_does_not_grow_with_the_columns(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saves, save = [], ForecastWriter.save_networks
    monkeypatch.setattr(ForecastWriter, "save_networks", lambda self: (saves.append(1), save(self)))
    told = ["--members", "2", "--steps", "5"]  # 15 updates of each column
    for number, columns, every, expected in (
        (0, ["sales"], [], 3),  # before the first update, after the last, and when it is evaluated
        (1, ["sales", "cost"], [], 3),
        (2, ["sales", "cost"], ["--save-every", "8"], 6),  # updates of all columns are counted: 8, 16, 24
    ):
        saves.clear()
        chosen = [part for column in columns for part in ("--columns", column)]
        assert run("fit", data, "--out", tmp_path / str(number), *told, *every, *chosen) == 0
        assert len(saves) == expected


def test_the_times_of_a_resumed_fit_are_of_its_own_updates(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, asked = tmp_path / "run", iter(range(1, 100))
    told = ["--members", "2", "--steps", "5", "--columns", "sales", "--out", out]
    with monkeypatch.context() as signalled:
        signalled.setattr("unspool.cli.signals.Stop.__call__", lambda _: next(asked) == 11)
        assert run("fit", data, *told) == 130
    capsys.readouterr()
    assert main(["resume", str(out)]) == 0
    assert "  4 updates in " in capsys.readouterr().out


def test_data_from_a_pipe_is_fitted_and_the_run_cannot_be_resumed(tmp_path, capsys):
    reading, writing = os.pipe()
    os.write(writing, b"value\n" + b"".join(f"{np.sin(i / 3):.4f}\n".encode() for i in range(80)))
    os.close(writing)
    assert run("fit", f"/dev/fd/{reading}", "--out", tmp_path / "r", *QUICK) == 0
    assert run("predict", tmp_path / "r") == 0
    capsys.readouterr()
    assert main(["resume", str(tmp_path / "r")]) == 2
    assert (
        "it stores no command (made by Python code, by an older version or from a pipe)"
        in capsys.readouterr().err
    )


@pytest.fixture
def long(data: Path, tmp_path: Path) -> Path:
    """Two series of other lengths below each other: the columns of `data`, the second without its first year and last month."""
    rows = [line.split(",") for line in data.read_text().splitlines()[1:]]
    lines = [f"{month},sales,{sales}" for month, sales, _, _ in rows]
    lines += [f"{month},cost,{cost}" for month, _, _, cost in rows[12:-1]]
    path = tmp_path / "long.csv"
    path.write_text("\n".join(["month,what,value", *lines]) + "\n")
    return path


def test_each_series_of_a_long_table_is_forecast_from_its_own_end(
    data: Path, long: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, wide = tmp_path / "run", tmp_path / "wide"
    assert run("fit", long, "--series", "what", "--out", out, *QUICK) == 0
    assert "83 to 96 values each, 96 steps, 2000-01 to 2007-12; sales, cost" in capsys.readouterr().out
    assert run("predict", out, "--steps", 1) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header == "what,month,forecast,forecast low,forecast high"
    assert [line.split(",")[:2] for line in lines] == [["sales", "2008-01"], ["cost", "2007-12"]]
    assert run("fit", data, "--columns", "sales", "--out", wide, *QUICK) == 0
    capsys.readouterr()
    assert run("predict", wide, "--steps", 1) == 0
    assert capsys.readouterr().out.splitlines()[1].split(",")[1:] == lines[0].split(",")[2:]
    later = tmp_path / "later.csv"
    later.write_text(long.read_text().replace(",sales,", ",other,") + "2007-12,cost,9\n")
    assert run("predict", out, later, "--steps", 1) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1].startswith("cost,2008-01,") and len(printed.out.splitlines()) == 2
    assert "left out, never seen in training: series 'other'" in printed.err


def test_a_long_table_is_never_one_series(
    long: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fit", long, "--out", tmp_path / "run", *QUICK) == 2
    assert "a long table of several series" in (error := capsys.readouterr().err)
    assert error.rstrip().endswith("names the series: --series what")
    assert run("backtest", long, "--series", "what", "--test", 12, *QUICK) == 0
    assert "cost, the last 12 values" in capsys.readouterr().out
    short = tmp_path / "short.csv"
    short.write_text(long.read_text() + "".join(f"2000-0{1 + i // 9},s{i % 9},{i}\n" for i in range(18)))
    assert run("fit", short, "--series", "what", "--out", tmp_path / "run", *QUICK) == 2
    error = capsys.readouterr().err
    assert "series 's0', 's1', 's2', 's3', 's4' and 4 others: horizon is 6, longer than the series" in error
    later = tmp_path / "later.csv"
    assert run("fit", long, "--series", "what", "--out", tmp_path / "run", *QUICK) == 0
    later.write_text("month,what,value\n2000-01,other,1\n2000-02,other,2\n")
    capsys.readouterr()
    assert run("predict", tmp_path / "run", later) == 2
    assert (
        "no series that was learned; expected some of the series 'sales', 'cost'" in capsys.readouterr().err
    )


def test_new_observations_are_appended_to_a_run(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, lines = tmp_path / "run", data.read_text().splitlines()
    assert run("fit", data, "--out", out, *QUICK) == 0
    later, whole = tmp_path / "later.csv", tmp_path / "whole.csv"
    new = ["2008-01,21,here,9", "2008-02,23,here,8"]
    later.write_text(
        "\n".join([lines[0], lines[-1], *new]) + "\n"
    )  # a row that the run has already, and two new ones
    whole.write_text("\n".join([*lines, *new]) + "\n")
    capsys.readouterr()
    assert run("predict", out, whole) == 0
    expected = capsys.readouterr().out
    assert run("predict", out, "--append", later) == 0
    printed = capsys.readouterr()
    assert printed.out == expected and printed.err == f"unspool: appended to {out}: 2 steps\n"
    assert run("predict", out) == 0
    assert capsys.readouterr().out == expected  # the run holds them now
    far = tmp_path / "far.csv"
    far.write_text("\n".join([lines[0], "2009-01,21,here,9", "2009-02,22,here,9"]) + "\n")
    for arguments, message in (
        (["--append", later], "no row comes after the series of the run"),
        (["--append", far], "'sales' begins at 2009-01, 10 steps after the last value of the run"),
        ([data, "--append", later], "append: give new observations as --append FILE or another history"),
    ):
        assert run("predict", out, *arguments) == 2
        assert message in capsys.readouterr().err


def test_quantiles_and_sample_paths_are_columns(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert run("fit", data, "--out", out, "--columns", "sales", *QUICK) == 0
    capsys.readouterr()
    told = ["--quantiles", "0.1", "0.5", "--samples", "2", "--steps", "2"]
    assert run("predict", out, *told) == 0
    lines = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == [
        "month",
        "sales",
        "sales low",
        "sales high",
        "sales q0.1",
        "sales q0.5",
        "sales sample 1",
        "sales sample 2",
    ]
    assert all(line[1] == line[5] and line[2] == line[4] for line in lines[1:]) and len(lines) == 3
    assert run("predict", out, *told, "--json") == 0
    more = json.loads(capsys.readouterr().out)["columns"]["sales"]["more"]
    assert [float(line[6]) for line in lines[1:]] == more["sample 1"]
    for wrong, message in (
        (["--quantiles", "1.5"], "quantiles is 1.5"),
        (["--samples", "-1"], "samples is -1"),
    ):
        assert run("predict", out, *wrong) == 2
        assert message in capsys.readouterr().err
