"""Tokens that are words and punctuation marks, for any language.

Blanks are not tokens; a line end is one unless `newlines` is false. Decoding inserts blanks and returns the *normal form*
of a text:

- one blank between two tokens, except:
- none next to a line end, and none between Han and other unspaced characters or beside their punctuation,
- none before  . , ; : ! ? ) ] } %  and their like, none after  ( [ {  and their like, none around - / – —,
- straight quotation marks open and close in turn; each line starts with none open.

The normal form has the same tokens as the text, and is its own normal form.

>>> words = WordTokenizer()
>>> words.encode_text("'Is it   so?' said he -- twice.")
["'", 'Is', 'it', 'so', '?', "'", 'said', 'he', '-', '-', 'twice', '.']
>>> words.decode(_)
"'Is it so?' said he--twice."
>>> words.decode(words.encode_text("第一回　甄士隐。"))
'第一回甄士隐。'
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Self

import numpy as np

from unspool.data.tokens.base import Indexer, Tokenizer
from unspool.data.tokens.characters import code_points
from unspool.data.tokens.segments import EXTEND, SINGLE, class_of_each, token_spans
from unspool.data.tokens.token_index import TokenIndex
from unspool.kernels.arrays import Codes

CLOSING = frozenset(".,;:!?)]}%’”»…")
OPENING = frozenset("([{‘“«¿¡")
GLUE = frozenset("-/–—‐‑")
QUOTES = frozenset("'\"")
WIDE = re.compile("[\u3000-\u303f\ufe30-\ufe4f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]")


class SpaceTokenizer(Tokenizer):
    """Tokens separated by blanks, for text that is already tokenized; a line end is a token too.

    >>> SpaceTokenizer().encode_text("role @-@ playing <unk> \\n")
    ['role', '@-@', 'playing', '<unk>', '\\n']
    """

    kind = "space"
    summary = "one for whatever stands between blanks"
    lossless = False
    _blanks_only = True

    def __init__(self, newlines: bool = True) -> None:
        self.newlines = newlines

    @classmethod
    def make(cls, kind: str, newlines: bool, model: str | None) -> Self:
        """Return the tokenizer, with or without line ends."""
        return cls(newlines)

    def to_json(self) -> dict[str, Any]:
        """Return the kind, and whether line ends are tokens."""
        return {"kind": self.kind, "newlines": self.newlines}

    def encode_text(self, text: str) -> list[str]:
        """Split a text into tokens."""
        starts, ends = self.spans(code_points(text))
        return [text[i:j] for i, j in zip(starts.tolist(), ends.tolist(), strict=True)]

    def spans(self, codes: Codes) -> tuple[Codes, Codes]:
        """Return the positions at which each token starts and ends."""
        return token_spans(codes, newlines=self.newlines, blanks_only=self._blanks_only)

    def end_of(self, text: str, count: int) -> int:
        """Return the position at which the first `count` tokens of a text end."""
        return int(self.spans(code_points(text))[1][count - 1]) if count else 0

    def decode_stream(self, tokens: Iterable[str]) -> Iterator[str]:
        """Yield each token after a blank, without a blank next to a line end."""
        before = "\n"
        for token in tokens:
            yield token if "\n" in (before, token) else f" {token}"
            before = token
        yield ""

    def safe_cut(self, text: str) -> int:
        """Return the position of the last blank; in a long text without any, the start of its last token."""
        cut = max(text.rfind(" "), text.rfind("\n"))
        if cut > 0 or len(text) < 1 << 20:
            return max(cut, 0)
        return int(self.spans(code_points(text))[0][-1])

    def indexer(self) -> Indexer:
        """Return an indexer that numbers words by first appearance, without making a list of them."""
        return _Numbered(self)


class WordTokenizer(SpaceTokenizer):
    """Unicode words and punctuation marks."""

    kind = "word"
    summary = "one for each word or mark"
    _blanks_only = False

    def decode_stream(self, tokens: Iterable[str]) -> Iterator[str]:
        """Yield each token in the normal form."""
        before, open_quotes = "\n", set[str]()
        for token in tokens:
            between = "" if token == "\n" or _joined(before, token, open_quotes) else " "
            if token == "\n":
                open_quotes.clear()
            if token in QUOTES:
                open_quotes ^= {token}
            yield between + token
            before = token
        yield ""


class _Numbered:
    by_appearance = True

    def __init__(self, tokenizer: SpaceTokenizer) -> None:
        self._tokenizer = tokenizer
        self._table = TokenIndex()

    def feed(self, text: str) -> Codes:
        codes = code_points(text)
        starts, ends = self._tokenizer.spans(codes)
        return self._table.number(text, codes, starts, ends)

    def token(self, index: int) -> str:
        return self._table.tokens[index]


def _joined(before: str, token: str, open_quotes: set[str]) -> bool:
    """Return whether two tokens have no blank between them; ``open_quotes`` is the state after ``before``."""
    if before == "\n" or before in GLUE or before in OPENING or token in GLUE or token in CLOSING:
        return True
    if before in QUOTES and before in open_quotes:
        return True
    if token in QUOTES:
        return token in open_quotes
    return _unspaced(before[-1], token[0])


@lru_cache(1 << 16)
def _unspaced(last: str, first: str) -> bool:
    if WIDE.match(last) or WIDE.match(first):
        return True
    classes = class_of_each(np.array([ord(last), ord(first)], np.uint32))
    return bool(classes[0] == SINGLE and classes[1] != EXTEND)
