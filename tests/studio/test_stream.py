"""The stream: rising versions, every row once, every client up to date, a slow one too."""

import json
import threading
import time
from http.client import HTTPConnection

import pytest

from studio_client import TEXT, studio
from unspool.studio.history import Superseded
from unspool.studio.payload import array_from
from unspool.studio.worker import Busy, Worker


class Reader(threading.Thread):
    """Reads frames until one is what it waits for."""

    def __init__(self, client, until, pause=0.0):
        super().__init__(daemon=True)
        self.client, self.until, self.pause, self.frames = client, until, pause, []

    def run(self):
        connection = HTTPConnection("127.0.0.1", self.client.studio.port, timeout=60)
        connection.request("GET", "/api/stream", headers={"X-Unspool-Token": self.client.studio.token})
        answer = connection.getresponse()
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = []
        while line := answer.readline().decode().rstrip("\n"):
            lines.append(line)
            if line.startswith("data: "):
                self.frames.append(json.loads(line[6:]))
                assert lines[-2:][0] == f"id: {self.frames[-1]['v']}" and answer.readline() == b"\n"
                if self.until(self.frames[-1]):
                    break
                time.sleep(self.pause)
        answer.close()
        connection.close()


def ended(frame):
    return any(run["status"] == "ended" for run in frame["runs"])


def test_eight_clients_get_every_row_once_and_the_newest_state(tmp_path):
    with studio(tmp_path) as client:
        readers = [Reader(client, ended, 0.3 if n == 7 else 0) for n in range(8)]
        for reader in readers:
            reader.start()
        client.new(steps=150)
        for reader in readers:
            reader.join(60)
            versions = [frame["v"] for frame in reader.frames]
            assert versions == sorted(set(versions)) and ended(reader.frames[-1])
            rows = [array_from(frame["curve"]["rows"])[:, 0].tolist() for frame in reader.frames]
            begun = max(i for i, frame in enumerate(reader.frames) if frame["curve"]["from"] == 0)
            assert [row for each in rows[begun:] for row in each] == list(range(1, 151))
            assert len(reader.frames[-1]["points"]) == 12 and len(reader.frames[-1]["samples"]) == 3


def test_nothing_is_sent_while_nothing_changes_and_a_note_says_what_went_wrong(tmp_path):
    with studio(tmp_path) as client:
        text = client.post("/api/texts", name="short", content="a b")["text"]
        client.post("/api/new", text=text["id"], options={"steps": 5, "hidden": 16})
        run = client.wait("failed")
        assert "too short" in run["message"] and "too short" in client.get("/api/state")["note"]["message"]
        version = client.get("/api/state")["v"]
        time.sleep(0.3)
        assert client.get("/api/state")["v"] == version
        assert client.refused("/api/read", text=TEXT[:50])[0] == 400


def test_a_diverging_training_fails_with_a_note_and_the_page_lives_on(tmp_path):
    with studio(tmp_path) as client:
        client.new(steps=50, learning_rate=1e30, clip=0, optimiser="sgd")
        run = client.wait("failed")
        assert "learning rate" in run["message"]
        client.new(steps=5)
        client.wait("ended")


def test_a_request_that_waits_is_replaced_by_a_newer_one_of_its_tab_and_route():
    worker, begun, go = Worker(), threading.Event(), threading.Event()
    worker.start()

    def first(job):
        begun.set()
        go.wait(10)
        job.check()

    running = worker.submit("a", first)
    begun.wait(10)
    older, other = worker.submit("a", lambda job: 1), worker.submit("b", lambda job: 2)
    newest = worker.submit("a", lambda job: 3)
    go.set()
    assert (newest.result(10), other.result(10)) == (3, 2)
    for overtaken in (running, older):
        with pytest.raises(Superseded):
            overtaken.result(10)
    worker.close()
    worker.join(10)


def test_too_many_waiting_requests_are_refused():
    worker = Worker()  # not started: all wait
    for n in range(64):
        worker.submit(n, lambda job: None)
    with pytest.raises(Busy):
        worker.submit(64, lambda job: None)
    worker.submit(63, lambda job: None)
