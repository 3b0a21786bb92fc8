"""Whatever is wrong on the way in or out: one line on standard error and the right exit code, never a traceback."""

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from unspool.cli import failures, streams
from unspool.cli.main import app, main
from unspool.errors import FileError, InputError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="closes and limits what POSIX has")
HERE = [sys.executable, "-m", "unspool"]


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command `unspool` in a shell, as a user types it."""
    program = f'unspool() {{ "{sys.executable}" -m unspool "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", program],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def ended(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Run the command line in this process; give its exit code and what it says on standard error."""
    return main(arguments), capsys.readouterr().err


# ── standard streams ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("unspool --help >&-", "standard output is closed"),
        ("unspool --help >&- 2>&-", ""),
        ("unspool --version 1</dev/null", "not open for writing"),
        ("unspool stats - <&-", "standard input"),
        ("unspool --help >/dev/full", "the output cannot be written: No space left"),
        ("unspool stats /dev/zero", "more than 64 MiB from a device"),
    ],
)
def test_a_stream_that_cannot_be_used_is_one_line_and_exit_code_two(line: str, said: str) -> None:
    done = shell(line)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == (1 if said else 0) and said in done.stderr


def test_a_closed_standard_error_loses_nothing_else() -> None:
    done = shell("unspool --version 2>&-; unspool trian 2>&-; echo $?")
    assert done.stdout.splitlines()[0].startswith("unspool ") and done.stdout.splitlines()[1:] == ["2"]


def test_a_closed_stream_does_not_give_its_number_to_a_file(tmp_path: Path) -> None:
    program = "from unspool.cli import streams; streams.settle(); print(open('f', 'w').fileno() > 2)"
    done = subprocess.run(
        ["bash", "-c", f'cd {tmp_path}; "{sys.executable}" -c "{program}" <&- 2>&-'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True\n"


# ── the terminal and the environment ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("1", "40"),
        ("0", None),
        ("abc", None),
        ("-5", None),
        ("132", "132"),
        ("9" * 30, None),
        ("99999", "1000"),
    ],
)
def test_the_width_of_the_terminal_is_bounded(
    given: str, kept: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", given)
    monkeypatch.setenv("MPLBACKEND", "nope")
    streams.settle_environment()
    assert os.environ.get("COLUMNS") == kept and "MPLBACKEND" not in os.environ


def test_help_ends_at_a_width_of_one_column_and_in_a_broken_locale() -> None:
    odd = {"COLUMNS": "1", "LC_ALL": "xx", "PYTHONIOENCODING": "ascii", "TERM": "dumb", "TMPDIR": "/nowhere"}
    done = subprocess.run(
        [*HERE, "train", "--help"],
        env=os.environ | odd,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert not done.stderr and 30 < max(map(len, done.stdout.splitlines())) <= 40


def test_too_little_memory_is_one_line_and_exit_code_two() -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (70 << 20, 70 << 20))

    done = subprocess.run([*HERE, "--version"], preexec_fn=limit, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"unspool: {failures.OUT_OF_MEMORY}\n")


@pytest.mark.parametrize("raised", ["OSError(24, 'Too many open files')", "FileError('Too many open files')"])
def test_an_import_that_fails_for_another_reason_is_not_called_out_of_memory(
    raised: str, tmp_path: Path
) -> None:
    (tmp_path / "numpy.py").write_text(f"from unspool.errors import FileError\nraise {raised}\n")
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([*HERE, "stats", "x"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.endswith("Too many open files\n")


LATE = """
import sys, threading
from unspool.cli import main as cli
class Bad:
    def __del__(self):
        raise ValueError("of an object")
def work():
    raise ValueError("of a thread")
def command(tokens):
    {body}
cli.run_command = command
sys.exit(cli.main())
"""


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("Bad()", 0),
        ("t = threading.Thread(target=work); t.start(); t.join()", 70),
        ("t = threading.Thread(target=work); t.start(); t.join(); raise KeyError('of the command')", 70),
    ],
)
def test_late_exceptions_of_threads_are_reported_and_those_of_deleted_objects_ignored(
    body: str, code: int, tmp_path: Path
) -> None:
    env = os.environ | {"TMPDIR": str(tmp_path)}
    script = [sys.executable, "-c", LATE.format(body=body)]
    done = subprocess.run(script, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code and done.stderr.count("\n") == (code != 0)
    reports = [path.read_text() for path in tmp_path.glob("unspool-error-*")]
    assert len(reports) == (code != 0)
    for report in reports:
        assert report.count("ValueError: of a thread") == 1 and ("KeyError" in report) == ("KeyError" in body)


# ── exceptions ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("error", "line", "code"),
    [
        (FileError("no such run"), "no such run", 2),
        (MemoryError("std::bad_alloc"), failures.OUT_OF_MEMORY, 2),
        (ImportError("x.so: failed to map segment from shared object"), failures.OUT_OF_MEMORY, 2),
        (OSError(12, "Cannot allocate memory"), failures.OUT_OF_MEMORY, 2),
        (OSError(5, "Input/output error", "data.txt"), "data.txt: Input/output error", 2),
        (OSError(28, "No space left on device"), "the output cannot be written: No space left on device", 2),
        (OSError("strange"), "reading or writing failed: strange", 2),
        (KeyboardInterrupt(), "stopped", 130),
        (BrokenPipeError(32, "Broken pipe"), "", 141),
    ],
)
def test_every_exception_has_its_line_and_exit_code(error: BaseException, line: str, code: int) -> None:
    assert failures.ending(error) == (line, code)


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"),
        RecursionError("deep"),
        SystemError("native"),
        ImportError("no module"),
        AssertionError(),
    ],
)
def test_a_fault_of_ours_is_one_line_with_a_saved_traceback_and_exit_code_70(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("unspool.kernels.native.heed_environment", fail)
    code, said = ended(capsys, "stats", "a text")
    (report,) = tmp_path.iterdir()
    assert code == 70 and said.count("\n") == 1 and str(report) in said and "please report" in said
    text = report.read_text()
    for part in ("unspool 0.", "stats 'a text'", "platform:", "Traceback", type(error).__name__, "in fail"):
        assert part in text


def test_a_traceback_that_cannot_be_saved_is_said_in_the_same_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    monkeypatch.setattr("unspool.kernels.native.heed_environment", lambda: 1 / 0)
    code, said = ended(capsys, "stats")
    assert code == 70 and said.count("\n") == 1 and "could not be saved (No such file or directory)" in said


def test_an_exception_in_a_thread_ends_with_exit_code_70_and_prints_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def in_a_thread() -> None:
        thread = threading.Thread(target=lambda: {}["x"])
        thread.start()
        thread.join()

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("unspool.kernels.native.heed_environment", in_a_thread)
    code, said = ended(capsys, "turing")
    assert code == 70, said
    assert "internal error: KeyError: 'x'" in said and "Traceback" not in said


# ── slips on the command line ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["trian"], "unknown command 'trian'; did you mean train?; there are demo, train, resume, "),
        (["trian"], "check-gradients, turing, studio, runs, show, completion; see unspool --help"),
        (["classify", "fitt"], "unknown command 'fitt'; did you mean fit?; there are fit, predict; see unspool classify"),
        (["stats", "x", "--tokns", "char"], "unknown option --tokns; did you mean --tokens?; see unspool stats --help"),
        (["generate", "x", "--temprature=1"], "unknown option --temprature; did you mean --temperature?"),
        (["train", "x", "--out", "y", "--cell", "gruu"], "elman"),
        (["train", "x", "--out", "y", "--minutes", "nan"], "--minutes is nan; expected a finite number"),
        (["train", "x", "--out", "y", "--minutes", "inf"], "--minutes is inf; expected a finite number"),
        (["train", "x", "--out", "y", "--minutes=-1"], "minutes is -1.0; expected a number above 0"),
        (["train", "x", "--out", "y", "--seed", str(2**63)], "expected a whole number below 2^63"),
        (["train", "x", "--out", "y", "--split", "nan", "0", "0"], "--split is nan; expected a finite number"),
        (["generate", "x", "--seed", str(10**30)], "expected a whole number below 2^63"),
        (["check-gradients", "--seed=-1"], "seed is -1; expected a whole number of 0 or more"),
        (["check-gradients", "--steps", str(2**62)], "too many to check"),
        (["check-gradients", "--layers", str(2**62)], "too large to check"),
    ],
)  # fmt: skip
def test_a_slip_is_one_line_that_says_what_was_meant(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = ended(capsys, *arguments)
    assert code == 2 and line.count("\n") == 1 and said in line


@pytest.mark.parametrize("command", [name for name in app if not name.startswith("-")])
def test_no_help_text_swallows_what_stands_in_brackets(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app([command, "--help"], exit_on_error=False, result_action="return_value")
    shown = capsys.readouterr().out
    assert " , and said" not in shown
    if command == "generate":
        assert "<unk>" in shown and "[default: a random seed]" in " ".join(shown.replace("│", " ").split())


def test_a_device_does_not_end_where_a_whole_file_is_needed() -> None:
    from unspool.storage.files import read_bytes

    with pytest.raises(FileError, match="more than 256 MiB from a device"):
        read_bytes("/dev/zero")


def test_a_forecast_past_the_year_9999_is_refused() -> None:
    from unspool.data.series.time_index import TimeIndex

    for clock in (
        TimeIndex("dates", "%Y-%m-%d", "9999-12-30", 86400.0),
        TimeIndex("months", "%Y-%m", "9999-11", 1.0),
    ):
        assert clock.label(1).startswith("9999-12")
        with pytest.raises(InputError, match="beyond the years 1 to 9999"):
            clock.label(2)
