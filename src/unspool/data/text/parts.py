"""The three parts of a corpus, and how much text each of them holds.

Bits per character and per byte need the number of characters and bytes *of the text*. Tokens that lose
nothing have it in their own lengths; words lose the blanks, so for them the text is read again, and cut
where the part's last token ends.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from unspool.data.tokens.registry import Indexer, Tokenizer
from unspool.kernels.arrays import Ids, Whole

PARTS = ("train", "valid", "test")
TRAIN = 0.9
"""The share of the training part where no split is given."""
LONG = 100_000
"""From this many tokens on, a text without a given split has a test part."""


@dataclass(frozen=True)
class Part:
    """One part of a corpus."""

    name: str
    ids: Ids
    """Its tokens, often mapped from a file."""
    characters: int
    """How many characters of text it holds."""
    bytes: int
    """How many bytes that text has in UTF-8."""
    unknown: int
    """How many of its tokens the vocabulary does not know."""
    first: tuple[int, int] = (0, 0)
    """Characters and bytes of its first token as it stands in the text, known or not."""
    last: tuple[int, int] = (0, 0)
    """The same of its last token."""

    def widths_after_first(self, backward: bool = False) -> tuple[int, int]:
        """Give the characters and bytes without the one token that is context and no target.

        That is the first token, or the last where the part is read backwards.
        """
        characters, octets = self.last if backward else self.first
        return max(self.characters - characters, 1), max(self.bytes - octets, 1)


def split_for(tokens: int) -> tuple[float, float, float]:
    """Return the split of a text whose user gave none: three parts where it is long enough, else two.

    A short text has no test part: half of a tenth of it would be too little to measure anything.

    >>> split_for(LONG), split_for(LONG - 1)
    ((0.9, 0.05, 0.05), (0.9, 0.1, 0.0))
    """
    return (TRAIN, 0.05, 0.05) if tokens >= LONG else (TRAIN, 0.1, 0.0)


def cut_parts(ends: list[int], split: tuple[float, float, float], least: int = 0) -> list[tuple[int, int]]:
    """Say where each part starts and stops: by shares of one text, or text by text.

    The first ``least`` tokens belong to the training part in any case.

    >>> cut_parts([1000], (0.9, 0.05, 0.05))
    [(0, 900), (900, 950), (950, 1000)]
    >>> cut_parts([700, 800, 800], (0.9, 0.05, 0.05))
    [(0, 700), (700, 800), (800, 800)]
    """
    if len(ends) == 1:
        shares = (split[0], split[0] + split[1])
        ends = [max(least, int(ends[0] * share + 1e-6)) for share in shares] + ends
    return list(zip([0, *ends[:-1]], ends, strict=True))


def widths_by_token(tokenizer: Tokenizer, indexer: Indexer, counts: list[Whole]) -> list[tuple[int, int]]:
    """Count characters and bytes of each part from the tokens themselves: exact where tokens lose nothing."""
    padded = np.zeros((len(counts), max(map(len, counts))), np.int64)
    for row, part in zip(padded, counts, strict=True):
        row[: len(part)] = part
    present = np.flatnonzero(padded.any(0))
    widths = np.array([tokenizer.width(indexer.token(index)) for index in present.tolist()], np.int64)
    return [(int(characters), int(octets)) for characters, octets in padded[:, present] @ widths]


def widths_by_reading(
    pieces: Iterable[str], tokens: Iterable[int], stops: list[int], end_of: Callable[[str, int], int]
) -> list[tuple[int, int]]:
    """Count characters and bytes up to each stop (a number of tokens), the last being the end of the text.

    ``tokens`` are the numbers of tokens of the pieces; ``end_of(piece, n)`` says where the n-th token of a
    piece ends.

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
