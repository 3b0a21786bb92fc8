"""Text to tokens and back, by the name of the kind.

    kind          a token is                                    decode(encode_text(text))
    char          a Unicode code point                          text, always
    byte          a byte of its UTF-8, written as U+00 … U+FF   text, always
    word          a word, a punctuation mark or a line end      a normal form, see ``words``
    space         what stands between blanks, or a line end     one blank between tokens
    subword:…     a piece learned by byte-pair encoding         text, always  (extra ``subword``)
    jieba         a Chinese word                                text, always  (extra ``chinese``)

>>> make_tokenizer("word").encode_text("Time travels.")
['Time', 'travels', '.']
>>> make_tokenizer("syllable")
Traceback (most recent call last):
unspool.errors.InputError: tokens: unknown kind 'syllable'; expected char, word, byte, space, jieba, subword:…
"""

from dataclasses import dataclass
from typing import Any

from unspool.data.tokens.base import Indexer, Tokenizer
from unspool.data.tokens.characters import ByteTokenizer, CharTokenizer
from unspool.data.tokens.jieba import JiebaTokenizer
from unspool.data.tokens.subword import SubwordTokenizer
from unspool.data.tokens.words import SpaceTokenizer, WordTokenizer
from unspool.errors import InputError

__all__ = ["Described", "Indexer", "Tokenizer", "describe", "make_tokenizer"]


@dataclass(frozen=True)
class Described:
    """The fields that `describe` writes, as a file holds them."""

    kind: str
    newlines: bool = True
    model: str | None = None

    def make(self) -> Tokenizer:
        """Make the tokenizer again."""
        return make_tokenizer(self.kind, newlines=self.newlines, model=self.model)


def make_tokenizer(kind: str, *, newlines: bool = True, model: str | None = None) -> Tokenizer:
    """Make the tokenizer of that kind.

    Words leave line ends out if ``newlines`` is false. ``model`` is what ``describe`` saved of learned
    pieces.
    """
    if kind == "char":
        return CharTokenizer()
    if kind == "byte":
        return ByteTokenizer()
    if kind == "word":
        return WordTokenizer(newlines)
    if kind == "space":
        return SpaceTokenizer(newlines)
    if kind == "jieba":
        return JiebaTokenizer()
    if kind.startswith("subword:"):
        return SubwordTokenizer(kind, model)
    kinds = "char, word, byte, space, jieba, subword:…"
    raise InputError(f"tokens: unknown kind {kind!r}; expected {kinds}")


def describe(tokenizer: Tokenizer) -> dict[str, Any]:
    """Give what ``make_tokenizer`` needs to make this tokenizer again, ready for JSON.

    >>> describe(make_tokenizer("word", newlines=False))
    {'kind': 'word', 'newlines': False}
    >>> make_tokenizer(**_).encode_text("a\\nb")
    ['a', 'b']
    """
    if isinstance(tokenizer, SubwordTokenizer):
        return {"kind": tokenizer.kind, "model": tokenizer.model}
    if isinstance(tokenizer, SpaceTokenizer):
        return {"kind": tokenizer.kind, "newlines": tokenizer.newlines}
    return {"kind": tokenizer.kind}
