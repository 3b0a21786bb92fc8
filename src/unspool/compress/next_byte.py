"""The network and the n-grams of a run as distributions of the next byte, while the network learns from what it reads.

    tokens so far ─▶ f(k), integers ─▶ S(b) = b + Σ f(k) / 16 of the tokens that begin with the bytes since the last token
                                                              and then a byte below b                                      (1)

A run over characters predicts a character; after the first of its bytes, only the characters that begin with it are left. S(b + 1) - S(b)
is the frequency of the byte b: at least 1, so that any file can be coded. f(k) are those of `integer_frequencies`. A byte that is
not UTF-8 is a token, as in `literals`, once the bytes after it show that it is one.

>>> tree = ByteTree([b"", b"a", b"b", "é".encode(), "ê".encode()])
>>> row = tree.cumulative(np.array([0, 64, 160, 16, 32]))
>>> tree.sums(row, b"")[97:100].tolist()  # "a" has 64 / 16 + 1, "b" has 160 / 16 + 1
[97, 102, 113]
>>> tree.sums(row, b"\\xc3")[0xA9:0xAC].tolist()
[169, 171, 174]
"""

import codecs
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unspool.baselines.mixture import Mixture
from unspool.baselines.ngram_reader import NgramReader
from unspool.compress.integer_frequencies import frequencies, frequencies_of
from unspool.kernels.arrays import Floats, Whole
from unspool.tasks.language.text_model import TextModel
from unspool.training.dynamic import Learning, LearningReader

Sums = NDArray[np.uint64]
SHIFT = 4
"""Frequencies are divided by 2^SHIFT: the sums of any vocabulary stay below 2^47."""
BYTES = np.arange(257)


class ByteTree:
    """Tokens in the order of their bytes, so that those with one prefix are neighbours; tokens without bytes are never predicted."""

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self._order = np.array(sorted(range(len(tokens)), key=tokens.__getitem__))
        self._tokens = sorted(tokens)
        self._ends = dict[bytes, Whole]()

    def cumulative(self, f: Whole) -> Whole:
        """Return the sums of the frequencies (K,) of the first 0, 1, … K tokens."""
        found: Whole = np.concatenate([[0], f[self._order].cumsum()]) >> SHIFT
        return found

    def sums(self, cumulative: Whole, prefix: bytes) -> Sums:
        """Return S (257,): (1), with the bytes since the last token."""
        ends = self._ends.get(prefix)
        if ends is None:
            after = [*(prefix + bytes([b]) for b in range(256)), prefix + b"\xff" * 5]
            ends = self._ends[prefix] = np.array([bisect_left(self._tokens, each) for each in after])
        found = cumulative[ends]
        sums: Sums = (found - found[0] + BYTES).astype(np.uint64)
        return sums


class _Group(NamedTuple):
    """Bytes, with the bytes since the last token before each; the last of them completes tokens."""

    content: bytearray
    prefixes: list[bytes]
    ids: list[int]


class RunReader:
    """Reads bytes with the network of a run, which learns from them, and predicts the next one; with `mixture`, also by its n-grams."""

    def __init__(self, model: TextModel, learning: Learning, mixture: Mixture | None) -> None:
        assert can_predict_bytes(model)
        names, spell = model.vocab.idx_to_token, model.tokenizer.decode_bytes
        self._tree = ByteTree([spell([name]) if len(name) == 1 else b"" for name in names])
        self._ids, self._unknown = model.vocab.token_to_idx, model.vocab.unk
        codec = "latin-1" if model.tokenizer.reads_bytes else "utf-8"
        self._decoder = codecs.getincrementaldecoder(codec)("surrogateescape")
        self._prefix, self._rest = b"", _Group(bytearray(), [], [])
        self._network = LearningReader(model.model, learning)
        self._network.log_prob(np.array(model.start("")[-1:], np.int32))  # the first byte has a predecessor
        self._ngrams = None if mixture is None else NgramReader(mixture.ngrams)
        self._rows: tuple[Whole, Whole | None] | None = None

    def sums_of(self, block: bytes) -> Iterator[tuple[bytes, Sums]]:
        """Read more bytes; yield them in groups with S (n, 2, 257) of each by network and n-grams, before the update on them.

        Bytes that do not complete a token wait for the next block, or for `rest`.
        """
        groups = list(self._groups(block))
        begins = np.cumsum([0, *(len(group.ids) for group in groups)]).tolist()
        ids = np.array([token for group in groups for token in group.ids], np.int32)
        at = first = 0
        for window in self._network.windows(ids):
            o = window.logits()
            while at < len(groups) and begins[at] < first + len(o):
                group, rows = groups[at], self._rows_of(o[begins[at] - first])
                yield bytes(group.content), self._sums(rows, group.prefixes)
                self._count(group.ids)
                at += 1
            first += len(o)

    def rest(self) -> Iterator[tuple[bytes, Sums]]:
        """Yield the bytes that wait."""
        if self._rest.content:
            yield bytes(self._rest.content), self._sums(self._current(), self._rest.prefixes)

    def next_sums(self) -> Sums:
        """Return S of the next byte (1, 2, 257)."""
        return self._sums(self._current(), [self._prefix])

    def read(self, byte: int) -> None:
        """Read the next byte, and learn at the end of a segment."""
        for group in self._groups(bytes([byte])):
            self._rows = None
            for token in group.ids:
                self._network.read(token)
            self._count(group.ids)

    def _groups(self, block: bytes) -> Iterator[_Group]:
        for byte in block:
            self._rest.content.append(byte)
            self._rest.prefixes.append(self._prefix)
            text = self._decoder.decode(bytes([byte]))
            self._prefix = self._decoder.getstate()[0]
            if text:
                self._rest.ids.extend(self._ids.get(token, self._unknown) for token in text)
                yield self._rest
                self._rest = _Group(bytearray(), [], [])

    def _current(self) -> tuple[Whole, Whole | None]:
        """Return the rows of the next token."""
        if self._rows is None:
            self._rows = self._rows_of(self._network.logits())
        return self._rows

    def _rows_of(self, o: Floats) -> tuple[Whole, Whole | None]:
        """Return the cumulative frequencies of the next token: by the network, and by the n-grams."""
        counted = None
        if self._ngrams is not None:
            counted = self._tree.cumulative(frequencies_of(self._ngrams.next_probs()))
        return self._tree.cumulative(frequencies(o)), counted

    def _sums(self, rows: tuple[Whole, Whole | None], prefixes: list[bytes]) -> Sums:
        found: Sums = np.zeros((len(prefixes), 2, 257), np.uint64)
        for i, prefix in enumerate(prefixes):
            for source, row in enumerate(rows):
                if row is not None:
                    found[i, source] = self._tree.sums(row, prefix)
        return found

    def _count(self, ids: list[int]) -> None:
        """Move the context of the n-grams."""
        if self._ngrams is not None:
            for token in ids:
                self._ngrams.read(token)


def can_predict_bytes(model: TextModel) -> bool:
    """Return whether the tokens of a model say which byte is next: characters or bytes, read forward."""
    return model.tokenizer.one_symbol and not model.backward
