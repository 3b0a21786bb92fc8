"""Tokens that are characters or bytes; both are lossless.

>>> CharTokenizer().encode_text("añ")
['a', 'ñ']
>>> ByteTokenizer().encode_text("ñ")
['Ã', '±']
>>> ByteTokenizer().decode(['Ã', '±'])
'ñ'
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from unspool.data.tokens.base import Indexer, Tokenizer, decode_utf8
from unspool.kernels.arrays import Codes


def code_points(text: str) -> Codes:
    """Return the code points of a text, as uint16 if all fit, otherwise as uint32.

    >>> code_points("aé")
    array([ 97, 233], dtype=uint16)
    """
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2")
    if len(units) == len(text):
        return units
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


class CharTokenizer(Tokenizer):
    """One token per Unicode code point."""

    kind = "char"
    summary = "one for each character"
    one_symbol = True

    def encode_text(self, text: str) -> list[str]:
        """Return the code points of a text."""
        return list(text)

    def safe_cut(self, text: str) -> int:
        """Return the end of the text: any position will do."""
        return len(text)

    def indexer(self) -> Indexer:
        """Return an indexer that numbers characters by code point."""
        return CodePoints()


class ByteTokenizer(Tokenizer):
    """One token per byte of the UTF-8 text; every byte is in the vocabulary."""

    kind = "byte"
    summary = "one for each byte"
    byte_level = True
    one_symbol = True

    def encode_text(self, text: str) -> list[str]:
        """Return the bytes of a text, each as the character with that code."""
        return self.encode_bytes(text.encode("utf-8", "surrogatepass"))

    def encode_bytes(self, data: bytes) -> list[str]:
        """Return each byte as the character with that code."""
        return list(data.decode("latin-1"))

    def decode_bytes(self, tokens: Iterable[str]) -> bytes:
        """Return the bytes; reserved tokens are written out."""
        return "".join(tokens).encode("latin-1")

    def decode_stream(self, tokens: Iterable[str]) -> Iterator[str]:
        """Yield each character with its last byte."""
        return decode_utf8(token.encode("latin-1") for token in tokens)

    def safe_cut(self, text: str) -> int:
        """Return the end of the text: any position will do."""
        return len(text)

    def width(self, token: str) -> tuple[int, int]:
        """Return one byte, and one character unless the byte continues one."""
        return (0 if 0x80 <= ord(token[0]) < 0xC0 else 1), 1

    def alphabet(self) -> Sequence[str]:
        """Return all 256 bytes."""
        return [chr(byte) for byte in range(256)]

    def indexer(self) -> Indexer:
        """Return an indexer that numbers bytes by value."""
        return Bytes()


class CodePoints:
    """Provisional ids that are code points."""

    by_appearance = False

    def feed(self, text: str) -> Codes:
        """Return the code points of a text."""
        return code_points(text)

    def token(self, index: int) -> str:
        """Return the character of a code point."""
        return chr(index)


class Bytes(CodePoints):
    """Provisional ids that are bytes; a byte is written as the character with that code."""

    def feed(self, text: str) -> Codes:
        """Return the bytes of the UTF-8 text."""
        return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
