"""How well a model predicts, by one protocol for every model: counts and networks alike.

A model gives log P(x(t) | x(1) … x(t-1)) for every target. Each target is scored once, the logarithms are
summed over all targets, and the sum is divided once, at the end:

    nats        = -1/n Σ log P(x(t) | x(1) … x(t-1))                                    (1)
    perplexity  = exp(nats)                                                             (2)
    bits per character = Σ -log2 P / characters,   bits per byte likewise                (3)
    error       = s / √m, with s the standard deviation of the means of m long stretches   (4)

Perplexity is the geometric mean of 1/P (common lecture notes say harmonic: it is not). It is 1 for a model
that is always certain and right, infinite for one that ever gives a target the probability 0, and K for one
that gives K tokens the same. The first token of a text has nothing before it; it is context and not a
target, for every model.

>>> measure(np.log([0.5, 0.25, 0.125]), characters=6)
Metrics(targets=3, nats=1.3862943611198906, characters=6, bytes=None, error=None)
>>> _.perplexity, _.bits_per_character
(4.0, 1.0)
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unspool.errors import EmptyInput

BLOCK = 1 << 16


class ScoresText(Protocol):
    """Anything that gives probabilities to the tokens of a text."""

    def log_prob(self, ids: NDArray[np.int32], given: int = 1) -> NDArray[np.float64]:
        """Give log P(x(t) | all before) for every token but the first ``given``, which are only context."""


@dataclass(frozen=True)
class Metrics:
    """The result over one text."""

    targets: int
    """How many tokens were predicted."""
    nats: float
    """The mean of -log P over the targets."""
    characters: int | None = None
    """How many characters of text the targets stand for, where known."""
    bytes: int | None = None
    """How many bytes, where known."""
    error: float | None = None
    """The standard error of the nats, where there is enough text to say."""

    @property
    def perplexity(self) -> float:
        """The geometric mean of 1/P: among how many equally likely tokens the model wavers."""
        if not self.nats < 709:
            return math.inf
        # exp(log K) may miss K by a last bit: where a whole number has this logarithm, that number is meant.
        whole = round(math.exp(self.nats))
        meant = whole > 0 and abs(math.log(whole) - self.nats) <= math.ulp(self.nats)
        return float(whole) if meant else math.exp(self.nats)

    @property
    def bits_per_character(self) -> float | None:
        """What a character costs, whatever the tokens are."""
        return self._bits_per(self.characters)

    @property
    def bits_per_byte(self) -> float | None:
        """What a byte costs."""
        return self._bits_per(self.bytes)

    def to_json(self) -> dict[str, Any]:
        """Give all figures as plain values; an infinite one as a string, because JSON has no such number."""
        found = asdict(self) | {
            "perplexity": self.perplexity,
            "bits_per_character": self.bits_per_character,
            "bits_per_byte": self.bits_per_byte,
        }
        return {name: str(value) if value == math.inf else value for name, value in found.items()}

    def _bits_per(self, units: int | None) -> float | None:
        return self.nats * self.targets / math.log(2) / units if units else None


def measure(
    log_probs: NDArray[np.float64] | Iterable[NDArray[np.float64]],
    characters: int | None = None,
    bytes: int | None = None,
) -> Metrics:
    """Add up the log-probabilities of all targets, in one array (n,) or in blocks, and divide once.

    >>> measure([np.log([0.5]), np.log([0.125, 0.125])]).nats == measure(np.log([0.5, 0.125, 0.125])).nats
    True
    """
    blocks = [log_probs] if isinstance(log_probs, np.ndarray) else list(log_probs)
    targets = sum(map(len, blocks))
    if not targets:
        raise EmptyInput(
            "nothing to measure: a text needs at least two tokens, one to start from and one to predict"
        )
    every = np.concatenate(blocks, dtype=np.float64)
    # Around the first value, so that equal values have exactly that value as their mean.
    middle = every[0] if math.isfinite(every[0]) else 0.0
    # Rounded once, whatever the machine: the best model is chosen by this number.
    blocks_around = ((every[at : at + BLOCK] - middle).tolist() for at in range(0, targets, BLOCK))
    mean = float(middle + math.fsum(chain.from_iterable(blocks_around)) / targets)
    return Metrics(targets, 0.0 - mean, characters, bytes, standard_error(every))


def standard_error(log_probs: NDArray[np.float64]) -> float | None:
    """Give the standard error of the mean of -log P: (4).

    Neighbours in a text are alike, so the targets are no independent draws. Means of long stretches nearly are:
    n targets are cut into m = ⌊√n⌋ stretches of equal length (the few left over are left out).

    >>> standard_error(np.tile([-1.0, -3.0], 2))
    0.0
    """
    stretches = math.isqrt(len(log_probs))
    if stretches < 2 or not np.isfinite(log_probs).all():
        return None
    length = len(log_probs) // stretches
    around = log_probs[: stretches * length] - log_probs[0]  # equal values have no error at all
    means = around.reshape(stretches, length).mean(1)
    return float(means.std(ddof=1) / math.sqrt(stretches))  # (4)
