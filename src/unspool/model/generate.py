"""A text goes on: read a prefix, draw the next token, read it, draw the next, in constant time a token.

How the next token is drawn from p = softmax(o / temperature):

    temperature 0           the most probable, always (greedy)
    temperature below 1     less random: probable tokens become more probable; above 1 the opposite
    top_k                   only the k most probable; 0: all of them
    top_p                   only the fewest that reach this share together; 1: all of them

The i-th draw uses the i-th number of the seed's sequence, so the same seed gives the same text everywhere.

>>> from unspool.model.config import ModelConfig
>>> model = Model.initialise(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=8), seed=1)
>>> one, two = (list(islice(generate(Stream(model), [3, 1], seed=7), 6)) for _ in range(2))
>>> len(one), one == two
(6, True)
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Protocol

from unspool.errors import InputError
from unspool.model.network import Model
from unspool.model.stream import Stream
from unspool.options import at_least, check_integers, is_number

__all__ = ["TEMPERATURE", "Sampling", "generate", "sample"]

TEMPERATURE = 0.8
"""The default: about where short-trained models use as many different words as held-out text does."""


@dataclass(frozen=True)
class Sampling:
    """How a token is drawn.

    >>> Sampling(temperature=0.7, top_k=40).top_p
    1.0
    """

    temperature: float = TEMPERATURE
    """What the logits are divided by; 1 samples from the model's distribution, 0 is greedy."""
    top_k: int = 0
    """How many of the most probable tokens can be drawn; 0: all."""
    top_p: float = 1.0
    """The share that the tokens that can be drawn reach together."""

    def __post_init__(self) -> None:
        if not (is_number(self.temperature) and math.isfinite(self.temperature) and self.temperature >= 0):
            raise InputError(f"temperature is {self.temperature}; expected a number of 0 or more")
        check_integers(self, top_k=0)
        if not is_number(self.top_p) or not 0 < self.top_p <= 1:
            raise InputError(f"top_p is {self.top_p}; expected more than 0 and at most 1")


class TokenStream(Protocol):
    """Reads tokens and draws the next one: `Stream`, or a model made of one."""

    def read(self, token: int) -> None:
        """Read one token."""

    @property
    def advance(self) -> Callable[..., int]:
        """Read a token and draw the next: see `Stream.advance`."""


def generate(
    stream: TokenStream, prefix: Sequence[int], *, seed: int, sampling: Sampling | None = None
) -> Iterator[int]:
    """Read the prefix, then give one token after the other, without end; the prefix is not repeated.

    The stream goes on from the state that it is in; take as many tokens as you like, and go on later with the
    last one as the prefix.
    """
    if len(prefix) == 0:
        raise InputError("prefix: empty; a network needs a token to start from")
    how = sampling or Sampling()
    for token in prefix[:-1]:
        stream.read(int(token))
    token = int(prefix[-1])
    for index in count():
        token = stream.advance(
            token,
            seed=seed,
            index=index,
            temperature=how.temperature,
            top_k=how.top_k,
            top_p=how.top_p,
        )
        yield token


def sample(
    model: Model, prefix: Sequence[int], length: int, *, seed: int, sampling: Sampling | None = None
) -> list[int]:
    """Give the next ``length`` tokens after a prefix."""
    return list(
        islice(generate(Stream(model), prefix, seed=seed, sampling=sampling), at_least("length", length, 0))
    )
