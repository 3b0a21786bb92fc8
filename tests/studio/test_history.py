"""Rewind, forks and edits, to the bit."""

import random

import numpy as np
import pytest

from studio_client import TEXT, studio
from unspool.studio import history

STEPS = 60


def test_the_parameters_of_any_update_are_those_of_a_run_without_the_studio(ended, hashes):
    drawn = random.Random(1)
    for update in [0, STEPS, *(drawn.randrange(1, STEPS) for _ in range(20))]:
        assert ended.sha256(update) == hashes[update]
    assert len(set(hashes.values())) == STEPS + 1


def test_with_few_snapshots_the_updates_between_them_are_made_again(tmp_path, hashes, monkeypatch):
    monkeypatch.setattr(history, "MEMORY", 0)
    with studio(tmp_path) as client:
        client.new(steps=STEPS)
        client.wait("ended")
        held = client.post("/api/parameters")["updates_held"]
        assert 2 < len(held) <= 10 and held[0] == 0 and held[-1] == STEPS
        for update in (STEPS - 1, 1, 31, 7, 53, 0):
            assert client.sha256(update) == hashes[update]


def test_a_stored_run_is_rewound_to_its_first_update(ended, hashes, tmp_path):
    out = ended.session.run_of(None).out
    with studio(tmp_path) as client:
        run = client.post("/api/show", run=client.session.add_stored(out).id)["run"]
        assert (run["first"], run["step"], run["status"]) == (0, STEPS, "ended")
        assert [client.sha256(n) for n in (0, 23, STEPS)] == [hashes[n] for n in (0, 23, STEPS)]


def all_hashes(client, run):
    return [client.sha256(n, run=run["id"]) for n in range(run["first"], run["steps"] + 1)]


def test_a_fork_with_nothing_changed_is_its_parent(tmp_path, hashes):
    with studio(tmp_path) as client:
        parent = client.new(steps=STEPS)
        client.wait("ended")
        fork = client.post("/api/fork", update=37)["run"]
        fork = client.wait("ended", name=fork["id"])
        assert (fork["first"], fork["parent"]) == (37, {"run": parent["id"], "update": 37})
        assert all_hashes(client, fork) == [hashes[n] for n in range(37, STEPS + 1)]
        folders = [client.session.run_of(each["id"]).out for each in (parent, fork)]
        assert len({(folder / "model.safetensors").read_bytes() for folder in folders}) == 1
        curves = [client.get(f"/api/learn?run={each['id']}") for each in (parent, fork)]
        assert curves[0]["points"] == curves[1]["points"] and curves[0]["scores"] == curves[1]["scores"]


@pytest.mark.parametrize("changed", [{"learning_rate": 0.002}, {"bptt": "truncated:8"}, {"clip": 0.01}])
def test_a_fork_with_another_setting_differs_first_at_the_fork(ended, hashes, changed):
    parent = ended.session.run_of("r1")
    fork = ended.post("/api/fork", run=parent.id, update=41, options=changed)["run"]
    assert ended.wait("ended", name=fork["id"])["step"] == STEPS
    found = all_hashes(ended, fork)
    assert found[0] == hashes[41]
    assert all(found[n - 41] != hashes[n] for n in range(42, STEPS + 1))
    ended.post("/api/show", run=parent.id)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"hidden": 32}, "start a new run"),
        ({"bptt": "truncated:17"}, "choose at most as many"),
        ({"learning_rate": -1}, "learning_rate"),
        ({"bptt": "auto"}, "a fixed one"),
    ],
)
def test_a_fork_that_cannot_be_is_refused(ended, options, says):
    status, message = ended.refused("/api/fork", run="r1", update=5, options=options)
    assert status == 400 and says in message
    assert ended.refused("/api/fork", run="r1", update=STEPS)[0] == 400


def same(one, other):
    """Return whether two answers have the same surprises; that of the first token is NaN."""
    return np.array_equal(one["surprise"], other["surprise"], equal_nan=True)


def test_an_edited_weight_changes_what_is_read_and_without_it_the_bits_are_back(ended, hashes):
    weight = {"kind": "weight", "name": "layer0.U", "index": [3, 2], "value": 2.5}
    before, edited = (ended.post("/api/read", text=TEXT[:90], edits=each) for each in ([], [weight]))
    assert (before["surprise"][1:] != edited["surprise"][1:]).any()
    assert ended.sha256(edits=[weight]) != hashes[STEPS]
    value = ended.post("/api/parameters", edits=[weight], matrix="layer0.U")["matrix"]
    assert value[3, 2] == np.float32(2.5)
    assert ended.sha256() == ended.sha256(STEPS) == hashes[STEPS]
    assert same(ended.post("/api/read", text=TEXT[:90]), before)


def test_an_edited_unit_changes_only_what_comes_after_it(ended):
    edits = [{"kind": "unit", "name": "layer0.h5", "t": 30, "value": 1.0}]
    before, after = (ended.post("/api/read", text=TEXT[:90], edits=each)["surprise"] for each in ([], edits))
    assert (
        (before[1:31] == after[1:31]).all() and before[31] != after[31] and (before[32:] != after[32:]).any()
    )


def test_a_unit_switched_off_is_a_unit_that_is_zero_at_every_step(ended):
    text, always = TEXT[:60], {"kind": "unit", "name": "layer0.h5", "value": 0.0}
    at_once = ended.post("/api/read", text=text, edits=[always])
    by_step = ended.post("/api/read", text=text, edits=[always | {"t": t} for t in range(len(text))])
    assert same(at_once, by_step)
    read = ended.post("/api/read", text=text)
    off = ended.post("/api/unit", reading=read["reading"], name="layer0.h5")["off"]
    assert same(off, at_once) and off["cost"] == at_once["nats"] - read["nats"] != 0


@pytest.mark.parametrize(
    "edit",
    [
        {"kind": "weight", "name": "layer9.W", "index": [0, 0], "value": 1},
        {"kind": "weight", "name": "layer0.W", "index": [0, 16], "value": 1},
        {"kind": "weight", "name": "layer0.W", "index": [-1, 0], "value": 1},
        {"kind": "unit", "name": "layer0.h16", "t": 1, "value": 1},
        {"kind": "unit", "name": "layer0.W", "value": 1},
        {"kind": "other", "name": "layer0.W", "value": 1},
    ],
)
def test_an_edit_of_nothing_is_refused(ended, edit):
    assert ended.refused("/api/read", text=TEXT[:20], edits=[edit])[0] == 400


@pytest.mark.parametrize("update", [-1, STEPS + 1, 10**30, 1.5, "1"])
def test_an_update_that_is_not_there_is_refused(ended, update):
    assert ended.refused("/api/parameters", update=update)[0] == 400
