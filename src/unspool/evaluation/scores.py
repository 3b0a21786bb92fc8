"""How well classes are told apart: the confusion matrix, and precision, recall and F1 of every class.

    precision = right / all that were called so,   recall = right / all that are so
    F1 = 2 precision recall / (precision + recall),   macro F1 = the mean over the classes

>>> scores = score(["a", "a", "b", "b"], ["a", "b", "b", "b"], ["a", "b"])
>>> scores.accuracy, scores.confusion.tolist(), [round(each.f1, 3) for each in scores.classes]
(0.75, [[1, 1], [0, 2]], [0.667, 0.8])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from unspool.errors import EmptyInput, InputError
from unspool.kernels.arrays import Whole
from unspool.kernels.memory import require_memory

MATRIX = 1000
"""Of more classes than this, JSON has the cells of the confusion matrix that are not zero in its place."""


@dataclass(frozen=True)
class ClassScore:
    """One class."""

    name: str
    precision: float
    recall: float
    f1: float
    support: int
    """How many there are of it."""


@dataclass(frozen=True)
class Scores:
    """All classes."""

    classes: list[ClassScore]
    cells: Whole  # n 3: truth, answer and how often, for each pair that occurs

    @property
    def total(self) -> int:
        """How many answers were compared."""
        return int(self.cells[:, 2].sum())

    @property
    def confusion(self) -> Whole:
        """The matrix of all pairs, K K: the truth in rows, the answers in columns."""
        K = len(self.classes)
        require_memory(8 * K * K, f"a confusion matrix of {K:,} classes", "use the cells that are not zero")
        matrix = np.zeros((K, K), np.int64)
        matrix[self.cells[:, 0], self.cells[:, 1]] = self.cells[:, 2]
        return matrix

    @property
    def accuracy(self) -> float:
        """The share that is right."""
        right = self.cells[:, 0] == self.cells[:, 1]
        return float(self.cells[right, 2].sum() / self.total)

    @property
    def macro_f1(self) -> float:
        """The mean of F1 over the classes that occur, in truth or in answers: a rare one counts as much."""
        met = np.unique(self.cells[:, :2]).tolist()
        return float(np.mean([self.classes[i].f1 for i in met]))

    def most_frequent(self, most: int) -> Scores:
        """Return the scores of the classes with the most examples, and the pairs among them."""
        kept = sorted(sorted(range(len(self.classes)), key=lambda i: -self.classes[i].support)[:most])
        number = np.full(len(self.classes), -1)
        number[kept] = np.arange(len(kept))
        pairs = np.column_stack([number[self.cells[:, 0]], number[self.cells[:, 1]], self.cells[:, 2]])
        return Scores([self.classes[i] for i in kept], pairs[(pairs >= 0).all(axis=1)])

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "accuracy": self.accuracy,
            "macro_f1": self.macro_f1,
            "classes": [asdict(each) for each in self.classes],
            **self._confusion_json(),
        }

    def _confusion_json(self) -> dict[str, Any]:
        if len(self.classes) <= MATRIX:
            return {"confusion": self.confusion.tolist()}
        return {"confusion": None, "cells": self.cells.tolist()}


def score(truth: Sequence[Any], answers: Sequence[Any], classes: Sequence[Any]) -> Scores:
    """Compare answers with the truth; every label must be one of the classes."""
    if len(truth) != len(answers):
        raise InputError(f"there are {len(truth)} labels and {len(answers)} answers")
    if not len(truth):
        raise EmptyInput("nothing to score")
    number = {name: i for i, name in enumerate(classes)}
    pairs = Counter[tuple[int, int]]()
    for a, b in zip(truth, answers, strict=True):
        if a not in number or b not in number:
            raise InputError(f"{a if a not in number else b!r} is none of the {len(number):,} classes")
        pairs[number[a], number[b]] += 1
    cells = np.array([(*pair, count) for pair, count in sorted(pairs.items())], np.int64)
    right = np.zeros(len(classes))
    are, called = np.zeros((2, len(classes)), np.int64)
    np.add.at(are, cells[:, 0], cells[:, 2])
    np.add.at(called, cells[:, 1], cells[:, 2])
    hits = cells[cells[:, 0] == cells[:, 1]]
    right[hits[:, 0]] = hits[:, 2]
    precision, recall = right / np.maximum(called, 1), right / np.maximum(are, 1)
    f1 = 2 * right / np.maximum(called + are, 1)
    rows = zip(classes, precision.tolist(), recall.tolist(), f1.tolist(), are.tolist(), strict=True)
    return Scores([ClassScore(str(name), *rest) for name, *rest in rows], cells)


def edits(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Count the insertions, deletions and replacements that make b from a.

    >>> edits("kitten", "sitting")
    3
    """
    before = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
        before = row
    return before[-1]


def score_texts(truth: Sequence[Sequence[Any]], answers: Sequence[Sequence[Any]]) -> dict[str, float]:
    """Return the share of answers that are exactly right, and all edits over all characters of the truth.

    >>> score_texts(["abc", "d"], ["abc", "e"])
    {'exact': 0.5, 'error_rate': 0.25}
    """
    pairs = list(zip(truth, answers, strict=True))
    exact = sum(a == b for a, b in pairs) / len(pairs)
    return {"exact": exact, "error_rate": sum(edits(a, b) for a, b in pairs) / max(1, sum(map(len, truth)))}
