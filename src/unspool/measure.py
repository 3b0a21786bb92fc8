"""How well a model predicts, by one protocol for every model: counts and networks alike.

A model gives log P(x(t) | x(1) … x(t-1)) for every target. Each target is scored once, the logarithms are
summed over all targets, and the sum is divided once, at the end:

    nats        = -1/n Σ log P(x(t) | x(1) … x(t-1))                                    (1)
    perplexity  = exp(nats)                                                             (2)
    bits per character = Σ -log2 P / characters,   bits per byte likewise                (3)

Perplexity is the geometric mean of 1/P (common lecture notes say harmonic: it is not). It is 1 for a model
that is always certain and right, infinite for one that ever gives a target the probability 0, and K for one
that gives K tokens the same. The first token of a text has nothing before it; it is context and not a
target, for every model.

>>> measure(np.log([0.5, 0.25, 0.125]), characters=6)
Measure(targets=3, nats=1.3862943611198906, characters=6, bytes=None)
>>> _.perplexity, _.bits_per_character
(4.0, 1.0)
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unspool.errors import EmptyInput


class LanguageModel(Protocol):
    """Anything that gives probabilities to the tokens of a text."""

    def log_prob(self, ids: NDArray[np.int32], given: int = 1) -> NDArray[np.float64]:
        """Give log P(x(t) | all before) for every token but the first ``given``, which are only context."""


@dataclass(frozen=True)
class Measure:
    """The result over one text."""

    targets: int
    """How many tokens were predicted."""
    nats: float
    """The mean of -log P over the targets."""
    characters: int | None = None
    """How many characters of text the targets stand for, where known."""
    bytes: int | None = None
    """How many bytes, where known."""

    @property
    def perplexity(self) -> float:
        """The geometric mean of 1/P: among how many equally likely tokens the model wavers."""
        return math.exp(self.nats) if self.nats < 709 else math.inf

    @property
    def bits_per_character(self) -> float | None:
        """What a character costs, whatever the tokens are."""
        return self._bits_per(self.characters)

    @property
    def bits_per_byte(self) -> float | None:
        """What a byte costs."""
        return self._bits_per(self.bytes)

    def _bits_per(self, units: int | None) -> float | None:
        return self.nats * self.targets / math.log(2) / units if units else None


def measure(
    log_probs: NDArray[np.float64] | Iterable[NDArray[np.float64]],
    characters: int | None = None,
    bytes: int | None = None,
) -> Measure:
    """Add up the log-probabilities of all targets, in one array or in blocks, and divide once.

    >>> measure([np.log([0.5]), np.log([0.125, 0.125])]).nats == measure(np.log([0.5, 0.125, 0.125])).nats
    True
    """
    blocks = [log_probs] if isinstance(log_probs, np.ndarray) else list(log_probs)
    targets = sum(map(len, blocks))
    if not targets:
        raise EmptyInput(
            "nothing to measure: a text needs at least two tokens, one to start from and one to predict"
        )
    total = math.fsum(float(np.sum(block, dtype=np.float64)) for block in blocks)
    return Measure(targets, 0.0 - total / targets, characters, bytes)
