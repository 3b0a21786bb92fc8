"""The benchmark of training steps at tiny sizes: the same gradients as the library, tables, crashes, JSON."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from unspool.gradients import backpropagate

BENCH = Path(__file__).parents[2] / "bench"
pytestmark = pytest.mark.skipif(not BENCH.exists(), reason="bench/ is not here")
SIZES = [
    "--hidden",
    "16",
    "--batch",
    "4",
    "--tau",
    "6",
    "--rounds",
    "2",
    "--seconds",
    "0.001",
    "--cells",
    "lstm",
]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    for name in ("contenders", "step_tables", "step_unspool", "table"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def case(**changes):
    of = {"inputs": "tokens", "part": "step", "K": 7, "width": "0", "X": 0, "cell": "lstm", "H": 8, "B": 3,
          "tau": 5, "embedding": False, "update": True}  # fmt: skip
    return of | changes


def run(*arguments, folder, **environment):
    """Run the script in a copy of bench/, so that its results stay apart."""
    copy = folder / "bench"
    copy.mkdir(exist_ok=True)
    for file in BENCH.glob("*.py"):
        (copy / file.name).write_bytes(file.read_bytes())
    for name, text in environment.pop("replaced", {}).items():
        (copy / name).write_text(text)
    command = [sys.executable, copy / "train_step.py", *arguments]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, copy / "results"


@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
@pytest.mark.parametrize("K", [7, 1500])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_step_computes_the_gradients_of_the_library(bench, cell, K, precision):
    from step_unspool import PARTS, Step

    step = Step(case(cell=cell, K=K, update=False), precision)
    expected = step.model.gradient()
    backpropagate(step.model, step.x, step.y, None, expected, scale=1 / step.y.size)
    step.model.fold_input_tables(expected)
    for _ in range(2):
        assert tuple(step.parts()) == PARTS[:-1]
        assert (step.gradient.flat == expected.flat).all()


@pytest.mark.parametrize("inputs", ["tokens", "dense", "lengths"])
@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
def test_the_recurrent_part_is_the_same_in_every_repetition(bench, inputs, cell):
    from step_unspool import Step

    of = case(part="recurrent", inputs=inputs, cell=cell) | ({} if inputs == "tokens" else {"K": 0, "X": 4})
    step = Step(of, "float32")
    assert list(step.parts()) == ["packing", "forward", "backward", "gradients"]
    first = step.gradient.flat.copy()
    step()
    assert (step.gradient.flat == first).all() and np.abs(first).max() > 0
    output = step.model.forward(step.x, lengths=step.lengths)
    again = step.model.gradient()
    step.model.backward(output, step.dh.copy(), again)
    step.model.fold_input_tables(again)
    assert (again.flat == first).all()


@pytest.mark.parametrize("inputs", ["dense", "lengths"])
@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
def test_unspool_and_torch_do_the_same_arithmetic_with_dense_inputs(bench, inputs, cell):
    torch = pytest.importorskip("torch")
    import step_torch
    import step_unspool
    from unspool.torch import to_torch

    of = case(part="recurrent", inputs=inputs, cell=cell, K=0, X=4)
    ours, theirs = step_unspool.Step(of, "float32"), step_torch.Step(of, "float32")
    weights = to_torch(ours.model.config, ours.model.parameters)
    theirs.recurrence.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
    ours()
    theirs()
    found = to_torch(ours.model.config, ours.gradient.values)
    for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0"):
        np.testing.assert_allclose(found[name], getattr(theirs.recurrence, name).grad, rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("measured")
    return run(*SIZES, "--classes", "9", "1500", "--widths", "3", "H", folder=folder)


def test_a_table_for_each_kind_of_inputs_with_best_median_and_means(measured):
    printed, results = measured
    headings = [line for line in printed.splitlines() if line.startswith(("Tokens", "Dense", "Rows"))]
    assert [line.split(":")[0] for line in headings] == [
        "Tokens, K = 9, whole step",
        "Tokens, K = 1,500, whole step",
        "Tokens, K = 9, recurrent part",
        "Dense inputs of width 3, the layer alone",
        "Dense inputs of width H, the layer alone",
        "Rows of different lengths, dense inputs of width 64, the layer alone",
    ]
    assert all("not the layer alone" in line for line in headings[:3])
    found = json.loads((results / "train_step.json").read_text())["figures"]
    first = found["cases"][0]
    for name in ("unspool float32", "unspool bf16", "torch float32"):
        assert 0 < first["milliseconds"][name]["best"] <= first["milliseconds"][name]["median"]
    assert {each["H"] for each in found["summary"]} == {"all", 16}
    assert set(found["summary"][0]["ratios"]) >= {"bf16 / float32", "x torch"}


CRASH = """
import os, signal
from typing import Any

class Step:
    def __init__(self, case: dict[str, Any], precision: str) -> None:
        self.precision = precision

    def __call__(self) -> None:
        if self.precision == "autocast":
            os.kill(os.getpid(), signal.SIGILL)
        if self.precision == "bfloat16":
            raise RuntimeError("not supported here")
"""


def test_the_table_names_the_signal_of_a_contender_that_crashes(tmp_path):
    pytest.importorskip("torch")
    only = ["--inputs", "dense", "--widths", "3", "8"]
    printed, results = run(*SIZES, *only, folder=tmp_path, replaced={"step_torch.py": CRASH})
    assert printed.count("SIGILL") == 2 and "RuntimeError: not suppor" in printed
    for each in json.loads((results / "train_step.json").read_text())["figures"]["cases"]:
        assert each["failed"]["torch autocast"] == "SIGILL"
        assert each["failed"]["torch bfloat16"] == "RuntimeError: not supported here"
        assert "unspool float32" in each["milliseconds"]


def test_the_profile_has_all_parts_and_the_instruction_set_names_the_file(tmp_path):
    arguments = [*SIZES, "--inputs", "tokens", "--parts", "step", "--classes", "9", "--profile"]
    printed, results = run(*arguments, folder=tmp_path, UNSPOOL_ISA="plain")
    found = json.loads((results / "train_step_plain_profile.json").read_text())["figures"]
    assert found["contenders"]["unspool float32"]["isa"] == "plain"
    for name in ("unspool float32", "unspool bf16"):
        parts = found["cases"][0]["milliseconds"][name]
        assert list(parts) == ["packing", "forward", "output", "backward", "gradients", "update"]
    assert "update" in printed


def test_pages_of_both_languages_are_written_from_the_results(measured):
    results = measured[1]
    folder = results.parents[1]
    (folder / "docs").mkdir()
    pages = ["README.md", "README.zh-CN.md", "docs/engine.md", "docs/engine.zh-CN.md"]
    for page in pages:
        text = (BENCH.parent / page).read_text(encoding="utf-8")
        (folder / page).write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, results.parent / "speed_pages.py"], check=True)
    for page in pages:
        text = (folder / page).read_text(encoding="utf-8")
        filled = text.split("<!-- figures:train_step -->")[1].split("<!-- /figures -->")[0]
        assert "| LSTM | K = 9 |" in filled and "| LSTM | K = 1,500 |" in filled
        assert "| LSTM | X = 3 |" in filled and "| LSTM | X = H |" in filled
        assert ("| LSTM | X = 64 |" in filled) == ("engine" in page)
