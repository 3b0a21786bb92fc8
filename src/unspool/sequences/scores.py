"""How well classes are told apart: the confusion matrix, and precision, recall and F1 of every class.

    precision = right / all that were called so,   recall = right / all that are so
    F1 = 2 precision recall / (precision + recall),   macro F1 = the mean over the classes

>>> scores = score(["a", "a", "b", "b"], ["a", "b", "b", "b"], ["a", "b"])
>>> scores.accuracy, scores.confusion.tolist(), [round(each.f1, 3) for each in scores.classes]
(0.75, [[1, 1], [0, 2]], [0.667, 0.8])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from unspool.data.arrays import Whole
from unspool.errors import EmptyInput, InputError


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
    confusion: Whole  # K K, the truth in rows, the answers in columns

    @property
    def accuracy(self) -> float:
        """The share that is right."""
        return float(np.trace(self.confusion) / self.confusion.sum())

    @property
    def macro_f1(self) -> float:
        """The mean of F1 over the classes that occur, in truth or in answers: a rare one counts as much."""
        met = (self.confusion.sum(axis=0) + self.confusion.sum(axis=1)) > 0
        return float(np.mean([each.f1 for each, there in zip(self.classes, met, strict=True) if there]))

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "accuracy": self.accuracy,
            "macro_f1": self.macro_f1,
            "classes": [asdict(each) for each in self.classes],
            "confusion": self.confusion.tolist(),
        }


def score(truth: Sequence[Any], answers: Sequence[Any], classes: Sequence[Any]) -> Scores:
    """Compare answers with the truth; every label must be one of the classes."""
    if len(truth) != len(answers):
        raise InputError(f"there are {len(truth)} labels and {len(answers)} answers")
    if not len(truth):
        raise EmptyInput("nothing to score")
    number = {name: i for i, name in enumerate(classes)}
    confusion = np.zeros((len(classes), len(classes)), np.int64)
    for a, b in zip(truth, answers, strict=True):
        if a not in number or b not in number:
            raise InputError(f"{a if a not in number else b!r} is none of the classes {list(number)}")
        confusion[number[a], number[b]] += 1
    right = np.diag(confusion).astype(float)
    called, are = confusion.sum(axis=0), confusion.sum(axis=1)
    precision, recall = right / np.maximum(called, 1), right / np.maximum(are, 1)
    f1 = 2 * right / np.maximum(called + are, 1)
    rows = zip(classes, precision.tolist(), recall.tolist(), f1.tolist(), are.tolist(), strict=True)
    return Scores([ClassScore(str(name), *rest) for name, *rest in rows], confusion)


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


def error_rate(truth: Sequence[Sequence[Any]], answers: Sequence[Sequence[Any]]) -> float:
    """Return all edits over all characters of the truth."""
    total = sum(map(len, truth))
    return sum(edits(a, b) for a, b in zip(truth, answers, strict=True)) / max(1, total)
