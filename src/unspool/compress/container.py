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
from unspool.kernels.memory import available

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
        if found.tokens > found.length + 1:  # every token but an empty last one stands for at least a byte
            raise FileError(
                f"damaged or crafted: {found.tokens:,} tokens in {found.length:,} bytes; take it from a copy"
            )
        if NEEDED * found.length > (free := available()):
            raise FileError(
                f"it claims {found.length:,} bytes, for which {NEEDED * found.length:,} bytes of memory are needed, and "
                f"{free:,} are free: decompress it where there are more, or, if it was smaller, take it from a copy"
            )
        return found


NEEDED = 16
"""Bytes of memory for each byte that comes out. A file can be any number of times smaller than what it holds, so its
own size says nothing; but nobody has to wait for a claim that cannot come true."""
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
