"""The network without hidden state, on a window: of numbers (a regression) or of tokens (a language model).

    a = x Uᵀ + b,      h = tanh(a),      o = c + V h                                    (1)
    da = dh ∘ (1 - h²),   dU = daᵀ x,   db = Σ da                                       (2)

It sees the last tau numbers or tokens and nothing before them: the baseline that a state has to beat. Output and loss are
those of every network (`unspool.model.losses`), and so is training (`unspool.training.loop`). x has one row per window (B X).
Where the window is of tokens, x Uᵀ is a sum of rows of tables, one table for each position in the window, and dU adds up
rows: a one-hot vector is never written out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from unspool.data.series.lags import lagged
from unspool.errors import InputError
from unspool.kernels import native
from unspool.kernels.arrays import Array, Ids, Real
from unspool.model.linear import Linear, OutputGradient
from unspool.model.losses import LOSSES
from unspool.model.parameters import Parameters
from unspool.optimisers.adam import Adam
from unspool.optimisers.schedules.cosine import Cosine
from unspool.training.loop import updates
from unspool.training.objectives import LossAndGradient

BLOCK = 1 << 14
"""How many windows are scored at once."""


@dataclass(frozen=True)
class Training:
    """How a window network is trained."""

    H: int = 64
    """Hidden units."""
    steps: int = 2000
    """Updates."""
    B: int = 128
    """Windows per update."""
    learning_rate: float = 3e-3
    """At the start; it falls along a cosine to zero."""

    def __post_init__(self) -> None:
        if min(self.H, self.steps, self.B) < 1 or self.learning_rate <= 0:
            raise InputError(f"training: every value must be above 0, got {self}")


def hidden(parameters: Mapping[str, Array], x: Array, kernel: ModuleType = native) -> Array:
    """Compute h (B H) from x, B X numbers or B tau tokens: (1)."""
    U, b = parameters["U"], parameters["b"]
    if U.ndim < 3:
        return np.asarray(np.tanh(kernel.matmul(x, U, transpose_b=True, start=b)))
    a: Array = kernel.gather(U[0], x[:, 0])
    for position in range(1, len(U)):
        a += kernel.gather(U[position], x[:, position])
    return np.asarray(np.tanh(a + b))


def backward_hidden(
    x: Array, h: Array, dh: Array, gradient: Mapping[str, Array], kernel: ModuleType = native
) -> None:
    """Compute the gradients of U and b from that of h: (2)."""
    da, dU = dh * (1 - h**2), gradient["U"]
    if dU.ndim < 3:
        dU[:] = kernel.matmul(da, x, transpose_a=True)
    else:
        dU[:] = 0
        for position in range(len(dU)):
            kernel.scatter_add(dU[position], x[:, position], da)
    gradient["b"][:] = kernel.column_sum(da)


class WindowObjective:
    """The mean loss of a batch of windows: squared error of numbers, cross-entropy of tokens."""

    def __init__(self, rng: np.random.Generator, U: tuple[int, ...], loss: str, K: int, H: int) -> None:
        self.parameters = Parameters({"U": U, "V": (K, H), "b": (H,), "c": (K,)})
        tau = U[0] if len(U) == 3 else U[1]
        self.parameters["U"][:] = np.asarray(rng.standard_normal(U) / math.sqrt(tau), np.float32)
        self.parameters["V"][:] = 0.1 * np.asarray(rng.standard_normal((K, H)) / math.sqrt(H), np.float32)
        self.loss, self.gradient = LOSSES[loss](), self.parameters.like()

    def __call__(self, batch: tuple[Array, Array], step: int) -> LossAndGradient:
        """Compute the loss of windows x (B …) with targets y, and its gradient."""
        (x, y), p, gradient = batch, self.parameters, self.gradient
        h, layer = hidden(p, x), Linear.of(p["V"], p["c"], native)
        into = OutputGradient(gradient["V"], gradient["c"], 1 / len(y), accumulate=False)
        loss = self.loss(layer, h, y, into)
        assert loss.dh is not None
        backward_hidden(x, h, loss.dh, gradient)
        return LossAndGradient(loss, gradient.flat)


def _train(objective: WindowObjective, batches: Iterator[tuple[Array, Array]], training: Training) -> None:
    optimiser = Adam(learning_rate=training.learning_rate, clip=0)
    for _ in updates(objective, batches, optimiser, schedule=Cosine(training.steps, warmup=1)):
        pass


@dataclass(frozen=True)
class WindowRegressor:
    """A network that predicts the next number of a series."""

    parameters: Mapping[str, Array]
    mean: float
    scale: float

    @property
    def tau(self) -> int:
        """How many numbers it sees."""
        return int(self.parameters["U"].shape[1])

    def predict(self, X: Real) -> Real:
        """Predict the number that follows each row of tau numbers."""
        x, p = ((X - self.mean) / self.scale).astype(np.float32), self.parameters
        o = Linear.of(p["V"], p["c"], native)(hidden(p, x))
        return np.asarray(o[:, 0], np.float64) * self.scale + self.mean


@dataclass(frozen=True)
class WindowLanguageModel:
    """A network that predicts the next token."""

    parameters: Mapping[str, Array]

    @property
    def tau(self) -> int:
        """How many tokens it sees."""
        return len(self.parameters["U"])

    def log_prob(self, ids: Ids, given: int = 1) -> Real:
        """Return log P(x(t) | the tokens before) for all but the first ``given``; before the text is id 0."""
        padded = np.concatenate([np.zeros(self.tau, np.int32), np.asarray(ids, np.int32)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, self.tau)[given : len(ids)]
        targets = np.asarray(ids[given:], np.int32)
        V, c = self.parameters["V"], self.parameters["c"]
        found = [np.zeros(0)]
        for at in range(0, len(targets), BLOCK):
            h = hidden(self.parameters, windows[at : at + BLOCK])
            found.append(-native.softmax_cross_entropy(h, V, c, targets[at : at + BLOCK]).per_target)
        return np.concatenate(found)


def train_on_numbers(
    x: Real, tau: int, rng: np.random.Generator, training: Training | None = None
) -> WindowRegressor:
    """Train a network on all windows of a series x (n,), by the mean squared error."""
    training = training or Training()
    series = np.asarray(x, np.float64)
    mean, scale = float(series.mean()), float(series.std()) or 1.0
    X, y = (each.astype(np.float32) for each in lagged((series - mean) / scale, tau))
    objective = WindowObjective(rng, (training.H, tau), "squared-error", 1, training.H)
    drawn = (rng.integers(len(X), size=training.B) for _ in range(training.steps))
    _train(objective, ((X[rows], y[rows, None]) for rows in drawn), training)
    return WindowRegressor(objective.parameters, mean, scale)


def train_on_tokens(
    ids: Ids, K: int, tau: int, rng: np.random.Generator, training: Training | None = None
) -> WindowLanguageModel:
    """Train a network on random windows of a text, ids (n,), by the cross-entropy."""
    training = training or Training()
    if tau < 1 or len(ids) <= tau:
        raise InputError(f"tau: expected 1 … {len(ids) - 1} for {len(ids)} tokens, got {tau}")
    objective = WindowObjective(rng, (tau, K, training.H), "cross-entropy", K, training.H)
    offsets = np.arange(tau + 1)
    drawn = (rng.integers(len(ids) - tau, size=training.B) for _ in range(training.steps))
    windows = (np.asarray(ids[starts[:, None] + offsets], np.int32) for starts in drawn)  # B tau+1
    _train(objective, ((window[:, :-1], window[:, -1]) for window in windows), training)
    return WindowLanguageModel(objective.parameters)
