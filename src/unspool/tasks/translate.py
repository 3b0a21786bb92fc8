"""Translate sequences: an output sequence of another length, of tokens or of numbers.

>>> X, y = ["ab", "ba", "aab", "bba"] * 8, ["AB", "BA", "AAB", "BBA"] * 8
>>> model = SequenceTranslator(hidden=32, epochs=60, learning_rate=0.01).fit(X, y)
>>> model.predict(["ab", "bba"]), model.score(X, y)
(['AB', 'BBA'], 1.0)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from unspool.data.batches.examples import Examples, SequenceBatch
from unspool.data.encoders import Encoder, TokenEncoder, ValueEncoder, holds_tokens
from unspool.data.text.sources import refuse_file_names
from unspool.errors import InputError
from unspool.kernels.arrays import Floats, Ids
from unspool.model import options as network
from unspool.model.attention import attention_weights
from unspool.model.decode import Hypothesis, beam, roll_out
from unspool.model.sequence_config import EOS, Head, Shape
from unspool.model.sequence_network import NetworkWeights
from unspool.options import at_least, declared
from unspool.tasks.estimator import SCORED, Estimator
from unspool.training.sequence_fit import evaluate


@declared(network)
@dataclass(eq=False, repr=False, kw_only=True)
class SequenceTranslator(Estimator):
    """Encoder-decoder: a sequence to a sequence of another length, of tokens or of numbers."""

    shape: ClassVar[Shape] = "encoder-decoder"
    kind: ClassVar[str] = "translator"
    run_kind: ClassVar[str] = "translate"
    attention: network.Attention = "none"
    beam: int = 1
    std: bool = False
    max_length: int | None = None

    def _learn_targets(self, y: Any, x: Any) -> tuple[Any, Head, int]:
        if isinstance(y, str):
            raise InputError("y is one string; expected a list with a target for each input")
        refuse_file_names(y, "y")
        if len(y) != len(x):
            raise InputError(f"there are {len(x)} inputs and {len(y)} targets; expected as many")
        if holds_tokens(y):
            self.target_coder_: Encoder = TokenEncoder.fit(y, tokens=self.tokens)
            rows = self.target_ids(y)
            self.max_length_ = 2 * max(map(len, rows)) if self.max_length is None else self.max_length
            return rows, "classes", self.target_coder_.size
        self.target_coder_ = ValueEncoder.fit(y, name="y")
        rows = list(self.target_coder_.encode(y))
        self.max_length_ = max(map(len, rows)) if self.max_length is None else self.max_length
        return rows, "distribution" if self.std else "numbers", self.target_coder_.size

    def predict(self, X: Any) -> Any:
        """Return the output for each input: texts or lists of tokens, or numbers (n, steps, O)."""
        if isinstance(self._fitted_coder(), TokenEncoder):
            return [text for text, _ in self.predict_scored(X)]
        return self.predict_distribution(X)[0]

    def predict_scored(self, X: Any) -> list[tuple[Any, float]]:
        """Return the output for each input and its log-probability."""
        coder = self._fitted_coder()
        if not isinstance(coder, TokenEncoder):
            raise InputError("numbers have no log P of tokens: ask predict_distribution")
        return [(coder.decode(each.tokens), each.log_prob) for each in self._decode(X, self._most_probable)]

    def _most_probable(self, batch: SequenceBatch, weights: NetworkWeights) -> list[Hypothesis]:
        return beam(self.network_, batch, weights, max_length=self.max_length_, width=self.beam)

    def predict_distribution(self, X: Any) -> tuple[Floats, Floats | None]:
        """Return mean and standard deviation of the output, each (n, steps, O); None where none was learned."""
        coder = self._fitted_coder()
        if not isinstance(coder, ValueEncoder):
            raise InputError("tokens have no mean and standard deviation: ask predict or predict_scored")
        o = np.stack(self._decode(X, self._numbers))
        head = self.network_.head
        return coder.decode(head.mean(o)), head.std(o) * coder.std if head.has_std else None

    def _numbers(self, batch: SequenceBatch, weights: NetworkWeights) -> list[Floats]:
        return list(roll_out(self.network_, batch, weights, steps=self.max_length_).swapaxes(0, 1))

    def _decode(self, X: Any, write: Callable[[SequenceBatch, NetworkWeights], list[Any]]) -> list[Any]:
        at_least("beam", self.beam, 1)
        examples, weights = self._examples(X), self.network_.weights()
        found = list[Any]([None] * len(examples))
        for batch in examples.batches(max(1, examples.rows_at_once(SCORED) // self.beam), per_step=False):
            for row, each in zip(batch.rows.tolist(), write(batch, weights), strict=True):
                found[row] = each
        return found

    def attention_of(self, x: Any) -> tuple[Floats, list[str], list[str]]:
        """Return the attention weights of one input, one row per output token with <eos>, and both texts."""
        source, target = self.coder_, self._fitted_coder()
        if not (isinstance(source, TokenEncoder) and isinstance(target, TokenEncoder)):
            raise InputError("attention_of is for tokens on both sides")
        if self.network_.config.attention == "none":
            raise InputError("this network has no attention: fit one with attention='general'")
        weights = self.network_.weights()
        batch = self._examples([x]).batch(np.arange(1), per_step=False)
        decoded = np.append(self._most_probable(batch, weights)[0].tokens, EOS).astype(np.int32)
        asked = replace(batch, y=decoded[:, None], target_lengths=np.array([len(decoded)], np.int32))
        tape = self.network_.forward(asked, weights).attended
        assert tape is not None and weights.attention is not None
        alpha = attention_weights(weights.attention, tape)[0]
        return alpha, source.vocab.to_tokens(batch.x[:, 0]), target.vocab.to_tokens(decoded)

    def _fitted_coder(self) -> Encoder:
        if not hasattr(self, "target_coder_"):
            self._examples([])
        return self.target_coder_

    def target_ids(self, y: Any) -> list[Ids]:
        """Return targets as token ids, each with <eos> at its end."""
        coder = self._fitted_coder()
        if not isinstance(coder, TokenEncoder):
            raise InputError("the targets are numbers, and have no tokens")
        return [np.append(ids, EOS).astype(np.int32) for ids in coder.encode(y)]

    def log_loss(self, X: Any, y: Any) -> float:
        """Return the mean of -log P per token of the targets, <eos> included, with the targets as input (in nats)."""
        inputs, targets = self._examples(X), self.target_ids(y)
        return evaluate(self.network_, Examples(inputs.x, targets)).mean

    def score(self, X: Any, y: Any) -> float:
        """Return the share of inputs whose whole output is right; for numbers, R²."""
        found = self.predict(X)
        if isinstance(self.target_coder_, TokenEncoder):
            return float(np.mean([a == b for a, b in zip(found, y, strict=True)]))
        truth = np.asarray(y, np.float64).reshape(found.shape)
        return float(1 - ((truth - found) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())
