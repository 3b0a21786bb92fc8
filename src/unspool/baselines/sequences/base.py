"""The interface of a baseline of sequences: fitted on rows and targets, it returns o like the network.

o has the meaning of the network's head: unnormalised log-probabilities of classes, or numbers in the units of the
training targets. So scores, mixtures and predictions are computed from it in the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from unspool.kernels.arrays import Floats, Whole
from unspool.model.heads.base import Head


@dataclass(frozen=True)
class Rows:
    """Sequences as they were given, and as the network reads them."""

    raw: Any
    """Texts, lists of tokens, ids or arrays."""
    x: Any
    """Ids (tau,) or float32 (tau, X) of every row."""
    dense: bool
    """Whether they hold numbers, not tokens."""

    def __len__(self) -> int:
        return len(self.x)

    def part(self, rows: Whole) -> Rows:
        """Return some of the rows."""
        return Rows(_taken(self.raw, rows), _taken(self.x, rows), self.dense)


class SequenceBaseline(ABC):
    """A model of sequences without hidden state."""

    name: ClassVar[str]
    """Its name in tables and files."""
    is_constant: ClassVar[bool] = False
    """Whether it does not read the sequence: its mean with the network is of no use."""

    @classmethod
    @abstractmethod
    def accepts(cls, rows: Rows, head: Head, per_step: bool) -> bool:
        """Return whether it can learn from such rows, for such a head."""

    @classmethod
    @abstractmethod
    def fit(cls, rows: Rows, y: Any, head: Head, seed: int) -> Self:
        """Learn from rows and their targets."""

    @abstractmethod
    def outputs(self, rows: Rows) -> Any:
        """Return o of every row, float32 n K; per step, a list of tau K."""

    @abstractmethod
    def arrays(self) -> dict[str, Floats]:
        """Return all arrays that were learned, by name."""

    def fields(self) -> dict[str, Any]:
        """Return all else that was learned, as plain values."""
        return {}

    @classmethod
    @abstractmethod
    def restore(cls, fields: dict[str, Any], arrays: Mapping[str, Floats], K: int, path: object) -> Self:
        """Return the model of a file; raise FileError where it is not one with K outputs."""


def _taken(values: Any, rows: Whole) -> Any:
    return values[rows] if isinstance(values, np.ndarray) else [values[i] for i in rows.tolist()]
