"""Stage unfinished work in a hidden folder beside its destination; rename it when complete.

    FOLDER/.unfinished-3f0c…/.unfinished-owner   marker: program and machine; locked (flock) by the writing process
                             NAME                the unfinished file or folder; renamed to FOLDER/NAME when complete

The next process that writes to FOLDER removes the leftovers of killed processes: folders with the marker whose lock is
free. On file systems without locks, nothing has a marker and nothing is removed.

    FOLDER/.unfinished-91d2…/.unfinished-owner   a second marker: this folder holds a folder that is being replaced
                             NAME                the old folder; removed when the new one has its name

If FOLDER/NAME does not exist, the next process moves the old folder back.
"""

import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unspool.errors import FileError
from unspool.storage.files import UNFINISHED, check_path, lock, sync, sync_name, temporary_name, why

OWNER = f"{UNFINISHED}owner"


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """Yield a path to write to: the name of the target in an unfinished folder beside it."""
    remove_leftovers(target.parent)
    folder = target.parent / temporary_name()
    folder.mkdir()
    try:
        with _owned(folder, _marker("unfinished work")):
            yield folder / target.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _owned(folder: Path, marker: bytes) -> Iterator[None]:
    with (folder / OWNER).open("xb", buffering=0) as owner:
        if lock(owner):  # before the marker: a folder with a marker is locked while its process runs
            owner.write(marker)
        yield


def remove_leftovers(folder: Path) -> None:
    """Remove unfinished folders of processes that have ended; restore folders that were being replaced."""
    for left in folder.glob(f"{UNFINISHED}*"):
        with (
            suppress(OSError),
            (left / OWNER).open("r+b") as owner,
        ):  # BlockingIOError: its process still runs
            marker = owner.read(1024)
            if marker == _marker("unfinished work") and lock(owner):
                shutil.rmtree(left, ignore_errors=True)
            elif marker == _marker("replaced work") and lock(owner):
                _restore(left)


def _restore(aside: Path) -> None:
    """Move a replaced folder back, or remove it if its name is taken."""
    for old in [path for path in aside.iterdir() if path.name != OWNER]:
        if not os.path.lexists(aside.parent / old.name):
            old.rename(aside.parent / old.name)
    shutil.rmtree(aside, ignore_errors=True)


def _marker(what: str) -> bytes:
    """Return the content of a marker; it names the machine, so that work of other machines on a shared disk stays."""
    return f"{what} of unspool on {platform.node()}\n".encode("utf-8", "replace")


@contextmanager
def renamed_in_errors(unfinished: Path, path: str | Path) -> Iterator[None]:
    """Convert OSError to FileError and replace the unfinished path in messages by the final one."""
    try:
        yield
    except BrokenPipeError:
        raise
    except FileError as error:
        raise FileError(str(error).replace(str(unfinished), str(path))) from error
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {why(error)}") from error


@contextmanager
def atomic_folder(folder: Path, *, may_exist: bool = False, replaces: bool = False) -> Iterator[Path]:
    """Yield an unfinished folder; rename it to `folder` if the block ends without an error.

    A non-empty folder of that name is an error. With `may_exist` the existing folder stays; with `replaces` the new one
    replaces it. Parent folders are made as needed, and removed again after an error.
    """
    check_path(folder)
    with renamed_in_errors(folder, folder):
        target = Path(os.path.realpath(folder))
        with _parents(target), staged(target) as unfinished, renamed_in_errors(unfinished, folder):
            unfinished.mkdir()
            yield unfinished
            _sync_all(unfinished)
            _move(unfinished, target, may_exist=may_exist, replaces=replaces)
            sync_name(target)


@contextmanager
def _parents(target: Path) -> Iterator[None]:
    """Make the missing parents of a path; after an error, remove those that are still empty."""
    missing = [parent for parent in target.parents if not os.path.lexists(parent)]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for parent in missing:  # the deepest first
                parent.rmdir()
        raise


def _move(unfinished: Path, target: Path, *, may_exist: bool, replaces: bool) -> None:
    if replaces and target.is_dir():
        return _replace(unfinished, target)
    try:
        unfinished.rename(target)
    except OSError:
        if not (may_exist and target.is_dir()):  # another process may have finished first
            raise


def _replace(unfinished: Path, target: Path) -> None:
    """Move the old folder aside, rename the new one, remove the old one; after a kill `remove_leftovers` restores it."""
    aside = target.parent / temporary_name()
    aside.mkdir()
    with _owned(aside, _marker("replaced work")):
        try:
            target.rename(aside / target.name)
            unfinished.rename(target)
        finally:
            _restore(aside)


def _sync_all(folder: Path) -> None:
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)
