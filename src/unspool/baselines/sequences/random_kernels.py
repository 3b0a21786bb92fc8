"""Convolutions with thresholds and a linear head: ridge regression, or of many rows a model trained by the loop of every network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from unspool.baselines.sequences.base import Rows, SequenceBaseline
from unspool.baselines.sequences.dense_linear import fit_dense
from unspool.baselines.sequences.kernels import Convolutions
from unspool.baselines.sequences.ridge_head import MOST_ROWS, RidgeHead
from unspool.errors import FileError
from unspool.kernels.arrays import Floats
from unspool.model.heads.base import Head
from unspool.storage.tensors import check_array

SHORTEST = 5
"""Series of fewer steps are not read."""
BLOCK = 1 << 24
"""The most features that are computed at once for predictions."""


@dataclass(frozen=True)
class RandomKernels(SequenceBaseline):
    """Shares of steps above thresholds, and a linear head."""

    name: ClassVar[str] = "random kernels"

    convolutions: Convolutions
    head: RidgeHead

    @classmethod
    def accepts(cls, rows: Rows, head: Head, per_step: bool) -> bool:
        """Accept series of numbers with one target per row; of the shortest ones, kernels see nothing but zeros around."""
        long = rows.dense and max(map(len, rows.x)) >= SHORTEST
        return long and not per_step and not head.has_std

    @classmethod
    def fit(cls, rows: Rows, y: Any, head: Head, seed: int) -> Self:
        """Draw the kernels, and fit the head."""
        x = list(rows.x)
        convolutions = Convolutions.fit(x, seed)
        z = convolutions.features(x)
        if len(z) > MOST_ROWS:
            return cls(convolutions, fit_dense(z, y, head, seed))
        return cls(convolutions, RidgeHead.fit(z, y, head.K, head.is_discrete))

    def outputs(self, rows: Rows) -> Floats:
        """Return o of every row, n K."""
        return np.concatenate([self.head(self.convolutions.features(x)) for x in self._blocks(rows)])

    def _blocks(self, rows: Rows) -> Iterator[list[Floats]]:
        most = max(1, BLOCK // self.convolutions.size)
        for at in range(0, len(rows), most):
            yield list(rows.x[at : at + most])

    def arrays(self) -> dict[str, Floats]:
        """Return kernels and head."""
        return vars(self.convolutions) | vars(self.head)

    @classmethod
    def restore(cls, fields: dict[str, Any], arrays: Mapping[str, Floats], K: int, path: object) -> Self:
        """Read kernels and head from a file."""
        thresholds = check_array(arrays, "thresholds", (None, 84, None), path)
        D, F = len(thresholds), thresholds.size
        channels = check_array(arrays, "channels", (D, 84, None), path)
        dilations = check_array(arrays, "dilations", (D,), path, np.int32)
        if D and (dilations.min() < 1 or dilations.max() > 1 << 20):
            raise FileError(f"{path}: damaged or manipulated: dilations must be 1 to 1,048,576")
        shapes = {"mean": (F,), "scale": (F,), "W": (F, K), "c": (K,)}
        head = RidgeHead(*(check_array(arrays, name, shape, path) for name, shape in shapes.items()))
        return cls(Convolutions(dilations, channels, thresholds), head)
