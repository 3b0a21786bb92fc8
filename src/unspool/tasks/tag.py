"""Tag sequences: one label per step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from unspool.baselines.sequences.choice import NETWORK, Choice
from unspool.data.batches.examples import Examples
from unspool.data.encoders import Encoder, TokenEncoder
from unspool.data.tokens.affixes import COUNT
from unspool.errors import InputError
from unspool.kernels.arrays import Floats
from unspool.kernels.elementwise import log, softmax
from unspool.model import options as network
from unspool.model.losses.chain import forward_backward, viterbi
from unspool.model.sequence_config import Head, SequenceConfig, Shape
from unspool.options import declared
from unspool.tasks.compared import ComparedEstimator
from unspool.tasks.estimator import refuse_none
from unspool.tasks.estimator_files import CHOICE

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
    averages: ClassVar[bool] = False
    absent: ClassVar[Mapping[str, Any]] = {"subwords": False}
    subwords: bool = True
    crf: bool = False

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

    def _learn(self, X: Any, y: Any, sample_weight: Any = None) -> Examples:
        examples = super()._learn(X, y, sample_weight)
        if self.crf and examples.weights is not None:
            raise InputError("crf with weights of sequences is not supported; leave one of them out")
        return examples

    def _network_outputs(self, examples: Examples) -> Any:
        """Return o of the network; with a CRF, the logarithm of the probability of every label."""
        found = super()._network_outputs(examples)
        if not self.network_.config.crf:
            return found
        A, backend = self.network_.parameters["A"], self.network_.backend
        lengths = [np.array([len(o)], np.int32) for o in found]
        marginals = [
            forward_backward(o[:, None], A, n, backend).p[:, 0] for o, n in zip(found, lengths, strict=True)
        ]
        return [log(np.maximum(p, 1e-30)).astype(np.float32) for p in marginals]

    def _labels(self, X: Any, kept: str | None = None) -> list[Any]:
        """Return the most probable labels of every row: with a CRF, the most probable sequence."""
        choice = getattr(self, CHOICE, Choice(NETWORK))
        if not self.network_.config.crf or (kept or choice.kept) != NETWORK:
            return [self.classes_[o.argmax(axis=1)] for o in self._outputs(X, kept)]
        A = self.network_.parameters["A"]
        return [self.classes_[viterbi(o, A)] for o in self._outputs_of(self._examples(X), self.network_)]

    def predict_proba(self, X: Any) -> list[Floats]:
        """Return the probability of every label at every step: one array tau K per sequence."""
        return [softmax(o).astype(np.float64) for o in self._outputs(X)]

    def predict(self, X: Any) -> list[Any]:
        """Return the most probable label of every step: one array per sequence."""
        self._examples(X)  # raises before the fit
        return self._labels(X)

    def predict_by_model(self, X: Any) -> dict[str, list[Any]]:
        """Return the most probable label of every step by each model that can answer, by the names in `choice_`."""
        return {self.choice_.named(kept): self._labels(X, kept) for kept in self.choice_.answers}

    def score(self, X: Any, y: Any) -> float:
        """Return the share of steps whose label is right."""
        found, truth = np.concatenate(self.predict(X)), np.concatenate([np.asarray(each) for each in y])
        return float((found == truth).mean())
