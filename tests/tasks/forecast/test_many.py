"""Many series: the same bits for any number of workers, after an interrupt, and as if each stood alone."""

import json
import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from in_workers import kill, refuse, square
from unspool.cli.main import main
from unspool.data.formats.timetable import read_timetable
from unspool.errors import Diverged, InputError
from unspool.tasks.forecast import many
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.forecast.many import SeriesJob, fit_series
from unspool.tasks.forecast.run import ForecastFit, ForecastRun, open_fit
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.workers import Workers

QUICK = ["--steps", "6", "--hidden", "4", "--members", "2", "--horizon", "4"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, lines = np.random.default_rng(0), ["id,month,v"]
    for s in range(10):
        for t in range(60 + s):
            y = 20 + 5 * np.sin(2 * np.pi * t / 6) + rng.normal()
            lines.append(f"s{s},{2000 + t // 12}-{t % 12 + 1:02},{y:.3f}")
    path = tmp_path_factory.mktemp("many") / "many.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def run(*arguments: object) -> int:
    return main(["forecast", *map(str, arguments)])


def fit(data: Path, out: Path, *more: object) -> int:
    return run("fit", data, "--series", "id", "--out", out, *QUICK, *more)


def content(out: Path) -> tuple[str, Any]:
    scores = json.loads((out / "config.json").read_text())["scores"]
    return sha256((out / "model.safetensors").read_bytes()).hexdigest(), scores


@pytest.fixture(scope="module")
def alone(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone") / "run"
    assert fit(data, out, "--workers", 1) == 0
    return out


def test_the_run_has_the_same_bits_for_one_worker_and_two(data: Path, alone: Path, tmp_path: Path) -> None:
    assert fit(data, tmp_path / "two", "--workers", 2) == 0
    assert content(tmp_path / "two") == content(alone)
    assert len(content(alone)[1]) == 10


def test_each_series_has_the_bits_of_a_forecaster_of_its_own(data: Path, alone: Path) -> None:
    found = ForecastRun.load(alone).forecasters
    for name, values in list(read_timetable(data, series="id").columns.items())[:3]:
        model = Forecaster(**found[name].get_params()).fit(values.y)
        assert model.predict().tolist() == found[name].predict().tolist()
        assert [end.tolist() for end in model.predict_interval()] == [
            end.tolist() for end in found[name].predict_interval()
        ]


def test_tables_stay_short_and_json_is_whole(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit(data, tmp_path / "a", "--workers", 1) == 0
    printed = capsys.readouterr().out
    for said in ("10 series: s0, s1", "10 series to fit in this process", "10 of 10 series", "s left"):
        assert said in printed
    for said in ("mean MASE", "lowest errors of the forecast: s", "highest errors of the forecast: s"):
        assert said in printed
    assert len(printed.splitlines()) < 35
    assert fit(data, tmp_path / "b", "--workers", 1, "--json") == 0
    found = json.loads(capsys.readouterr().out)["columns"]
    assert list(found) == [f"s{i}" for i in range(10)]
    assert found["s3"]["time"][0] == "2005-04" and "network" in found["s3"]["not_trained_on"]["models"]


def test_an_interrupted_fit_goes_on_to_the_same_bits_one_by_one_or_together(
    data: Path,
    alone: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    taken, original = [], ForecastFit.take

    def take_four(self: ForecastFit, name: str, *more: Any) -> None:
        original(self, name, *more)
        taken.append(name)
        if len(taken) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(ForecastFit, "take", take_four)
    out = tmp_path / "run"
    assert fit(data, out, "--workers", 1) == 130
    assert f"resume with: unspool resume {out}" in capsys.readouterr().err
    monkeypatch.setattr(ForecastFit, "take", original)
    fitted, fit_once = [], many.fit_member

    def count(ensemble: Any, k: int, *more: Any) -> Any:
        fitted.append(k)
        return fit_once(ensemble, k, *more)

    monkeypatch.setattr(many, "fit_member", count)
    monkeypatch.setenv("UNSPOOL_THREADS", "1")
    assert main(["resume", str(out)]) == 0
    assert len(fitted) == 6 * 3  # only the networks that were not trained
    assert content(out) == content(alone)


def test_networks_that_are_trained_out_of_order_are_not_trained_again(data: Path, tmp_path: Path) -> None:
    """Workers end in any order; a fit that goes on column by column takes what is there."""
    table = read_timetable(data, series="id")
    names = ["s0", "s1", "s2"]
    arguments = {"steps": 6, "hidden": 4, "members": 2, "horizon": 4}

    def started(out: Path) -> tuple[ForecastRun, dict[str, Any]]:
        run = ForecastRun({name: Forecaster(**arguments) for name in names})  # type: ignore[arg-type]
        return run, {name: run.forecasters[name].begin(table.columns[name].y) for name in names}

    run, ensembles = started(tmp_path / "run")
    run.create(tmp_path / "run", ensembles, {})
    policy = CheckpointPolicy()
    with open_fit(run, ensembles, tmp_path / "run", policy) as work:
        found = fit_series(SeriesJob(arguments, table.columns["s1"].y, np.ones(61, bool), {}))
        work.take("s1", found.networks, found.calibrated)
        work.save()
    run, ensembles = started(tmp_path / "run")
    with open_fit(run, ensembles, tmp_path / "run", policy) as work:
        assert {name: len(work.trained(name)) for name in names} == {"s0": 0, "s1": 3, "s2": 0}
        steps = {name: sum(1 for _ in work.column(name)) for name in names}
        assert steps == {"s0": 18, "s1": 0, "s2": 18}
        work.finish({})
    for name, model in ForecastRun.load(tmp_path / "run").forecasters.items():
        other = Forecaster(**arguments).fit(table.columns[name].y)  # type: ignore[arg-type]
        assert model.predict().tolist() == other.predict().tolist()


def test_a_series_that_cannot_be_learned_is_named(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def diverge(ensemble: Any, k: int, *_: Any) -> Any:
        raise Diverged("the loss is nan")

    monkeypatch.setattr(many, "fit_member", diverge)
    assert fit(data, tmp_path / "run", "--workers", 1) == 2
    assert "series 's0': the loss is nan" in capsys.readouterr().err


def test_workers_yield_every_result_with_its_number() -> None:
    for workers in (Workers(), Workers(2)):
        assert sorted(workers.run(square, range(7))) == [(i, i * i) for i in range(7)]
        with pytest.raises(InputError, match="no 3"):
            list(workers.run(refuse, [3]))
    for count in (0, 1025):
        with pytest.raises(InputError, match="workers is"):
            Workers(count)
    with pytest.raises(InputError, match="backend"):
        Workers(2, "threads")


def test_a_worker_that_is_killed_is_one_clear_line() -> None:
    with pytest.raises(InputError, match="a worker process was killed, perhaps for lack of memory"):
        list(Workers(2).run(kill, [1, 2]))


def test_without_joblib_one_process_works_and_a_line_says_how_to_get_more(
    data: Path, alone: Path, tmp_path: Path
) -> None:
    code = (
        "import sys; sys.modules['joblib'] = None; import importlib.util as u; find = u.find_spec; "
        "u.find_spec = lambda name, *a: None if name == 'joblib' else find(name, *a); "
        "from unspool.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [
        sys.executable,
        "-c",
        code,
        "forecast",
        "fit",
        data,
        "--series",
        "id",
        "--out",
        tmp_path / "run",
    ]
    done = subprocess.run([*map(str, command), *QUICK, "--workers", "2"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        0,
        "unspool: joblib is not installed: one process only; for more: pip install 'unspool[sweep]'\n",
    )
    assert content(tmp_path / "run") == content(alone)


def test_ctrl_c_saves_what_is_fitted_and_leaves_no_process(data: Path, alone: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "unspool",
        "forecast",
        "fit",
        str(data),
        "--series",
        "id",
        "--out",
        str(out),
    ]
    process = subprocess.Popen(
        [*command, *QUICK, "--workers", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert any("3 of 10" in line for line in process.stdout)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    _, error = process.communicate(timeout=60)  # until the last worker has closed its pipe
    if process.returncode:  # it may have been quicker
        assert process.returncode == 130 and error.startswith("unspool: stopped at once"), error
        assert len(error.splitlines()) == 1
        assert main(["resume", str(out)]) == 0
    assert content(out) == content(alone)
