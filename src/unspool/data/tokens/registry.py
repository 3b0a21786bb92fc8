"""Registry of tokenizers by kind: a new one is a class in a file of this package and one entry in `TOKENIZERS`.

    kind          a token is                                    decode(encode_text(text))
    char          a Unicode code point                          text
    byte          a byte of its UTF-8, written as U+00 … U+FF   text
    word          a word, a punctuation mark or a line end      a normal form, see ``words``
    space         a string without blanks, or a line end        one blank between tokens
    subword:…     a piece learned by byte-pair encoding         text  (extra ``subword``)
    jieba         a Chinese word                                text  (extra ``chinese``)

>>> make_tokenizer("word").encode_text("Time travels.")
['Time', 'travels', '.']
>>> make_tokenizer("word", newlines=False).to_json()
{'kind': 'word', 'newlines': False}
>>> make_tokenizer(**_).encode_text("a\\nb")
['a', 'b']
>>> make_tokenizer("syllable")
Traceback (most recent call last):
unspool.errors.InputError: tokens: unknown kind 'syllable'; expected char, word, byte, space, jieba, subword:…
"""

from dataclasses import dataclass

from unspool.data.tokens.base import Indexer, Tokenizer
from unspool.data.tokens.characters import ByteTokenizer, CharTokenizer
from unspool.data.tokens.jieba import JiebaTokenizer
from unspool.data.tokens.subword import SubwordTokenizer
from unspool.data.tokens.words import SpaceTokenizer, WordTokenizer
from unspool.errors import InputError

__all__ = ["Indexer", "Tokenizer", "TokenizerFields", "make_tokenizer", "tokenizer_class"]

TOKENIZERS: dict[str, type[Tokenizer]] = {
    each.kind: each
    for each in (
        CharTokenizer, WordTokenizer, ByteTokenizer, SpaceTokenizer, JiebaTokenizer, SubwordTokenizer,
    )
}  # fmt: skip


@dataclass(frozen=True)
class TokenizerFields:
    """The result of `Tokenizer.to_json` as read from a file."""

    kind: str
    newlines: bool = True
    model: str | None = None

    def make(self) -> Tokenizer:
        """Return the tokenizer."""
        return make_tokenizer(self.kind, newlines=self.newlines, model=self.model)


def tokenizer_class(kind: str) -> type[Tokenizer]:
    """Return the class of a kind; raise InputError with the list of kinds if it is unknown."""
    name, colon, _ = kind.partition(":")
    if (found := TOKENIZERS.get(name + colon)) is None:
        kinds = ", ".join(f"{name}…" if name.endswith(":") else name for name in TOKENIZERS)
        raise InputError(f"tokens: unknown kind {kind!r}; expected {kinds}")
    return found


def make_tokenizer(kind: str, *, newlines: bool = True, model: str | None = None) -> Tokenizer:
    """Return the tokenizer of a kind.

    Words leave line ends out if ``newlines`` is false. ``model`` holds learned pieces, as `Tokenizer.to_json` returns them.
    """
    return tokenizer_class(kind).make(kind, newlines, model)
