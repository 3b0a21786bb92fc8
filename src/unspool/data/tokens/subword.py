"""Sub-words: pieces learned by byte-pair encoding, through Hugging Face ``tokenizers`` (extra ``subword``).

``subword:4000`` learns that many pieces from the training text; ``subword:FILE`` takes them from a
tokenizer.json. Only byte-level pieces are accepted: they give every text back as it was, and none is ever
unknown.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from unspool.data.tokens.base import FirstAppearance, Indexer, spell_bytes
from unspool.errors import FileError, InputError, MissingExtra

LONGEST = 1 << 20
FEWEST, MOST = 257, 1_000_000
"""How many pieces can be learned. The library reserves memory for all of them, and aborts the process where there is none."""


class SubwordTokenizer:
    """Byte-pair pieces. One made from a number of pieces must ``learn`` before it can cut text."""

    lossless = True

    def __init__(self, kind: str, model: str | None = None) -> None:
        self.kind = kind
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the pieces as JSON: the library's module cannot be pickled."""
        return SubwordTokenizer, (self.kind, self.model)

    @property
    def model(self) -> str | None:
        """The learned pieces as JSON, or none if nothing has been learned yet."""
        return None if self._pieces is None else str(self._pieces.to_str())

    def learn(self, texts: Iterable[str]) -> None:
        """Learn the pieces from a text that comes in blocks."""
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
        """Cut a text into pieces, written in the alphabet of byte-level pieces (Ġ is a blank)."""
        if self._pieces is None:
            raise InputError(
                f"tokens {self.kind}: the pieces have not been learned yet; prepare a corpus first"
            )
        return list(self._pieces.encode(text, add_special_tokens=False).tokens)

    def decode(self, tokens: Iterable[str]) -> str:
        """Put pieces together to a text; what is not UTF-8 becomes U+FFFD."""
        return "".join(self.decode_stream(tokens))

    def decode_bytes(self, tokens: Iterable[str]) -> bytes:
        """Put pieces together to bytes, whatever they are."""
        return bytes(map(_byte_of_sign().__getitem__, "".join(tokens)))

    def decode_stream(self, tokens: Iterable[str]) -> Iterator[str]:
        """Give the characters that each piece completes."""
        return spell_bytes(self.decode_bytes([token]) for token in tokens)

    def safe_cut(self, text: str) -> int:
        """Cut before the last blank that stands alone between two words."""
        for i in range(len(text) - 2, 0, -1):
            if text[i] == " " and not text[i - 1].isspace() and not text[i + 1].isspace():
                return i
        return 0 if len(text) < LONGEST else len(text)

    def width(self, token: str) -> tuple[int, int]:
        """Count the bytes, and the characters that begin among them."""
        value = _byte_of_sign()
        return sum(not 0x80 <= value[sign] < 0xC0 for sign in token), len(token)

    def alphabet(self) -> Sequence[str]:
        """Know all pieces beforehand, in the order in which they were learned."""
        by_number = sorted(self._pieces.get_vocab().items(), key=lambda item: item[1])
        return [piece for piece, _ in by_number]

    def indexer(self) -> Indexer:
        """Number a piece by its first appearance."""
        return FirstAppearance(self.encode_text)

    def _load(self, path: str) -> Any:
        if not Path(path).is_file():
            raise FileError(
                f"tokens subword:{path}: no such file; give a tokenizer.json or a number of pieces"
            )
        try:
            pieces = self._library.Tokenizer.from_file(path)
        except Exception as error:  # the library raises nothing narrower
            raise FileError(f"{path}: not a tokenizer.json: {error}") from error
        if not isinstance(pieces.pre_tokenizer, self._library.pre_tokenizers.ByteLevel):
            raise InputError(f"{path}: its pieces are not byte-level, so text would not come back as it was")
        return pieces


def _from_json(library: Any, model: str) -> Any:
    """Make the pieces that a file holds; refuse pieces that are not made of bytes."""
    try:
        pieces = library.Tokenizer.from_str(model)
        wrong = set("".join(pieces.get_vocab())) - set(_byte_of_sign())
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # the library raises nothing narrower, and sometimes panics
        raise FileError(f"damaged or crafted: the sub-words cannot be read: {error}") from error
    if wrong or not isinstance(pieces.pre_tokenizer, library.pre_tokenizers.ByteLevel):
        raise FileError("damaged or crafted: the sub-words are not byte-level pieces")
    return pieces


def leading(texts: Iterable[str], characters: int) -> Iterator[str]:
    """Give the first so many characters of a text that comes in blocks."""
    for text in texts:
        if characters <= 0:
            return
        yield text[:characters]
        characters -= len(text)


@cache
def _byte_of_sign() -> dict[str, int]:
    """Undo the alphabet of byte-level pieces: printable bytes are themselves, others follow from U+0100."""
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
