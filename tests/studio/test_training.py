"""Training in the studio is that of `unspool train`, whatever happens meanwhile."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

from command_line import call, must
from studio_client import SMALL, TEXT, Client, studio
from unspool.storage.log import RunLog
from unspool.storage.tensors import read_arrays
from unspool.studio import trainer
from unspool.training.store import load_model

OPTIONS = ["--hidden", 16, "--batch", 4, "--window", 16, "--dropout", 0.1, "--seed", 3, "--cell", "lstm"]


@pytest.fixture
def story(tmp_path):
    (tmp_path / "story.txt").write_text(TEXT)
    return tmp_path / "story.txt"


def state_of(run):
    return {name: array.tobytes() for name, array in read_arrays(run / "training.safetensors")[0].items()}


def same(one, other):
    assert state_of(one) == state_of(other)
    for name in ("model.safetensors", "mixture.safetensors"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def test_two_hundred_updates_with_stops_and_requests_are_those_of_train(story, tmp_path, monkeypatch):
    monkeypatch.setattr(
        trainer, "PARKED", 0.05
    )  # some stops are long enough for the run to be saved and closed
    must("train", story, "--steps", 200, *OPTIONS, "--out", tmp_path / "plain", "--quiet")
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
                assert client.post("/api/train", action="one")["run"]["step"] > 15 * (stop + 1)
            time.sleep(drawn.choice([0, 0.01, 0.15]))
        client.post("/api/train", action="start", pace=0)
        run = client.wait("ended")
        ends.set()
        typing.join()
        assert run["step"] == run["steps"] == 200 and run["scores"]["mixture"] is not None
        made = client.session.run_of(run["id"]).out
    same(made, tmp_path / "plain")
    recorded = [json.loads((each / "config.json").read_text())["run"] for each in (made, tmp_path / "plain")]
    assert recorded[0] == recorded[1]


def begin(story, folder):
    process = subprocess.Popen(
        [sys.executable, "-m", "unspool", "studio", str(story), "--no-open"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"UNSPOOL_THREADS": "1"},
    )  # fmt: skip
    address = process.stdout.readline()
    assert address.startswith("http://127.0.0.1:") and "ssh -L" in address
    port, _, token = address.split()[0].removeprefix("http://127.0.0.1:").partition("/#token=")

    class Served:
        session = None

    served = Served()
    served.port, served.token = int(port), token
    return process, Client(served)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_server_that_was_ended_leaves_a_run_that_resumes_to_the_same_bits(story, tmp_path, number):
    process, client = begin(story, tmp_path)
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
    must("train", story, "--steps", 120, *OPTIONS, "--out", tmp_path / "plain", "--quiet")
    same(made, tmp_path / "plain")
    assert call("generate", made, "--prompt", "the ").code == 0


def test_a_run_that_another_process_uses_is_followed_and_taken_over_when_it_is_free(
    story, tmp_path, monkeypatch
):
    monkeypatch.setattr(trainer, "FOLLOW", 0.05)
    out = tmp_path / "run"
    must("train", story, "--steps", 40, *OPTIONS, "--out", out, "--quiet")
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
    must("train", story, "--steps", 10, *OPTIONS, "--out", out, "--quiet")
    (out / "training.safetensors").unlink()
    with studio(tmp_path / "runs") as client:
        stored = client.session.add_stored(out)
        assert client.post("/api/show", run=stored.id)["run"]["status"] == "viewed"
        assert client.sha256() == load_model(out / "model.safetensors")[0].parameters.sha256
        assert "cannot be trained" in client.refused("/api/train", action="start")[1]
