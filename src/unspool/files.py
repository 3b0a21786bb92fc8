"""Files and folders that are whole or not there: made beside their name, synced, then renamed.

A file that is to be trusted carries a seal: the SHA-256 of all its bytes, taken with zeros where the seal stands.
"""

import contextlib
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from unspool.errors import FileError

try:
    import fcntl
except ImportError:  # not on this system
    fcntl = None  # type: ignore[assignment]

UNFINISHED = ".unfinished-"
OPEN_SEAL = "0" * 64
"""What is written where the seal will stand: {"sha256": OPEN_SEAL, …}."""
_SEAL = re.compile(rb'sha256\\?": ?\\?"([0-9a-f]{64})')


def write_whole(path: str | Path, content: bytes, *, new: bool = False) -> None:
    """Write a file so that a reader, or a kill at any moment, finds the old content or the new, never a part.

    A `new` one takes the place of nothing, not even of what came there a moment ago.
    """
    beside = Path(f"{path}.{os.getpid()}{UNFINISHED}")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if new:
            _put_new(beside, path)
        else:
            beside.replace(path)
        sync(beside.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        if not isinstance(error, OSError):  # Ctrl-C
            raise
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error


def _put_new(beside: Path, path: str | Path) -> None:
    """Give a finished file its name, unless the name is taken."""
    try:
        os.link(beside, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        beside.replace(path)
    else:
        beside.unlink()


def check_apart(*paths: str | Path | None) -> None:
    """Raise where two files of a command are one: what is read would be lost, or what was written first."""
    seen = set[Path]()
    for path in paths:
        if path is not None and Path(path).resolve() in seen:
            raise FileError(f"{path}: is given for two things; give each a name of its own")
        if path is not None:
            seen.add(Path(path).resolve())


def check_new(path: str | Path) -> None:
    """Raise unless a new file can be made here: before the work, and nothing of the user's is written over."""
    place, folder = Path(path), Path(path).absolute().parent
    try:
        place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror}; give another --out") from error
    else:
        raise FileError(f"{path}: something is there already; give another --out")
    if not folder.is_dir():
        raise FileError(f"{path}: cannot be written: {folder} is no folder; give another --out")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError(f"{path}: cannot be written: {folder} cannot be written to; give another --out")


def read_whole(path: str | Path) -> bytes:
    """Read a file; one that is not there or not ours to read is said in one line."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from error


def hash_of(path: Path) -> str:
    """Give the SHA-256 of a file's bytes."""
    return hashlib.sha256(read_whole(path)).hexdigest()


def hash_of_all(paths: Iterable[Path]) -> str:
    """Give the SHA-256 of the names and bytes of some files of one folder, in their order."""
    parts = [f"{path.name} {hash_of(path)}\n" for path in paths]
    return hashlib.sha256("".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def sealed(content: bytes) -> bytes:
    """Close the seal: put the content's hash where its zeros stand.

    >>> file = sealed(b'{"sha256": "' + OPEN_SEAL.encode() + b'", "step": 1}')
    >>> is_whole(file), is_whole(file.replace(b"1}", b"2}")), is_whole(file[:-1])
    (True, False, False)
    """
    found = _SEAL.search(content)
    assert found is not None and found[1] == OPEN_SEAL.encode()
    digest = hashlib.sha256(content).hexdigest().encode()
    return content[: found.start(1)] + digest + content[found.end(1) :]


def is_whole(content: bytes) -> bool:
    """Say whether a sealed content is the one that was sealed, to the byte."""
    found = _SEAL.search(content)
    if found is None:
        return False
    zeros = content[: found.start(1)] + OPEN_SEAL.encode() + content[found.end(1) :]
    return hashlib.sha256(zeros).hexdigest().encode() == found[1]


@contextlib.contextmanager
def folder_made_whole(folder: Path, *, may_exist: bool = False) -> Iterator[Path]:
    """Give a folder to fill, which gets its name only when all has gone well.

    What a process that was killed left behind is swept away by the next one.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder.parent)
        unfinished = folder.parent / f"{UNFINISHED}{os.getpid()}-{secrets.token_hex(4)}"
        unfinished.mkdir()
    except OSError as error:
        raise FileError(f"{folder.parent}: cannot be written: {error.strerror or error}") from error
    try:
        yield unfinished
        _sync_all(unfinished)
        with contextlib.suppress(OSError):  # another process may have finished the same meanwhile
            unfinished.rename(folder)
            sync(folder.parent)
        if unfinished.is_dir() and not (may_exist and folder.is_dir()):
            raise FileError(f"{folder}: cannot be written: something else is there")
    except FileError:
        raise
    except OSError as error:  # a full disk, a limit on the size of files
        raise FileError(f"{folder.parent}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def lock(file: IO[bytes]) -> None:
    """Have a file for this process alone until it is closed; raise BlockingIOError where another has it.

    Where a system has no such locks, two processes at one run are the user's own doing.
    """
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def sync(path: Path) -> None:
    """Have the system put a file, or the names in a folder, onto the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_all(folder: Path) -> None:
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)


def _sweep(place: Path) -> None:
    for left in place.glob(f"{UNFINISHED}*"):
        process = left.name.removeprefix(UNFINISHED).partition("-")[0]
        if process.isdecimal() and not _alive(int(process)):
            shutil.rmtree(left, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
