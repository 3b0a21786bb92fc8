"""The prediction that reads nothing: the share of each class, or the mean of the targets.

classes   o = log (n_k + 1) of class k with n_k rows          numbers   o = ȳ
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from unspool.baselines.sequences.base import Rows, SequenceBaseline
from unspool.kernels.arrays import Floats
from unspool.kernels.elementwise import log
from unspool.model.heads.base import Head
from unspool.storage.tensors import check_array


@dataclass(frozen=True)
class Constant(SequenceBaseline):
    """The same o for every row."""

    is_constant: ClassVar[bool] = True

    o: Floats  # K

    def outputs(self, rows: Rows) -> Floats:
        """Return o, once per row."""
        return np.tile(self.o, (len(rows), 1))

    def arrays(self) -> dict[str, Floats]:
        """Return o."""
        return {"o": self.o}

    @classmethod
    def restore(cls, fields: dict[str, Any], arrays: Mapping[str, Floats], K: int, path: object) -> Self:
        """Read o from a file."""
        return cls(check_array(arrays, "o", (K,), path))


class MajorityClass(Constant):
    """The share of each class among the training rows."""

    name: ClassVar[str] = "majority class"

    @classmethod
    def accepts(cls, rows: Rows, head: Head, per_step: bool) -> bool:
        """Accept classes, one per row."""
        return head.is_discrete and not per_step

    @classmethod
    def fit(cls, rows: Rows, y: Any, head: Head, seed: int) -> Self:
        """Count the classes."""
        counts = np.bincount(y, minlength=head.outputs)
        return cls(log(counts + 1.0).astype(np.float32))


class MeanTarget(Constant):
    """The mean of the training targets."""

    name: ClassVar[str] = "mean of the training split"

    @classmethod
    def accepts(cls, rows: Rows, head: Head, per_step: bool) -> bool:
        """Accept numbers, one vector per row."""
        return not head.is_discrete and not per_step

    @classmethod
    def fit(cls, rows: Rows, y: Any, head: Head, seed: int) -> Self:
        """Average the targets."""
        return cls(np.asarray(y, np.float64).mean(axis=0).astype(np.float32))
