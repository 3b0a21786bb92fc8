"""Unfinished work on disk: a hidden folder beside its destination, locked by the process that writes it.

    PLACE/.unfinished-3f0c…/.unfinished-owner   marker of this program and machine; locked (flock) by its process
                            NAME                the file or folder in the making; renamed to PLACE/NAME when complete

The next process that writes to PLACE removes what a killed one left behind: only folders that have the marker and whose
lock can be taken. Where there are no locks, nothing has a marker and nothing is removed.

    PLACE/.unfinished-91d2…/.unfinished-owner   the other marker: what is here was moved aside to be replaced
                            NAME                the old folder; removed when the new one has its name

Of these the next process puts the old folder back where there is no PLACE/NAME.
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
    """Yield a path to write to, with the name of the target, in an unfinished folder beside it."""
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
        if lock(owner):  # before the marker: a folder with a marker is locked as long as its process lives
            owner.write(marker)
        yield


def remove_leftovers(place: Path) -> None:
    """Remove unfinished folders of processes that have ended; put back what they had moved aside."""
    for left in place.glob(f"{UNFINISHED}*"):
        with suppress(OSError), (left / OWNER).open("r+b") as owner:  # BlockingIOError: its process lives
            marker = owner.read(1024)
            if marker == _marker("unfinished work") and lock(owner):
                shutil.rmtree(left, ignore_errors=True)
            elif marker == _marker("replaced work") and lock(owner):
                _put_back(left)


def _put_back(aside: Path) -> None:
    """Give a folder that was moved aside its name again, unless another has it: then remove it."""
    for old in [path for path in aside.iterdir() if path.name != OWNER]:
        if not os.path.lexists(aside.parent / old.name):
            old.rename(aside.parent / old.name)
    shutil.rmtree(aside, ignore_errors=True)


def _marker(what: str) -> bytes:
    """Return the content of a marker: on a disk shared without locks, other machines' work stays as well."""
    return f"{what} of unspool on {platform.node()}\n".encode("utf-8", "replace")


@contextmanager
def renamed_in_errors(unfinished: Path, path: str | Path) -> Iterator[None]:
    """Raise errors of the system as FileError, and report a path in the unfinished folder as its final one."""
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
    """Yield a folder to fill; it gets its name when the block ends without an error.

    A folder that is there and not empty is an error; with `may_exist` it stays, with `replaces` it is removed when the new
    one has its name.
    """
    check_path(folder)
    with renamed_in_errors(folder, folder):
        target = Path(os.path.realpath(folder))
        target.parent.mkdir(parents=True, exist_ok=True)
        with staged(target) as unfinished, renamed_in_errors(unfinished, folder):
            unfinished.mkdir()
            yield unfinished
            _sync_all(unfinished)
            _move(unfinished, target, may_exist=may_exist, replaces=replaces)
            sync_name(target)


def _move(unfinished: Path, target: Path, *, may_exist: bool, replaces: bool) -> None:
    if replaces and target.is_dir():
        return _replace(unfinished, target)
    try:
        unfinished.rename(target)
    except OSError:
        if not (may_exist and target.is_dir()):  # another process may have finished the same meanwhile
            raise


def _replace(unfinished: Path, target: Path) -> None:
    """Move the old folder aside, give the new one its name, and remove the old one: killed between, it is put back."""
    aside = target.parent / temporary_name()
    aside.mkdir()
    with _owned(aside, _marker("replaced work")):
        try:
            target.rename(aside / target.name)
            unfinished.rename(target)
        finally:
            _put_back(aside)


def _sync_all(folder: Path) -> None:
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)
