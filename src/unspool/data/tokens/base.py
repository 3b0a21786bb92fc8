"""What cuts text into tokens must be able to do.

Preparing a corpus does not make a list of tokens. An *indexer* turns text straight into provisional ids
(code points, bytes, or words by first appearance), and the vocabulary translates those afterwards.
"""

import codecs
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Protocol

import numpy as np

from unspool.kernels.arrays import Codes


class Indexer(Protocol):
    """Turns text into provisional ids, and knows which token each of them is."""

    @property
    def by_appearance(self) -> bool:
        """Whether provisional ids rise in the order in which tokens first appear."""

    def feed(self, text: str) -> Codes:
        """Give the provisional ids of a text that ends where a token ends."""

    def token(self, index: int) -> str:
        """Name the token of a provisional id."""


class Tokenizer(Protocol):
    """Cuts text into tokens and puts tokens together again."""

    @property
    def kind(self) -> str:
        """What ``make_tokenizer`` must be given to make it again."""

    @property
    def lossless(self) -> bool:
        """Whether every character of the text is in its tokens."""

    def encode_text(self, text: str) -> list[str]:
        """Cut a text into tokens."""

    def decode(self, tokens: Iterable[str]) -> str:
        """Put tokens together to a text."""

    def decode_stream(self, tokens: Iterable[str]) -> Iterator[str]:
        """Give the same text piece by piece: one for each token as it comes, and a last one at the end.

        A piece is empty where its token is the beginning of a character that is not complete yet.
        """

    def safe_cut(self, text: str) -> int:
        """Give the last place where the text may be cut without changing its tokens (0: none)."""

    def width(self, token: str) -> tuple[int, int]:
        """Say how many characters and how many UTF-8 bytes of the text a token stands for."""

    def alphabet(self) -> Sequence[str]:
        """Give the tokens that are known beforehand, whatever the text: the 256 bytes, or none."""

    def indexer(self) -> Indexer:
        """Start to number tokens."""


class FirstAppearance:
    """Provisional ids in the order in which tokens first appear, for a tokenizer that makes lists."""

    by_appearance = True

    def __init__(self, encode_text: Callable[[str], list[str]]) -> None:
        self._encode = encode_text
        self._index: defaultdict[str, int] = defaultdict(count().__next__)
        self._tokens: list[str] = []

    def feed(self, text: str) -> Codes:
        """Number the tokens of the text."""
        tokens = self._encode(text)
        return np.fromiter(map(self._index.__getitem__, tokens), np.uint32, len(tokens))

    def token(self, index: int) -> str:
        """Give the token that appeared as number ``index``."""
        if index >= len(self._tokens):
            self._tokens = list(self._index)
        return self._tokens[index]


def spell_bytes(pieces: Iterable[bytes]) -> Iterator[str]:
    """Decode UTF-8 as it comes; a character cut in two waits for its other half, what is no UTF-8 is U+FFFD.

    >>> list(spell_bytes([b"\\xe6", b"\\x97\\xb6a", b"\\xe6"]))
    ['', '时a', '', '\ufffd']
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)
