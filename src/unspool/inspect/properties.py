"""Simple properties of each position in a text, to compare with units.

A property is a small integer per token: no or yes, or one of a few ranges of a position.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from unspool.kernels.arrays import Whole

Row = tuple[tuple[bool, ...], tuple[int, ...]]
"""Yes-or-no properties and positions of a token."""
QUOTES = {"“": "”", "「": "」", "『": "』", "«": "»", "《": "》"}
BRACKETS = {"(": ")", "[": "]", "{": "}", "（": "）", "【": "】", "<": ">"}
RANGES = 6
LEAST = 0.01
"""Smallest fraction of tokens that must have, or lack, a property."""


@dataclass(frozen=True)
class Property:
    """The value of a property at each token."""

    name: str
    values: Whole
    """int64 (T,)."""
    ranged: bool
    """Whether the values are ranges of a position instead of no and yes."""


def properties_of(pieces: list[str]) -> list[Property]:
    """Return the properties that vary in a text.

    >>> [each.name for each in properties_of(list('He said: "Go home, Tom!" and went.\\n'))][:4]
    ['a blank or line end', 'a capital letter', 'a vowel', 'punctuation']
    """
    marks = _Marks()
    rows, after = [marks.read(piece) for piece in pieces], [*pieces[1:], ""]
    found = []
    for i, name in enumerate(_Marks.yes_or_no):
        found.append(Property(name, np.array([row[0][i] for row in rows], np.int64), False))
    found += [
        Property("the word ends here", _word_ends(rows), False),
        Property(
            "the line ends here", np.array([piece.startswith("\n") for piece in after], np.int64), False
        ),
    ]
    for i, name in enumerate(_Marks.positions):
        found.append(Property(name, _ranges([row[1][i] for row in rows]), True))
    return [each for each in found if _varies(each.values)]


class _Marks:
    """Reads pieces of text and tracks the position in word, line and sentence."""

    yes_or_no = (
        "a blank or line end",
        "a capital letter",
        "a vowel",
        "a digit",
        "punctuation",
        "a Han character",
        "inside quotation marks",
        "inside brackets",
        "in a word of capitals",
        "in a line's first word",
    )
    positions = ("position in the line", "position in the word", "position in the sentence", "indentation")

    def __init__(self) -> None:
        self.line = self.word = self.sentence = self.indent = 0
        self.quote = self.bracket = ""
        self.capitals = 0
        self.words = 0

    def read(self, piece: str) -> Row:
        for char in piece:
            self._step(char)
        char = piece.strip()[:1] or piece[-1:]
        shouted = self.capitals >= 2 and self.capitals == self.word
        yes = (
            char.isspace(),
            char.isupper(),
            char.lower() in set("aeiouáéíóúäöüàèìòù") and char != "",
            char.isdigit(),
            unicodedata.category(char).startswith("P") if char else False,
            "\u4e00" <= char <= "\u9fff" if char else False,
            bool(self.quote),
            bool(self.bracket),
            shouted,
            self.words <= 1,
        )
        return yes, (self.line, self.word, self.sentence, self.indent)

    def _step(self, char: str) -> None:
        self.line += 1
        self.sentence += 1
        if char.isalnum() or char in "'’":
            self.words += self.word == 0
            self.word += 1
            self.capitals += char.isupper()
        else:
            self.word = self.capitals = 0
        if char == " " and self.line == self.indent + 1:
            self.indent += 1
        if char == "\n":
            self.line = self.indent = self.words = 0
        if char in ".!?。！？":
            self.sentence = 0
        self.quote = _toggled(self.quote, char, QUOTES, '"')
        self.bracket = _toggled(self.bracket, char, BRACKETS, "")


def _toggled(now: str, char: str, pairs: dict[str, str], straight: str) -> str:
    """Return the mark that closes the open quote or bracket, or nothing."""
    if now:
        return "" if char == now else now
    return pairs.get(char, char if straight and char in straight else "")


def _word_ends(rows: list[Row]) -> Whole:
    """Return where a word ends: inside a word now, outside at the next token."""
    inside = [row[1][1] > 0 for row in rows]
    return np.array([now and not then for now, then in pairwise([*inside, False])], np.int64)


def _ranges(values: list[int]) -> Whole:
    """Return the range of each value, with about equally many tokens per range."""
    numbers = np.array(values)
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, RANGES + 1)[1:-1]))
    return np.searchsorted(edges, numbers, side="left").astype(np.int64)


def _varies(values: Whole) -> bool:
    most = np.bincount(values).max() / len(values)
    return bool(1 - most >= LEAST)
