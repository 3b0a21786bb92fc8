"""A mixture of a network with n-grams that reads and generates text token by token.

>>> import numpy as np
>>> from unspool.baselines.kneser_ney_smoothing import kneser_ney
>>> from unspool.baselines.mixture import fit_mixture
>>> from unspool.baselines.ngram_counts import count_ngrams
>>> from unspool.evaluation.language import log_prob
>>> from unspool.model.config import ModelConfig
>>> from unspool.model.network import Model
>>> model = Model.initialise(ModelConfig(cell="gru", inputs=3, outputs=3, hidden=8), seed=1)
>>> text = np.array([0, 1, 0, 1, 2] * 40, np.int32)
>>> mixture = fit_mixture(kneser_ney(count_ngrams(text, K=3, order=2)), text, log_prob(model, text))
>>> stream = MixtureStream(Stream(model), mixture)
>>> stream.read(0)
>>> float(stream.next_probs().sum().round(9)), stream.draw(0.5)
(1.0, 1)
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from unspool.baselines.mixture import COUNT_SCALE, Mixture
from unspool.baselines.ngram_reader import NgramReader
from unspool.errors import InputError
from unspool.kernels import native
from unspool.kernels.arrays import Floats, Real
from unspool.kernels.elementwise import log, softmax
from unspool.model.stream import Stream


class MixtureReader:
    """The n-grams of a mixture and their share, token by token: the bits of `Mixture.next_probs`, in constant time."""

    def __init__(self, mixture: Mixture, read: Iterable[int] = ()) -> None:
        self.mixture = mixture
        self._reader = NgramReader(mixture.ngrams, read)

    def read(self, token: int) -> None:
        """Read one token."""
        self._reader.read(token)

    def share(self) -> float:
        """Return λ of the next token: (2) of `unspool.baselines.mixture` for one context."""
        ngrams, contexts, v = self.mixture.ngrams, self._reader.contexts, self.mixture.v
        length, count, most = len(contexts) - 1, ngrams.counts.tokens, 1 / ngrams.counts.K
        for weights, largest, context in zip(ngrams.weights, ngrams.largest, contexts, strict=False):
            backoff = float(weights.backoff[context])
            most = float(largest[context]) + backoff * most  # (3)
        if length:
            count = int(ngrams.counts.levels[length - 1].counts[contexts[-1]])
        a = 0.0
        for value, feature in zip(
            v, (1.0, (count.bit_length() - 1) / COUNT_SCALE, backoff, most, most * most), strict=False
        ):
            a += float(value) * feature
        a += float(v[4 + length]) if length else 0.0
        return (1 + a / math.sqrt(1 + a * a)) / 2

    def next_probs(self, network: Real) -> Real:
        """Return the probability (K,) of each token by the mixture, for those of the network, float64 (K,)."""
        part = self.share()
        mixed: Real = (1 - part) * network + part * self._reader.next_probs()
        return mixed


class MixtureStream:
    """A mixture that reads tokens and draws the next one, like `unspool.model.stream.Stream`."""

    def __init__(self, network: Stream, mixture: Mixture, recent: Iterable[int] = ()) -> None:
        self.network = network
        """The stream of the network; `recent` are the tokens that it has read last."""
        self._reader = MixtureReader(mixture, recent)
        self.outputs = mixture.ngrams.counts.K
        """K, the number of tokens that can be drawn."""
        self._probs: Real | None = None

    def read(self, token: int) -> None:
        """Read one token and compute the probabilities of the next one."""
        self.network.read(token)
        self._reader.read(token)
        self._probs = self._reader.next_probs(softmax(self.network.logits()).astype(np.float64))
        self.network.set_logits(log(self._probs).astype(np.float32))

    def next_probs(self) -> Real:
        """Return the probability (K,) of each token."""
        if self._probs is None:
            raise InputError("next_probs: no token has been read; call read(token) first")
        return self._probs

    def draw(self, u: float, **sampling: Any) -> int:
        """Draw the next token with a number u from [0, 1); for the other arguments see `Stream.draw`."""
        return self.network.draw(u, **sampling)

    def advance(self, token: int, *, seed: int, index: int, **sampling: Any) -> int:
        """Read a token and draw the next with the `index`-th number of the seed's sequence."""
        self.read(token)
        return self.draw(native.uniform(seed % 2**64, index), **sampling)

    def logits(self) -> Floats:
        """Return log P of each token, rounded to float32: what temperature, top_k and top_p are applied to."""
        return self.network.logits()

    def state(self) -> list[tuple[Floats, Floats]]:
        """Return the state of the network; the mixture also depends on the last order - 1 tokens."""
        return self.network.state()

    def restore(self, state: list[tuple[Floats, Floats | None]], recent: Iterable[int] = ()) -> None:
        """Continue from a state of the network and the tokens that were read last."""
        self.network.restore(state)
        self._reader, self._probs = MixtureReader(self._reader.mixture, recent), None
