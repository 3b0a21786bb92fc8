"""Encode the inputs of estimators for a network: texts, lists of tokens, arrays, lists of arrays.

    tokens   strings (split by a tokenizer), or lists of strings ─▶ ids, by a vocabulary
    values   (n, tau), (n, tau, X), lists of (tau,) or (tau, X)  ─▶ float32, each channel standardised

The fitted encoder (vocabulary, or means and standard deviations) is saved with the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from unspool.data.encoder_fields import Fields, IdFields, TokenFields
from unspool.data.series.checks import LARGEST
from unspool.data.text.sources import refuse_file_names
from unspool.data.tokens.affixes import COUNT, features_of
from unspool.data.tokens.registry import make_tokenizer
from unspool.data.tokens.vocab import Vocab
from unspool.errors import EmptyInput, InputError
from unspool.kernels.arrays import Floats, Ids

RESERVED = ("<bos>", "<eos>")


@dataclass(frozen=True)
class TokenEncoder:
    """Maps sequences of tokens to ids and back.

    >>> encoder = TokenEncoder.fit(["abba", "ba"], tokens="char")
    >>> [ids.tolist() for ids in encoder.encode(["ab", "z"])], encoder.size
    ([[3, 4], [0]], 5)
    """

    vocab: Vocab
    tokens: str
    """The kind of tokenizer that splits strings."""
    joined: bool
    """Whether sequences are strings, and are decoded to strings."""
    subwords: bool = False
    """Whether every token becomes the ids of its sub-word features, (tau, features)."""

    @staticmethod
    def fit(X: Any, *, tokens: str, subwords: bool = False) -> TokenEncoder:
        """Return an encoder with the vocabulary of the training split.

        With `subwords`, it has features of the tokens; a word that occurs once is read as unknown, so that a model learns
        to rely on its other features.
        """
        rows = _token_lists(X, tokens)
        if subwords:
            found = ([each for token in row for each in features_of(token)] for row in rows)
            return TokenEncoder(Vocab(list(found), min_freq=2), tokens, False, subwords=True)
        return TokenEncoder(Vocab(rows, reserved_tokens=RESERVED), tokens, isinstance(X[0], str))

    @property
    def size(self) -> int:
        """Number of ids."""
        return len(self.vocab)

    def encode(self, X: Any) -> list[Ids]:
        """Return the ids of each sequence, int32 (tau,); unknown tokens are <unk>."""
        look, rows = self.vocab.token_to_idx, _token_lists(X, self.tokens)
        if self.subwords:
            flat = ([look.get(each, 0) for t in row for each in features_of(t)] for row in rows)
            return [np.array(ids, np.int32).reshape(-1, COUNT) for ids in flat]
        return [np.array([look.get(t, 0) for t in row], np.int32) for row in rows]

    def decode(self, ids: Ids) -> Any:
        """Return a string or a list of tokens, as in the training split."""
        tokens = self.vocab.to_tokens(ids)
        return make_tokenizer(self.tokens).decode(tokens) if self.joined else tokens

    def to_json(self) -> dict[str, Any]:
        """Return everything except the vocabulary as plain values."""
        found = {"kind": "tokens", "tokens": self.tokens, "joined": self.joined}
        return found | {"subwords": True} if self.subwords else found


def _token_lists(X: Any, tokens: str) -> list[list[str]]:
    tokenizer = make_tokenizer(tokens)
    rows = list[list[str]]()
    for number, each in enumerate(X, 1):
        if isinstance(each, str):
            rows.append(list(tokenizer.encode_text(each)))
        elif isinstance(each, list | tuple | np.ndarray) and all(isinstance(t, str) for t in each):
            rows.append([str(t) for t in each])
        else:
            raise InputError(
                f"sequence {number} is {_describe(each)}; expected a string or a list of strings"
            )
    return rows


@dataclass(frozen=True)
class IdEncoder:
    """Passes ids through: integers from 0."""

    size: int

    @staticmethod
    def fit(X: Any) -> IdEncoder:
        """Return an encoder for the ids of the training split."""
        rows = _id_rows(X)
        return IdEncoder(1 + max((int(row.max()) for row in rows if row.size), default=0))

    def encode(self, X: Any) -> list[Ids]:
        """Return ids as int32; raise InputError for an id that the training split did not have."""
        rows = _id_rows(X)
        for number, row in enumerate(rows, 1):
            if row.size and (row.min() < 0 or row.max() >= self.size):
                raise InputError(f"sequence {number} has an id outside 0 … {self.size - 1}")
        return [np.ascontiguousarray(row, np.int32) for row in rows]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"kind": "ids", "size": self.size}


def _id_rows(X: Any) -> list[Any]:
    rows = [np.asarray(each) for each in X]
    for number, row in enumerate(rows, 1):
        if row.ndim != 1 or (row.size and row.dtype.kind not in "iu"):
            raise InputError(f"sequence {number} is {_describe(row)}; expected ids, whole numbers in one row")
    return [row.astype(np.int64) for row in rows]


@dataclass(frozen=True)
class ValueEncoder:
    """Standardises sequences of numbers: subtracts the mean of each channel and divides by its standard deviation.

    >>> encoder = ValueEncoder.fit([[1.0, 3.0], [1.0, 3.0, 2.0]])
    >>> encoder.mean.tolist(), encoder.encode([[2.0]])[0].tolist()
    ([2.0], [[0.0]])
    """

    mean: Floats  # X
    std: Floats  # X

    @staticmethod
    def fit(X: Any, *, standardise: bool = True, name: str = "X") -> ValueEncoder:
        """Return an encoder with the statistics of the training split; without `standardise`, mean 0 and std 1."""
        rows = _value_rows(X, name=name)
        every = rows.reshape(-1, rows.shape[2]) if isinstance(rows, np.ndarray) else np.concatenate(rows)
        channels = every.shape[1]
        if not standardise or not len(every):
            return ValueEncoder(np.zeros(channels), np.ones(channels))
        _refuse_tiny(np.ptp(every, axis=0), name)
        mean = every.mean(axis=0)
        std = np.sqrt(((every - mean) ** 2).mean(axis=0))
        return ValueEncoder(mean, np.where(std > 1e-12 * np.abs(mean) + 1e-300, std, 1.0))

    @property
    def size(self) -> int:
        """Number of channels."""
        return len(self.mean)

    def encode(self, X: Any) -> Any:
        """Return float32, (n, tau, X) or a list of (tau, X)."""
        rows = _value_rows(X, self.size)
        if isinstance(rows, np.ndarray):
            return ((rows - self.mean) / self.std).astype(np.float32)
        return [((row - self.mean) / self.std).astype(np.float32) for row in rows]

    def decode(self, y: Floats) -> Floats:
        """Return float64 in the units of the training split."""
        return y.astype(np.float64) * self.std + self.mean

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"kind": "values", "mean": self.mean.tolist(), "spread": self.std.tolist()}


Encoder = TokenEncoder | IdEncoder | ValueEncoder


def fit_encoder(X: Any, *, kind: str, tokens: str, standardise: bool) -> Encoder:
    """Return the encoder of a training split; with kind "auto", strings are tokens and numbers are values."""
    if kind == "auto":
        kind = "tokens" if holds_tokens(X) else "values"
    if kind == "tokens":
        return TokenEncoder.fit(X, tokens=tokens)
    if kind == "ids":
        return IdEncoder.fit(X)
    if kind == "values":
        return ValueEncoder.fit(X, standardise=standardise)
    raise InputError(f"inputs is {kind!r}; expected one of auto, tokens, ids, values")


def encoder_from_fields(fields: Fields, vocab: Vocab | None) -> Encoder:
    """Return the encoder of fields that `to_json` wrote."""
    if isinstance(fields, TokenFields):
        if vocab is None:
            raise InputError("the vocabulary is missing")
        make_tokenizer(fields.tokens)  # raises for an unknown kind
        return TokenEncoder(vocab, fields.tokens, fields.joined, fields.subwords)
    if isinstance(fields, IdFields):
        return IdEncoder(fields.size)
    if len(fields.mean) != len(fields.spread) or not min(fields.spread, default=0.0) > 0:
        raise InputError("mean and spread: expected a mean and a spread above 0 for every channel")
    return ValueEncoder(np.array(fields.mean, np.float64), np.array(fields.spread, np.float64))


def as_sequences(X: Any) -> Any:
    """Return X as an array or a list; raise InputError for anything else."""
    if isinstance(X, str | bytes):
        raise InputError("X is one string; expected a list of sequences: pass [X]")
    if isinstance(X, PathLike):
        raise InputError(f"X is the path {str(X)!r}; expected a list of sequences: read the file first")
    refuse_file_names(X, "X")
    if hasattr(X, "toarray"):
        raise InputError("X is sparse, and sparse input is not supported: pass X.toarray()")
    if isinstance(X, Mapping):
        raise InputError(f"X is a {type(X).__name__}; expected a list of sequences: pass one of its values")
    if hasattr(X, "columns") and hasattr(X, "shape"):
        return _table(X)
    if hasattr(X, "__array__") and not isinstance(X, np.ndarray):
        X = np.asarray(X)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1 and holds_tokens(X):
        raise InputError(
            f"X has shape {X.shape} and holds strings; expected one string or a list of tokens per sequence: pass X[:, 0]"
        )
    return X


def _table(X: Any) -> Any:
    """Return the numbers of a data frame, one sequence per row; raise InputError if not all columns are numeric."""
    values = np.asarray(X)
    if values.dtype.kind in "iufb":
        return values
    if values.shape[1:] == (1,) and len(values) and all(isinstance(each, str) for each in values[:, 0]):
        return values[:, 0].tolist()
    names = ", ".join(repr(str(name)) for name in list(X.columns)[:5])
    raise InputError(
        f"X is a {type(X).__name__} with the columns {names}, and not all of them are numbers; expected a list of sequences: "
        f"pass one column, as X[{str(next(iter(X.columns)))!r}]"
    )


def holds_tokens(X: Any) -> bool:
    """Return whether sequences are strings or lists of strings; the first non-empty one decides."""
    for each in X:
        if isinstance(each, str):
            return True
        if isinstance(each, list | tuple | np.ndarray) and len(each):
            return isinstance(each[0], str)
    return False


def _value_rows(X: Any, channels: int | None = None, name: str = "X") -> Any:
    """Return float64 (n, tau, X), or a list of (tau, X) if lengths differ; raise InputError for invalid numbers."""
    if isinstance(X, np.ndarray) and X.dtype != object:
        if X.ndim not in (2, 3):
            images = "Images (n, h, w, c) become sequences by unspool.data.image_sequences(images, by='rows') or by='pixels'"
            one = "Reshape your data: X.reshape(1, -1) makes one sequence of one channel"
            raise InputError(
                f"{name} has shape {X.shape}; expected (n, tau) or (n, tau, channels). {images if X.ndim == 4 else one}"
            )
        rows = _finite(X if X.ndim == 3 else X[:, :, None], name)
        if not len(rows):
            raise EmptyInput("there is not one sequence: 0 samples")
        if not rows.shape[2]:
            raise EmptyInput(f"X has shape {X.shape}: 0 feature(s), where a step needs at least one number")
    else:
        rows = _ragged(X, name, channels)
    have = rows[0].shape[1]
    if channels is not None and have != channels:
        raise InputError(f"X has {have} channels per step; expected {channels}, as in the fit")
    return rows


def _ragged(X: Any, name: str, channels: int | None) -> Any:
    rows = [_finite(np.asarray(each), name, number) for number, each in enumerate(X, 1)]
    if not rows:
        raise EmptyInput("there is not one sequence: 0 samples")
    filled = [row for row in rows if row.size]
    wide = filled[0].shape[1] if filled and filled[0].ndim > 1 else 1
    wide = channels or 1 if not filled else wide  # empty sequences fit any number of channels
    shaped = [row[:, None] if row.ndim == 1 and row.size else row for row in rows]
    shaped = [row if row.size else np.zeros((0, wide)) for row in shaped]
    for number, (row, given) in enumerate(zip(shaped, rows, strict=True), 1):
        if row.ndim != 2 or row.shape[1] != wide:
            raise InputError(f"sequence {number} has shape {given.shape}; expected (tau, {wide})")
    if len({len(row) for row in shaped}) == 1:
        return np.stack(shaped)
    return shaped


def _finite(values: Any, name: str, number: int | None = None) -> Any:
    if values.dtype.kind == "c":
        raise InputError("Complex data not supported: a sequence holds real numbers")
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        where = name if number is None else f"{name}, sequence {number}"
        raise InputError(f"{where} holds something that is not a number: {error}") from error
    if not np.isfinite(numbers).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
        position = [i + 1 for i in at] if number is None else [number, *(i + 1 for i in at)]
        names = ", ".join(
            f"{axis} {i}" for axis, i in zip(("sequence", "step", "channel"), position, strict=False)
        )
        raise InputError(
            f"{name} has {numbers[at]} at {names}: NaN and infinity are not numbers that can be read"
        )
    if numbers.size and np.abs(numbers).max() > LARGEST:
        raise InputError(
            f"{name} has {numbers.flat[np.abs(numbers).argmax()]:g}: values too large; expected none beyond ±{LARGEST:g}"
        )
    return numbers


def _refuse_tiny(ranges: Any, name: str) -> None:
    """Raise InputError if the values of a channel differ by so little that the square of the difference is 0."""
    for channel in np.flatnonzero((ranges > 0) & (ranges < 1 / LARGEST)).tolist():
        which = f", channel {channel + 1}," if len(ranges) > 1 else ""
        raise InputError(
            f"{name}{which} has values that differ by {ranges[channel]:g} at most: values too small; expected differences "
            f"of {1 / LARGEST:g} or more: multiply them all by a power of ten"
        )


def _describe(value: object) -> str:
    return f"of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
