"""Decode sources to text: UTF-8, byte order marks and line ends.

    sources ─▶ bytes in blocks ─▶ text in blocks

- Text is UTF-8. A byte order mark at the start of a source is dropped; byte tokens keep every byte.
- Line ends are kept (``newlines="keep"``), or CRLF and lone CR become LF (``newlines="lf"``).
- Invalid UTF-8 is an error with file and offset, or becomes U+FFFD with ``errors="replace"``.

>>> import pathlib, tempfile
>>> temporary = tempfile.TemporaryDirectory()
>>> folder = pathlib.Path(temporary.name)
>>> _ = (folder / "a.txt").write_bytes(b"\\xef\\xbb\\xbfone\\r\\n")
>>> _ = (folder / "b.txt").write_bytes(b"two")
>>> read_text(folder)
'one\\r\\ntwo'
>>> read_text([folder / "b.txt", folder / "a.txt"], newlines="lf")
'twoone\\n'
>>> temporary.cleanup()
"""

import codecs
import os
from collections.abc import Iterator
from typing import TypeVar

from unspool.data.text.source import Names, Source, byte_blocks, resolve, source_names
from unspool.errors import EmptyInput, FileError, InputError
from unspool.options import check_choice
from unspool.storage.files import as_path

BOM = codecs.BOM_UTF8
MOST_UNPACKED = 1 << 31
"""Most bytes of gzipped files that are read into memory."""
Block = TypeVar("Block", str, bytes)


def iter_bytes(sources: list[Source], newlines: str = "keep") -> Iterator[bytes]:
    """Yield the bytes of all sources; with ``newlines="lf"`` CRLF and CR become LF."""
    check_reading("strict", newlines)
    for source in sources:
        blocks = byte_blocks(source)
        yield from blocks if newlines == "keep" else _with_lf(blocks, b"\r", b"\n")


def iter_text(sources: list[Source], errors: str = "strict", newlines: str = "keep") -> Iterator[str]:
    """Yield the text of all sources in blocks."""
    check_reading(errors, newlines)
    for source in sources:
        texts = _decode(source, errors)
        yield from texts if newlines == "keep" else _with_lf(texts, "\r", "\n")


def read_text(sources: Names, errors: str = "strict", newlines: str = "keep") -> str:
    """Return the text of all sources; raise EmptyInput if there is none."""
    resolved = resolve(sources)
    text = "".join(_bounded(resolved, iter_text(resolved, errors, newlines)))
    if not text:
        raise EmptyInput(f"{source_names(resolved)}: empty, there is no text in it")
    return text


def read_bytes(sources: Names) -> bytes:
    """Return the bytes of all sources."""
    resolved = resolve(sources)
    return b"".join(_bounded(resolved, iter_bytes(resolved)))


def _bounded(sources: list[Source], blocks: Iterator[Block]) -> Iterator[Block]:
    """Yield the blocks; raise FileError when gzipped files unpack to more than `MOST_UNPACKED` bytes."""
    sizes = [source.path.stat().st_size for source in sources if source.path is not None]
    most, total = max(MOST_UNPACKED, sum(sizes)), 0
    for block in blocks:
        total += len(block)
        if total > most:
            raise FileError(
                f"{source_names(sources)}: more than {most >> 20:,} MiB when unpacked; pass fewer or smaller files"
            )
        yield block


def read_file(path: str | os.PathLike[str], newlines: str = "keep") -> str:
    """Return the text of one file; invalid UTF-8 is an error with the line."""
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


def check_reading(errors: str, newlines: str) -> None:
    """Raise InputError for unknown values of `errors` and `newlines`."""
    check_choice("errors", errors, ("strict", "replace"))
    check_choice("newlines", newlines, ("keep", "lf"))


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


def _with_lf(blocks: Iterator[Block], cr: Block, lf: Block) -> Iterator[Block]:
    """Yield blocks with CRLF and CR replaced by LF; a CR at the end of a block waits for the next one."""
    held = cr[:0]
    for block in blocks:
        data = held + block
        held = cr if data.endswith(cr) else cr[:0]
        yield data[: len(data) - len(held)].replace(cr + lf, lf).replace(cr, lf)
    if held:
        yield lf
