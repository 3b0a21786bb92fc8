"""`unspool sweep`: a grid of jobs, each an ordinary run, with the same bits for any number of workers."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.cli.main import main
from unspool.cli.sweep_file import Sweep, expand, read_sweep

TOML = """
command = "classify fit names.csv"
[options]
steps = 6
hidden = 4
[grid]
learning-rate = [0.01, 0.003]
seed = {from = 0, to = 1}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    chance = random.Random(0)
    lines = [f"{''.join(chance.choices('xy' + c, k=6))},{c}" for c in chance.choices("ab", k=60)]
    (tmp_path / "names.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    (tmp_path / "s.toml").write_text(TOML)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: object) -> int:
    return main(["sweep", *map(str, arguments)])


def models(out: Path) -> dict[str, str]:
    return {
        path.parent.name: sha256(path.read_bytes()).hexdigest() for path in out.glob("*/model.safetensors")
    }


def result(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    capsys.readouterr()
    assert run("s.toml", *arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


values = st.lists(
    st.one_of(st.integers(-9, 9), st.sampled_from(["a", "b/c", "ü"])), min_size=1, max_size=4, unique_by=repr
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(["seed", "hidden", "layers", "cell"]), values, min_size=1))
def test_every_combination_is_one_job_with_a_name_of_its_own(grid: dict[str, list[Any]]) -> None:
    jobs = expand(Path("s.toml"), Sweep(["train", "a.txt"], {"steps": 3}, grid))
    assert [tuple(job.values.values()) for job in jobs] == list(itertools.product(*grid.values()))
    assert len({job.name for job in jobs}) == len(jobs)
    for job in jobs:
        assert job.arguments == [
            "train",
            "a.txt",
            "--steps=3",
            *(f"--{k}={v}" for k, v in job.values.items()),
        ]
        assert "/" not in job.name and len(job.name) < 100


@settings(max_examples=60, deadline=None)
@given(st.integers(-50, 50), st.integers(0, 40), st.integers(1, 7))
def test_a_range_holds_both_ends_like_arange(first: int, length: int, step: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.toml"
        body = f"seed = {{from = {first}, to = {first + length}, step = {step}}}"
        path.write_text(f'command = "train a.txt"\n[grid]\n{body}\n')
        assert read_sweep(path).grid["seed"] == np.arange(first, first + length + 1, step).tolist()


def test_ranges_with_a_count_are_linear_or_logarithmic(here: Path) -> None:
    body = (
        "hidden = {from = 16, to = 64, count = 3, scale = 'log'}\ndropout = {from = 0.0, to = 1.0, count = 5}"
    )
    (here / "s.toml").write_text(f'command = ["train", "a b.txt"]\n[grid]\n{body}\n')
    found = read_sweep(Path("s.toml"))
    assert found.grid == {"hidden": [16, 32, 64], "dropout": [0.0, 0.25, 0.5, 0.75, 1.0]}
    assert expand(Path("s.toml"), found)[0].arguments == ["train", "a b.txt", "--hidden=16", "--dropout=0.0"]


def test_words_in_braces_are_filled_and_lists_are_options_with_several_values(here: Path) -> None:
    (here / "s.toml").write_text(
        'command = "classify fit part-{fold}.csv --test test-{fold}.csv"\n[options]\ncolumns = ["a", "b"]\n'
        "[grid]\nfold = [1, 2]\nbidirectional = [true, false]\nsplit = [[0.8, 0.2], [0.9, 0.1]]\n"
    )
    found = read_sweep(Path("s.toml"))
    assert found.mean_over == ["fold"]
    head = ["classify", "fit", "part-1.csv", "--test", "test-1.csv", "--columns", "a", "b"]
    assert expand(Path("s.toml"), found)[0].arguments == [*head, "--bidirectional", "--split", "0.8", "0.2"]
    assert expand(Path("s.toml"), found)[3].arguments == [
        *head,
        "--no-bidirectional",
        "--split",
        "0.9",
        "0.1",
    ]


def test_jobs_have_the_same_bits_by_one_worker_by_two_and_as_commands(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = result(capsys, "--workers", 1, "--out", "one")
    two = result(capsys, "--workers", 2, "--out", "two")
    for rate, seed in itertools.product((0.01, 0.003), (0, 1)):
        name = f"learning-rate={rate},seed={seed}"
        words = ["--learning-rate", str(rate), "--seed", str(seed), "--steps", "6", "--hidden", "4"]
        assert main(["classify", "fit", "names.csv", "--out", f"direct/{name}", *words, "--quiet"]) == 0
    assert len(models(here / "one")) == 4
    assert models(here / "one") == models(here / "two") == models(here / "direct")
    for one_job, two_job in zip(one["jobs"], two["jobs"], strict=True):
        assert (one_job["values"], one_job["score"], one_job["test"]) == (
            two_job["values"],
            two_job["score"],
            two_job["test"],
        )
    scores = [[job["score"]["value"] for job in one["jobs"][i : i + 2]] for i in (0, 2)]
    means = sorted((float(np.mean(each)), float(np.std(each, ddof=1))) for each in scores)
    assert np.allclose([(row["score"]["mean"], row["score"]["std"]) for row in one["rows"]], means, atol=0)
    assert [row["jobs"] for row in one["rows"]] == [2, 2]


def test_a_finished_sweep_is_only_read_and_a_larger_grid_keeps_its_jobs(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("s.toml", "--workers", 1) == 0
    printed = capsys.readouterr().out
    assert "4 jobs of unspool classify fit names.csv, in this process" in printed
    assert "accuracy" in printed and " ± " in printed and "over seed" in printed
    out = here / "runs" / "s-sweep"
    assert {path.name for path in out.iterdir() if path.suffix == ".json"} == {"sweep.json"}
    before = {
        path: path.stat().st_mtime_ns
        for path in out.rglob("*")
        if path.is_file() and path.name != "sweep.json"
    }
    (here / "s.toml").write_text(TOML.replace("to = 1", "to = 2"))
    assert len(result(capsys, "--workers", 1)["jobs"]) == 6
    assert {path: path.stat().st_mtime_ns for path in before} == before
    (here / "s.toml").write_text(TOML.replace("steps = 6", "steps = 7"))
    assert run("s.toml") == 2
    assert (
        "the sweep here has another command or other options; only [grid] may change"
        in capsys.readouterr().err
    )


def test_a_job_that_fails_is_one_line_and_ends_no_other(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "s.toml").write_text(TOML.replace("learning-rate = [0.01, 0.003]", "hold-out = [0.2, 7.0]"))
    assert run("s.toml", "--workers", 1, "--out", "out") == 2
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert len(lines) == 3 and lines[0].startswith("unspool: out/hold-out=7.0,seed=0: failed: ")
    assert lines[2] == "unspool: s.toml: 2 of 4 jobs failed"
    assert set(models(here / "out")) == {"hold-out=0.2,seed=0", "hold-out=0.2,seed=1"}
    assert "hold-out" in printed.out and "0.2" in printed.out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("command = ", "s.toml: not TOML"),
        ("[grid]\nseed = [1]\n", "command is None; expected a command, for example"),
        ('command = "stats a.txt"\n[grid]\nseed = [1]\n', "command is 'stats a.txt'; expected one that begins with train"),
        ('command = "train a.txt"\n', "[grid] is missing or empty"),
        ('command = "train a.txt"\n[grid]\nseed = 3\n', "seed is 3; expected a list with a value or more, or a range"),
        ('command = "train a.txt"\n[grid]\nseed = []\n', "seed is []; expected a list"),
        ('command = "train a.txt"\n[grid]\nseed = [1, 1]\n', "seed has a value twice: 1"),
        ('command = "train a.txt"\n[grid]\nseed = {from = 0}\n', "expected from and to"),
        ('command = "train a.txt"\n[grid]\nseed = {from = 0, to = 5, step = -1}\n', "expected a step that leads from 0 to 5"),
        ('command = "train a.txt"\n[grid]\nseed = {from = 0, to = "x"}\n', "expected finite numbers"),
        ('command = "train a.txt"\n[grid]\nseed = {from = 0, to = 5, count = 3, scale = "log"}\n', "scale is 'log'"),
        ('command = "train a.txt"\n[grid]\nout = ["a"]\n', "'out' cannot be an option of a job"),
        ('command = "train a.txt"\n[options]\nseed = 1\n[grid]\nseed = [1]\n', "'seed' is in [options] and in [grid]"),
        ('command = "train a.txt"\nseeds = 3\n[grid]\nseed = [1]\n', "unknown field 'seeds'"),
        ('command = "train a.txt"\nmean_over = ["x"]\n[grid]\nseed = [1]\n', "mean_over is ['x']; expected keys of [grid]"),
        ('command = "train a.txt"\n[grid]\nsede = [1]\n', "job 1 of 1: unknown option --sede"),
        ('command = "train a.txt"\n[grid]\nhidden = ["many"]\n', "job 1 of 1: invalid value for --hidden: 'many' is not a whole number"),
        ('command = "train a.txt"\n[grid]\na = {from = 0, to = 999}\nb = {from = 0, to = 999}\n', "1,000,000 combinations"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_one_line_and_exit_code_two(
    here: Path, content: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "s.toml").write_text(content)
    assert run("s.toml") == 2
    error = capsys.readouterr().err
    assert message in error and error.startswith("unspool: s.toml: ") and len(error.splitlines()) == 1
    assert not (here / "runs").exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_saves_the_running_jobs_and_the_sweep_goes_on_to_the_same_bits(
    here: Path, workers: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "s.toml").write_text(TOML.replace("steps = 6", "steps = 40").replace("to = 1", "to = 2"))
    command = [sys.executable, "-m", "unspool", "sweep", "s.toml", "--workers", str(workers), "--out", "cut"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert any("1 of 6" in line for line in process.stdout)
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=100)
    assert process.returncode == 130 and len(error.splitlines()) == 1, error
    assert error.startswith("unspool: stopped: ") and "go on with the same command" in error
    assert 1 <= len(models(here / "cut")) <= 6
    assert len(result(capsys, "--workers", 1, "--out", "cut")["rows"]) == 2
    result(capsys, "--workers", 1, "--out", "whole")
    assert models(here / "cut") == models(here / "whole")
