"""Vocabulary: a bijection of tokens and ids.

    0            <unk>: every token outside the vocabulary
    1 … r        reserved tokens, in the order given (<pad>, <bos>, <eos> …)
    r+1 …        tokens by decreasing frequency; ties by first appearance

A token is a string, a number, or a tuple of them: an n-gram. Lists and arrays nest, tuples never do. In the file a
tuple is a JSON array.

Ids do not depend on Python's hash seed. The file is JSON with the SHA-256 of its content; `load` checks it.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

from unspool.errors import FileError, InputError
from unspool.options import at_least
from unspool.storage.files import read_bytes, write_atomic
from unspool.storage.schema import parse_json, read_as

UNK = "<unk>"
FORMAT = "unspool-vocab-1"
Token: TypeAlias = Any
"""A string, a number, or a tuple of tokens."""


class _VocabContent(TypedDict):
    """The fields of a vocabulary file."""

    min_freq: int
    reserved_tokens: list[Any]
    tokens: list[Any]
    freqs: list[int]


class Vocab:
    """Maps tokens to ids and ids to tokens.

    >>> vocab = Vocab([["the", "time"], ["the", "traveller"]], reserved_tokens=["<pad>"])
    >>> len(vocab), vocab.token_freqs
    (5, [('the', 2), ('time', 1), ('traveller', 1)])
    >>> vocab["the"], vocab["machine"], vocab[["time", ["the", "<pad>"]]]
    (2, 0, [3, [2, 1]])
    >>> vocab.to_tokens([2, [4, 0]]), vocab.unknown_met
    (['the', ['traveller', '<unk>']], 1)
    >>> Vocab([("of", "the"), ("the", "time"), ("of", "the")])[("of", "the")]
    1
    """

    def __init__(
        self,
        tokens: Iterable[Any] | None = None,
        min_freq: int = 0,
        reserved_tokens: Iterable[Token] | None = None,
    ) -> None:
        counted = count_corpus([] if tokens is None else tokens)
        reserved = [] if reserved_tokens is None else reserved_tokens
        self._fill(sorted(counted.items(), key=lambda item: -item[1]), min_freq, reserved)

    @classmethod
    def from_freqs(
        cls,
        token_freqs: Sequence[tuple[Token, int]],
        min_freq: int = 0,
        reserved_tokens: Iterable[Token] = (),
    ) -> "Vocab":
        """Return a vocabulary of counted tokens, given by decreasing frequency.

        >>> Vocab.from_freqs([("b", 2), ("a", 1)]).idx_to_token
        ['<unk>', 'b', 'a']
        """
        vocab = cls.__new__(cls)
        vocab._fill(list(token_freqs), min_freq, reserved_tokens)
        return vocab

    def _fill(
        self, token_freqs: list[tuple[Token, int]], min_freq: int, reserved_tokens: Iterable[Token]
    ) -> None:
        at_least("min_freq", min_freq, 0)
        reserved = list(_tokens_of(reserved_tokens, "reserved_tokens"))
        if len({UNK, *reserved}) != len(reserved) + 1:
            raise InputError(f"reserved_tokens: got {reserved}; expected each token once, without {UNK}")
        self._token_freqs, self.min_freq, self.reserved_tokens = token_freqs, min_freq, reserved
        special = {UNK, *reserved}
        frequent = [token for token, freq in token_freqs if freq >= min_freq and token not in special]
        self.idx_to_token: list[Token] = [UNK, *reserved, *frequent]
        self.token_to_idx: dict[Token, int] = {token: i for i, token in enumerate(self.idx_to_token)}
        if len(self.token_to_idx) != len(self.idx_to_token):
            raise InputError("token_freqs: a token occurs twice; expected every token once")
        self.unknown_met = 0
        """Number of look-ups of tokens outside the vocabulary."""

    def __len__(self) -> int:
        return len(self.idx_to_token)

    def __contains__(self, token: object) -> bool:
        return token in self.token_to_idx

    def __getitem__(self, tokens: Any) -> Any:
        tokens = _plain(tokens)
        if isinstance(tokens, list):
            return [self[token] for token in tokens]
        _refuse_unhashable(tokens, "tokens")
        if tokens not in self.token_to_idx:
            self.unknown_met += 1
        return self.token_to_idx.get(tokens, self.unk)

    def to_tokens(self, indices: Any) -> Any:
        """Return the token of an id; for nested lists or arrays of ids, nested lists of tokens."""
        indices = _plain(indices)
        if isinstance(indices, list | tuple):
            return [self.to_tokens(index) for index in indices]
        if not isinstance(indices, int) or isinstance(indices, bool) or not 0 <= indices < len(self):
            raise InputError(f"id {indices!r}: expected 0 … {len(self) - 1}, the ids of this vocabulary")
        return self.idx_to_token[indices]

    @property
    def unk(self) -> int:
        """The id of unknown tokens."""
        return 0

    @property
    def token_freqs(self) -> list[tuple[Token, int]]:
        """All tokens of the training text with their counts, by decreasing frequency, including those below `min_freq`."""
        return self._token_freqs

    @property
    def sha256(self) -> str:
        """The SHA-256 of everything that determines the ids."""
        return _digest(self._content())

    def save(self, path: str | Path) -> None:
        """Write the vocabulary to a file; an existing file is replaced."""
        content = self._content()
        text = json.dumps({"format": FORMAT, "sha256": _digest(content)} | content, indent=0)
        write_atomic(path, (text + "\n").encode("ascii"))

    @classmethod
    def load(cls, path: str | Path) -> "Vocab":
        """Read a vocabulary from a file; raise FileError if it is damaged."""
        content = parse_json(read_bytes(path), path)
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            raise FileError(f"{path}: not a vocabulary of the format {FORMAT}")
        if content.pop("sha256", None) != _digest(content):
            raise FileError(f"{path}: damaged: its SHA-256 does not match its contents")
        fields = read_as(_VocabContent, content, path)
        if len(fields["tokens"]) != len(fields["freqs"]) or min(fields["freqs"], default=0) < 0:
            raise FileError(f"{path}: damaged or manipulated: expected a count of 0 or more for every token")
        tokens, reserved = (
            [_from_json(each, path) for each in fields[name]] for name in ("tokens", "reserved_tokens")
        )
        freqs = list(zip(tokens, fields["freqs"], strict=True))
        try:
            return cls.from_freqs(freqs, fields["min_freq"], reserved)
        except InputError as error:
            raise FileError(f"{path}: damaged or manipulated: {error}") from error

    def _content(self) -> dict[str, Any]:
        tokens, freqs = [token for token, _ in self._token_freqs], [freq for _, freq in self._token_freqs]
        return {
            "min_freq": self.min_freq,
            "reserved_tokens": self.reserved_tokens,
            "tokens": tokens,
            "freqs": freqs,
        }


def count_corpus(tokens: Iterable[Any]) -> Counter[Token]:
    """Count the tokens of a list or of nested lists, in the order of first appearance.

    >>> count_corpus([["a", "b"], ["a"]])
    Counter({'a': 2, 'b': 1})
    """
    return Counter(_tokens_of(tokens, "tokens"))


def _tokens_of(tokens: Iterable[Any], name: str) -> Iterator[Token]:
    """Yield the tokens of nested lists and arrays; raise InputError for a single string."""
    if isinstance(tokens, str | bytes):
        raise InputError(
            f"{name} is one string, {tokens[:20]!r}; expected a list of tokens: pass [text] for one token or "
            "list(text) for its characters"
        )
    if not isinstance(tokens, Iterable):
        raise InputError(f"{name} is {tokens!r}; expected a list of tokens")
    for each in tokens:
        token = _plain(each)
        if isinstance(token, list):
            yield from _tokens_of(token, name)
        else:
            _refuse_unhashable(token, name)
            yield token


def _plain(value: Any) -> Any:
    """Return NumPy arrays and scalars as Python lists and scalars."""
    return value.tolist() if hasattr(value, "tolist") else value


def _refuse_unhashable(token: object, name: str) -> None:
    try:
        hash(token)
    except TypeError:
        raise InputError(
            f"{name}: {token!r} is a {type(token).__name__}; expected a string, a number or a tuple of them"
        ) from None


def _from_json(token: Any, path: str | Path) -> Token:
    """Return a token read from JSON: arrays become tuples."""
    if isinstance(token, list):
        return tuple(_from_json(each, path) for each in token)
    if not isinstance(token, str | int | float):
        raise FileError(
            f"{path}: damaged or manipulated: expected tokens that are strings, numbers or lists of them"
        )
    return token


def _digest(content: dict[str, Any]) -> str:
    try:
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    except TypeError as error:
        raise InputError(
            f"a vocabulary with such tokens cannot be saved: {error}; expected strings, numbers or tuples of them"
        ) from None
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
