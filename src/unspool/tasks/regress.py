"""Predict numbers from sequences: after the last step, or at every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unspool.data.encoders import ValueEncoder
from unspool.errors import InputError
from unspool.kernels.arrays import Floats
from unspool.model import options as network
from unspool.model.sequence_config import Head, Shape
from unspool.options import declared
from unspool.tasks.compared import ComparedEstimator


def refuse_constant(y: Any, names: Sequence[str] | None = None) -> None:
    """Raise where a target, a column of y, has the same value in all of several rows."""
    for k in np.flatnonzero(np.ptp(y, axis=0) == 0).tolist() if len(y) > 1 else ():
        which = f"target {k + 1} of y" if y.shape[1] > 1 else "the target y"
        raise InputError(
            f"{names[k] if names else which} is constant: all {len(y):,} values are {y[0, k]:g}; there is nothing to learn"
        )


@declared(network)
@dataclass(eq=False, repr=False, kw_only=True)
class SequenceRegressor(ComparedEstimator):
    """A sequence to numbers: after the last step or at every step, with their standard deviation where wanted."""

    kind: ClassVar[str] = "regressor"
    run_kind: ClassVar[str] = "regress"
    every_step: bool = False
    std: bool = False
    floor: float = 1e-3
    pool: network.Pool = "last"

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        """many-to-many where there is a target at every step."""
        return "many-to-many" if self.every_step else "many-to-one"

    def _learn_targets(self, y: Any, x: Any) -> tuple[Any, Head, int]:
        head: Head = "distribution" if self.std else "numbers"
        if self.std and self.model in ("baseline", "mean"):
            raise InputError(
                f"model is {self.model!r}, and no baseline has a standard deviation; with std, expected network or best"
            )
        if self.every_step:
            self.target_coder_ = ValueEncoder.fit(y, name="y")
            refuse_constant(np.concatenate([np.reshape(each, (-1, self.target_coder_.size)) for each in y]))
            return self.target_coder_.encode(y), head, self.target_coder_.size
        try:
            numbers = np.asarray(y, np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"y holds something that is not a number: {error}") from error
        if len(numbers) != len(x) or numbers.ndim not in (1, 2):
            raise InputError(
                f"y has shape {numbers.shape}; expected ({len(x)},) or ({len(x)}, numbers), a row a sequence"
            )
        self.single_ = numbers.ndim == 1
        rows = numbers.reshape(len(x), 1, -1)
        self.target_coder_ = ValueEncoder.fit(rows, name="y")
        refuse_constant(rows[:, 0])
        return self.target_coder_.encode(rows)[:, 0], head, rows.shape[2]

    def predict_distribution(self, X: Any) -> tuple[Any, Any]:
        """Return the mean and the standard deviation of every number; requires a fit with std=True."""
        means, spreads = self._parts(X)
        if spreads is None:
            raise InputError(
                "no standard deviation was learned: fit with std=True, or ask predict for the mean alone"
            )
        return means, spreads

    def _parts(self, X: Any) -> tuple[Any, Any]:
        found, head, coder = self._outputs(X), self.network_.head, self.target_coder_
        return self._means(found), self._shaped(
            [head.std(o) * coder.std for o in found]
        ) if head.has_std else None

    def _means(self, outputs: list[Floats]) -> Any:
        return self._shaped([self.target_coder_.decode(self.network_.head.mean(o)) for o in outputs])

    def predict_by_model(self, X: Any) -> dict[str, Any]:
        """Return the numbers by each model that can answer, by the names in `choice_`."""
        choice = self.choice_
        return {choice.named(kept): self._means(self._outputs(X, kept)) for kept in choice.answers}

    def _shaped(self, rows: list[Floats]) -> Any:
        """Return numbers in the shape of the targets: (n,), (n, O), or one array (tau, O) per sequence."""
        if self.every_step:
            return rows
        stacked = np.stack(rows)
        return stacked[:, 0] if self.single_ else stacked

    def predict(self, X: Any) -> Any:
        """Return the numbers, or the mean of their distribution."""
        return self._parts(X)[0]

    def score(self, X: Any, y: Any) -> float:
        """Return R²: 1 is perfect, 0 is as good as the mean of y."""
        found = self.predict(X)
        if self.every_step:
            found, y = (
                np.concatenate(found),
                np.concatenate([np.reshape(each, (len(each), -1)) for each in y]),
            )
        truth = np.asarray(y, np.float64).reshape(found.shape)
        rest = ((truth - found) ** 2).sum(axis=0)
        total = ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
        return float(np.mean(np.where(total > 0, 1 - rest / np.where(total > 0, total, 1), 0.0)))
