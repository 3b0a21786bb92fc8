"""Training in the studio is that of `unspool train`, whatever happens meanwhile."""

import json
import random
import signal
import threading
import time

import pytest

from command_line import call, must
from studio_client import SMALL, SMALL_FLAGS, TEXT, launch, require_same_run, studio
from unspool.storage.log import RunLog
from unspool.storage.tensors import read_arrays
from unspool.studio import trainer
from unspool.training.store import load_model


@pytest.fixture
def story(tmp_path):
    (tmp_path / "story.txt").write_text(TEXT)
    return tmp_path / "story.txt"


def test_two_hundred_updates_with_stops_and_requests_are_those_of_train(story, tmp_path, monkeypatch):
    monkeypatch.setattr(
        trainer, "PARKED", 0.05
    )  # some stops are long enough for the run to be saved and closed
    must("train", story, "--steps", 200, *SMALL_FLAGS, "--out", tmp_path / "plain", "--quiet")
    ends = threading.Event()
    with studio(tmp_path / "runs") as client:
        text = client.session.add_text(str(story))
        client.post("/api/new", text=text.id, options=SMALL | {"steps": 200}, start=False)
        client.wait("paused")

        def types():
            for n in range(10**6):
                client.raw("POST", "/api/read", {"text": TEXT[: 20 + n % 60], "serial": n}, tab="b")
                if ends.wait(0.03):
                    return

        typing = threading.Thread(target=types)
        typing.start()
        drawn = random.Random(0)
        for stop in range(10):
            client.post("/api/train", action="start", pace=0.002)
            client.wait("training", "ended", step=15 * (stop + 1))
            client.post("/api/train", action="stop")
            if stop % 3 == 0:
                client.post("/api/train", action="one")
                client.wait("paused", "ended", step=15 * (stop + 1) + 1)
            time.sleep(drawn.choice([0, 0.01, 0.15]))
        client.post("/api/train", action="start", pace=0)
        run = client.wait("ended")
        ends.set()
        typing.join()
        assert run["step"] == run["steps"] == 200 and run["scores"]["mixture"] is not None
        made = client.session.run_of(run["id"]).out
    require_same_run(made, tmp_path / "plain")
    recorded = [json.loads((each / "config.json").read_text())["run"] for each in (made, tmp_path / "plain")]
    assert recorded[0] == recorded[1]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_server_that_was_ended_leaves_a_run_that_resumes_to_the_same_bits(story, tmp_path, number):
    process, client = launch(tmp_path, story)
    client.wait("preparing", "training", "paused")
    run = client.post("/api/new", text="t2", options=SMALL | {"steps": 120})["run"]
    client.post("/api/train", run=run["id"], pace=0.005)
    client.wait("training", step=40, name=run["id"])
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == (130 if number == signal.SIGINT else -9)
    assert ("everything is saved" in said) == (number == signal.SIGINT)
    made = tmp_path / "runs" / run["name"]
    assert (read_arrays(made / "training.safetensors")[1]["step"] >= 40) == (number == signal.SIGINT)
    must("resume", made, "--quiet")
    must("train", story, "--steps", 120, *SMALL_FLAGS, "--out", tmp_path / "plain", "--quiet")
    require_same_run(made, tmp_path / "plain")
    assert call("generate", made, "--prompt", "the ").code == 0


def test_a_run_that_another_process_uses_is_followed_and_taken_over_when_it_is_free(
    story, tmp_path, monkeypatch
):
    monkeypatch.setattr(trainer, "FOLLOW", 0.05)
    out = tmp_path / "run"
    must("train", story, "--steps", 40, *SMALL_FLAGS, "--out", out, "--quiet")
    with studio(tmp_path / "runs") as client:
        stored = client.session.add_stored(out)
        with RunLog(out / "log.jsonl") as log:
            assert client.post("/api/show", run=stored.id)["run"]["status"] == "followed"
            assert client.refused("/api/train", run=stored.id, action="start")[0] == 400
            before = client.get(f"/api/learn?run={stored.id}")["curve"]["shape"][0]
            log.add({"step": 41, "seconds": 1.0, "train": 1.5, "loss": 1.5, "norm": 0.1, "targets": 64})
            while client.get(f"/api/learn?run={stored.id}")["curve"]["shape"][0] == before:
                time.sleep(0.02)
        client.wait("ended", name=stored.id)
        assert client.sha256(run=stored.id) == client.sha256(40, run=stored.id)


def test_a_model_without_a_training_state_can_be_read_and_not_trained(story, tmp_path):
    out = tmp_path / "run"
    must("train", story, "--steps", 10, *SMALL_FLAGS, "--out", out, "--quiet")
    (out / "training.safetensors").unlink()
    with studio(tmp_path / "runs") as client:
        stored = client.session.add_stored(out)
        assert client.post("/api/show", run=stored.id)["run"]["status"] == "viewed"
        assert client.sha256() == load_model(out / "model.safetensors")[0].parameters.sha256
        assert "cannot be trained" in client.refused("/api/train", action="start")[1]
