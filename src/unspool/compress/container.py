"""The file format of `unspool compress`.

    µunspool  1     magic bytes and format version; 2: the precision of the model follows, one byte
                    3: after the precision, one byte, the kind: a sum of 1 if the model learns while reading, 2 if its n-grams
                    are used, 4 if bytes are coded, with counts that start from nothing (`unspool.compress.adaptive`).
                    If it learns: segment (an integer), learning rate (float64, little-endian), name of the
                    optimiser (length and UTF-8). Kind 4: no model; the hidden units of the network that starts from
                    nothing follow (an integer), 0 if only counts are used. Kind 6 does not exist
    mode            source of the probability of <unk>: network or counted; stored: uncompressed bytes; adaptive: kinds 4, 5, 7
    identity        8 bytes: prefix of the SHA-256 of the weights, sizes and vocabulary of the model
    check           16 bytes: prefix of the SHA-256 of the original
    length, tokens  integers, seven bits per byte, lowest first; the high bit marks continuation
    name, run       name of the original and relative path of the run: length and UTF-8
    model           length and the embedded model, if there is one
    payload         the bytes of the range coder
    CRC-32          of all bytes before it

>>> container = Container("network", b"m" * 8, b"s" * 16, 1000, 990, "a.txt", "", b"", b"the bits")
>>> content = container.to_bytes()
>>> len(content) - len(container.payload), Container.from_bytes(content) == container
(50, True)
>>> Container.from_bytes(content[:-1])
Traceback (most recent call last):
unspool.errors.FileError: damaged or cut short: its CRC-32 does not match; restore it from a copy
"""

import struct
import zlib
from dataclasses import dataclass
from typing import Literal, TypeAlias

from unspool.compress.adaptive import LARGEST, LONGEST, memory_of
from unspool.errors import FileError, InputError
from unspool.kernels.arrays import Precision
from unspool.kernels.memory import available
from unspool.training.dynamic import Learning

MARK = b"\xb5unspool"
VERSION = 3
"""Written if the model learns while reading or is mixed with n-grams; else version 2 if it is not in float32, and version 1 otherwise."""
LEARNS, MIXES, BYTES = 1, 2, 4
"""Parts of the kind of a file."""
KINDS = (0, LEARNS, MIXES, LEARNS + MIXES, BYTES, BYTES + LEARNS, BYTES + LEARNS + MIXES)
PRECISIONS: tuple[Precision, ...] = ("float32", "bf16")
Mode: TypeAlias = Literal["network", "counted", "stored", "adaptive"]
MODES: tuple[Mode, ...] = ("network", "counted", "stored", "adaptive")


@dataclass(frozen=True)
class Container:
    """The contents of a compressed file."""

    mode: Mode
    identity: bytes
    """Identity of the model, 8 bytes."""
    check: bytes
    """Hash of the original, 16 bytes."""
    length: int
    """Length of the original in bytes."""
    tokens: int
    name: str
    """File name of the original."""
    run: str
    """Path of the run, relative to the file; empty if the model is embedded."""
    model: bytes
    """The embedded model, or empty."""
    payload: bytes
    precision: Precision = "float32"
    """The precision of the model; decompression uses it on any machine."""
    learning: Learning | None = None
    """How the model learns while reading; None: it does not."""
    mixture: bool = False
    """Whether the probabilities are those of the model's mixture with n-grams."""
    hidden: int = 0
    """With the mode "adaptive" and without a model: hidden units of the network that starts from nothing; 0: counts only."""

    @property
    def needs_model(self) -> bool:
        """Whether decompression needs the model that it was compressed with."""
        return self.mode != "stored" and (self.mode != "adaptive" or self.learning is not None)

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        parts = [MARK, self._version(), bytes([MODES.index(self.mode)]), self.identity, self.check]
        parts += [_number(self.length), _number(self.tokens)]
        for field in (self.name.encode(*UTF8), self.run.encode(*UTF8), self.model):
            parts += [_number(len(field)), field]
        content = b"".join([*parts, self.payload])
        return content + zlib.crc32(content).to_bytes(4, "big")

    def _version(self) -> bytes:
        """Return the lowest version that can hold the container, with the fields that it has more than version 1."""
        precision = PRECISIONS.index(self.precision)
        kind = LEARNS * (self.learning is not None) + MIXES * self.mixture + BYTES * (self.mode == "adaptive")
        if not kind:
            return bytes([2, precision]) if precision else bytes([1])
        start = bytes([3, precision, kind])
        if self.learning is None:
            return start + (_number(self.hidden) if kind == BYTES else b"")
        optimiser = self.learning.optimiser.encode()
        parts = [_number(self.learning.learn_segment), struct.pack("<d", self.learning.learn_rate)]
        return b"".join([start, *parts, _number(len(optimiser)), optimiser])

    @staticmethod
    def from_bytes(content: bytes) -> "Container":
        """Parse the content of a file; raise FileError if it has another format, a later version, or is damaged."""
        if not content.startswith(MARK):
            raise FileError("not a file of unspool compress: its first bytes differ")
        if content[len(MARK) : len(MARK) + 1] > bytes([VERSION]):
            raise FileError(
                f"format version {content[len(MARK)]}; this unspool reads up to {VERSION}: install a later one"
            )
        if zlib.crc32(content[:-4]).to_bytes(4, "big") != content[-4:]:
            raise FileError(DAMAGED)
        try:
            found = _read(_Fields(content[:-4], len(MARK)))
        except (IndexError, UnicodeDecodeError) as error:
            raise FileError(DAMAGED) from error
        _check_adaptive(found)
        if found.tokens > found.length + 1:  # every token has at least one byte, except an empty last one
            raise FileError(
                f"damaged or manipulated: {found.tokens:,} tokens in {found.length:,} bytes; restore it from a copy"
            )
        needed = NEEDED * found.length + (
            memory_of(found.length, found.hidden) if found.mode == "adaptive" else 0
        )
        if needed > (free := available()):
            raise FileError(
                f"the header gives {found.length:,} bytes as the original size, for which {needed:,} bytes of memory are needed, and "
                f"{free:,} are free: decompress it on a machine with more memory, or restore it from a copy if it was smaller"
            )
        return found


NEEDED = 16
"""Bytes of memory per decompressed byte. The compression ratio has no bound, so the claimed length is checked against free
memory before decoding starts."""
UTF8 = ("utf-8", "surrogateescape")
DAMAGED = "damaged or cut short: its CRC-32 does not match; restore it from a copy"


def _read(fields: "_Fields") -> Container:
    version = fields.take(1)[0]
    number = 0 if version < 2 else fields.take(1)[0]
    if number >= len(PRECISIONS):
        raise FileError(
            f"number {number} as the precision; this unspool reads up to {len(PRECISIONS) - 1}: install a later one"
        )
    precision, how = PRECISIONS[number], 0 if version < 3 else fields.take(1)[0]
    if how not in KINDS:
        raise FileError(
            f"number {how} as the kind of model; this unspool reads up to {KINDS[-1]}: install a later one"
        )
    learning = _read_learning(fields) if how & LEARNS else None
    hidden = fields.number() if how == BYTES else 0
    mode = MODES[fields.take(1)[0]]
    if (mode == "adaptive") != (how >= BYTES):
        raise IndexError("a mode of another kind")
    identity, check, length, tokens = fields.take(8), fields.take(16), fields.number(), fields.number()
    name, run = (fields.take(fields.number()).decode(*UTF8) for _ in range(2))
    model = fields.take(fields.number())
    return Container(
        mode,
        identity,
        check,
        length,
        tokens,
        name,
        run,
        model,
        fields.rest(),
        precision,
        learning,
        bool(how & MIXES),
        hidden,
    )


def _check_adaptive(container: Container) -> None:
    """Raise for a network or a length that this version cannot have written."""
    if container.mode != "adaptive":
        return
    if container.hidden > LARGEST or container.length > LONGEST:
        raise FileError(
            f"a network of {container.hidden:,} hidden units for {container.length:,} bytes; this unspool reads up to {LARGEST:,} "
            f"and {LONGEST:,}: install a later one, or restore the file from a copy if it is damaged"
        )


def _read_learning(fields: "_Fields") -> Learning:
    segment, (rate,) = fields.number(), struct.unpack("<d", fields.take(8))
    try:
        return Learning(rate, segment, fields.take(fields.number()).decode())
    except InputError as error:
        raise FileError(f"how its model learns: {error}; install a later unspool, or restore it") from error


class _Fields:
    """Reads fields from bytes in order."""

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
    """Return an integer as bytes of seven bits.

    >>> _number(300)
    b'\\xac\\x02'
    """
    low = bytearray()
    while value > 127:
        low.append(value & 127 | 128)
        value >>= 7
    return bytes([*low, value])
