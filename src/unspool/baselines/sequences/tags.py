"""Baselines with one label per token: the most frequent label of a word, and a linear model of words, affixes and neighbours.

most frequent   o = log (n(w, k) + n(k) / n),   n(w, k) of the training tokens w have the label k                     (1)
linear          z(t, f) = 1 for the features f of the word at t (`unspool.data.tokens.affixes`), of the words at t-2, t-1, t+1
                and t+2, of the pairs of words at (t-1, t) and (t, t+1), and of the suffixes and shapes of the neighbours    (2)

Features are hashes of 63 bits; those of the training tokens are kept, others are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, ClassVar, Self

import numpy as np

from unspool.baselines.sequences.base import Rows, SequenceBaseline
from unspool.baselines.sequences.sparse_linear import SparseRows, fit_sparse, outputs_of
from unspool.data.tokens.affixes import COUNT, features_of
from unspool.errors import FileError
from unspool.kernels.arrays import Floats, Whole
from unspool.kernels.elementwise import log
from unspool.model.heads.base import Head
from unspool.storage.tensors import check_array

C = 3.0
"""The inverse strength of the penalty, for one feature per token."""
WEIGHTS = 1 << 22
"""The most weights of the linear model: of more features, the most frequent are kept."""
FEWEST = 2
"""A feature is used if so many training tokens have it."""
EDGE = -1
"""The hash of the place before the first and after the last word."""
NEIGHBOURS = (-2, -1, 1, 2)
"""The places whose words are features; those beside the word with their suffixes and shapes."""
SHARED = (7, COUNT - 1)
"""Which features of the neighbours are used: the suffix of three signs and the shape."""
ODD = np.int64(0x2545F4914F6CDD1D)


def accepts_words(rows: Rows, head: Head, per_step: bool) -> bool:
    """Accept lists of strings with one class per string."""
    return head.is_discrete and per_step and not rows.dense and _holds_words(rows.raw)


def _holds_words(raw: Any) -> bool:
    first = next((each for each in raw if len(each)), None)
    return first is not None and not isinstance(first, str) and isinstance(first[0], str)


@lru_cache(1 << 17)
def hashes_of(word: str) -> tuple[int, ...]:
    """Return the hashes of the features of a word."""
    digests = (blake2b(each.encode("utf-8", "surrogatepass"), digest_size=8) for each in features_of(word))
    return tuple(int.from_bytes(each.digest(), "little") >> 1 for each in digests)


def token_features(sentence: Sequence[str]) -> Whole:
    """Return the hashes (2) of the features of every word of a sentence, tau F."""
    tau = len(sentence)
    own = np.full((tau + 4, COUNT), EDGE, np.int64)
    own[2 : tau + 2] = np.array([hashes_of(str(word)) for word in sentence], np.int64).reshape(tau, COUNT)
    here = own[2 : tau + 2]
    columns = [here]
    with np.errstate(over="ignore"):
        for number, place in enumerate(NEIGHBOURS, 1):
            there = own[2 + place : tau + 2 + place]
            used = [0, *SHARED] if abs(place) == 1 else [0]
            columns.append(_mixed(there[:, used], number))
            if abs(place) == 1:
                columns.append(_mixed(there[:, :1] * ODD + here[:, :1], number + 8))
    return np.concatenate(columns, axis=1)


def _mixed(hashes: Whole, number: int) -> Whole:
    """Return hashes that differ from those of another number, from 0 on."""
    return (((hashes + number) * ODD) ^ (hashes >> 17)) & np.int64(2**63 - 1)


@dataclass(frozen=True)
class MostFrequentTag(SequenceBaseline):
    """The labels that each word of the training rows has: (1)."""

    name: ClassVar[str] = "most frequent label"

    words: Whole  # W: hashes in rising order
    counts: Floats  # W K
    prior: Floats  # K

    @classmethod
    def accepts(cls, rows: Rows, head: Head, per_step: bool) -> bool:
        """Accept lists of words with one class per word."""
        return accepts_words(rows, head, per_step)

    @classmethod
    def fit(cls, rows: Rows, y: Any, head: Head, seed: int) -> Self:
        """Count the labels of every word."""
        hashes, labels = _words(rows), np.concatenate(y)
        words, at = np.unique(hashes, return_inverse=True)
        counts = np.zeros((len(words), head.outputs), np.float32)
        np.add.at(counts, (at, labels), 1)
        total = np.bincount(labels, minlength=head.outputs)
        return cls(words, counts, ((total + 1) / (total.sum() + head.outputs)).astype(np.float32))

    def outputs(self, rows: Rows) -> list[Floats]:
        """Return o of every token, one array tau K per row."""
        at, known = _find(self.words, _words(rows))
        counts = np.where(known[:, None], self.counts[at], np.float32(0)).astype(np.float64)
        return _per_row(log(counts + self.prior).astype(np.float32), rows)

    def arrays(self) -> dict[str, Floats]:
        """Return the counts."""
        return {"words": self.words, "counts": self.counts, "prior": self.prior}

    @classmethod
    def restore(cls, fields: dict[str, Any], arrays: Mapping[str, Floats], K: int, path: object) -> Self:
        """Read the counts from a file."""
        words = _rising(arrays, "words", path)
        counts, prior = (
            check_array(arrays, "counts", (len(words), K), path),
            check_array(arrays, "prior", (K,), path),
        )
        if (counts < 0).any() or not (prior > 0).all():
            raise FileError(f"{path}: damaged or manipulated: counts and prior must not be negative")
        return cls(words, counts, prior)


@dataclass(frozen=True)
class LinearTagger(SequenceBaseline):
    """A linear model of words, affixes and neighbours: (2)."""

    name: ClassVar[str] = "linear model of words"

    hashes: Whole  # F: in rising order
    W: Floats  # F K
    c: Floats  # K

    @classmethod
    def accepts(cls, rows: Rows, head: Head, per_step: bool) -> bool:
        """Accept lists of words with one class per word."""
        return accepts_words(rows, head, per_step)

    @classmethod
    def fit(cls, rows: Rows, y: Any, head: Head, seed: int) -> Self:
        """Collect the features of the training tokens, and train the linear model."""
        found = _features(rows)
        hashes, counts = np.unique(found, return_counts=True)
        kept = np.flatnonzero(counts >= min(FEWEST, counts.max()))
        if len(kept) > (most := max(1, WEIGHTS // head.K)):
            kept = np.sort(kept[np.argsort(-counts[kept], kind="stable")[:most]])
        hashes = hashes[kept]
        W, c = fit_sparse(_sparse(found, hashes), np.concatenate(y), head, seed, C)
        return cls(hashes, W, c)

    def outputs(self, rows: Rows) -> list[Floats]:
        """Return o of every token, one array tau K per row."""
        o = outputs_of(_sparse(_features(rows), self.hashes), self.W, self.c)
        return _per_row(o, rows)

    def arrays(self) -> dict[str, Floats]:
        """Return features and weights."""
        return {"hashes": self.hashes, "W": self.W, "c": self.c}

    @classmethod
    def restore(cls, fields: dict[str, Any], arrays: Mapping[str, Floats], K: int, path: object) -> Self:
        """Read features and weights from a file."""
        hashes = _rising(arrays, "hashes", path)
        W, c = check_array(arrays, "W", (len(hashes), K), path), check_array(arrays, "c", (K,), path)
        return cls(hashes, W, c)


def _words(rows: Rows) -> Whole:
    return np.array([hashes_of(str(word))[0] for row in rows.raw for word in row], np.int64)


def _features(rows: Rows) -> Whole:
    return np.concatenate([token_features(row) for row in rows.raw])


def _find(known: Whole, hashes: Whole) -> tuple[Whole, Any]:
    """Return where hashes are among known ones, and which of them are there."""
    at = np.minimum(np.searchsorted(known, hashes), max(0, len(known) - 1))
    return at, known[at] == hashes


def _sparse(found: Whole, hashes: Whole) -> SparseRows:
    at, known = _find(hashes, found)
    begin = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
    ids = at[known].astype(np.int32)
    return SparseRows(begin, ids, np.ones(len(ids), np.float32), len(hashes))


def _per_row(o: Floats, rows: Rows) -> list[Floats]:
    return np.split(o, np.cumsum([len(each) for each in rows.raw])[:-1])


def _rising(arrays: Mapping[str, Any], name: str, path: object) -> Whole:
    hashes: Whole = check_array(arrays, name, (None,), path, np.int64)
    if not len(hashes) or (np.diff(hashes) <= 0).any():
        raise FileError(f"{path}: damaged or manipulated: {name} must rise")
    return hashes
