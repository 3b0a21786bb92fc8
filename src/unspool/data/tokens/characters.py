"""The two smallest tokens: characters and bytes. Both give every text back as it was.

>>> CharTokenizer().encode_text("añ")
['a', 'ñ']
>>> ByteTokenizer().encode_text("ñ")
['Ã', '±']
>>> ByteTokenizer().decode(['Ã', '±'])
'ñ'
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from unspool.data.tokens.base import Indexer, spell_bytes
from unspool.kernels.arrays import Codes


def code_points(text: str) -> Codes:
    """Give the code points of a text: two bytes each where that is enough, otherwise four.

    >>> code_points("aé")
    array([ 97, 233], dtype=uint16)
    """
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2")
    if len(units) == len(text):
        return units
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


class CharTokenizer:
    """One token for every Unicode code point."""

    kind = "char"
    lossless = True

    def encode_text(self, text: str) -> list[str]:
        """Cut a text into its code points."""
        return list(text)

    def decode(self, tokens: Iterable[str]) -> str:
        """Put code points together."""
        return "".join(tokens)

    def decode_stream(self, tokens: Iterable[str]) -> Iterator[str]:
        """Give each code point as it comes."""
        yield from tokens
        yield ""

    def safe_cut(self, text: str) -> int:
        """Cut anywhere."""
        return len(text)

    def width(self, token: str) -> tuple[int, int]:
        """Count one character and its bytes (a token like ``<unk>`` counts as it is written)."""
        return len(token), len(token.encode("utf-8", "surrogatepass"))

    def alphabet(self) -> Sequence[str]:
        """Know nothing beforehand."""
        return ()

    def indexer(self) -> Indexer:
        """Number a character by its code point."""
        return CodePoints()


class ByteTokenizer:
    """One token for every byte of the UTF-8 text; none is ever unknown."""

    kind = "byte"
    lossless = True

    def encode_text(self, text: str) -> list[str]:
        """Cut a text into its bytes, each written as the character with that number."""
        return list(text.encode("utf-8", "surrogatepass").decode("latin-1"))

    def decode(self, tokens: Iterable[str]) -> str:
        """Put bytes together to a text; what is not UTF-8 becomes U+FFFD."""
        return self.decode_bytes(tokens).decode("utf-8", "replace")

    def decode_bytes(self, tokens: Iterable[str]) -> bytes:
        """Put bytes together, whatever they are; reserved tokens are spelled out."""
        return "".join(tokens).encode("latin-1")

    def decode_stream(self, tokens: Iterable[str]) -> Iterator[str]:
        """Give each character when its last byte comes."""
        return spell_bytes(token.encode("latin-1") for token in tokens)

    def safe_cut(self, text: str) -> int:
        """Cut anywhere."""
        return len(text)

    def width(self, token: str) -> tuple[int, int]:
        """Count one byte, and one character unless the byte continues one."""
        return (0 if 0x80 <= ord(token[0]) < 0xC0 else 1), 1

    def alphabet(self) -> Sequence[str]:
        """Know all bytes beforehand."""
        return [chr(byte) for byte in range(256)]

    def indexer(self) -> Indexer:
        """Number a byte by its value."""
        return Bytes()


class CodePoints:
    """Provisional ids that are code points."""

    by_appearance = False

    def feed(self, text: str) -> Codes:
        """Give the code points."""
        return code_points(text)

    def token(self, index: int) -> str:
        """Give the character."""
        return chr(index)


class Bytes:
    """Provisional ids that are bytes."""

    by_appearance = False

    def feed(self, text: str) -> Codes:
        """Give the bytes of the UTF-8."""
        return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)

    def token(self, index: int) -> str:
        """Give the character that stands for the byte."""
        return chr(index)
