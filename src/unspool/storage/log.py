"""The log of a run: one line of JSON per entry, in the order of events.

One process writes it at a time, and lines are only added. A training state stores the length and the hash of the log;
resuming truncates the log to that length, so that every event is logged once.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict

from unspool.errors import FileError
from unspool.storage.files import lock, read_bytes, why
from unspool.storage.schema import parse_json, read_as


class Mark(TypedDict):
    """Where a log ended: its length and the hash of its bytes."""

    bytes: int
    hash: str


class RunLog:
    """A file to which lines are added.

    >>> import tempfile
    >>> place = tempfile.TemporaryDirectory()
    >>> path = Path(place.name) / "log.jsonl"
    >>> with RunLog(path) as log:
    ...     log.add({"step": 1})
    ...     position = log.position()
    ...     log.add({"step": 2})
    >>> with RunLog(path) as log:
    ...     log.truncate_to(position)
    >>> read_log(path)
    [{'step': 1}]
    >>> place.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._reported():
            self._file = path.open("a+b", buffering=0)  # a line that fails is not tried again at the end
        try:
            with self._reported():
                self.locked = self._lock()
                self._file.seek(0)
                self._hash = hashlib.sha256(self._file.read())
        except FileError:
            with suppress(OSError):
                self._file.close()
            raise

    def _lock(self) -> bool:
        """Lock the run for this process; return False where the file system has no locks."""
        try:
            return lock(self._file)
        except BlockingIOError:
            place = self.path.parent
            raise FileError(f"{place}: another process is using this run; wait for it to end") from None

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Raise errors of the system as FileError."""
        try:
            yield
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"{self.path}: cannot be written: {why(error)}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._reported() if error is None else suppress(OSError):
            self._file.close()

    def add(self, entry: dict[str, Any]) -> None:
        """Write a line; it is in the file when this returns."""
        line = json.dumps(entry, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass") + b"\n"
        with self._reported():
            written = self._file.write(line)
        if written != len(line):
            raise FileError(f"{self.path}: cannot be written: no space left")
        self._hash.update(line)

    def position(self) -> Mark:
        """Return the length and the hash of the log, after syncing it to the disk."""
        with self._reported():
            os.fsync(self._file.fileno())
            return {"bytes": self._file.tell(), "hash": self._hash.hexdigest()}

    def truncate_to(self, mark: Mark) -> None:
        """Remove the entries after a position; refuse a log that was changed before it. A deleted log starts empty."""
        if mark["bytes"] < 0:
            raise FileError(
                f"{self.path}: damaged or manipulated: the training state says {mark['bytes']} bytes"
            )
        with self._reported():
            self._file.seek(0)
            kept = self._file.read()[: mark["bytes"]]
        self._hash = hashlib.sha256(kept)
        if not kept:  # deleted by hand: a new one begins here
            return
        if len(kept) != mark["bytes"] or self._hash.hexdigest() != mark["hash"]:
            raise FileError(
                f"{self.path}: damaged or changed by hand; restore it from a copy, or delete it to continue without it"
            )
        with self._reported():
            self._file.truncate(mark["bytes"])
            self._file.seek(0, os.SEEK_END)


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a log without an incomplete last line."""
    lines = read_bytes(path).split(b"\n")
    return [read_as(dict[str, Any], parse_json(line, path), path) for line in lines[:-1] if line]
