"""The three splits of a corpus (train, valid, test), and the amount of text in each.

Bits per character and per byte need the number of characters and bytes *of the text*. Lossless tokens determine it by
their lengths. Words do not contain the blanks, so the text is read again and cut at the end of the split's last token.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from unspool.data.tokens.registry import Indexer, Tokenizer
from unspool.kernels.arrays import Ids, Whole

PARTS = ("train", "valid", "test")
TRAIN = 0.9
"""Default fraction of the training split."""
LONG = 100_000
"""Texts of this many tokens or more have a test split by default."""


@dataclass(frozen=True)
class Part:
    """One split of a corpus."""

    name: str
    ids: Ids
    """Token ids, int32 (n,), often memory-mapped."""
    characters: int
    """Number of characters of the text."""
    bytes: int
    """Number of bytes of the text in UTF-8."""
    unknown: int
    """Number of tokens outside the vocabulary."""
    first: tuple[int, int] = (0, 0)
    """Characters and bytes of the first token in the text."""
    last: tuple[int, int] = (0, 0)
    """Characters and bytes of the last token in the text."""

    def widths_after_first(self, backward: bool = False) -> tuple[int, int]:
        """Return the characters and bytes of all targets: without the first token, or the last if read backward."""
        characters, octets = self.last if backward else self.first
        return max(self.characters - characters, 1), max(self.bytes - octets, 1)


def split_for(tokens: int) -> tuple[float, float, float]:
    """Return the default split: a text below `LONG` tokens has no test split, 5 % of it would be too short to score.

    >>> split_for(LONG), split_for(LONG - 1)
    ((0.9, 0.05, 0.05), (0.9, 0.1, 0.0))
    """
    return (TRAIN, 0.05, 0.05) if tokens >= LONG else (TRAIN, 0.1, 0.0)


def cut_parts(ends: list[int], split: tuple[float, float, float], least: int = 0) -> list[tuple[int, int]]:
    """Return start and stop of each split: by fractions of one text, or one text per split.

    The first ``least`` tokens always belong to the training split.

    >>> cut_parts([1000], (0.9, 0.05, 0.05))
    [(0, 900), (900, 950), (950, 1000)]
    >>> cut_parts([700, 800, 800], (0.9, 0.05, 0.05))
    [(0, 700), (700, 800), (800, 800)]
    """
    if len(ends) == 1:
        fractions = (split[0], split[0] + split[1])
        ends = [max(least, int(ends[0] * fraction + 1e-6)) for fraction in fractions] + ends
    return list(zip([0, *ends[:-1]], ends, strict=True))


def widths_by_token(tokenizer: Tokenizer, indexer: Indexer, counts: list[Whole]) -> list[tuple[int, int]]:
    """Return characters and bytes of each split, summed over its tokens: exact for lossless tokens."""
    padded = np.zeros((len(counts), max(map(len, counts))), np.int64)
    for row, part in zip(padded, counts, strict=True):
        row[: len(part)] = part
    present = np.flatnonzero(padded.any(0))
    widths = np.array([tokenizer.width(indexer.token(index)) for index in present.tolist()], np.int64)
    return [(int(characters), int(octets)) for characters, octets in padded[:, present] @ widths]


def widths_by_reading(
    pieces: Iterable[str], tokens: Iterable[int], stops: list[int], end_of: Callable[[str, int], int]
) -> list[tuple[int, int]]:
    """Return characters and bytes between stops (numbers of tokens); the last stop is the end of the text.

    ``tokens`` are the numbers of tokens of the pieces; ``end_of(piece, n)`` returns the end of the n-th token of a piece.

    >>> widths_by_reading(["a bc ", "d\\n"], [2, 1], [1, 3], lambda piece, n: [0, 1, 4][n])
    [(1, 1), (6, 6)]
    """
    seen, total, marks = 0, np.zeros(2, np.int64), [np.zeros(2, np.int64)]
    for piece, count in zip(pieces, tokens, strict=True):
        while len(marks) < len(stops) and stops[len(marks) - 1] <= seen + count:
            marks.append(total + _width(piece[: end_of(piece, stops[len(marks) - 1] - seen)]))
        seen, total = seen + count, total + _width(piece)
    marks.append(total)
    return [(int(step[0]), int(step[1])) for step in np.diff(marks, axis=0)]


def _width(text: str) -> Whole:
    return np.array([len(text), len(text.encode("utf-8", "surrogatepass"))])
