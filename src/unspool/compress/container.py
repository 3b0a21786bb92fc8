"""The file that `unspool compress` writes: what is needed to get the bytes back, and to know that they are right.

    µunspool  1     the mark of such a file, and the version of its format
    way             who gave <unk> its probability: the network, a count; or the bytes as they are
    model           8 bytes: which model is needed, the beginning of a SHA-256 of weights, sizes and vocabulary
    original        16 bytes: the beginning of its SHA-256
    length, tokens  whole numbers of seven bits a byte, the lowest first; the high bit says that more follow
    name, run       where it came from and where the model was: a length, and UTF-8
    model           a length and the model itself, where the file carries it
    payload         the range coder's bytes
    CRC-32          of all before it

>>> kept = Container("network", b"m" * 8, b"s" * 16, 1000, 990, "a.txt", "", b"", b"the bits")
>>> content = kept.to_bytes()
>>> len(content) - len(kept.payload), Container.from_bytes(content) == kept
(50, True)
>>> Container.from_bytes(content[:-1])
Traceback (most recent call last):
unspool.errors.FileError: damaged or cut short: its bytes do not have the checksum at its end; take it from a copy
"""

import zlib
from dataclasses import dataclass
from typing import Literal, TypeAlias

from unspool.errors import FileError

MARK = b"\xb5unspool"
VERSION = 1
Way: TypeAlias = Literal["network", "counted", "stored"]
WAYS: tuple[Way, ...] = ("network", "counted", "stored")


@dataclass(frozen=True)
class Container:
    """All that such a file says."""

    way: Way
    identity: bytes
    """Of the model: 8 bytes."""
    check: bytes
    """Of the original: 16 bytes."""
    length: int
    """Bytes of the original."""
    tokens: int
    name: str
    """What the original was called."""
    run: str
    """Where the model was, seen from the file; empty where the file carries it."""
    model: bytes
    """The model itself, or nothing."""
    payload: bytes

    def to_bytes(self) -> bytes:
        """Give the file's content."""
        parts = [MARK, bytes([VERSION, WAYS.index(self.way)]), self.identity, self.check]
        parts += [_number(self.length), _number(self.tokens)]
        for field in (self.name.encode(*UTF8), self.run.encode(*UTF8), self.model):
            parts += [_number(len(field)), field]
        content = b"".join([*parts, self.payload])
        return content + zlib.crc32(content).to_bytes(4, "big")

    @staticmethod
    def from_bytes(content: bytes) -> "Container":
        """Read the file's content; refuse what is none of ours, of a later version, or damaged."""
        if not content.startswith(MARK):
            raise FileError("not a file of unspool compress: it does not begin like one")
        if content[len(MARK) : len(MARK) + 1] > bytes([VERSION]):
            raise FileError(
                f"of the format {content[len(MARK)]}, this version reads up to {VERSION}; install a later unspool"
            )
        if zlib.crc32(content[:-4]).to_bytes(4, "big") != content[-4:]:
            raise FileError(DAMAGED)
        try:
            found = _read(_Fields(content[:-4], len(MARK) + 1))
        except (IndexError, UnicodeDecodeError) as error:
            raise FileError(DAMAGED) from error
        if not is_plausible(found.length, found.tokens, len(content)):
            raise FileError(
                f"damaged or crafted: it claims {found.length:,} bytes in {found.tokens:,} tokens, from a file of "
                f"{len(content):,} bytes; take it from a copy"
            )
        return found


def is_plausible(length: int, tokens: int, size: int) -> bool:
    """Return whether a file of `size` bytes may claim this many bytes and tokens.

    Every token but an empty last one stands for at least a byte. Beyond `ANY` bytes, a byte of the file
    stands for at most `RATIO` bytes: whoever decompresses must be able to trust the size before memory is used.

    >>> is_plausible(1000, 990, 60), is_plausible(2**40, 2**40, 60), is_plausible(5, 2**40, 60)
    (True, False, False)
    """
    return tokens <= length + 1 and (length <= ANY or length <= RATIO * size)


def padded(payload: bytes, length: int) -> bytes:
    """Return a payload with zeros behind it, which change nothing, so that its file is plausible."""
    return payload if length <= ANY else payload.ljust(-(-length // RATIO), b"\0")


ANY, RATIO = 1 << 24, 1000
"""Up to 16 MiB any file may claim; beyond, at most this many times its own size."""
UTF8 = ("utf-8", "surrogateescape")
DAMAGED = "damaged or cut short: its bytes do not have the checksum at its end; take it from a copy"


def _read(fields: "_Fields") -> Container:
    way = WAYS[fields.take(1)[0]]
    identity, check, length, tokens = fields.take(8), fields.take(16), fields.number(), fields.number()
    name, run = (fields.take(fields.number()).decode(*UTF8) for _ in range(2))
    model = fields.take(fields.number())
    return Container(way, identity, check, length, tokens, name, run, model, fields.rest())


class _Fields:
    """Bytes that are taken off one field after the other."""

    def __init__(self, content: bytes, at: int) -> None:
        self._content, self._at = content, at

    def take(self, length: int) -> bytes:
        field = self._content[self._at : self._at + length]
        if len(field) < length:
            raise IndexError("no more bytes")
        self._at += length
        return field

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if value >= 1 << 63:
                raise IndexError("a number of more than 63 bits")
            if byte < 128:
                return value

    def rest(self) -> bytes:
        return self._content[self._at :]


def _number(value: int) -> bytes:
    """Write a whole number, seven bits a byte.

    >>> _number(300)
    b'\\xac\\x02'
    """
    low = bytearray()
    while value > 127:
        low.append(value & 127 | 128)
        value >>= 7
    return bytes([*low, value])
