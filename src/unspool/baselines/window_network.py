"""The network without hidden state, on a window: of numbers (a regression) or of tokens (a language model).

It sees the last tau numbers or tokens and nothing before them: the baseline that a state has to beat.
Its equations are in ``mlp``.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unspool.baselines.window_layers import (
    Array,
    Moments,
    Parameters,
    adam,
    backward_hidden,
    backward_output,
    cross_entropy,
    hidden,
    output,
)
from unspool.data.series.lags import lagged
from unspool.errors import InputError
from unspool.kernels import native
from unspool.kernels.arrays import Ids, Real

BLOCK = 1 << 14


@dataclass(frozen=True)
class Training:
    """How a window network is trained."""

    H: int = 64
    """Hidden units."""
    steps: int = 2000
    """Updates."""
    B: int = 128
    """Windows in an update."""
    learning_rate: float = 3e-3
    """At the start; it falls along a cosine to nothing."""

    def __post_init__(self) -> None:
        if min(self.H, self.steps, self.B) < 1 or self.learning_rate <= 0:
            raise InputError(f"training: every value must be above 0, got {self}")

    def rate(self, step: int) -> float:
        """Give the learning rate of a step."""
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * step / self.steps))


@dataclass(frozen=True)
class WindowRegressor:
    """A network that predicts the next number of a series."""

    parameters: Parameters
    mean: float
    scale: float

    @property
    def tau(self) -> int:
        """How many numbers it sees."""
        return int(self.parameters["U"].shape[1])

    def predict(self, X: Real) -> Real:
        """Predict the number that follows each row of tau numbers."""
        x = ((X - self.mean) / self.scale).astype(np.float32)
        o = output(self.parameters, hidden(self.parameters, x))
        return np.asarray(o[:, 0], np.float64) * self.scale + self.mean


@dataclass(frozen=True)
class WindowLanguageModel:
    """A network that predicts the next token."""

    parameters: Parameters

    @property
    def tau(self) -> int:
        """How many tokens it sees."""
        return len(self.parameters["U"])

    def log_prob(self, ids: Ids, given: int = 1) -> Real:
        """Give log P(x(t) | the tokens before) for all but the first ``given``; before the text is id 0."""
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
    """Train a network on all windows of a series, by the mean squared error."""
    training = training or Training()
    series = np.asarray(x, np.float64)
    mean, scale = float(series.mean()), float(series.std()) or 1.0
    X, y = (each.astype(np.float32) for each in lagged((series - mean) / scale, tau))
    parameters = _start(rng, (training.H, tau), training.H, 1, tau)
    moments = Moments()
    for step in range(training.steps):
        rows = rng.integers(len(X), size=training.B)
        h = hidden(parameters, X[rows])
        do = 2 * (output(parameters, h) - y[rows, None]) / np.float32(training.B)
        dh, gradients = backward_output(parameters, h, do)
        gradients |= backward_hidden(parameters, X[rows], h, dh)
        adam(parameters, gradients, moments, training.rate(step))
    return WindowRegressor(parameters, mean, scale)


def train_on_tokens(
    ids: Ids, K: int, tau: int, rng: np.random.Generator, training: Training | None = None
) -> WindowLanguageModel:
    """Train a network on random windows of a text, by the cross-entropy."""
    training = training or Training()
    if tau < 1 or len(ids) <= tau:
        raise InputError(f"tau: expected 1 … {len(ids) - 1} for {len(ids)} tokens, got {tau}")
    parameters = _start(rng, (tau, K, training.H), training.H, K, tau)
    moments = Moments()
    offsets = np.arange(tau + 1)
    for step in range(training.steps):
        starts = rng.integers(len(ids) - tau, size=training.B)
        windows: NDArray[np.int32] = np.asarray(ids[starts[:, None] + offsets], np.int32)  # B tau+1
        x, y = windows[:, :-1], windows[:, -1]
        h = hidden(parameters, x)
        loss, gradients = cross_entropy(parameters, h, y)
        assert loss.dh is not None
        gradients |= backward_hidden(parameters, x, h, loss.dh)
        adam(parameters, gradients, moments, training.rate(step))
    return WindowLanguageModel(parameters)


def _start(rng: np.random.Generator, shape: tuple[int, ...], H: int, K: int, inputs: int) -> Parameters:
    def drawn(size: tuple[int, ...], sources: int) -> Array:
        return np.asarray(rng.standard_normal(size) / math.sqrt(sources), np.float32)

    zeros = {"b": np.zeros(H, np.float32), "c": np.zeros(K, np.float32)}
    return {"U": drawn(shape, inputs), "V": 0.1 * drawn((K, H), H)} | zeros
