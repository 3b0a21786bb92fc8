"""The benchmark of both precisions' quality at tiny sizes: in parts, joined, with the errors of the gradients."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
pytestmark = pytest.mark.skipif(not BENCH.exists(), reason="bench/ is not here")


@pytest.fixture
def program(tmp_path):
    """A copy of the script, so that its results stay apart, and a folder of texts."""
    copy, data = tmp_path / "bench", tmp_path / "data"
    copy.mkdir()
    data.mkdir()
    for file in BENCH.glob("*.py"):
        (copy / file.name).write_bytes(file.read_bytes())
    (data / "tinyshakespeare.txt").write_text("the cat sat on the mat. " * 300)
    return copy / "precision.py", data


def run(program, *arguments):
    script, data = program
    tiny = ["--data", str(data), "--cells", "gru", "--hidden", "8", "--updates", "0.002", "--rounds", "1"]
    command = [sys.executable, script, *tiny, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def figures(program, name):
    return json.loads((program[0].parent / "results" / f"{name}.json").read_text())["figures"]


def test_parts_of_a_run_join_to_one_table(program):
    for seed in ("0", "1"):
        done = run(program, "--texts", "shakespeare", "--seeds", seed, "--name", f"part{seed}")
        assert done.returncode == 0, done.stderr
        assert "1 of 1, about 0 min left" in done.stderr
    files = [str(program[0].parent / "results" / f"part{seed}.json") for seed in (0, 1)]
    done = run(program, "--join", *files, "--name", "both")
    assert done.returncode == 0, done.stderr
    joined = figures(program, "both")
    assert [each["seed"] for each in joined] == [0, 1]
    assert joined == figures(program, "part0") + figures(program, "part1")
    headings = [line.split(":")[0] for line in done.stdout.splitlines() if ":" in line]
    assert headings[:2] == ["Equal updates", "Equal seconds"]
    rows = [line.split() for line in done.stdout.splitlines() if line.strip().startswith("shakespeare")]
    assert rows[0][:6] == ["shakespeare", "char", "12", "gru", "8", "2"]


def test_errors_of_gradients_are_small_in_float32_and_larger_in_bf16(program):
    assert run(program, "--texts", "shakespeare", "--seeds", "0").returncode == 0
    (found,) = figures(program, "precision")
    assert abs(found["bf16"] - found["float32"]) < 0.05
    for errors in found["errors"].values():
        assert set(errors["float32"]) == {"layer0.U", "layer0.W", "layer0.b", "layer0.d", "V", "c", "all"}
        assert 0 < errors["float32"]["all"] < 1e-5 < errors["bf16"]["all"] < 0.05


def test_missing_texts_are_named_in_one_line(program):
    done = run(program, "--texts", "enwik8")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "enwik8_10m" in done.stderr
