"""Bad calls of `unspool studio` end with one line and exit code 2; a good one would serve until it is stopped."""

from pathlib import Path

import pytest

from command_line import call

BAD = {
    "missing.txt": "missing.txt",
    "--port=70000": "port is 70000",
    "--port=x": "port",
    "--prot=1": "prot",
}


@pytest.mark.parametrize("given", BAD)
def test_a_bad_call_is_one_line(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("studio", given, "--no-open")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert BAD[given] in done.err and not list(tmp_path.iterdir())
