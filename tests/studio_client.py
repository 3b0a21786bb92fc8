"""A client of the studio over a real socket."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from unspool.cli.follow import repeat
from unspool.storage.tensors import read_arrays
from unspool.studio.payload import from_binary
from unspool.studio.server import Studio, serving
from unspool.studio.session import Place, Session

SENTENCE = "the time traveller spoke of time and space, and space and time listened.\n"
TEXT = "".join(SENTENCE.replace("time", word) for word in ("time", "rhyme", "a mime", "lime", "thyme")) * 12
SMALL = {"hidden": 16, "batch_size": 4, "window": 16, "dropout": 0.1, "seed": 3, "cell": "lstm"}
SMALL_FLAGS = ["--hidden", 16, "--batch", 4, "--window", 16, "--dropout", 0.1, "--seed", 3, "--cell", "lstm"]
"""The same for the command line."""


def require_same_run(one: Path, other: Path) -> None:
    """Raise unless two runs have the same models and training states."""
    states = [read_arrays(each / "training.safetensors")[0] for each in (one, other)]
    first, second = ({name: array.tobytes() for name, array in state.items()} for state in states)
    assert first == second
    for name in ("model.safetensors", "mixture.safetensors"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


class Client:
    """Asks a studio."""

    def __init__(self, studio: Studio) -> None:
        self.studio, self.session = studio, studio.session

    def raw(
        self, method: str, path: str, content: Any = None, tab: str = "a", **headers: str
    ) -> tuple[int, bytes]:
        """Return status and body of a request."""
        connection = HTTPConnection("127.0.0.1", self.studio.port, timeout=60)
        given = {"X-Unspool-Token": self.studio.token, "X-Unspool-Tab": tab} | headers
        body = None
        if content is not None:
            body, given["Content-Type"] = json.dumps(content).encode(), "application/json"
        connection.request(method, path, body, given)
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    def get(self, path: str) -> Any:
        """Return the JSON of a GET."""
        status, body = self.raw("GET", path)
        assert status == 200, body
        return json.loads(body)

    def post(self, path: str, **content: Any) -> Any:
        """Return the answer of a POST that succeeds."""
        status, body = self.raw("POST", path, content)
        assert status == 200, body
        return json.loads(body) if body.startswith(b"{") else from_binary(body)

    def csv(self, path: str, **content: Any) -> list[list[str]]:
        """Return the rows of a chart."""
        status, body = self.raw("POST", path, content)
        assert status == 200, body
        return [line.split(",") for line in body.decode().splitlines()]

    def refused(self, path: str, **content: Any) -> tuple[int, str]:
        """Return status and message of a POST that fails."""
        status, body = self.raw("POST", path, content)
        assert status >= 400, body
        return status, json.loads(body)["error"]["message"]

    def run(self, name: str | None = None) -> Any:
        """Return what the state says about a run, by default the current one."""
        state = self.get("/api/state")
        name = state["current"] if name is None else name
        return next(each for each in state["runs"] if each["id"] == name)

    def wait(self, *statuses: str, step: int = 0, name: str | None = None, seconds: float = 60) -> Any:
        """Wait until a run has one of these statuses and so many updates."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            run = self.run(name)
            if run["status"] in statuses and run["step"] >= step:
                return run
            assert run["status"] != "failed" or "failed" in statuses, run["message"]
            time.sleep(0.02)
        raise AssertionError(f"{run['status']} {run['step']} {run['message']}; expected {statuses} {step}")

    def new(self, start: bool = True, **options: Any) -> Any:
        """Begin a run of TEXT."""
        text = self.post("/api/texts", name="story.txt", content=TEXT)["text"]["id"]
        return self.post("/api/new", text=text, options=SMALL | options, start=start)["run"]

    def sha256(self, update: int | None = None, run: str | None = None, **more: Any) -> str:
        """Return the hash of the parameters after an update."""
        return str(self.post("/api/parameters", update=update, run=run, **more)["sha256"])


class Address:
    """The address that a studio in a process of its own printed."""

    session = None

    def __init__(self, line: str) -> None:
        assert line.startswith("http://127.0.0.1:") and "ssh -L" in line, line
        self.address = line.split()[0]
        port, _, self.token = self.address.removeprefix("http://127.0.0.1:").partition("/#token=")
        self.port = int(port)


def launch(folder: Path, *given: object, threads: int = 1) -> tuple[subprocess.Popen[str], Client]:
    """Start `unspool studio` in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "unspool", "studio", *map(str, given), "--no-open"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"UNSPOOL_THREADS": str(threads)},
    )  # fmt: skip
    assert process.stdout is not None
    return process, Client(Address(process.stdout.readline()))  # type: ignore[arg-type]


@contextmanager
def studio(folder: Path) -> Any:
    """Serve a studio whose runs go into a folder."""

    def place(name: str) -> Path:
        found = (folder / f"run{n}" for n in range(1, 100))
        return next(each for each in found if not each.exists())

    with serving(Session(Place(place, repeat))) as made:
        yield Client(made)
