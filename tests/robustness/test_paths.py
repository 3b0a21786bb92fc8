"""Paths that no file can have, folders without permission, a full disk: one line, exit code 2, nothing lost."""

import errno
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import unspool.cli.commands.classify
import unspool.cli.commands.graph
import unspool.cli.commands.inspect
import unspool.cli.commands.stats
import unspool.cli.commands.train  # noqa: F401 - now: a process of another user may not be able to
from stopping import stop_after
from unspool.cli.follow import Board
from unspool.cli.main import main
from unspool.data.text.id_buffer import IdBuffer
from unspool.errors import FileError
from unspool.plots.svg import Canvas
from unspool.storage.files import read_bytes, write_atomic
from unspool.storage.log import RunLog
from unspool.storage.run_folder import check_run, new_run, require_free_folder
from unspool.storage.tensors import read_arrays, write_arrays
from unspool.tasks import SequenceClassifier
from unspool.tasks.language.run import resume, run
from unspool.tasks.language.text_model import TextModel
from unspool.tasks.registry import load
from unspool.training.events import RunConfig

LONG = "n" * 256
FIT = ["--steps", "1", "--hidden", "4", "--batch", "2"]
TRAIN = ["--window", "8", *FIT]
NOBODY = 65534


@pytest.fixture
def story(tmp_path: Path) -> Path:
    (tmp_path / "story.txt").write_text("she sells sea shells by the sea shore.\n" * 40)
    (tmp_path / "names.csv").write_text("text,label\n" + "Adamou,Greek\nO'Neal,Irish\n" * 20)
    return tmp_path / "story.txt"


def in_a_child(arguments: list[object], prepare: Callable[[], None], said: Path) -> tuple[int, str]:
    """Run a command in a forked process; return its exit code and what it wrote to standard error."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            descriptor = os.open(said, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
            sys.stdout, sys.stderr = open(os.devnull, "w"), os.fdopen(descriptor, "w")  # noqa: SIM115
            prepare()
            code = main([str(each) for each in arguments])
        except BaseException:
            traceback.print_exc(file=sys.stderr)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), said.read_text()


BAD = {
    "a run": ["train", "{story}", "--out", "{bad}", *TRAIN],
    "a fit": ["classify", "fit", "{names}", "--out", "{bad}", *FIT],
    "a picture": ["graph", "--out", "{bad}.svg"],
    "a report": ["inspect", "{story}", "{story}", "--out", "{bad}"],
    "a cache": ["stats", "{story}", "--cache", "{bad}"],
    "a run to read": ["evaluate", "{bad}"],
    "a text": ["stats", "{bad}"],
}


@pytest.mark.parametrize("bad", [LONG, f"new/{LONG}/run", "d/" * 2100 + "x", "loop/x", "story.txt/x"])
@pytest.mark.parametrize("name", BAD)
def test_a_path_that_cannot_be_is_one_line(
    name: str,
    bad: str,
    story: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(story.parent)
    Path("loop").symlink_to("loop")
    before = sorted(os.listdir("."))
    arguments = [each.format(bad=bad, story="story.txt", names="names.csv") for each in BAD[name]]
    code = main(arguments)
    printed = capsys.readouterr()
    assert code == 2 and printed.out == "" and printed.err.count("\n") == 1, printed.err[-300:]
    assert sorted(os.listdir(".")) == before


def test_a_deleted_working_directory_is_one_line(story: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    commands = [
        ["train", story, "--out", "run", *TRAIN],
        ["train", "story.txt", "--out", tmp_path / "run", *TRAIN],
        ["train", story, "--out", tmp_path / "run", "--plot", "a.svg", *TRAIN],
        ["classify", "fit", "names.csv", "--out", tmp_path / "run"],
        ["classify", "predict", "run", "names.csv"],
        ["stats", "story.txt", "--plot", tmp_path / "a.svg"],
        ["stats", story, "--cache", "here"],
        ["graph", "--out", "a.svg"],
        ["turing", "builtin:bb2", "--weights", "a.json"],
        ["compress", "run", "story.txt"],
        ["generate", "run", "--save-state", "a"],
        ["inspect", "run", story, "--out", "a"],
        ["resume", "run"],
        ["forecast", "fit", "names.csv", "--out", tmp_path / "run"],
    ]

    def leave() -> None:
        gone.mkdir()
        os.chdir(gone)
        gone.rmdir()

    before = sorted(os.listdir(tmp_path))
    for command in commands:
        code, said = in_a_child(command, leave, tmp_path / "said")
        assert code == 2 and said.count("\n") == 1 and said.startswith("unspool: "), (command, said)
    (tmp_path / "said").unlink()
    assert sorted(os.listdir(tmp_path)) == before


def test_a_folder_without_permission_is_one_line_before_the_work(story: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "old.svg").write_text("mine")
    closed.chmod(0o555)
    for above in (tmp_path, *tmp_path.parents):
        if above.stat().st_uid == os.geteuid() and above.name.startswith(("pytest", "test")):
            above.chmod(0o755)
    (tmp_path / "said").touch(0o666)
    (tmp_path / "said").chmod(0o666)

    def become_nobody() -> None:
        if os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    commands = [
        ["train", story, "--out", closed / "run", *TRAIN],
        ["train", story, "--out", closed / "new" / "run", *TRAIN],
        ["graph", "--out", closed / "a.svg"],
        ["graph", "--out", closed / "old.svg", "--force"],
        ["stats", story, "--plot", closed / "a.svg"],
        ["stats", story, "--cache", closed / "cache"],
        ["classify", "fit", tmp_path / "names.csv", "--out", closed / "run", *FIT],
        ["inspect", closed, story, "--out", closed / "report"],
    ]
    for command in commands:
        code, said = in_a_child(command, become_nobody, tmp_path / "said")
        assert code == 2 and said.count("\n") == 1 and said.startswith("unspool: "), (command, said)
    assert os.listdir(closed) == ["old.svg"] and (closed / "old.svg").read_text() == "mine"


# ── Python ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "n" * 300, "run\0/x"])
def test_a_path_from_python_that_no_file_can_have_is_an_error_of_ours(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = SequenceClassifier(hidden=2, epochs=1).fit(["aa", "ab"], ["x", "y"])
    calls: list[Callable[[], object]] = [
        lambda: write_atomic(path, b""),
        lambda: read_bytes(path),
        lambda: require_free_folder(path),
        lambda: check_run(path),
        lambda: write_arrays(path, {}, {}),
        lambda: Canvas(1, 1, "").save(path),
        lambda: model.save(path),
        lambda: load(path),
        lambda: TextModel.load(path),
        lambda: SequenceClassifier(hidden=2, epochs=1).fit(["aa", "ab"], ["x", "y"], run=path),
        lambda: list(run(RunConfig(given={"steps": 1}), out=Path(path))),
    ]
    for each in calls:
        with pytest.raises(FileError):
            each()
    assert os.listdir(tmp_path) == []


# ── the log ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("call", ["write", "fileno", "truncate"])
def test_a_log_that_cannot_be_written_stops_the_training_and_what_was_saved_is_whole(
    call: str, number: int, story: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"steps": 8, "hidden": 4, "B": 2, "tau": 8, "cell": "elman"}
    out = tmp_path / "run"
    stop_after(3, run(RunConfig(sources=(str(story),), given=given), out=out))

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    class Failing:  # without a number it cannot be synced
        def __init__(self, file: object) -> None:
            self.file = file

        def __getattr__(self, name: str) -> object:
            return fail if name == call else getattr(self.file, name)

    begin = RunLog.__init__

    def opened(journal: RunLog, path: Path) -> None:
        begin(journal, path)
        journal._file = Failing(journal._file)  # type: ignore[assignment]

    with monkeypatch.context() as broken:
        broken.setattr(RunLog, "__init__", opened)
        with pytest.raises(FileError, match=f"log.jsonl: cannot be written: {os.strerror(number)}"):
            list(resume(out))
    monkeypatch.undo()
    TextModel.load(out)
    assert read_arrays(out / "training.safetensors")[1]["step"] == 3
    assert [type(each).__name__ for each in resume(out)][-1] == "Evaluated"


def test_a_new_run_that_fails_halfway_leaves_nothing(tmp_path: Path) -> None:
    def work() -> None:
        with new_run(tmp_path / "run") as folder:
            write_arrays(folder / "model.safetensors", {"m": np.zeros(3, np.float32)}, {})
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(FileError, match=f"^{tmp_path / 'run'}: cannot be written: Input/output error"):
        work()
    assert os.listdir(tmp_path) == []


def test_a_full_disk_under_a_large_text_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    monkeypatch.setattr("tempfile.TemporaryFile", lambda: open("/dev/full", "w+b", buffering=0))  # noqa: SIM115
    spool = IdBuffer(in_memory=2)
    with pytest.raises(FileError, match=r"a temporary file in .*: cannot be written: No space left"):
        spool.append(np.zeros(3, np.uint8))
    assert spool._file is not None
    spool._file.close()


def test_curves_that_cannot_be_written_are_one_line(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    (tmp_path / "tensorboard").write_text("mine")
    with pytest.raises(FileError, match="tensorboard: cannot be written"):
        Board(tmp_path / "tensorboard").add(None)  # type: ignore[arg-type]
