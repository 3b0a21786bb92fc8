"""Restarts and the scale of inputs in a run: stored, repeated, resumed to the bit, and absent from runs of older versions."""

import json

import numpy as np
import pytest

from unspool import LanguageModel, RunConfig, StepDone, resume, run
from unspool.cli.follow import repeat
from unspool.data.text.corpus import prepare
from unspool.errors import InputError
from unspool.storage import run_folder
from unspool.tasks.language.plan import build_state, plan
from unspool.training.recipe import RESTART

TEXT = "she sells sea shells by the sea shore; the shells she sells are sea shells, I'm sure.\n" * 30
GIVEN = {
    "hidden": 12,
    "batch_size": 4,
    "window": 8,
    "steps": 24,
    "dropout": 0.1,
    "h0": "learned",
    "cell": "lstm",
}


def planned(tmp_path, **more):
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    sources = str(tmp_path / "text.txt")
    config = RunConfig(sources=(sources,), given=GIVEN | more, validations=2, order=1)
    corpus = prepare(sources)
    return config, corpus, plan(corpus, config, lambda: 0.0)


def model_of(config, out):
    for _ in run(config, out=out):
        pass
    return (out / run_folder.MODEL).read_bytes()


@pytest.mark.parametrize("bptt", ["full", "truncated:8,20"])
def test_a_run_with_restarts_is_resumed_to_the_same_bits(tmp_path, bptt):
    config = RunConfig(**{**vars(planned(tmp_path, restart=0.3)[0]), "bptt": bptt})
    whole = model_of(config, tmp_path / "whole")
    events = run(config, out=tmp_path / "stopped")
    for event in events:
        if isinstance(event, StepDone) and event.step == 11:
            events.close()
    for _ in resume(tmp_path / "stopped"):
        pass
    assert (tmp_path / "stopped" / run_folder.MODEL).read_bytes() == whole
    without = RunConfig(**{**vars(config), "given": config.given | {"restart": 0.0}})
    assert model_of(without, tmp_path / "without") != whole


def test_rows_restart_by_default_and_the_command_that_repeats_a_run_says_so(tmp_path):
    _, _, config = planned(tmp_path)
    assert config.fixed.restart == RESTART > 0
    assert f"--restart {RESTART}" in repeat(config)
    assert "--restart 0.0" in repeat(planned(tmp_path, restart=0.0)[2])
    assert config.to_json()["recipe"]["restart"] == RESTART


def test_a_run_of_an_older_version_has_no_restarts_and_the_inputs_as_they_were(tmp_path):
    stored = json.loads(json.dumps(planned(tmp_path)[2].to_json()))
    del stored["recipe"]["restart"], stored["recipe"]["input_scale"]
    read = RunConfig.from_json(stored)
    assert (read.fixed.restart, read.fixed.input_scale) == (0.0, 0.0)


@pytest.mark.parametrize("restart", [-0.1, 1.0, 1.5])
def test_a_restart_that_is_no_probability_is_refused(restart):
    with pytest.raises(InputError, match=r"restart is .*; expected a number of at least 0 and below 1"):
        LanguageModel(restart=restart).fit(TEXT)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, 1.0),
        ({"embedding": 6}, 1.0),
        ({"embedding": 12, "tied": True}, 1.0),
        ({"input_scale": 0.0}, None),
    ],
)
def test_the_units_of_an_input_begin_with_the_standard_deviation_asked_for(tmp_path, more, expected):
    _, corpus, config = planned(tmp_path, hidden=12, **{"input_scale": 1.0} | more)
    model = build_state(corpus, config).model
    Ux = model.table() - model.parameters["layer0.b"]  # one row a token
    assert np.isclose(Ux.std(), expected or len(corpus.vocab) ** -0.5, rtol=0.15)
