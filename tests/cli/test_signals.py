"""Signals at awkward moments: while everything is still imported, when the terminal is closed, under nohup."""

import fcntl
import functools
import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

import unspool
from unspool.cli.signals import Stop
from unspool.storage import run_folder, tensors

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")
ENVIRONMENT = os.environ | {"UNSPOOL_THREADS": "1"}
TABLE = "text,label\n" + "".join(f"{'ab' * (1 + i % 4)}{'cd'[i % 2]},{'cd'[i % 2]}\n" for i in range(40))
TEXT = "the time traveller spoke of time and space, and space and time listened.\n" * 60
FITS = {
    "classify": ["classify", "fit", "data", "--steps", "100000", "--patience", "0", "--hidden", "8"],
    "train": ["train", "data", "--steps", "100000", "--hidden", "20", "--batch", "4", "--window", "16"],
}
heeding = functools.partial(signal.signal, signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("package", ["numpy", "cyclopts"])
def test_ctrl_c_while_packages_are_imported_is_a_line_and_130(package: str, tmp_path: Path) -> None:
    (tmp_path / package).mkdir()
    pressed = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(10**7): pass\n"
    caught = f"try:\n    exec({pressed!r})\nexcept BaseException:\n    raise ImportError"  # as NumPy does at places
    (tmp_path / package / "__init__.py").write_text(caught)
    done = subprocess.run(
        [sys.executable, "-m", "unspool", "stats", "builtin:python-docs"],
        env=ENVIRONMENT | {"PYTHONPATH": str(tmp_path)},
        preexec_fn=heeding,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr, done.stdout) == (130, "unspool: stopped\n", "")


def test_a_shell_that_has_ctrl_c_ignored_is_obeyed(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = subprocess.run(
        [sys.executable, "-m", "unspool", "stats", "x"],
        env=ENVIRONMENT | {"PYTHONPATH": str(tmp_path)},
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_IGN),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "stopped" not in done.stderr and "numpy" in done.stderr  # it went on, with what is no NumPy


def test_importing_the_package_loads_only_the_table_of_names_and_train_stays_the_function() -> None:
    program = (
        "import sys, unspool; print(*[n for n in sys.modules if n.startswith(('unspool.', 'numpy'))]);"
        "import unspool.tasks.language.run; from unspool import train; print(callable(unspool.train), train is unspool.train,"
        "train is sys.modules['unspool.training.loop'].train)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "unspool.lazy\nTrue True True\n"
    alone = "import unspool; print(unspool.errors.InputError.__name__, hasattr(unspool, '__wrapped__'))"
    done = subprocess.run([sys.executable, "-c", alone], capture_output=True, text=True, check=True)
    assert done.stdout == "InputError False\n"
    assert set(unspool.__all__) <= set(dir(unspool))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        unspool.nothing  # noqa: B018


def step_of(out: Path) -> int:
    return tensors.read_arrays(out / run_folder.TRAINING)[1]["step"] if out.exists() else 0


def hear_hangups() -> None:
    """A child inherits an ignored SIGHUP, as under nohup; these children must hear it."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def lead_a_session() -> None:
    hear_hangups()
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.parametrize("name", FITS)
def test_a_closed_terminal_leaves_a_run_that_goes_on(name: str, tmp_path: Path) -> None:
    (tmp_path / "data").write_text(TABLE if name == "classify" else TEXT)
    out = tmp_path / "run"
    master, terminal = os.openpty()
    os.set_blocking(master, False)
    with subprocess.Popen(
        [sys.executable, "-m", "unspool", *FITS[name], "--out", str(out), "--save-every", "25"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=tmp_path,
        env=ENVIRONMENT | {"TERM": "xterm"},
        preexec_fn=lead_a_session,
    ) as process:
        os.close(terminal)
        until = time.monotonic() + 60
        while step_of(out) < 50:  # somebody looks at the terminal, and then closes it
            assert process.poll() is None and time.monotonic() < until
            try:
                os.read(master, 65536)
            except BlockingIOError:
                time.sleep(0.01)
        before = step_of(out)
        os.close(master)
        assert process.wait(60) == 128 + signal.SIGHUP
    assert before <= step_of(out)
    assert not list(out.glob("*unfinished*"))
    again = subprocess.Popen(
        [sys.executable, "-m", "unspool", "resume", str(out), "--save-every", "1"],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_hangups,
    )
    begun = step_of(out)
    while step_of(out) < begun + 3 and again.poll() is None:
        time.sleep(0.01)
    again.send_signal(signal.SIGHUP)
    said = again.communicate()[1]
    assert (
        again.returncode == 128 + signal.SIGHUP
        and f"everything is saved; resume with: unspool resume {out}" in said
    )


@pytest.fixture
def _signals() -> object:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_signals")
def test_nohup_is_obeyed_and_a_second_hangup_hurries_nobody() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    ignoring = Stop()
    ignoring.listen()
    signal.raise_signal(signal.SIGHUP)
    assert not ignoring()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    stop = Stop()
    stop.listen()
    stop._terminals = []  # that of whoever runs the tests stays open
    for _ in range(2):  # the terminal tells it, and the shell
        signal.raise_signal(signal.SIGHUP)
    assert stop() and stop.signal == signal.SIGHUP
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
