"""Words and bytes as tokens: every view of a run answers, with the numbers of the library."""

import numpy as np
import pytest

from studio_client import TEXT, studio
from unspool.inspect.report import read_with

TYPED = "the time traveller spoke of Zürich 😀, and the time listened."


@pytest.fixture(scope="module", params=["word", "byte"])
def made(request, tmp_path_factory):
    with studio(tmp_path_factory.mktemp(request.param)) as client:
        client.new(steps=20, tokens=request.param)
        client.wait("ended")
        yield client


def test_a_reading_is_that_of_the_library(made):
    _, source = made.session.model_of(made.session.run_of("r1"), None)
    known, expected = read_with(source, TYPED)
    found = made.post("/api/read", text=TYPED, at=3)
    assert found["pieces"] == expected.pieces and found["known"].tolist() == known
    assert "".join(found["pieces"]).replace(" ", "") == TYPED.replace(" ", "")
    assert np.array_equal(found["surprise"], expected.surprise.astype(np.float32), equal_nan=True)
    assert np.array_equal(found["states"]["layer0.h"], expected.states["layer0.h"])
    at = made.post("/api/at", reading=found["reading"], t=3)
    assert np.array_equal(at["next"], found["here"]["next"]) and abs(at["next"].sum() - 1) < 1e-5
    assert len(made.post("/api/vocabulary")["pieces"]) == len(at["next"])
    continued = made.post("/api/read", text=TYPED + " and", after=found["reading"])
    whole = made.post("/api/read", text=TYPED + " and")
    assert (
        continued["from"] > 0
        and continued["pieces"] == whole["pieces"]
        and continued["nats"] == whole["nats"]
    )


def test_a_text_of_one_token_is_no_error(made):
    one = "the" if made.run()["token_kind"] == "word" else "t"
    assert made.post("/api/read", text=one)["short"] and made.refused("/api/read", text="")[0] == 400
    assert made.refused("/api/read?csv=surprise", text=one)[0] == 400


def test_the_other_views_answer(made):
    reading = made.post("/api/read", text=TEXT[:200])["reading"]
    assert made.post("/api/units", reading=reading, count=3)["units"]
    assert made.post("/api/unit", reading=reading, name="h3")["off"]["cost"] is not None
    back = made.post("/api/back", text=TEXT[:200], tau=12)
    assert back["tau"] == 12 and len(back["pieces"]) == 13 and back["lags"]["rest"] < 1e-12
    graph = made.post("/api/unfold", text="the time", tau=2)
    assert graph["nodes"] and made.post("/api/generate", prompt="the", length=9)["text"]
    for chart in ("surprise", "next", "states", "path"):
        assert made.csv(f"/api/read?csv={chart}", text="the time traveller")


def test_lags_and_truncations_answer_while_a_run_is_trained(tmp_path):
    with studio(tmp_path) as client:
        client.new(steps=10**6)
        client.wait("training", step=2)
        seen = []
        for n in range(4):
            back = client.post("/api/back", text=TEXT[:200], begin=n, tau=24, draws=8)
            assert back["lags"]["norms"].shape[1] == 24 and back["lags"]["rest"] < 1e-12
            assert len(back["truncations"]) == 7 and np.isfinite(back["matrix"]["h"]).all()
            seen.append(back["version"]["update"])
        reading = client.post("/api/read", text=TEXT[:200])
        parts = [
            client.post("/api/back", text=TEXT[:200], reading=reading["reading"], parts=[part])
            for part in ("flow", "lags")
        ]
        assert all(each["version"] == reading["version"] for each in parts)
        assert seen == sorted(seen) and client.run()["step"] > seen[0] >= 2
        client.post("/api/train", action="stop")
