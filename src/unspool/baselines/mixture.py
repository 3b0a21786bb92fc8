"""Mix a network with the n-grams of the same training text.

    P(w | x(1) … x(t)) = (1 - λ) P_network(w | x(1) … x(t)) + λ P_ngrams(w | c)             (1)
    λ = (1 + a / √(1 + a²)) / 2,   a = v · φ(c)                                             (2)

c is the context of the n-grams: the last n-1 tokens. Its features φ(c) are known before w: a constant, log2 of the count of
the longest suffix of c that occurs in the training text, the backoff weight of that suffix, M(c) and M(c)², and one indicator
per length of that suffix. So (1) is a distribution: it sums to 1. (2) is a sigmoid made of a square root and a division, which
give the same bits on every machine. M(c) says how certain the n-grams are: a bound of their largest probability, which needs
no sum over the vocabulary. With a and g of `unspool.baselines.ngram_model`, and c' the context without its oldest token:

    M(c) = max_w a(c, w) + g(c) M(c') ≥ max_w P_ngrams(w | c),   1/K below the unigrams     (3)

v minimises the loss of (1) on text that neither model was trained on, plus a small penalty on v:

    L(v) = -Σ_t log P(x(t+1)) + 3 ‖v‖²,   with a thousandth of the constant's part of v     (4)

The minimum is found by the Gauss-Newton method with a damping that rises after a step that does not reduce L. If the counts help
nowhere, λ is close to 0, and the mixture is as good as the network.

>>> from unspool.baselines.kneser_ney_smoothing import kneser_ney
>>> from unspool.baselines.ngram_counts import count_ngrams
>>> text = np.array([0, 1, 0, 1, 2] * 40, np.int32)
>>> ngrams = kneser_ney(count_ngrams(text, K=3, order=2))
>>> mixture = fit_mixture(ngrams, text, np.full(len(text) - 1, np.log(1 / 3)))     # the network is uniform
>>> bool(mixture.share(text).min() > 0.5)
True
>>> float(mixture.next_probs(np.full(3, 1 / 3), [1]).sum().round(12))
1.0
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unspool.baselines.ngram_counts import within_line
from unspool.baselines.ngram_model import NgramModel
from unspool.evaluation.metrics import ScoresText
from unspool.kernels.arrays import Ids, Real, Whole

PENALTY = 3.0
"""The factor of ‖v‖² in (4): a few targets' worth, so that a short validation text does not overfit v (`docs/log.md`)."""
ITERATIONS = 100
ENOUGH = 1e-12
"""Relative improvement of L at which the minimisation ends."""
GRID = 1024
"""v is rounded to multiples of 1 / GRID: sums in another order, as on another machine, hardly ever lead to another v."""
BLOCK = 1 << 18
"""Tokens whose features are in memory at a time."""
COUNT_SCALE = 8.0
"""log2 of a count is divided by this, so that all features have a similar range."""


@dataclass(frozen=True)
class Mixture:
    """The n-grams of a mixture, and the parameters of their share."""

    ngrams: NgramModel
    v: Real
    """The parameters of (2), one per feature."""

    @property
    def order(self) -> int:
        """The order of the n-grams."""
        return self.ngrams.counts.order

    @property
    def counts(self) -> int:
        """The number of stored counts: the distinct n-grams of all orders."""
        return sum(len(level.keys) for level in self.ngrams.counts.levels)

    @property
    def memory(self) -> int:
        """The memory of the n-grams, in bytes."""
        levels, weights = self.ngrams.counts.levels, self.ngrams.weights
        stored = sum(each.keys.nbytes + each.counts.nbytes + each.suffixes.nbytes for each in levels)
        stored += sum(each.discounted.nbytes + each.backoff.nbytes for each in weights)
        return stored + sum(largest.nbytes for largest in self.ngrams.largest)

    def share(self, ids: Ids) -> Real:
        """Return λ for every token but the first: (2), in blocks of bounded memory."""
        found = [np.zeros(0)]
        for start in range(1, len(ids), BLOCK):
            behind = max(0, start - self.order + 1)
            phi = features(self.ngrams, ids[behind : start + BLOCK])
            found.append(share(self.v, phi[start - behind :]))
        return np.concatenate(found)

    def log_prob(self, ids: Ids, network: Real) -> Real:
        """Return log P by (1) of every token but the first, for a network that gives them log P `network`."""
        return _mixed(self.share(ids), np.exp(network), np.exp(self.ngrams.log_prob(ids)))

    def next_probs(self, network: Real, context: Sequence[int]) -> Real:
        """Return the probability (K,) of each token by (1), for those of the network, (K,), after a context.

        Only basic operations of IEEE arithmetic: the same bits on every machine.
        """
        last = np.array(context[max(0, len(context) - self.order + 1) :], np.int64)
        (mixed,) = self.next_probs_rows(network[None], last, len(last))
        return np.asarray(mixed)

    def next_probs_rows(self, network: Real, ids: Ids | Whole, start: int) -> Real:
        """Return the same (rows, K) after the first `start`, start + 1, … and all tokens of a text; network (rows, K)."""
        behind = max(0, start - self.order + 1)
        phi = features(self.ngrams, np.append(ids[behind:], 0))[start - behind :]
        part = share(self.v, phi)[:, None]
        mixed: Real = (1 - part) * network + part * self.ngrams.next_probs_rows(ids, start)  # (1)
        return mixed


@dataclass(frozen=True)
class MixtureScorer:
    """A mixture as a language model like any other: see `unspool.evaluation.metrics.ScoresText`."""

    network: ScoresText
    mixture: Mixture

    def log_prob(self, ids: Ids, given: int = 1) -> Real:
        """Return log P(x(t) | all before) for all tokens but the first ``given``, which are only context."""
        return self.mixture.log_prob(ids, self.network.log_prob(ids))[given - 1 :]


def features(ngrams: NgramModel, ids: Ids | Whole) -> Real:
    """Return φ of the context before each token of a text, shape (n, order + 4); the last token itself is not used.

    >>> from unspool.baselines.kneser_ney_smoothing import kneser_ney
    >>> from unspool.baselines.ngram_counts import count_ngrams
    >>> ngrams = kneser_ney(count_ngrams(np.array([0, 1, 0, 1, 2]), K=3, order=2), discount=0.5)
    >>> features(ngrams, np.array([1, 0])).round(3).tolist()   # nothing, then b: twice, D N(b, ·) / n(b) = 0.5
    [[1.0, 0.25, 0.5, 0.333, 0.111, 0.0], [1.0, 0.125, 0.5, 0.417, 0.174, 1.0]]
    """
    tokens, levels = np.asarray(ids, np.int64), ngrams.counts.levels
    n = len(tokens)
    count, backoff, length = np.full(n, ngrams.counts.tokens), np.ones(n), np.zeros(n, np.int64)
    most = np.full(n, 1 / ngrams.counts.K)
    entry: Whole = np.zeros(n + 1, np.int64)
    for m, (level, weights) in enumerate(zip(levels, ngrams.weights, strict=True)):  # contexts of m tokens
        found = np.flatnonzero(entry[: max(0, n - m)] >= 0)
        here, context = found + m, entry[found]
        length[here], backoff[here] = m, weights.backoff[context]
        most[here] = ngrams.largest[m][context] + weights.backoff[context] * most[here]  # (3)
        if m:
            count[here] = levels[m - 1].counts[context]
        if m < n:
            entry = within_line(level.find(entry[: n - m], tokens[m:]), tokens[m:], m + 1, ngrams.counts.end)
    lengths = length[:, None] == np.arange(1, len(levels))
    log_count = np.frexp(count.astype(np.float64))[1] - 1  # the integer part of log2: exact on every machine
    return np.column_stack([np.ones(n), log_count / COUNT_SCALE, backoff, most, most * most, lengths])


def share(v: Real, phi: Real) -> Real:
    """Return λ of each row of features: (2)."""
    a = np.zeros(len(phi))
    for value, column in zip(v, phi.T, strict=True):  # one order of the sum on every machine
        a += value * column
    return (1 + a / np.sqrt(1 + a * a)) / 2


def fit_mixture(ngrams: NgramModel, ids: Ids, network: Real) -> Mixture:
    """Return the mixture with the lowest loss (4) on a text that neither model was trained on.

    ids (n,); network (n - 1,): log P of every token but the first by the network.
    """
    phi = features(ngrams, ids)[1:]
    return Mixture(ngrams, _minimise(phi, np.exp(network), np.exp(ngrams.log_prob(ids))))


def cross_fitted(mixture: Mixture, ids: Ids, network: Real) -> Real:
    """Return log P of every token but the first of the text that the mixture was fitted on, each half by a fit on the other.

    The scores of a text by parameters fitted on it would be too good.
    """
    phi, counts = features(mixture.ngrams, ids)[1:], np.exp(mixture.ngrams.log_prob(ids))
    p, half = np.exp(network), np.arange(len(network)) < len(network) // 2
    parts = np.where(
        half, share(_minimise(phi[~half], p[~half], counts[~half]), phi),
        share(_minimise(phi[half], p[half], counts[half]), phi),
    )  # fmt: skip
    return _mixed(parts, p, counts)


def _mixed(part: Real, network: Real, counts: Real) -> Real:
    with np.errstate(divide="ignore"):
        mixed: Real = np.log((1 - part) * network + part * counts)  # (1)
    return mixed


def _minimise(phi: Real, network: Real, counts: Real) -> Real:
    """Return v with the lowest (4), by damped Gauss-Newton steps from λ = 1/2."""
    possible = (network > 0) | (counts > 0)  # a target that neither model expects has no gradient
    phi, network, counts = phi[possible], network[possible], counts[possible]
    penalty = np.full(phi.shape[1], PENALTY)
    penalty[0] *= 1e-3  # the constant: only so that it stays finite where one model is better everywhere
    v, damping = np.zeros(phi.shape[1]), 1.0
    loss = _loss(v, phi, network, counts, penalty)
    for _ in range(ITERATIONS):
        a = phi @ v
        part = (1 + a / np.sqrt(1 + a * a)) / 2
        slope = (1 + a * a) ** -1.5 / 2
        d = -(counts - network) / ((1 - part) * network + part * counts) * slope
        curvature = (phi * (d * d)[:, None]).T @ phi + np.diag(2 * penalty + damping)
        found = v - np.linalg.solve(curvature, phi.T @ d + 2 * penalty * v)
        lower = _loss(found, phi, network, counts, penalty)
        if lower >= loss:
            damping *= 4
            if damping > 1e12:
                break
            continue
        done = loss - lower <= ENOUGH * abs(loss)
        v, loss, damping = found, lower, max(damping / 4, 1e-9)
        if done:
            break
    return np.round(v * GRID) / GRID


def _loss(v: Real, phi: Real, network: Real, counts: Real, penalty: Real) -> float:
    a = phi @ v
    part = (1 + a / np.sqrt(1 + a * a)) / 2
    return float(-np.log((1 - part) * network + part * counts).sum() + (penalty * v * v).sum())
