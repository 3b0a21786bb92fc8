"""Generate a sequence from a class or a vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unspool.data.batches.examples import Examples, SequenceBatch
from unspool.data.encoders import TokenEncoder, as_sequences
from unspool.data.tokens.vocab import UNK
from unspool.errors import InputError
from unspool.model.decode import Hypothesis, sample
from unspool.model.sequence_config import Shape
from unspool.model.sequence_network import NetworkWeights
from unspool.options import at_least
from unspool.tasks.translate import SequenceTranslator


@dataclass(eq=False, repr=False, kw_only=True)
class SequenceGenerator(SequenceTranslator):
    """One-to-many: a class or a vector to a sequence."""

    shape: ClassVar[Shape] = "one-to-many"
    kind: ClassVar[str] = "generator"
    run_kind: ClassVar[str] = "generate-from"

    def _many(self, X: Any) -> Any:
        """Return sequences of one step: a class is a token, a vector is a step's values."""
        first = X[0] if len(X) else 0.0
        if isinstance(first, str | np.str_):
            return [[str(each)] for each in X]
        array = np.asarray(X)
        if self.inputs == "ids":
            return array.reshape(len(array), 1)
        return array.reshape(len(array), 1, -1)

    def _examples(self, X: Any) -> Examples:
        if (classes := self.input_classes) is not None:
            for number, (token,) in enumerate(self._many(as_sequences(X))):
                if isinstance(token, str) and token not in classes:
                    raise InputError(
                        f"X[{number}]: the class {token!r} was never seen in training; there are {', '.join(classes)}"
                    )
        return super()._examples(X)

    @property
    def input_classes(self) -> list[str] | None:
        """The classes of the training part, sorted; None where the inputs are not names."""
        coder = getattr(self, "coder_", None)
        if not isinstance(coder, TokenEncoder):
            return None
        special = {UNK, *coder.vocab.reserved_tokens}
        return sorted(token for token in coder.vocab.idx_to_token if token not in special)

    def sample(self, X: Any, *, temperature: float = 1.0, seed: int = 0) -> list[Any]:
        """Sample one sequence of tokens for each class or vector."""
        return [text for text, _ in self.sample_scored(X, temperature=temperature, seed=seed)]

    def sample_scored(self, X: Any, *, temperature: float = 1.0, seed: int = 0) -> list[tuple[Any, float]]:
        """Sample one sequence for each class or vector; return it with its log-probability at temperature 1."""
        coder = self._fitted_coder()
        if not isinstance(coder, TokenEncoder):
            raise InputError("only tokens can be drawn: numbers are predicted")
        at_least("seed", seed, 0)
        if not 0 < temperature < 1e6:
            raise InputError(f"temperature is {temperature!r}; expected a number above 0")

        def write(batch: SequenceBatch, weights: NetworkWeights) -> list[Hypothesis]:
            return sample(
                self.network_, batch, weights, max_length=self.max_length_, temperature=temperature, seed=seed
            )

        return [(coder.decode(each.tokens), each.log_prob) for each in self._decode(X, write)]
