"""Classify sequences: one class per sequence.

>>> X = [[0.0, 1.0, 2.0], [3.0, 2.0, 1.0, 0.0], [1.0, 2.0, 4.0], [5.0, 1.0]] * 10
>>> y = ["rising", "falling"] * 20
>>> model = SequenceClassifier(hidden=16, epochs=20).fit(X, y)
>>> model.predict([[0.0, 1.0, 3.0], [4.0, 1.0, 0.0]]).tolist(), model.score(X, y)
(['rising', 'falling'], 1.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Floats
from unspool.kernels.elementwise import log, softmax
from unspool.model import options as network
from unspool.model.sequence_config import Head, Shape
from unspool.options import declared
from unspool.tasks.compared import ComparedEstimator
from unspool.tasks.estimator import SCORED, labels_of


@declared(network)
@dataclass(eq=False, repr=False, kw_only=True)
class SequenceClassifier(ComparedEstimator):
    """Many-to-one: a sequence to a class. Sequences of length one make it one-to-one."""

    shape: ClassVar[Shape] = "many-to-one"
    kind: ClassVar[str] = "classifier"
    run_kind: ClassVar[str] = "classify"
    pool: network.Pool = "last"
    prior_correction: float = 0.0
    class_weight: dict[str, float] | str | None = None
    """How much each class counts in the loss: a weight per class, or balanced, n / (K n_k)."""

    def _weights(self, sample_weight: Any, targets: Any) -> Any:
        if self.class_weight is None:
            return sample_weight
        if self.class_weight == "balanced":
            per_class = 1 / (len(self.classes_) * self.class_prior_)
        elif isinstance(self.class_weight, dict):
            given = {str(label): weight for label, weight in self.class_weight.items()}
            if unknown := sorted(set(given) - {str(label) for label in self.classes_}):
                raise InputError(
                    f"class_weight has {unknown[0]!r}; there are {', '.join(map(str, self.classes_))}"
                )
            per_class = np.array([float(given.get(str(label), 1.0)) for label in self.classes_])
        else:
            raise InputError(f"class_weight is {self.class_weight!r}; expected None, 'balanced' or a dict")
        own = per_class[targets]
        return own if sample_weight is None else own * np.asarray(sample_weight, np.float64)

    def _learn_targets(self, y: Any, x: Any) -> tuple[Any, Head, int]:
        labels = labels_of(y, len(x))
        if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
            raise InputError(
                "Unknown label type: y holds continuous numbers; classes are names or whole numbers"
            )
        self.classes_, ids, counts = np.unique(labels, return_inverse=True, return_counts=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"there is only one class, {self.classes_.tolist()[0]!r}: nothing to distinguish"
            )
        self.class_prior_ = counts / counts.sum()
        return ids.astype(np.int32), "classes", len(self.classes_)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class, n K, in the order of `classes_`."""
        return self._proba(self._outputs(X))

    def _proba(self, outputs: list[Floats]) -> Floats:
        o = np.stack(outputs).astype(np.float64) - self.prior_correction * np.log(self.class_prior_)
        return softmax(o.astype(np.float32)).astype(np.float64)

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of the probability of every class, n K."""
        return log(self.predict_proba(X))

    def predict_proba_steps(self, X: Any) -> list[Floats]:
        """Return the network's probabilities after every step, one array tau K per sequence."""
        examples, network = self._examples(X), self.network_
        if network.config.bidirectional or not network.encoder.pooling.grows_with_steps:
            raise InputError(
                "an answer at every step needs one direction and pool='last': the end is not read yet"
            )
        weights, prior = network.weights(), self.prior_correction * np.log(self.class_prior_)
        found = list[Any]([None] * len(examples))
        for batch in examples.batches(examples.rows_at_once(SCORED), per_step=False):
            o = weights.output(network.encode(batch, weights).h)
            for b, row in enumerate(batch.rows.tolist()):
                own = o[: batch.lengths[b], b].astype(np.float64) - prior
                found[row] = softmax(own.astype(np.float32)).astype(np.float64)
        return found

    def predict(self, X: Any) -> Any:
        """Return the most probable class of every sequence."""
        chosen = self.predict_proba(X).argmax(axis=1)
        return self.classes_[chosen]

    def predict_by_model(self, X: Any) -> dict[str, Any]:
        """Return the most probable class of every sequence by each model that can answer, by the names in `choice_`."""
        by_model = {self.choice_.named(kept): self._outputs(X, kept) for kept in self.choice_.answers}
        return {name: self.classes_[self._proba(o).argmax(axis=1)] for name, o in by_model.items()}

    def score(self, X: Any, y: Any) -> float:
        """Return the share of sequences whose class is right."""
        found = self.predict(X)
        return float((found == labels_of(y, len(found))).mean())
