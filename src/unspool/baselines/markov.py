"""Markov chains of order k over K symbols, with exact results by dynamic programming.

    P(x(1), …, x(T)) = P(x(1), …, x(k)) · Π_{t>k} P(x(t) | x(t-k), …, x(t-1))           (1)

A distribution over the last k symbols is an array of k axes, the oldest first. One step forward sums over the oldest
symbol, in O(K^(k+1)):

    p'(b, …, z, x) = Σ_a p(a, b, …, z) · P(x | a, b, …, z)                              (2)

The most probable path replaces the sum by the maximum and stores the argmax (Viterbi).

In reverse time a chain is a chain again. With p(t) the distribution of x(t), …, x(t+k-1), Bayes' rule gives

    P(x(t) | x(t+1), …, x(t+k)) = p(t)(x(t), …, x(t+k-1)) · P(x(t+k) | …) / p(t+1)(x(t+1), …, x(t+k))     (3)

and the factorisation in reverse time has the same product as (1). It depends on t through p(t), unless the chain
starts in its stationary distribution.

>>> weather = MarkovChain(np.array([1.0, 0.0]), np.array([[0.9, 0.1], [0.5, 0.5]]))    # 0 sun, 1 rain
>>> weather.marginals(3).round(3).tolist()
[[1.0, 0.0], [0.9, 0.1], [0.86, 0.14]]
>>> weather.stationary().round(4).tolist()
[0.8333, 0.1667]
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unspool.errors import EmptyInput, InputError
from unspool.kernels.arrays import Ids, Mask, Real, Whole
from unspool.options import at_least

LARGEST = 1 << 26
"""Most probabilities in the transition table."""


@dataclass(frozen=True)
class MarkovChain:
    """A chain: initial distribution and transition probabilities."""

    initial: Real  # K … K, k axes
    """Joint distribution of the first k symbols."""
    transition: Real  # K … K K, k+1 axes
    """Distribution of the next symbol (last axis) given the k symbols before it."""

    def __post_init__(self) -> None:
        if self.transition.ndim != self.initial.ndim + 1 or len(set(self.transition.shape)) != 1:
            raise InputError(
                f"transition has shape {self.transition.shape}; expected {self.initial.ndim + 1} equal axes"
            )
        for name, sums in (("initial", self.initial.sum()), ("transition", self.transition.sum(-1))):
            if not np.allclose(sums, 1, atol=1e-9):
                raise InputError(
                    f"{name}: probabilities do not sum to 1; expected a distribution over the last axis"
                )

    @property
    def order(self) -> int:
        """Number of symbols that the next one depends on."""
        return self.initial.ndim

    @property
    def K(self) -> int:
        """The number of symbols."""
        return int(self.transition.shape[-1])

    def log_prob(self, ids: Ids, given: int = 1) -> Real:
        """Return log P(x(t) | the symbols before), for all symbols except the first ``given``: the terms of (1)."""
        x = np.asarray(ids, np.int64)
        k = self.order
        steps = [np.lib.stride_tricks.sliding_window_view(x, k + 1)] if len(x) > k else []
        terms = [_start_terms(self.initial, x[:k])] + [self.transition[tuple(window.T)] for window in steps]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.concatenate(terms))[given:])

    def log_prob_reversed(self, ids: Ids) -> Real:
        """Return log P(x(T)), log P(x(T-1) | x(T)), …, log P(x(1) | …): the factorisation in reverse time, by (3).

        The terms are in the order of reading, the last symbol first; their sum equals that of `log_prob(ids, given=0)`.

        >>> chain = MarkovChain(np.array([0.6, 0.4]), np.array([[0.5, 0.5], [0.1, 0.9]]))
        >>> np.exp(chain.log_prob_reversed([0, 1])).round(4).tolist()  # P(x(2) = 1), P(x(1) = 0 | x(2) = 1)
        [0.66, 0.4545]
        """
        x, k, p = np.asarray(ids, np.int64), self.order, self.initial
        terms = list[float]()
        for t in range(len(x) - k):
            joint = float(p[tuple(x[t : t + k])] * self.transition[tuple(x[t : t + k + 1])])
            p = self._step(p)
            after = float(p[tuple(x[t + 1 : t + k + 1])])
            terms.append(joint / after if after > 0 else 0.0)  # (3)
        end = x[-min(k, len(x)) :][::-1] if len(x) else x
        last = p.sum(tuple(range(len(end), k)))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.concatenate([_start_terms(last.T, end), terms[::-1]])))

    def reverse_conditional(self, t: int | None = None) -> Real:
        """Return P(x(t) | x(t+1), …, x(t+k)) by (3), (K, …, K, K): first the context in reverse time, x(t+k) … x(t+1).

        Without t, p is the stationary distribution and the result holds at every step. A context of probability 0 has
        uniform probabilities.

        >>> chain = MarkovChain(np.array([1.0, 0.0]), np.array([[0.9, 0.1], [0.5, 0.5]]))
        >>> chain.reverse_conditional(1).tolist()  # x(1) is 0, whatever x(2) is
        [[1.0, 0.0], [1.0, 0.0]]
        >>> chain.reverse_conditional().round(4).tolist()
        [[0.9, 0.1], [0.5, 0.5]]
        """
        p = self.stationary_joint() if t is None else self.initial
        for _ in range(0 if t is None else at_least("t", t, 1) - 1):
            p = self._step(p)
        joint = (p[..., None] * self.transition).T  # x(t+k) … x(t)
        after = joint.sum(-1, keepdims=True)
        return np.where(after > 0, joint / np.maximum(after, 1e-300), 1 / self.K)

    def reversed(self) -> "MarkovChain":
        """Return the stationary chain in reverse time: the same order, with (3) as its transition."""
        return MarkovChain(self.stationary_joint().T, self.reverse_conditional())

    def probability(self, ids: Sequence[int]) -> float:
        """Return P(x(1), …, x(T)) by (1)."""
        return float(np.exp(self.log_prob(np.asarray(ids, np.int32), given=0).sum()))

    def marginals(self, length: int) -> Real:
        """Return P(x(t) = ·) for t = 1 … length, (length, K)."""
        k = self.order
        first = [self.initial.sum(tuple(a for a in range(k) if a != t)) for t in range(min(k, length))]
        later, p = [], self.initial
        for _ in range(length - k):
            p = self._step(p)
            later.append(p.sum(tuple(range(k - 1))))
        return np.array(first + later)

    def ahead(self, context: Sequence[int], steps: int) -> Real:
        """Return P(x(t+steps) = · | the last k symbols), (K,): multi-step prediction."""
        if len(context) < self.order or steps < 1:
            raise InputError(
                f"ahead: got context {context} and {steps} steps; expected {self.order} symbols or more, 1 step or more"
            )
        p = np.zeros(self.initial.shape)
        p[tuple(context[len(context) - self.order :])] = 1.0
        for _ in range(steps):
            p = self._step(p)
        return np.asarray(p.sum(tuple(range(self.order - 1))))

    def most_probable_path(self, length: int) -> tuple[list[int], float]:
        """Return the most probable sequence of a length, and its probability.

        >>> chain = MarkovChain(np.array([0.6, 0.4]), np.array([[0.5, 0.5], [0.0, 1.0]]))
        >>> chain.most_probable_path(3)                     # though 0 is the likelier first symbol
        ([1, 1, 1], 0.4)
        """
        if length < self.order:
            raise InputError(f"length is {length}; expected at least the order, {self.order}")
        with np.errstate(divide="ignore"):
            score, step = np.log(self.initial), np.log(self.transition)
        origins = []
        for _ in range(length - self.order):
            extended = score[..., None] + step  # a b … z x
            origins.append(extended.argmax(0))
            score = extended.max(0)
        path = [int(i) for i in np.unravel_index(score.argmax(), score.shape)]
        for origin in reversed(origins):
            path.insert(0, int(origin[tuple(path[: self.order])]))
        return path, float(np.exp(score.max()))

    def stationary(self) -> Real:
        """Return the stationary distribution of a symbol, (K,); raise InputError if there are several."""
        return np.asarray(self.stationary_joint().sum(tuple(range(self.order - 1))))

    def stationary_joint(self) -> Real:
        """Return the stationary joint distribution of k consecutive symbols, (K, …, K)."""
        return stationary_states(self._matrix()).reshape(self.initial.shape)

    def _step(self, p: Real) -> Real:
        return np.asarray((p[..., None] * self.transition).sum(0))  # (2)

    def _matrix(self) -> Real:
        """Return the transition matrix of the chain as one of order 1 over all K^k contexts."""
        states = self.K**self.order
        if states > 4096:
            raise InputError(f"stationary: the chain has {states:,} contexts; expected at most 4,096")
        matrix = np.zeros((states, states))
        rows = np.repeat(np.arange(states), self.K)
        columns = (rows * self.K) % states + np.tile(np.arange(self.K), states)
        matrix[rows, columns] = self.transition.ravel()
        return matrix


def estimate(ids: Ids, K: int, order: int = 1, add: float = 0.0) -> MarkovChain:
    """Return a chain of the relative frequencies of a text, ids (n,), with ``add`` added to each count.

    The initial distribution is that of all k-grams of the text; after unseen contexts the next symbol is uniform.

    >>> estimate(np.array([0, 0, 1, 0, 0, 1]), K=2).transition.tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    if order < 1 or K ** (order + 1) > LARGEST:
        raise InputError(
            f"order is {order}: {K} symbols need K^{order + 1} probabilities; expected order 1 or more, at most {LARGEST:,} probabilities"
        )
    if len(ids) <= order:
        raise EmptyInput(f"text too short: {len(ids)} tokens, but order {order} needs {order + 1}")
    initial, counts = (_count(ids, K, n) + add for n in (order, order + 1))
    totals = counts.sum(-1, keepdims=True)
    transition = np.where(totals > 0, counts / np.maximum(totals, 1e-300), 1 / K)
    return MarkovChain(initial / initial.sum(), transition)


def _count(ids: Ids, K: int, n: int) -> Whole:
    """Return the counts of all n-grams of a text as an array of n axes."""
    windows = np.lib.stride_tricks.sliding_window_view(np.asarray(ids, np.int64), n)
    flat = windows @ K ** np.arange(n - 1, -1, -1)
    return np.bincount(flat, minlength=K**n).reshape((K,) * n)


def _start_terms(joint: Real, x: Whole) -> Real:
    """Return P(x(1)), P(x(2) | x(1)), …, from a joint distribution of at least as many symbols."""
    parts = [joint.sum(tuple(range(t, joint.ndim)))[tuple(x[:t])] for t in range(len(x) + 1)]
    before = np.array(parts[:-1])
    return np.asarray(np.divide(parts[1:], before, out=np.zeros(len(x)), where=before > 0))


def stationary_states(P: Real) -> Real:
    """Return the solution of p P = p, Σ p = 1, for a chain of order 1."""
    closed = _closed_class(P > 0)
    A = P[np.ix_(closed, closed)].T - np.eye(len(closed))
    A[-1] = 1.0  # one equation is redundant; the sum replaces it
    p = np.zeros(len(P))
    p[closed] = np.linalg.solve(A, np.eye(len(closed))[-1])
    return np.maximum(p, 0)


def _closed_class(step: Mask) -> Whole:
    """Find the states that are never left and that every state comes to; an error if there is no such set."""
    state = 0
    while True:
        forward, backward = _reach(step, state), _reach(step.T, state)
        if not (forward & ~backward).any():
            break
        state = int(np.flatnonzero(forward & ~backward)[0])  # no way back from there: continue there
    if not backward.all():
        raise InputError(
            "stationary: the chain has several closed classes, so the stationary distribution is not unique"
        )
    return np.flatnonzero(forward)


def _reach(step: Mask, state: int) -> Mask:
    reached = np.zeros(len(step), np.bool_)
    frontier = np.array([state])
    while len(frontier):
        reached[frontier] = True
        frontier = np.flatnonzero(step[frontier].any(0) & ~reached)
    return reached
