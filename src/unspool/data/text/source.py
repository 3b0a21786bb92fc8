"""Where text comes from: files, folders, standard input, and two corpora that every Python has.

    sources ─▶ bytes in blocks ─▶ text in blocks

Rules, all of them stated here and nowhere else:

- A name is a file, a folder, ``-`` (standard input) or ``builtin:python-docs`` / ``builtin:python-source``.
- A folder stands for its text files (see ``TEXT_SUFFIXES``, also gzipped), sorted by path, hidden ones left
  out.
- Several sources follow one another as they are; nothing is put between them.
- Gzip is recognised by its first two bytes, not by the name.
- Text is UTF-8. A byte order mark at the start of a source is dropped; byte tokens keep every byte.
- Line ends are kept (``newlines="keep"``) or CRLF and lone CR become LF (``newlines="lf"``).
- Bytes that are not UTF-8 stop the reading with their file and offset, or become U+FFFD with
  ``errors="replace"``.

>>> import pathlib, tempfile
>>> place = tempfile.TemporaryDirectory()
>>> folder = pathlib.Path(place.name)
>>> _ = (folder / "a.txt").write_bytes(b"\\xef\\xbb\\xbfone\\r\\n")
>>> _ = (folder / "b.txt").write_bytes(b"two")
>>> read_text(folder)
'one\\r\\ntwo'
>>> read_text([folder / "b.txt", folder / "a.txt"], newlines="lf")
'twoone\\n'
>>> place.cleanup()
"""

import codecs
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
from typing import IO, TypeAlias, TypeVar, cast

from unspool.data.text.builtin import python_docs, python_source
from unspool.errors import EmptyInput, FileError, InputError, UnspoolError
from unspool.storage.files import as_path

BLOCK = 1 << 18
TEXT_SUFFIXES = frozenset({".txt", ".text", ".md", ".rst", ".tex", ".py", ".html", ".xml", ".csv", ".tokens"})
BOM = codecs.BOM_UTF8
PIPE, DEVICE = 1 << 32, 1 << 26
"""The most bytes that are read from a pipe, and from a device such as /dev/zero, which never ends."""
WHOLE = 1 << 31
"""The most bytes that a packed file may have where it is read into memory."""


@dataclass(frozen=True)
class Source:
    """One stream of bytes that can be read any number of times."""

    name: str
    """What error messages call it."""
    path: Path | None = None
    """The file, where there is one."""
    data: IO[bytes] | None = None
    """The bytes at hand, where there is no file."""

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the bytes at their beginning, unpacked if they are gzipped."""
        if self.data is not None:
            yield _unpacked(self.data)
            return
        assert self.path is not None
        try:
            raw = self.path.open("rb", buffering=0)
        except OSError as error:
            raise FileError(f"{self.name}: cannot be read: {error.strerror}") from error
        with raw:
            yield _unpacked(raw)


Name: TypeAlias = str | os.PathLike[str] | Source
Names: TypeAlias = Name | Iterable[Name]
Block = TypeVar("Block", str, bytes)


def text_source(text: str) -> Source:
    """Give a text at hand as a source, for where a file would be named.

    >>> read_text(text_source("a text"))
    'a text'
    """
    return Source("the text", data=io.BytesIO(text.encode("utf-8", "surrogatepass")))


def _unpacked(raw: IO[bytes]) -> IO[bytes]:
    raw.seek(0)
    packed = raw.read(2) == b"\x1f\x8b"
    raw.seek(0)
    return cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if packed else raw


def resolve(sources: Names) -> list[Source]:
    """Turn names into sources that can be read; what does not exist or holds no text is an error."""
    names = [sources] if isinstance(sources, str | os.PathLike | Source) else list(sources)
    if not names:
        raise EmptyInput("no source: give a file, a folder, '-' or builtin:python-docs")
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
    try:
        if path.is_dir():
            return _folder(path)
        if not path.exists():
            raise FileError(f"{path}: no such file or folder")
        return [Source(str(path), path)] if path.is_file() else [_pipe(path)]
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{text}: cannot be read: {error.strerror}") from error


def files_in(name: str) -> list[Path]:
    """Return the files that a name stands for, without reading any: of a folder, its text files."""
    path = Path(name)
    try:
        return _texts(path) if path.is_dir() else [path]
    except OSError as error:
        raise FileError(f"{name}: cannot be read: {error.strerror}") from error


def _standard_input() -> Source:
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("standard input '-' can be read only once, and only where there is one")
    with sys.stdin.buffer as stream:
        return _spooled("standard input", stream)


def _builtin(name: str) -> list[Source]:
    if name == "builtin:python-docs":
        return [Source(name, data=io.BytesIO(python_docs().encode()))]
    if name == "builtin:python-source":
        return [Source(str(path), path) for path in python_source()]
    raise InputError(f"{name}: unknown; there are builtin:python-docs and builtin:python-source")


def _folder(folder: Path) -> list[Source]:
    paths = _texts(folder)
    if not paths:
        raise EmptyInput(
            f"{folder}: a folder without text; it needs files named like *.txt, *.md or *.txt.gz"
        )
    return [Source(str(path), path) for path in paths]


def _texts(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and _is_text_name(path, folder))


def _is_text_name(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    name = path.with_suffix("") if path.suffix == ".gz" else path
    return not hidden and name.suffix.lower() in TEXT_SUFFIXES


def _pipe(path: Path) -> Source:
    try:
        with path.open("rb") as stream:
            return _spooled(str(path), stream)
    except UnspoolError:
        raise
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from error


def _spooled(name: str, stream: IO[bytes]) -> Source:
    # A pipe runs past once and preparation reads twice: a small one is kept in memory, a large one on disk.
    kept = tempfile.SpooledTemporaryFile(max_size=1 << 26)  # noqa: SIM115 - closed with its source
    most = DEVICE if _is_device(stream) else PIPE
    while block := stream.read(BLOCK):
        kept.write(block)
        if kept.tell() > most:
            kept.close()
            kind = "a device" if most == DEVICE else "a pipe"
            raise FileError(f"{name}: more than {most >> 20:,} MiB from {kind}, does it end?; give a file")
    source = Source(name, data=cast(IO[bytes], kept))
    weakref.finalize(source, kept.close)
    return source


def _is_device(stream: IO[bytes]) -> bool:
    try:
        return stat.S_ISCHR(os.fstat(stream.fileno()).st_mode)
    except OSError:  # nothing behind it but memory
        return False


def byte_blocks(source: Source, size: int = BLOCK) -> Iterator[bytes]:
    """Give the bytes of one source, block by block."""
    try:
        with source.open() as stream:
            while block := stream.read(size):
                yield block
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FileError(f"{source.name}: damaged gzip data: {error}") from error
    except UnspoolError:
        raise
    except OSError as error:
        raise FileError(f"{source.name}: cannot be read: {error.strerror or error}") from error


def stamps(sources: Iterable[Source]) -> list[tuple[int, int] | None]:
    """Return size and time of the last change of every source that is a file: another list means another text."""
    found = [None if source.path is None else source.path.stat() for source in sources]
    return [None if each is None else (each.st_size, each.st_mtime_ns) for each in found]


def iter_bytes(sources: list[Source], newlines: str = "keep") -> Iterator[bytes]:
    """Give the bytes of all sources; with ``newlines="lf"`` CRLF and CR become LF."""
    check_reading("strict", newlines)
    for source in sources:
        blocks = byte_blocks(source)
        yield from blocks if newlines == "keep" else _lf_bytes(blocks)


def iter_text(sources: list[Source], errors: str = "strict", newlines: str = "keep") -> Iterator[str]:
    """Give the text of all sources, block by block: larger than memory is fine."""
    check_reading(errors, newlines)
    for source in sources:
        texts = _decode(source, errors)
        yield from texts if newlines == "keep" else _lf_text(texts)


def read_text(sources: Names, errors: str = "strict", newlines: str = "keep") -> str:
    """Read everything into one string; an empty text is an error."""
    resolved = resolve(sources)
    text = "".join(_bounded(resolved, iter_text(resolved, errors, newlines)))
    if not text:
        raise EmptyInput(f"{source_names(resolved)}: empty, there is no text in it")
    return text


def read_bytes(sources: Names) -> bytes:
    """Read everything into one string of bytes."""
    resolved = resolve(sources)
    return b"".join(_bounded(resolved, iter_bytes(resolved)))


def _bounded(sources: list[Source], blocks: Iterator[Block]) -> Iterator[Block]:
    """Pass blocks on; raise where packed files hold more than memory should: a small one can claim any amount."""
    sizes = [source.path.stat().st_size for source in sources if source.path is not None]
    most, total = max(WHOLE, sum(sizes)), 0
    for block in blocks:
        total += len(block)
        if total > most:
            raise FileError(
                f"{source_names(sources)}: more than {most >> 20:,} MiB when unpacked; give less data"
            )
        yield block


def read_file(path: str | os.PathLike[str], newlines: str = "keep") -> str:
    """Read one file of lines into one string; bytes that are not UTF-8 are named with their line."""
    if as_path(path).is_dir():
        raise FileError(f"{path}: a folder; expected a file")
    (source,) = resolve(path)
    try:
        return read_text(source, newlines=newlines)
    except InputError as error:
        if not isinstance(error.__cause__, UnicodeDecodeError):
            raise
    data = read_bytes(source)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{source.name}: line {line}: byte {data[error.start]:#04x} is not UTF-8{_like(data)}: "
            "convert the file to UTF-8"
        ) from error


def fingerprint(sources: list[Source]) -> str:
    """Hash what the sources hold, and where one ends, so that a change of either shows."""
    digest = hashlib.sha256()
    for source in sources:
        inner = hashlib.sha256()
        for block in byte_blocks(source, 1 << 20):
            inner.update(block)
        digest.update(inner.digest())
    return digest.hexdigest()


def source_names(sources: list[Source]) -> str:
    """Name the sources in a message, the first three of them."""
    names = [source.name for source in sources]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def check_reading(errors: str, newlines: str) -> None:
    """Refuse ways of reading that do not exist."""
    if errors not in ("strict", "replace"):
        raise InputError(f"errors: expected 'strict' or 'replace', got {errors!r}")
    if newlines not in ("keep", "lf"):
        raise InputError(f"newlines: expected 'keep' or 'lf', got {newlines!r}")


def _decode(source: Source, errors: str) -> Iterator[str]:
    offset, pending, fresh = 0, b"", True
    for block in byte_blocks(source):
        data = pending + block if pending else block
        if fresh and len(data) >= 3:
            fresh = False
            if data.startswith(BOM):
                data, offset = data[3:], offset + 3
        text, used = _utf8(source.name, data, errors, offset, final=False)
        pending, offset = data[used:], offset + used
        yield text
    if pending and not (fresh and pending == BOM):
        yield _utf8(source.name, pending, errors, offset, final=True)[0]


def _utf8(name: str, data: bytes, errors: str, offset: int, *, final: bool) -> tuple[str, int]:
    try:
        return codecs.utf_8_decode(data, errors, final)
    except UnicodeDecodeError as error:
        at = offset + error.start
        like = _like(data) if at == 0 else ""
        raise InputError(
            f"{name}: byte {data[error.start]:#04x} at offset {at:,} is not UTF-8{like}: convert the file, "
            "or read it with errors='replace', or as bytes with tokens='byte'"
        ) from error


def _like(data: bytes) -> str:
    return " (it looks like UTF-16)" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""


def _lf_bytes(blocks: Iterator[bytes]) -> Iterator[bytes]:
    held = b""
    for block in blocks:
        data = held + block
        held = b"\r" if data.endswith(b"\r") else b""
        yield data[: len(data) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if held:
        yield b"\n"


def _lf_text(texts: Iterator[str]) -> Iterator[str]:
    held = ""
    for block in texts:
        text = held + block
        held = "\r" if text.endswith("\r") else ""
        yield text[: len(text) - len(held)].replace("\r\n", "\n").replace("\r", "\n")
    if held:
        yield "\n"
