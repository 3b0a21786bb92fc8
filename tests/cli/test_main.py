"""The command line itself: what every command does alike."""

import functools
import os
import signal
import subprocess
import sys
import time

import pytest

from unspool import __version__
from unspool.cli import main as cli


def run(*arguments: str) -> int:
    return cli.main(arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stat"], "did you mean stats?"),
        (["--nope"], "--nope"),
        (["stats"], "TEXT requires an argument"),
        (["stats", "a", "--order", "x"], "--order: 'x' is not a whole number"),
        (["stats", "a", "--eps", "x"], "--eps: 'x' is not a number"),
        (["train", "a", "--dropout", "x"], "--dropout: 'x' is not a number"),
        (["stats", "a", "--split", "1"], "--split requires 3"),
        (["stats", "a", "--toknes", "word"], "unknown option --toknes"),
        (["demo", "--what"], "--what"),
        (["demo", "extra"], "unexpected argument 'extra'"),
    ],
)
def test_a_slip_on_the_command_line_is_one_line_and_exit_code_two(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    printed, error = capsys.readouterr()
    assert printed == ""
    assert error.startswith("unspool: ") and message in error
    assert "--help" in error
    assert len(error.splitlines()) == 1


def test_alone_it_shows_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    printed = capsys.readouterr().out
    assert "Usage: unspool COMMAND" in printed
    for command in ("demo", "stats"):
        assert command in printed


def test_ctrl_c_is_a_line_and_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", interrupted)
    assert cli.main(["demo"]) == 130
    assert capsys.readouterr().err == "unspool: stopped\n"


def test_the_version_can_be_asked_of_the_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "unspool", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"unspool {__version__}\n"
    assert done.stderr == ""


def test_a_terminal_without_unicode_is_no_error() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "unspool", "stats", "builtin:python-docs"],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        check=True,
    )
    assert b"Zipf" in done.stdout and done.stdout.isascii()
    assert done.stderr == b""


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = [sys.executable, "-m", "unspool", "stats", "builtin:python-docs", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
def test_ctrl_c_reaches_a_running_command() -> None:
    command = [sys.executable, "-u", "-m", "unspool", "demo", "--seconds", "60"]
    # Whoever runs the tests may have told its children to ignore Ctrl-C, as a shell does in the background.
    heeding = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, preexec_fn=heeding) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=20)
    assert process.returncode == 130
    assert error == "unspool: stopped\n"
