"""Estimators for one answer a sequence and for one a step: classes, numbers, tags.

>>> X = [[0.0, 1.0, 2.0], [3.0, 2.0, 1.0, 0.0], [1.0, 2.0, 4.0], [5.0, 1.0]] * 10
>>> y = ["rising", "falling"] * 20
>>> model = SequenceClassifier(hidden=16, epochs=20).fit(X, y)
>>> model.predict([[0.0, 1.0, 3.0], [4.0, 1.0, 0.0]]).tolist(), model.score(X, y)
(['rising', 'falling'], 1.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unspool.data.encoders import ValueEncoder
from unspool.errors import InputError
from unspool.kernels.arrays import Floats
from unspool.kernels.elementwise import softmax
from unspool.model import options as network
from unspool.model.sequence_config import Head, Shape
from unspool.options import declared
from unspool.tasks.estimator import SCORED, Estimator, labels_of, refuse_none


@declared(network)
@dataclass(eq=False, repr=False, kw_only=True)
class SequenceClassifier(Estimator):
    """Many-to-one: a sequence to a class. Sequences of length one make it one-to-one."""

    shape: ClassVar[Shape] = "many-to-one"
    kind: ClassVar[str] = "classifier"
    run_kind: ClassVar[str] = "classify"
    pool: network.Pool = "last"
    prior_correction: float = 0.0

    def _learn_targets(self, y: Any, x: Any) -> tuple[Any, Head, int]:
        labels = labels_of(y, len(x))
        if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
            raise InputError(
                "Unknown label type: y holds continuous numbers; classes are names or whole numbers"
            )
        self.classes_, ids, counts = np.unique(labels, return_inverse=True, return_counts=True)
        if len(self.classes_) < 2:
            raise InputError(f"there is only one class, {self.classes_.tolist()[0]!r}: nothing to tell apart")
        self.class_prior_ = counts / counts.sum()
        return ids.astype(np.int32), "classes", len(self.classes_)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class, n K, in the order of `classes_`."""
        o = np.stack(self._outputs(X)).astype(np.float64)
        return softmax((o - self.prior_correction * np.log(self.class_prior_)).astype(np.float32)).astype(
            np.float64
        )

    def predict_proba_steps(self, X: Any) -> list[Floats]:
        """Return the probabilities after every step, an array tau K a sequence: the answer as it arrives."""
        examples, network = self._examples(X), self.network_
        if network.config.bidirectional or not network.pooling.grows_with_steps:
            raise InputError(
                "an answer at every step needs one direction and pool='last': the end is not read yet"
            )
        weights, prior = network.weights(), self.prior_correction * np.log(self.class_prior_)
        found = list[Any]([None] * len(examples))
        for batch in examples.batches(examples.rows_at_once(SCORED), aligned=False):
            o = weights.output(network.read(batch, weights).output.h)
            for b, row in enumerate(batch.rows.tolist()):
                own = o[: batch.lengths[b], b].astype(np.float64) - prior
                found[row] = softmax(own.astype(np.float32)).astype(np.float64)
        return found

    def predict(self, X: Any) -> Any:
        """Return the most probable class of every sequence."""
        chosen = self.predict_proba(X).argmax(axis=1)
        return self.classes_[chosen]

    def score(self, X: Any, y: Any) -> float:
        """Return the share of sequences whose class is right."""
        found = self.predict(X)
        return float((found == labels_of(y, len(found))).mean())


def refuse_constant(y: Any, names: Sequence[str] | None = None) -> None:
    """Raise where one of the targets, the columns of y, has the same value in all rows, of which there are several."""
    for k in np.flatnonzero(np.ptp(y, axis=0) == 0).tolist() if len(y) > 1 else ():
        which = f"target {k + 1} of y" if y.shape[1] > 1 else "the target y"
        raise InputError(
            f"{names[k] if names else which} is constant: all {len(y):,} values are {y[0, k]:g}; there is nothing to learn"
        )


@declared(network)
@dataclass(eq=False, repr=False, kw_only=True)
class SequenceRegressor(Estimator):
    """A sequence to numbers: after the last step, or at every step; with their spread where wanted."""

    kind: ClassVar[str] = "regressor"
    run_kind: ClassVar[str] = "regress"
    every_step: bool = False
    spread: bool = False
    floor: float = 1e-3
    pool: network.Pool = "last"

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        """many-to-many where there is a target at every step."""
        return "many-to-many" if self.every_step else "many-to-one"

    def _learn_targets(self, y: Any, x: Any) -> tuple[Any, Head, int]:
        head: Head = "distribution" if self.spread else "numbers"
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
        """Return the mean and the spread of every number; it takes a fit with spread=True."""
        means, spreads = self._parts(X)
        if spreads is None:
            raise InputError("no spread was learned: fit with spread=True, or ask predict for the mean alone")
        return means, spreads

    def _parts(self, X: Any) -> tuple[Any, Any]:
        found, head, coder = self._outputs(X), self.network_.head, self.target_coder_
        means = self._shaped([coder.decode(head.mean(o)) for o in found])
        return means, self._shaped([head.std(o) * coder.std for o in found]) if head.has_std else None

    def _shaped(self, rows: list[Floats]) -> Any:
        """Return numbers as the targets came: (n,), (n, O), or one array (tau, O) a sequence."""
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


@dataclass(eq=False, repr=False, kw_only=True)
class SequenceTagger(Estimator):
    """Many-to-many, aligned: a label for every step."""

    shape: ClassVar[Shape] = "many-to-many"
    kind: ClassVar[str] = "tagger"
    run_kind: ClassVar[str] = "tag"

    def _learn_targets(self, y: Any, x: Any) -> tuple[Any, Head, int]:
        rows = [np.asarray(each) for each in y]
        if len(rows) != len(x):
            raise InputError(f"there are {len(x)} sequences and {len(rows)} rows of labels; expected as many")
        for number, (row, steps) in enumerate(zip(rows, x, strict=True)):
            if row.ndim != 1 or len(row) != len(steps):
                raise InputError(
                    f"sequence {number} has {len(steps)} steps and labels of shape {row.shape}; expected one a step"
                )
        filled = [row for row in rows if len(row)]
        for number, row in enumerate(rows):
            refuse_none(row, f"the labels of sequence {number}")
        self.classes_ = np.unique(np.concatenate(filled)) if filled else np.zeros(0)
        if len(self.classes_) < 2:
            raise InputError(f"there is only one label, {self.classes_.tolist()}: nothing to tell apart")
        ids = [np.searchsorted(self.classes_, row).astype(np.int32) for row in rows]
        return ids, "classes", len(self.classes_)

    def predict_proba(self, X: Any) -> list[Floats]:
        """Return the probability of every label at every step: an array tau K a sequence."""
        return [softmax(o).astype(np.float64) for o in self._outputs(X)]

    def predict(self, X: Any) -> list[Any]:
        """Return the most probable label of every step: an array a sequence."""
        found = self._outputs(X)
        return [self.classes_[o.argmax(axis=1)] for o in found]

    def score(self, X: Any, y: Any) -> float:
        """Return the share of steps whose label is right."""
        found, truth = np.concatenate(self.predict(X)), np.concatenate([np.asarray(each) for each in y])
        return float((found == truth).mean())
