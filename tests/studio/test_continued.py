"""A reading that continues an earlier one is the reading of the whole text, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio_client import TEXT
from unspool.inspect.reading import read
from unspool.model.config import ModelConfig
from unspool.model.network import Model

WHOLE = ("ids", "surprise", "expected", "shares", "known")
UNIT = {"kind": "unit", "name": "layer0.h5", "value": 1.0}


def check(ended, text, earlier, edits=(), **more):
    """Compare a continued reading with one of the whole text; return the first step that was computed."""
    fresh = ended.post("/api/read", text=text, edits=list(edits), states=["layer0.h", "layer0.s"])
    found = ended.post(
        "/api/read", text=text, edits=list(edits), states=["layer0.h", "layer0.s"], after=earlier["reading"], **more
    )  # fmt: skip
    for name in WHOLE:
        assert np.array_equal(found[name], fresh[name], equal_nan=name == "surprise"), name
    assert (found["pieces"], found["nats"]) == (fresh["pieces"], fresh["nats"])
    begin = found["from"]
    for name, values in fresh["states"].items():
        assert np.array_equal(found["states"][name], values[begin:])
    for t in {0, begin, len(text) - 1}:
        at = [ended.post("/api/at", reading=each["reading"], t=t) for each in (fresh, found)]
        for kind in ("states", "gates"):
            assert all(np.array_equal(at[0][kind][name], at[1][kind][name]) for name in at[0][kind])
        assert np.array_equal(at[0]["next"], at[1]["next"])
    return begin


@pytest.mark.parametrize("at", [0, 1, 40, 119, 120])
def test_a_character_typed_anywhere_gives_the_reading_of_the_whole_text(ended, at):
    text = TEXT[:120]
    earlier = ended.post("/api/read", text=text)
    longer = text[:at] + "z" + text[at:]
    assert check(ended, longer, earlier) == max(0, at - 1)
    assert check(ended, text[:at] + text[at + 1 :], earlier) <= at


def test_readings_continue_each_other_key_by_key(ended):
    earlier = ended.post("/api/read", text=TEXT[:2])
    for count in range(3, 12):
        assert check(ended, TEXT[:count], earlier) == count - 2
        earlier = ended.post("/api/read", text=TEXT[:count], after=earlier["reading"])


@pytest.mark.parametrize(
    ("before", "after", "first"),
    [
        ([], [UNIT | {"t": 30}], 30), ([UNIT | {"t": 30}], [], 30), ([UNIT | {"t": 9}], [UNIT | {"t": 9}, UNIT | {"t": 50, "name": "layer0.s2"}], 50),
        ([], [UNIT | {"value": 0.0}], 0), ([], [{"kind": "weight", "name": "layer0.U", "index": [3, 2], "value": 2.5}], 0),
    ],
)  # fmt: skip
def test_what_if_edits_leave_the_steps_before_them(ended, before, after, first):
    earlier = ended.post("/api/read", text=TEXT[:90], edits=before)
    assert check(ended, TEXT[:90], earlier, after) == first


def test_another_update_is_read_from_the_beginning(ended):
    earlier = ended.post("/api/read", text=TEXT[:90], update=2)
    assert check(ended, TEXT[:90], earlier) == 0


def test_the_path_stays_in_the_plane_of_the_reading_that_is_named(ended):
    earlier = ended.post("/api/read", text=TEXT[:90])
    plane = {"plane": earlier["reading"]}
    found = ended.post("/api/read", text=TEXT[:95], after=earlier["reading"], **plane)["path"]["positions"]
    assert np.array_equal(found, ended.post("/api/read", text=TEXT[:95], **plane)["path"]["positions"])
    assert np.array_equal(found[:88], earlier["path"]["positions"][:88])


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_every_cell_and_depth_continues_to_the_same_bits(data):
    cell = data.draw(st.sampled_from(["elman", "gru", "lstm"]))
    config = ModelConfig(
        cell=cell, inputs=5, outputs=5, hidden=7, layers=data.draw(st.integers(1, 2)), learn_h0=data.draw(st.booleans())
    )  # fmt: skip
    model, T = Model.initialise(config, seed=1), data.draw(st.integers(3, 30))
    ids = np.array(data.draw(st.lists(st.integers(0, 4), min_size=T, max_size=T)), np.int32)
    begin = data.draw(st.integers(0, T - 2))
    other = ids.copy()
    other[begin + 1 :] = (other[begin + 1 :] + 1) % 5
    earlier = read(model, other, ["a"] * T)
    found, fresh = (read(model, ids, ["a"] * T, **more) for more in ({"after": earlier, "begin": begin}, {}))
    assert found.begin == begin and np.array_equal(found.surprise, fresh.surprise, equal_nan=True)
    assert (found.expected == fresh.expected).all() and (found.shares == fresh.shares).all()
    assert all((found.states[name] == fresh.states[name]).all() for name in fresh.states)
