"""Files that are whole or not there: written beside their name, synced, then renamed."""

import os
from pathlib import Path

from unspool.errors import FileError


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file so that a reader, or a kill at any moment, finds the old content or the new, never a part."""
    beside = Path(f"{path}.{os.getpid()}.unfinished")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise FileError(f"{path}: cannot be written: {error.strerror}") from error
