"""Sub-word tokens learned by byte-pair encoding, through Hugging Face ``tokenizers`` (extra ``subword``).

``subword:4000`` learns that many pieces from the training text; ``subword:FILE`` reads them from a
tokenizer.json. Only byte-level pieces are accepted: they are lossless and never unknown.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self

from unspool.data.tokens.base import NOT_UTF8, Tokenizer, decode_utf8
from unspool.errors import FileError, InputError, MissingExtra

LONGEST = 1 << 20
FEWEST, MOST = 257, 1_000_000
"""Limits of the number of learned pieces. The library allocates all of them and aborts the process if memory is short."""


class SubwordTokenizer(Tokenizer):
    """Byte-pair pieces; if made from a number of pieces, `learn` must come before `encode_text`."""

    kind = "subword:"
    byte_level = True

    def __init__(self, kind: str, model: str | None = None) -> None:
        self.kind = self.summary = kind
        self._library = _import_tokenizers()
        self._pieces: Any = None
        size = kind.removeprefix("subword:")
        if model is not None:
            self._pieces = _from_json(self._library, model)
        elif not size.isdecimal():
            self._pieces = self._load(size)
        elif len(size) > 9 or not FEWEST <= int(size) <= MOST:
            raise InputError(
                f"tokens {kind[:40]}: expected {FEWEST} to {MOST:,} pieces: byte-level pieces start at {FEWEST}"
            )

    @classmethod
    def make(cls, kind: str, newlines: bool, model: str | None) -> Self:
        """Return the tokenizer with the learned pieces, if there are any."""
        return cls(kind, model)

    def to_json(self) -> dict[str, Any]:
        """Return the kind and the learned pieces."""
        return {"kind": self.kind, "model": self.model}

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the pieces as JSON: the library's module cannot be pickled."""
        return SubwordTokenizer, (self.kind, self.model)

    @property
    def model(self) -> str | None:
        """The learned pieces as JSON; None before `learn`."""
        return None if self._pieces is None else str(self._pieces.to_str())

    @property
    def needs_learning(self) -> bool:
        """Whether there are no pieces yet."""
        return self._pieces is None

    def learn(self, texts: Iterable[str]) -> None:
        """Learn the pieces from a text in blocks."""
        library = self._library
        pieces = library.Tokenizer(library.models.BPE())
        pieces.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = library.trainers.BpeTrainer(
            vocab_size=int(self.kind.removeprefix("subword:")),
            initial_alphabet=sorted(library.pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        pieces.train_from_iterator(texts, trainer=trainer)
        self._pieces = pieces

    def encode_text(self, text: str) -> list[str]:
        """Split a text into pieces, written in the byte-level alphabet (Ġ is a blank)."""
        if self._pieces is None:
            raise InputError(
                f"tokens {self.kind}: the pieces have not been learned yet; prepare a corpus first"
            )
        return list(self._pieces.encode(text, add_special_tokens=False).tokens)

    def decode_bytes(self, tokens: Iterable[str]) -> bytes:
        """Join pieces, and single bytes that are not UTF-8, to bytes."""
        value = _byte_of_sign()
        return b"".join(
            token.encode("utf-8", "surrogateescape")
            if NOT_UTF8.fullmatch(token)
            else bytes(map(value.__getitem__, token))
            for token in tokens
        )

    def decode_stream(self, tokens: Iterable[str]) -> Iterator[str]:
        """Yield the characters that each piece completes."""
        return decode_utf8(self.decode_bytes([token]) for token in tokens)

    def safe_cut(self, text: str) -> int:
        """Return the position of the last single blank between two words."""
        for i in range(len(text) - 2, 0, -1):
            if text[i] == " " and not text[i - 1].isspace() and not text[i + 1].isspace():
                return i
        return 0 if len(text) < LONGEST else len(text)

    def width(self, token: str) -> tuple[int, int]:
        """Return the number of characters that begin in the piece, and its bytes."""
        value = _byte_of_sign()
        return sum(not 0x80 <= value[sign] < 0xC0 for sign in token), len(token)

    def alphabet(self) -> Sequence[str]:
        """Return all pieces in the order in which they were learned."""
        by_number = sorted(self._pieces.get_vocab().items(), key=lambda item: item[1])
        return [piece for piece, _ in by_number]

    def _load(self, path: str) -> Any:
        if not Path(path).is_file():
            raise FileError(
                f"tokens subword:{path}: no such file; expected a tokenizer.json or a number of pieces"
            )
        try:
            pieces = self._library.Tokenizer.from_file(path)
        except Exception as error:  # the library raises nothing narrower
            raise FileError(f"{path}: not a tokenizer.json: {error}") from error
        if not isinstance(pieces.pre_tokenizer, self._library.pre_tokenizers.ByteLevel):
            raise InputError(
                f"{path}: its pieces are not byte-level, so text could not be restored; use byte-level pieces"
            )
        return pieces


def _from_json(library: Any, model: str) -> Any:
    """Return the pieces of a run's file; raise FileError if they are not byte-level."""
    try:
        pieces = library.Tokenizer.from_str(model)
        wrong = set("".join(pieces.get_vocab())) - set(_byte_of_sign())
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # the library raises nothing narrower, and sometimes panics
        raise FileError(f"damaged or manipulated: the sub-words cannot be read: {error}") from error
    if wrong or not isinstance(pieces.pre_tokenizer, library.pre_tokenizers.ByteLevel):
        raise FileError("damaged or manipulated: the sub-words are not byte-level pieces")
    return pieces


def leading(texts: Iterable[str], characters: int) -> Iterator[str]:
    """Yield the first `characters` characters of a text in blocks."""
    for text in texts:
        if characters <= 0:
            return
        yield text[:characters]
        characters -= len(text)


@cache
def _byte_of_sign() -> dict[str, int]:
    """Return the byte of each sign of the byte-level alphabet: printable bytes are themselves, others begin at U+0100."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(plain)]
    return {chr(byte): byte for byte in plain} | {chr(256 + i): byte for i, byte in enumerate(others)}


def _import_tokenizers() -> Any:
    try:
        import tokenizers
        import tokenizers.models
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ImportError as error:
        raise MissingExtra("tokens subword needs tokenizers: pip install unspool[subword]") from error
    return tokenizers
