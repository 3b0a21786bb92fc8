"""Read and write files atomically: a file is written beside its name, synced, then renamed.

A file that is to be trusted carries a seal: the SHA-256 of all its bytes, taken with zeros where the seal stands.
"""

import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from unspool.errors import FileError, InputError

try:
    import fcntl
except ImportError:  # not on this system
    fcntl = None  # type: ignore[assignment]

UNFINISHED = ".unfinished-"
ENDLESS = 1 << 28
"""Bytes that are read from a device or a pipe where a whole file is needed."""
OPEN_SEAL = "0" * 64
"""What is written where the seal will stand: {"sha256": OPEN_SEAL, …}."""
DESCRIPTOR = re.compile(r"(?:/dev/fd|/proc/self/fd)/(\d+)|/dev/(stdin|stdout|stderr)")
"""A path that names an open file descriptor of this process."""
NO_LINKS = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOTSUP)
"""Errors of a file system without hard links."""
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP)
"""Errors of a file system without locks."""
_SEAL = re.compile(rb'sha256\\?": ?\\?"([0-9a-f]{64})')


def write_atomic(path: str | Path, content: bytes, *, new: bool = False) -> None:
    """Write a file atomically: a reader, or a kill at any moment, finds the old content or the new, never a part.

    An existing file is replaced and keeps its permissions; with `new` it is an error. Symbolic links are followed. A
    device, a pipe or an open descriptor such as /dev/stdout is written to directly.
    """
    check_path(path)
    beside = None
    try:
        if is_special(path):
            return _write_through(path, content)
        target = Path(os.path.realpath(path))
        beside = target.parent / temporary_name()
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        put_in_place(beside, target, new=new)
    except (FileError, BrokenPipeError):
        raise
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {why(error)}") from error
    finally:
        if beside is not None:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)


def put_in_place(beside: Path, target: Path, *, new: bool) -> None:
    """Give a finished file its name and sync the folder; with `new`, raise FileExistsError if the name is taken."""
    if new:
        _put_new(beside, target)
    else:
        with contextlib.suppress(FileNotFoundError):
            shutil.copymode(target, beside)
        beside.replace(target)
    sync_name(target)


def _put_new(beside: Path, target: Path) -> None:
    try:
        os.link(beside, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
    else:
        return
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))  # reserve the name
    try:
        beside.replace(target)
    except OSError:
        target.unlink()
        raise


def temporary_name() -> str:
    """Return a new name for unfinished work: short, so that it fits wherever the final name does."""
    return f"{UNFINISHED}{secrets.token_hex(8)}"


def is_special(path: str | Path) -> bool:
    """Return whether a path is a device, a pipe, a socket or an open descriptor, where nothing can be replaced."""
    if descriptor_of(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def descriptor_of(path: str | Path) -> int | None:
    """Return the number of the open descriptor that a path names, or None.

    >>> descriptor_of("/dev/stdout"), descriptor_of("/dev/fd/7"), descriptor_of("out.png")
    (1, 7, None)
    """
    found = DESCRIPTOR.fullmatch(str(path))
    if found is None:
        return None
    return {"stdin": 0, "stdout": 1, "stderr": 2}[found[2]] if found[2] else int(found[1])


def _write_through(path: str | Path, content: bytes) -> None:
    number = descriptor_of(path)
    with open(path if number is None else os.dup(number), "wb") as file:
        file.write(content)


def as_path(path: str | os.PathLike[str]) -> Path:
    """Return a Path; refuse what `check_path` refuses."""
    check_path(path)
    return Path(path)


def check_path(path: str | os.PathLike[str]) -> None:
    """Raise for a path that no file can have, and for a relative one where the working directory was deleted."""
    if not os.fspath(path):  # Path("") would be the current folder
        raise InputError("the name is empty; expected a file or a folder")
    try:
        nul = b"\0" in os.fsencode(path)
    except UnicodeEncodeError:
        raise FileError(f"{str(path)!r}: not a path of this system: it cannot be encoded") from None
    if nul:
        raise FileError(f"{str(path)!r}: a path cannot contain a NUL byte; remove it")
    if not os.path.isabs(path):
        try:
            os.getcwd()
        except OSError:
            said = (
                "the working directory does not exist any more; change to another, or give an absolute path"
            )
            raise FileError(f"{path}: {said}") from None


def why(error: OSError) -> str:
    """Return the reason of an error of the system, without the path."""
    return error.strerror or str(error)


def read_bytes(path: str | Path) -> bytes:
    """Return the bytes of a file; raise FileError where it cannot be read, or does not end as /dev/zero."""
    place = as_path(path)
    try:
        with place.open("rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file.read()
            content = file.read(ENDLESS + 1)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {why(error)}") from error
    except MemoryError as error:
        raise FileError(f"{path}: too large to be read into memory") from error
    if len(content) > ENDLESS:
        raise FileError(f"{path}: more than {ENDLESS >> 20:,} MiB from a device or a pipe; give a file")
    return content


def hash_of(path: Path) -> str:
    """Give the SHA-256 of a file's bytes."""
    return hashlib.sha256(read_bytes(path)).hexdigest()


def hash_of_all(paths: Iterable[Path]) -> str:
    """Give the SHA-256 of the names and bytes of some files of one folder, in their order."""
    parts = [f"{path.name} {hash_of(path)}\n" for path in paths]
    return hashlib.sha256("".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def with_checksum(content: bytes) -> bytes:
    """Close the seal: put the content's hash where its zeros stand.

    >>> file = with_checksum(b'{"sha256": "' + OPEN_SEAL.encode() + b'", "step": 1}')
    >>> checksum_ok(file), checksum_ok(file.replace(b"1}", b"2}")), checksum_ok(file[:-1])
    (True, False, False)
    """
    found = _SEAL.search(content)
    assert found is not None and found[1] == OPEN_SEAL.encode()
    digest = hashlib.sha256(content).hexdigest().encode()
    return content[: found.start(1)] + digest + content[found.end(1) :]


def checksum_ok(content: bytes) -> bool:
    """Say whether a sealed content is the one that was sealed, to the byte."""
    found = _SEAL.search(content)
    if found is None:
        return False
    zeros = content[: found.start(1)] + OPEN_SEAL.encode() + content[found.end(1) :]
    return hashlib.sha256(zeros).hexdigest().encode() == found[1]


def lock(file: IO[bytes]) -> bool:
    """Lock a file exclusively until it is closed; return False where the system or the file system has no locks.

    Raise BlockingIOError if another process holds the lock.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return False
    return True


def sync(path: Path) -> None:
    """Sync a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_name(path: Path) -> None:
    """Sync the name of a finished file or folder to the disk."""
    try:
        sync(path.parent)
    except OSError as error:
        if error.errno != errno.EINVAL:  # this file system does not sync folders
            said = f"{path}: written, but its folder cannot be synced to the disk: {why(error)}"
            raise FileError(said) from error
