"""Find the sources of text: files, folders, standard input, and two corpora that every Python has.

- A name is a file, a folder, ``-`` (standard input) or ``builtin:python-docs`` / ``builtin:python-source``.
- A folder stands for its text files (``TEXT_SUFFIXES``, also gzipped), sorted by path, without hidden files.
- Sources are concatenated without a separator.
- Gzip is recognised by its first two bytes, not by the name.
"""

import gzip
import hashlib
import io
import os
import stat
import sys
import tempfile
import weakref
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias, cast

from unspool.data.text.builtin import python_docs, python_source
from unspool.errors import EmptyInput, FileError, InputError, UnspoolError
from unspool.storage.files import why

BLOCK = 1 << 18
TEXT_SUFFIXES = frozenset({".txt", ".text", ".md", ".rst", ".tex", ".py", ".html", ".xml", ".csv", ".tokens"})
PIPE, DEVICE = 1 << 32, 1 << 26
"""Most bytes that are read from a pipe, and from a device, which may be endless (/dev/zero)."""


@dataclass(frozen=True)
class Source:
    """A stream of bytes that can be read repeatedly."""

    name: str
    """The name in messages."""
    path: Path | None = None
    """The file, if there is one."""
    data: IO[bytes] | None = None
    """The bytes in memory or in a temporary file, if there is no file."""

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the bytes at their beginning, unpacking gzip."""
        if self.data is not None:
            yield _unpacked(self.data)
            return
        assert self.path is not None
        with self.path.open("rb", buffering=0) as raw:
            yield _unpacked(raw)


Name: TypeAlias = str | os.PathLike[str] | Source
Names: TypeAlias = Name | Iterable[Name]


def text_source(text: str) -> Source:
    """Return a source that holds a text, to pass where a file name is expected.

    >>> list(byte_blocks(text_source("a text")))
    [b'a text']
    """
    return Source("the text", data=io.BytesIO(text.encode("utf-8", "surrogatepass")))


def _unpacked(raw: IO[bytes]) -> IO[bytes]:
    raw.seek(0)
    packed = raw.read(2) == b"\x1f\x8b"
    raw.seek(0)
    return cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if packed else raw


def resolve(sources: Names) -> list[Source]:
    """Return the sources of names; raise if one does not exist, or is a folder without text files."""
    names = [sources] if isinstance(sources, str | os.PathLike | Source) else list(sources)
    if not names:
        raise EmptyInput("no source; expected a file, a folder, '-' or builtin:python-docs")
    if [str(name) for name in names].count("-") > 1:
        raise InputError("standard input '-' can be read only once; give it once")
    return [source for name in names for source in _resolve_one(name)]


def _resolve_one(name: Name) -> list[Source]:
    if isinstance(name, Source):
        return [name]
    text = os.fspath(name)
    if not text:
        raise InputError("a source has an empty name; expected a file, a folder, '-' or builtin:python-docs")
    if text == "-":
        return [_standard_input()]
    if text.startswith("builtin:"):
        return _builtin(text)
    path = Path(text)
    with _reported(text):
        if path.is_dir():
            return _folder(path)
        if not path.exists():
            raise FileError(f"{path}: no such file or folder")
        if path.is_file():
            return [Source(str(path), path)]
        with path.open("rb") as stream:
            return [_spooled(str(path), stream)]


@contextmanager
def _reported(name: str) -> Iterator[None]:
    """Convert OSError to FileError."""
    try:
        yield
    except UnspoolError:
        raise
    except OSError as error:
        raise FileError(f"{name}: cannot be read: {why(error)}") from error


def files_in(name: str) -> list[Path]:
    """Return the file of a name, or the text files of a folder, without reading them."""
    path = Path(name)
    with _reported(name):
        return _texts(path) if path.is_dir() else [path]


def _standard_input() -> Source:
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("standard input '-' is closed or was already read; it can be read only once")
    with sys.stdin.buffer as stream:
        return _spooled("standard input", stream)


def _builtin(name: str) -> list[Source]:
    if name == "builtin:python-docs":
        return [Source(name, data=io.BytesIO(python_docs().encode()))]
    if name == "builtin:python-source":
        return [Source(str(path), path) for path in python_source()]
    raise InputError(f"{name}: unknown; expected builtin:python-docs or builtin:python-source")


def _folder(folder: Path) -> list[Source]:
    paths = _texts(folder)
    if not paths:
        raise EmptyInput(f"{folder}: a folder without text; expected files named *.txt, *.md or *.txt.gz")
    return [Source(str(path), path) for path in paths]


def _texts(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and _is_text_name(path, folder))


def _is_text_name(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    name = path.with_suffix("") if path.suffix == ".gz" else path
    return not hidden and name.suffix.lower() in TEXT_SUFFIXES


def _spooled(name: str, stream: IO[bytes]) -> Source:
    # A pipe can be read once and preparation reads twice: keep a small one in memory, a large one on disk.
    buffer = tempfile.SpooledTemporaryFile(max_size=1 << 26)  # noqa: SIM115 - closed with its source
    most = DEVICE if _is_device(stream) else PIPE
    while block := stream.read(BLOCK):
        buffer.write(block)
        if buffer.tell() > most:
            buffer.close()
            kind = "a device" if most == DEVICE else "a pipe"
            raise FileError(
                f"{name}: more than {most >> 20:,} MiB from {kind}, which may be endless; pass a file"
            )
    source = Source(name, data=cast(IO[bytes], buffer))
    weakref.finalize(source, buffer.close)
    return source


def _is_device(stream: IO[bytes]) -> bool:
    try:
        return stat.S_ISCHR(os.fstat(stream.fileno()).st_mode)
    except OSError:  # a stream in memory
        return False


def byte_blocks(source: Source, size: int = BLOCK) -> Iterator[bytes]:
    """Yield the bytes of one source in blocks."""
    with _reported(source.name):
        try:
            with source.open() as stream:
                while block := stream.read(size):
                    yield block
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise FileError(f"{source.name}: damaged gzip data: {error}") from error


def stamps(sources: Iterable[Source]) -> list[tuple[int, int] | None]:
    """Return size and modification time of each source that is a file, None for the others; used to detect changes."""
    found = [None if source.path is None else source.path.stat() for source in sources]
    return [None if each is None else (each.st_size, each.st_mtime_ns) for each in found]


def fingerprint(sources: list[Source]) -> str:
    """Return a SHA-256 of the contents and the boundaries of the sources."""
    digest = hashlib.sha256()
    for source in sources:
        inner = hashlib.sha256()
        for block in byte_blocks(source, 1 << 20):
            inner.update(block)
        digest.update(inner.digest())
    return digest.hexdigest()


def source_names(sources: list[Source]) -> str:
    """Return the names of the first three sources, for messages."""
    names = [source.name for source in sources]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
