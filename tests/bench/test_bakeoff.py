"""The bake-off of recipes: its verdict, its runs and their order; lost starts are counted."""

import importlib
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from unspool import Model, ModelConfig

BENCH = Path(__file__).resolve().parents[2] / "bench"
pytestmark = pytest.mark.skipif(not BENCH.exists(), reason="bench/ is not here")


@pytest.fixture
def bakeoff(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("bakeoff")


@pytest.fixture
def basins(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("basins")


@pytest.mark.parametrize(
    ("differences", "says"),
    [
        ([(-0.03, 0.01), (-0.03, 0.01), (0.0, 0.01)], "adopt"),
        ([(-0.03, 0.01), (-0.01, 0.01), (0.0, 0.01)], "no difference"),
        ([(-0.03, 0.01), (-0.03, 0.01), (0.03, 0.01)], "reject"),
        ([(-0.03, math.nan), (-0.03, math.nan)], "too few seeds"),
    ],
)
def test_a_recipe_wins_on_two_texts_by_two_standard_errors_and_loses_on_none(bakeoff, differences, says):
    assert bakeoff.verdict(differences) == says


def test_the_standard_error_of_a_difference_is_that_of_two_means(bakeoff):
    difference, error = bakeoff.compared([1.0, 2.0, 3.0], [5.0, 5.0, 8.0])
    assert difference == -4.0
    assert math.isclose(error, math.sqrt(1.0 / 3 + 3.0 / 3))


def test_runs_that_are_stored_are_not_run_again_and_the_last_tenth_is_never_read(
    bakeoff, tmp_path, monkeypatch
):
    text = tmp_path / "text.txt"
    text.write_text(
        "the sea shells she sells; " * 200 + "§" * 500, encoding="utf-8"
    )  # § only in the last tenth
    results, vocabularies = tmp_path / "found" / "runs.json", []

    class Watched(bakeoff.LanguageModel):
        def fit(self, part):
            made = super().fit(part)
            vocabularies.append(made.fitted.vocab.idx_to_token)
            return made

    monkeypatch.setattr(bakeoff, "LanguageModel", Watched)
    monkeypatch.setattr(bakeoff, "register", lambda: None)  # of this process
    command = [
        "bakeoff.py",
        str(text),
        "--steps",
        "3",
        "--hidden",
        "8",
        "--candidates",
        "batch 8",
        "--results",
        str(results),
    ]
    for expected in (2, 2):
        monkeypatch.setattr(sys, "argv", command)
        bakeoff.main()
        assert len(vocabularies) == len(json.loads(results.read_text())) == expected
    assert all("§" not in vocabulary for vocabulary in vocabularies)
    monkeypatch.setattr(sys, "argv", [*command, "--seeds", "2"])
    bakeoff.main()
    assert len(vocabularies) == 4


def test_a_start_is_lost_where_the_state_has_two_basins(basins):
    ids = np.zeros(600, np.int32)
    ids[1::2] = 1
    model = Model.initialise(ModelConfig(cell="elman", inputs=3, outputs=3, hidden=1), seed=0)
    p = model.parameters
    for name in p:
        p[name][:] = 0
    p["layer0.W"][:] = 3.0  # h stays where it is: near -1 or near 1
    p["layer0.U"][:] = np.array(
        [[0.0, 0.0, -9.0]]
    )  # token 2, which only the random tokens hold, moves it to -1
    p["layer0.b"][:] = 0.1
    p["V"][:] = np.array([[0.0], [0.0], [-4.0]])  # there, token 2 is thought to come
    excess, carried = basins.excess_of_starts(model, ids, starts=50)
    assert math.isclose(carried, math.log(2), rel_tol=0.05)
    assert (excess > basins.LOST).mean() > 0.9
    p["layer0.W"][:] = 0.5
    assert (basins.excess_of_starts(model, ids, starts=50)[0] < 0.01).all()
