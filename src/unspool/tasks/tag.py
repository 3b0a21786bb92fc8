"""Tag sequences: one label per step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from unspool.data.encoders import Encoder, TokenEncoder
from unspool.data.tokens.affixes import COUNT
from unspool.errors import InputError
from unspool.kernels.arrays import Floats
from unspool.kernels.elementwise import softmax
from unspool.model import options as network
from unspool.model.sequence_config import Head, SequenceConfig, Shape
from unspool.options import declared
from unspool.tasks.compared import ComparedEstimator
from unspool.tasks.estimator import refuse_none

EMBEDDING = 64
"""The width of the embedding of sub-word features, where none is given."""

WORD_DROPOUT = 0.1
"""The probability that a word is read by its sub-word features alone in training: it learns what they say."""


def holds_words(rows: Any) -> bool:
    """Return whether sequences are lists of strings, some of which have several characters.

    >>> holds_words([["to", "be"]]), holds_words([["a", "b"]]), holds_words(["to be"])
    (True, False, False)
    """
    lists = (row for row in rows if isinstance(row, list | tuple | np.ndarray))
    return any(isinstance(each, str) and len(each) > 1 for row in lists for each in row)


@declared(network)
@dataclass(eq=False, repr=False, kw_only=True)
class SequenceTagger(ComparedEstimator):
    """Many-to-many, aligned: a label for every step."""

    shape: ClassVar[Shape] = "many-to-many"
    kind: ClassVar[str] = "tagger"
    run_kind: ClassVar[str] = "tag"
    subwords: bool = True

    def _encoder(self, rows: Any) -> Encoder:
        if self.subwords and self.inputs in ("auto", "tokens") and holds_words(rows):
            return TokenEncoder.fit(rows, tokens=self.tokens, subwords=True)
        return super()._encoder(rows)

    def network_config(self, coder: Encoder, head: Head, outputs: int) -> SequenceConfig:
        """Return the config of the network: the embeddings of the features of a word are added."""
        made = super().network_config(coder, head, outputs)
        if not isinstance(coder, TokenEncoder) or not coder.subwords:
            return made
        return replace(made, features=COUNT, embedding=self.embedding or EMBEDDING, word_dropout=WORD_DROPOUT)

    def _learn_targets(self, y: Any, x: Any) -> tuple[Any, Head, int]:
        rows = [np.asarray(each) for each in y]
        if len(rows) != len(x):
            raise InputError(f"there are {len(x)} sequences and {len(rows)} rows of labels; expected as many")
        for number, (row, steps) in enumerate(zip(rows, x, strict=True), 1):
            if row.ndim != 1 or len(row) != len(steps):
                raise InputError(
                    f"sequence {number} has {len(steps)} steps and labels of shape {row.shape}; expected one a step"
                )
        filled = [row for row in rows if len(row)]
        for number, row in enumerate(rows, 1):
            refuse_none(row, f"the labels of sequence {number}")
        self.classes_ = np.unique(np.concatenate(filled)) if filled else np.zeros(0)
        if len(self.classes_) < 2:
            raise InputError(f"there is only one label, {self.classes_.tolist()}: nothing to distinguish")
        ids = [np.searchsorted(self.classes_, row).astype(np.int32) for row in rows]
        return ids, "classes", len(self.classes_)

    def predict_proba(self, X: Any) -> list[Floats]:
        """Return the probability of every label at every step: one array tau K per sequence."""
        return [softmax(o).astype(np.float64) for o in self._outputs(X)]

    def predict(self, X: Any) -> list[Any]:
        """Return the most probable label of every step: one array per sequence."""
        found = self._outputs(X)
        return [self.classes_[o.argmax(axis=1)] for o in found]

    def predict_by_model(self, X: Any) -> dict[str, list[Any]]:
        """Return the most probable label of every step by each model that can answer, by the names in `choice_`."""
        by_model = {self.choice_.named(kept): self._outputs(X, kept) for kept in self.choice_.answers}
        return {name: [self.classes_[o.argmax(axis=1)] for o in found] for name, found in by_model.items()}

    def score(self, X: Any, y: Any) -> float:
        """Return the share of steps whose label is right."""
        found, truth = np.concatenate(self.predict(X)), np.concatenate([np.asarray(each) for each in y])
        return float((found == truth).mean())
