"""Base classes of tokenizers and indexers.

Preparing a corpus does not build a list of tokens. An *indexer* maps text directly to provisional ids (code points,
bytes, or numbers by first appearance); the vocabulary maps these to ids afterwards.
"""

import codecs
import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, Protocol, Self

import numpy as np

from unspool.kernels.arrays import Codes

NOT_UTF8 = re.compile("([\udc80-\udcff])")
"""A character that stands for a byte that is not UTF-8 (surrogateescape)."""


class Indexer(Protocol):
    """Maps text to provisional ids, and provisional ids to tokens."""

    @property
    def by_appearance(self) -> bool:
        """Whether provisional ids are numbered by the first appearance of their tokens."""

    def feed(self, text: str) -> Codes:
        """Return the provisional ids of a text that ends at the end of a token."""

    def token(self, index: int) -> str:
        """Return the token of a provisional id."""


class Tokenizer(ABC):
    """Splits text into tokens and joins tokens to text. Each subclass has one line in `registry`."""

    kind: str
    """The argument of `make_tokenizer`; in a class that takes an argument, the part up to the colon."""
    summary: str
    """A few words for the report of a run."""
    lossless = True
    """Whether every character of the text is part of a token."""
    byte_level = False
    """Whether tokens stand for bytes, which need not be valid UTF-8 when joined."""
    one_symbol = False
    """Whether every token is one character, or one byte if `byte_level`."""

    @classmethod
    def make(cls, kind: str, newlines: bool, model: str | None) -> Self:
        """Return the tokenizer that `make_tokenizer` was asked for."""
        return cls()

    def to_json(self) -> dict[str, Any]:
        """Return the arguments of `make_tokenizer` for this tokenizer, ready for JSON."""
        return {"kind": self.kind}

    @property
    def reads_bytes(self) -> bool:
        """Whether the bytes of a text are its tokens, without decoding."""
        return self.byte_level and self.one_symbol

    @property
    def needs_learning(self) -> bool:
        """Whether `learn` must be called before text can be split."""
        return False

    def learn(self, texts: Iterable[str]) -> None:
        """Learn the tokens from a text in blocks; only called if `needs_learning`."""
        raise NotImplementedError

    @property
    def line_joint(self) -> str:
        """The string that cleaning puts between two lines: empty for single characters, otherwise a blank."""
        return "" if self.one_symbol else " "

    @abstractmethod
    def encode_text(self, text: str) -> list[str]:
        """Split a text into tokens."""

    def encode_bytes(self, data: bytes) -> list[str]:
        """Split any bytes into tokens; each byte that is not UTF-8 becomes one token, U+DC80 … U+DCFF."""
        pieces = NOT_UTF8.split(data.decode("utf-8", "surrogateescape"))
        tokens = list[str]()
        for number, piece in enumerate(pieces):
            tokens += [piece] if number % 2 else self.encode_text(piece)
        return tokens

    def decode(self, tokens: Iterable[str]) -> str:
        """Join tokens to a text; bytes that are not UTF-8 become U+FFFD."""
        return "".join(self.decode_stream(tokens))

    def decode_stream(self, tokens: Iterable[str]) -> Iterator[str]:
        """Yield the text of `decode` in pieces: one per token, and a last one at the end.

        A piece is empty if its token leaves a character incomplete.
        """
        yield from tokens
        yield ""

    def decode_bytes(self, tokens: Iterable[str]) -> bytes:
        """Join the tokens of `encode_bytes` to the bytes."""
        return "".join(tokens).encode("utf-8", "surrogateescape")

    @abstractmethod
    def safe_cut(self, text: str) -> int:
        """Return the last position at which the text can be cut without changing its tokens; 0 if there is none."""

    def end_of(self, text: str, count: int) -> int:
        """Return the position at which the first `count` tokens of a text end; only needed if not `lossless`."""
        raise NotImplementedError

    def width(self, token: str) -> tuple[int, int]:
        """Return how many characters and how many UTF-8 bytes of the text a token stands for."""
        return len(token), len(token.encode("utf-8", "surrogatepass"))

    def alphabet(self) -> Sequence[str]:
        """Return the tokens that every vocabulary contains, for any text."""
        return ()

    def indexer(self) -> Indexer:
        """Return a new indexer."""
        return FirstAppearance(self.encode_text)


class FirstAppearance:
    """Numbers tokens by first appearance, for tokenizers that return lists."""

    by_appearance = True

    def __init__(self, encode_text: Callable[[str], list[str]]) -> None:
        self._encode = encode_text
        self._index: defaultdict[str, int] = defaultdict(count().__next__)
        self._tokens: list[str] = []

    def feed(self, text: str) -> Codes:
        """Return the numbers of the tokens of a text."""
        tokens = self._encode(text)
        return np.fromiter(map(self._index.__getitem__, tokens), np.uint32, len(tokens))

    def token(self, index: int) -> str:
        """Return the token of a number."""
        if index >= len(self._tokens):
            self._tokens = list(self._index)
        return self._tokens[index]


def decode_utf8(pieces: Iterable[bytes]) -> Iterator[str]:
    """Decode UTF-8 piece by piece; incomplete characters wait for the next piece, invalid bytes become U+FFFD.

    >>> list(decode_utf8([b"\\xe6", b"\\x97\\xb6a", b"\\xe6"]))
    ['', '时a', '', '\ufffd']
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)
