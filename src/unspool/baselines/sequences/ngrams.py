"""Hashed n-grams of characters and words with TF-IDF weights, and a linear model of them.

    S(i) = Σ_{j < i} m(x(j)) Qʲ,   hash of x(a) … x(b-1) = (S(b) - S(a)) Q⁻ᵃ,   modulo 2⁶⁴, Q odd                 (1)
    idf(f) = log((1 + n) / (1 + n_f)) + 1        n_f of the n training rows have the n-gram f                     (2)
    z(i, f) = (1 + log count(i, f)) idf(f) / norm,   each group of row i has length 1                            (3)

m mixes the bits of a code point. By (1), all n-grams of a text are hashed without a loop over its characters. Groups are the n-grams of
characters (orders 1 to 5) and those of words (orders 1 and 2). Texts are read in lower case, between two boundary marks; lists
of tokens are joined by blanks. Ids are characters, without words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from unspool.baselines.sequences.base import Rows, SequenceBaseline
from unspool.baselines.sequences.sparse_linear import SparseRows, fit_sparse, outputs_of
from unspool.errors import FileError
from unspool.kernels.arrays import Array, Floats, Real, Whole
from unspool.kernels.elementwise import log
from unspool.model.heads.base import Head
from unspool.storage.tensors import check_array

CHARACTERS, WORDS = (1, 2, 3, 4, 5), (1, 2)
"""Orders of the n-grams of characters and of words."""
WORD = re.compile(r"\w+")
WEIGHTS = 1 << 22
"""The most weights of the linear model: of more features, the most frequent are kept."""
FEWEST = 2
"""An n-gram is a feature if so many training rows have it."""
C = 10.0
"""The inverse strength of the penalty."""
Q = 0x9E3779B97F4A7C15
"""An odd number; its inverse modulo 2⁶⁴ exists."""
INVERSE = pow(Q, -1, 1 << 64)


@dataclass(frozen=True)
class Ngrams(SequenceBaseline):
    """TF-IDF weights of n-grams and a linear model."""

    name: ClassVar[str] = "n-grams"

    hashes: Whole  # F: in rising order
    idf: Floats  # F
    W: Floats  # F K
    c: Floats  # K

    @classmethod
    def accepts(cls, rows: Rows, head: Head, per_step: bool) -> bool:
        """Accept sequences of tokens, with one target per row."""
        return not rows.dense and not per_step

    @classmethod
    def fit(cls, rows: Rows, y: Any, head: Head, seed: int) -> Self:
        """Count the n-grams, and train the linear model."""
        counted = [counts_of(each) for each in rows.raw]
        hashes, idf = _features(counted, max(1, WEIGHTS // head.K))
        W, c = fit_sparse(_weighted(counted, hashes, idf), y, head, seed, C)
        return cls(hashes, idf, W, c)

    def outputs(self, rows: Rows) -> Floats:
        """Return o of every row, n K."""
        counted = [counts_of(each) for each in rows.raw]
        return outputs_of(_weighted(counted, self.hashes, self.idf), self.W, self.c)

    def arrays(self) -> dict[str, Floats]:
        """Return features and weights."""
        return {"hashes": self.hashes, "idf": self.idf, "W": self.W, "c": self.c}

    @classmethod
    def restore(cls, fields: dict[str, Any], arrays: Mapping[str, Floats], K: int, path: object) -> Self:
        """Read features and weights from a file."""
        hashes = check_array(arrays, "hashes", (None,), path, np.int64)
        if (np.diff(hashes) <= 0).any():
            raise FileError(f"{path}: damaged or manipulated: hashes must rise")
        F = len(hashes)
        return cls(
            hashes,
            check_array(arrays, "idf", (F,), path),
            check_array(arrays, "W", (F, K), path),
            check_array(arrays, "c", (K,), path),
        )


def counts_of(sequence: Any) -> tuple[tuple[Whole, Whole], ...]:
    """Return the hashes of the n-grams of a sequence in rising order and their counts, group by group.

    >>> characters, words = counts_of("to be to be")
    >>> int(characters[1].sum()), sorted(words[1].tolist())
    (55, [1, 2, 2, 2])
    """
    if isinstance(sequence, str) or (len(sequence) and isinstance(sequence[0], str)):
        text = (sequence if isinstance(sequence, str) else " ".join(sequence)).lower()
        codes = np.frombuffer(f"\x02{text}\x03".encode("utf-32-le", "surrogatepass"), np.uint32)
        spans = np.array([each.span() for each in WORD.finditer(text)], np.int64).reshape(-1, 2) + 1
        return _counted(codes, CHARACTERS, None), _counted(codes, WORDS, spans)
    return (_counted(np.asarray(sequence, np.int64).astype(np.uint64), CHARACTERS, None),)


def _counted(codes: Array, orders: tuple[int, ...], spans: Whole | None) -> tuple[Whole, Whole]:
    """Hash the n-grams of units (single codes, or spans of them) by (1), and count them."""
    n = len(codes)
    with np.errstate(over="ignore"):
        powers, inverses = (_powers(base, n + 1) for base in (Q, INVERSE))
        sums = np.concatenate([[np.uint64(0)], np.cumsum(_mixed(codes.astype(np.uint64)) * powers[:n])])
        begin, end = (np.arange(n), np.arange(1, n + 1)) if spans is None else spans.T
        found = []
        for order in orders:
            a, b = begin[: max(0, len(begin) - order + 1)], end[order - 1 :]
            # the order makes n-grams of characters and of words differ
            key = np.uint64(order + 16 * (spans is not None))
            found.append(_mixed((sums[b] - sums[a]) * inverses[a] + key))
    hashes, counts = np.unique((np.concatenate(found) >> np.uint64(1)).astype(np.int64), return_counts=True)
    return hashes, counts


def _powers(base: int, n: int) -> Array:
    """Return base⁰ to baseⁿ⁻¹ modulo 2⁶⁴."""
    found = np.full(n, base, np.uint64)
    found[:1] = 1
    powers: Array = np.cumprod(found)
    return powers


def _mixed(x: Array) -> Array:
    """Mix the bits of 64-bit integers (the last steps of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = x ^ (x >> np.uint64(31))
    return mixed


def _features(counted: list[tuple[tuple[Whole, Whole], ...]], most: int) -> tuple[Whole, Floats]:
    """Return the n-grams that are features, in rising order, and their idf: (2)."""
    every = [hashes for row in counted for hashes, _ in row]
    hashes, rows = np.unique(np.concatenate(every or [np.zeros(0, np.int64)]), return_counts=True)
    kept = np.flatnonzero(rows >= min(FEWEST, len(counted)))
    if len(kept) > most:
        kept = np.sort(kept[np.argsort(-rows[kept], kind="stable")[:most]])
    idf = log((1.0 + len(counted)) / (1.0 + rows[kept])) + 1  # (2)
    return hashes[kept], idf.astype(np.float32)


def _weighted(counted: list[tuple[tuple[Whole, Whole], ...]], hashes: Whole, idf: Floats) -> SparseRows:
    """Return the features (3) of rows."""
    ids, values, begin = [np.zeros(0, np.int64)], [np.zeros(0)], [0]
    for row in counted:
        for own, counts in row:
            at = np.minimum(np.searchsorted(hashes, own), max(0, len(hashes) - 1))
            known = hashes[at] == own if len(hashes) else np.zeros(len(own), bool)
            ids.append(at[known])
            values.append(_unit((1 + log(counts[known].astype(np.float64))) * idf[at[known]]))
        begin.append(sum(map(len, ids[len(ids) - len(row) :])) + begin[-1])
    return SparseRows(
        np.array(begin),
        np.concatenate(ids).astype(np.int32),
        np.concatenate(values).astype(np.float32),
        len(hashes),
    )


def _unit(z: Real) -> Real:
    """Divide by the norm, summed from the first value to the last: (3)."""
    return z / np.sqrt(np.cumsum(z**2)[-1]) if len(z) else z
