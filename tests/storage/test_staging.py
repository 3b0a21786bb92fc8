"""Unfinished work on disk: a killed process's is removed, a live one's and the user's own folders stay."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from unspool.errors import FileError
from unspool.storage import files
from unspool.storage.files import UNFINISHED, temporary_name, write_atomic
from unspool.storage.log import RunLog
from unspool.storage.run_folder import new_run, remove_leftovers
from unspool.storage.staging import OWNER, atomic_folder, staged
from unspool.storage.staging import remove_leftovers as sweep_place
from unspool.storage.tensors import write_arrays

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")

WORKING = """
import sys
from pathlib import Path
from unspool.storage.run_folder import new_run
with new_run(Path(sys.argv[1])) as folder:
    (folder / "half").write_text("half")
    print("here", flush=True)
    sys.stdin.read()
"""


@contextmanager
def working(run: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that is making a run."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", WORKING, str(run)], **pipes, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "here\n"
        yield process
        process.kill()


def unfinished(place: Path) -> list[Path]:
    return [path for path in place.iterdir() if path.name.startswith(UNFINISHED)]


def test_live_work_stays_and_that_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    with working(tmp_path / "theirs") as process:
        (left,) = unfinished(tmp_path)
        with new_run(tmp_path / "mine"):
            pass
        assert unfinished(tmp_path) == [left] and (left / "theirs" / "half").read_text() == "half"
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert unfinished(tmp_path) == [left]
        with new_run(tmp_path / "other"):
            pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "other"]


def test_live_work_gets_its_name_while_others_sweep(tmp_path: Path) -> None:
    with working(tmp_path / "theirs") as process:
        sweep_place(tmp_path)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait() == 0
    assert (tmp_path / "theirs" / "half").read_text() == "half" and not unfinished(tmp_path)


def test_a_folder_of_that_name_that_is_not_ours_stays(tmp_path: Path) -> None:
    names = [f"{UNFINISHED}4194305-0a1b2c3d", temporary_name(), f"{UNFINISHED}novel"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "chapter.txt").write_text("mine")
    (tmp_path / names[2] / OWNER).write_text("someone else")
    (tmp_path / f"{UNFINISHED}file").write_text("mine")
    with staged(tmp_path / "a"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {*names, f"{UNFINISHED}file"}


def left_behind(place: Path) -> Path:
    """What a killed process leaves."""
    with staged(place / "run") as path:
        marker = (path.parent / OWNER).read_bytes()
    folder = place / temporary_name()
    folder.mkdir()
    (folder / OWNER).write_bytes(marker)
    return folder


def test_a_marked_folder_whose_lock_is_held_stays(tmp_path: Path) -> None:
    folder = left_behind(tmp_path)
    with (folder / OWNER).open("r+b") as owner:
        assert files.lock(owner)
        sweep_place(tmp_path)
        assert folder.is_dir()
    sweep_place(tmp_path)
    assert not folder.exists()


def test_work_of_another_machine_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = left_behind(tmp_path)
    monkeypatch.setattr("platform.node", lambda: "another")
    sweep_place(tmp_path)
    assert folder.is_dir()


@pytest.mark.parametrize("how", ["refused", "missing"])
def test_without_locks_nothing_is_removed_and_work_goes_on(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = left_behind(tmp_path)

    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    if how == "missing":
        monkeypatch.setattr(files, "fcntl", None)
    else:
        monkeypatch.setattr("fcntl.flock", refuse)
    with new_run(tmp_path / "run") as unmarked:
        assert (unmarked.parent / OWNER).read_bytes() == b""
    assert folder.is_dir() and (tmp_path / "run").is_dir()
    with RunLog(tmp_path / "run" / "log.jsonl") as journal:
        assert not journal.locked


def test_only_temporary_files_of_ours_are_swept_from_a_run(tmp_path: Path) -> None:
    ours = [temporary_name(), f"model.safetensors.123{UNFINISHED}", f"vocab.json.9{UNFINISHED}"]
    mine = [f"novel{UNFINISHED}", f"{UNFINISHED}novel", "config.json"]
    for name in (*ours, *mine):
        (tmp_path / name).write_text("")
    (tmp_path / temporary_name()).mkdir()
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == set(mine)


def test_a_run_that_another_process_works_on_is_not_swept(tmp_path: Path) -> None:
    left = tmp_path / temporary_name()
    left.write_text("live")
    with RunLog(tmp_path / "log.jsonl"), pytest.raises(FileError, match="another process"):
        RunLog(tmp_path / "log.jsonl")
    assert left.exists()


@pytest.mark.parametrize("length", [20, 234, 243, 255])
def test_a_name_as_long_as_the_file_system_allows_can_be_written(length: int, tmp_path: Path) -> None:
    path = tmp_path / ("n" * length)
    write_atomic(path, b"1")
    write_atomic(path, b"2")
    path.unlink()
    write_atomic(path, b"3", new=True)
    path.unlink()
    write_arrays(path, {}, {})
    path.unlink()
    with new_run(path) as folder:
        (folder / "a").write_text("")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


REPLACING = """
import os, signal, sys
from pathlib import Path
from unspool.storage.staging import atomic_folder
rename = Path.rename
def killed(self, target):
    if self.name == "run" and target == Path(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(self, target)
Path.rename = killed
with atomic_folder(Path(sys.argv[1]), replaces=True) as folder:
    (folder / "new").touch()
"""


def test_a_folder_that_was_being_replaced_is_put_back_after_a_kill(tmp_path: Path) -> None:
    place = tmp_path.resolve()
    (place / "run").mkdir()
    (place / "run" / "old").touch()
    done = subprocess.run([sys.executable, "-c", REPLACING, str(place / "run")], check=False)
    assert done.returncode == -signal.SIGKILL and not (place / "run").exists()
    sweep_place(place)
    assert [path.name for path in place.iterdir()] == ["run"] and (place / "run" / "old").exists()
    with atomic_folder(place / "run", replaces=True) as folder:
        (folder / "new").touch()
    assert [path.name for path in place.rglob("*")] == ["run", "new"]
