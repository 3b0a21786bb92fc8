"""Read and write files atomically: a file is written beside its name, synced, then renamed.

A checksummed file contains the SHA-256 of all its bytes, computed with zeros in the place of the checksum itself.
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
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

UNFINISHED = ".unfinished-"
STREAM_LIMIT = 1 << 28
"""Most bytes that `read_bytes` reads from a device or a pipe."""
CHECKSUM_PLACEHOLDER = "0" * 64
"""Zeros that `with_checksum` replaces: {"sha256": CHECKSUM_PLACEHOLDER, …}."""
DESCRIPTOR = re.compile(r"(?:/dev/fd|/proc/self/fd)/(\d+)|/dev/(stdin|stdout|stderr)")
"""A path that names an open file descriptor of this process."""
NO_LINKS = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOTSUP)
"""Errors of a file system without hard links."""
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP)
"""Errors of a file system without locks."""
_CHECKSUM = re.compile(rb'sha256\\?": ?\\?"([0-9a-f]{64})')


def write_atomic(path: str | Path, content: bytes, *, new: bool = False) -> None:
    """Write a file atomically: at any moment the path holds the old content or the new one, never a part.

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
    """Rename a finished file to its name and sync the folder; with `new`, raise FileExistsError if the name is taken."""
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
    """Return a random name for unfinished work, short enough for every file system."""
    return f"{UNFINISHED}{secrets.token_hex(8)}"


def is_special(path: str | Path) -> bool:
    """Return whether a path is a device, a pipe, a socket or an open descriptor: these cannot be replaced by a rename."""
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
    """Return a Path; raise as `check_path` does."""
    check_path(path)
    return Path(path)


def check_path(path: str | os.PathLike[str]) -> None:
    """Raise for an empty or impossible path, and for a relative one if the working directory was deleted."""
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
            reason = "the working directory was deleted; change to another, or pass an absolute path"
            raise FileError(f"{path}: {reason}") from None


def why(error: OSError) -> str:
    """Return the reason of an operating-system error, without the path."""
    return error.strerror or str(error)


def read_bytes(path: str | Path) -> bytes:
    """Return the bytes of a file; raise FileError if it cannot be read or is an endless device such as /dev/zero."""
    try:
        with as_path(path).open("rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file.read()
            content = file.read(STREAM_LIMIT + 1)
    except FileNotFoundError as error:
        raise FileError(f"{path}: no such file or folder") from error
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {why(error)}") from error
    except MemoryError as error:
        raise FileError(f"{path}: too large to be read into memory") from error
    if len(content) > STREAM_LIMIT:
        raise FileError(f"{path}: more than {STREAM_LIMIT >> 20:,} MiB from a device or a pipe; give a file")
    return content


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    return hashlib.sha256(read_bytes(path)).hexdigest()


def hash_of_all(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of the names and bytes of files of one folder, in the given order."""
    parts = [f"{path.name} {hash_of(path)}\n" for path in paths]
    return hashlib.sha256("".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def with_checksum(content: bytes) -> bytes:
    """Return the content with its SHA-256 in the place of `CHECKSUM_PLACEHOLDER`.

    >>> file = with_checksum(b'{"sha256": "' + CHECKSUM_PLACEHOLDER.encode() + b'", "step": 1}')
    >>> checksum_ok(file), checksum_ok(file.replace(b"1}", b"2}")), checksum_ok(file[:-1])
    (True, False, False)
    """
    found = _CHECKSUM.search(content)
    assert found is not None and found[1] == CHECKSUM_PLACEHOLDER.encode()
    digest = hashlib.sha256(content).hexdigest().encode()
    return content[: found.start(1)] + digest + content[found.end(1) :]


def checksum_ok(content: bytes) -> bool:
    """Return whether the SHA-256 stored in the content matches its bytes."""
    found = _CHECKSUM.search(content)
    if found is None:
        return False
    zeros = content[: found.start(1)] + CHECKSUM_PLACEHOLDER.encode() + content[found.end(1) :]
    return hashlib.sha256(zeros).hexdigest().encode() == found[1]


def has_checksum(content: bytes) -> bool:
    """Return whether the content holds a SHA-256, right or wrong: other programs write none."""
    return _CHECKSUM.search(content) is not None


def lock(file: IO[bytes]) -> bool:
    """Lock a file exclusively until it is closed; return False if the file system has no locks.

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
    """Flush a file, or the entries of a folder, to the disk (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_name(path: Path) -> None:
    """Flush the folder entry of a finished file or folder to the disk."""
    try:
        sync(path.parent)
    except OSError as error:
        if error.errno != errno.EINVAL:  # this file system does not sync folders
            reason = f"{path}: written, but its folder cannot be synced to the disk: {why(error)}"
            raise FileError(reason) from error
