"""Score a text in both directions; in reverse time P(x(1) … x(T)) = Π P(x(t) | x(t+1), …, x(T)).

Both factorisations are exact, so a perfect model gives a text the same probability in both. N-gram models come close: with
maximum likelihood on the training text, the two bigram likelihoods differ only in the tokens at the two ends.
"""

from collections.abc import Callable
from dataclasses import dataclass

from unspool.evaluation.metrics import Metrics, ScoresText, measure
from unspool.kernels.arrays import Ids


@dataclass(frozen=True)
class Directions:
    """Metrics of a text in both directions."""

    forward: Metrics
    backward: Metrics


def both_directions(build: Callable[[Ids], ScoresText], train: Ids, test: Ids) -> Directions:
    """Return the metrics of a model of the training text, and of one of its reverse, on the test text; a text is ids (n,).

    Forward, the first token is not predicted; backward, the last.

    >>> import numpy as np
    >>> from unspool.baselines.laplace_smoothing import laplace
    >>> from unspool.baselines.ngram_counts import count_ngrams
    >>> text = np.array([0, 1, 2] * 20)
    >>> found = both_directions(lambda ids: laplace(count_ngrams(ids, K=3, order=2)), text, text[:9])
    >>> round(found.forward.nats, 4), round(found.backward.nats, 4)
    (0.0327, 0.0327)
    """
    forward = measure(build(train).log_prob(test))
    backward = measure(build(train[::-1]).log_prob(test[::-1]))
    return Directions(forward, backward)
