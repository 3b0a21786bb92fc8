"""Learn while reading (dynamic evaluation): score each segment of a text, then update the parameters on it.

    x(1) … x(S) ─▶ log P of x(2) … x(S+1) ─▶ ∇L ─▶ θ ← update(θ) ─▶ x(S+1) … x(2S) ─▶ …

Every target is scored before the parameters have seen it. The gradient is that of the mean loss of one segment of S targets;
the state is carried from segment to segment without its gradient. The model that is passed in is never changed: the reader
learns on a copy. Segments are counted from the first token, so that the result does not depend on how the text is fed:
whole, in pieces (`log_prob`, `windows`) or token by token (`read`, `logits`) give the same bits.

>>> from unspool.model.config import ModelConfig
>>> model = Model.initialise(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=8), seed=1)
>>> ids = np.arange(1000, dtype=np.int32) % 5
>>> reader = LearningReader(model, Learning(learn_rate=0.01, learn_segment=20))
>>> first, then = reader.log_prob(ids[:500]), reader.log_prob(ids[500:])
>>> bool(then.mean() > first.mean()), reader.updates
(True, 49)
>>> both = np.concatenate([first, then])
>>> bool((LearningScorer(model, reader.learning).log_prob(ids) == both).all())
True
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np

from unspool.errors import Diverged, FileError, InputError
from unspool.evaluation.language import no_progress
from unspool.evaluation.read import require_own_precision, require_text_model
from unspool.kernels.arrays import Floats, Ids, Real
from unspool.model.inputs import as_int32
from unspool.model.linear import OutputLayer
from unspool.model.network import Model
from unspool.model.packed import Weights
from unspool.model.stream import Stream
from unspool.model.values import State, rows_of
from unspool.optimisers import make_optimiser
from unspool.optimisers.options import OPTIMISER
from unspool.options import check_fields, declared
from unspool.storage.schema import read_as
from unspool.storage.tensors import check_array, read_arrays, write_arrays
from unspool.training import options


@declared(options)
@dataclass(frozen=True)
class Learning:
    """How a model learns while it reads: the learning rate, the segment length and the optimiser.

    >>> Learning(learn_rate=1e-3)
    Learning(learn_rate=0.001, learn_segment=32, optimiser='rmsprop')
    """

    learn_rate: float = 5e-4
    learn_segment: int = 32
    optimiser: str = OPTIMISER.field("rmsprop")

    def __post_init__(self) -> None:
        check_fields(self)


class ScoredWindow(NamedTuple):
    """Targets of one segment, scored with the parameters before the update on them."""

    y: Ids  # n
    log_prob: Real  # n
    h: Floats  # n width
    layer: OutputLayer

    def logits(self) -> Floats:
        """Return o (n, K); call it before the next window is taken, which changes the parameters."""
        return self.layer(self.h)


class SavedReader(TypedDict):
    """The fields of a saved reader, besides its arrays."""

    learning: Learning
    step: int
    model: str


class LearningReader:
    """Reads one text and learns from it: every segment is scored first, then the parameters are updated on it.

    >>> from unspool.model.config import ModelConfig
    >>> model = Model.initialise(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=8), seed=1)
    >>> reader = LearningReader(model, Learning(learn_rate=0.01, learn_segment=8))
    >>> for token in [0, 1, 2, 3, 4] * 200:
    ...     reader.read(token)
    ...
    >>> int(reader.logits().argmax()), reader.updates
    (0, 124)
    """

    def __init__(self, model: Model, learning: Learning | None = None) -> None:
        require_text_model(model.config, "learning")
        require_own_precision(model, "learning")
        self.learning = learning or Learning()
        self.model = Model(model.config, copy.deepcopy(model.parameters), model.backend, model.pooling)
        """The model with the parameters that have been learned so far."""
        self._optimiser = make_optimiser(self.learning.optimiser, learning_rate=self.learning.learn_rate)
        self._gradient = self.model.gradient()
        self._begun_with = model.parameters.sha256
        self._state = self.model.initial_state(1)  # before the first of _tokens
        self._tokens: list[int] = []  # of the unfinished segment; the last one has been scored, but not read
        self._weights: Weights | None = None
        self._stream: Stream | None = None  # has read all but the last of _tokens, or all of them

    @property
    def updates(self) -> int:
        """The number of updates so far."""
        return self._optimiser.step

    def log_prob(self, ids: Ids) -> Real:
        """Read more of the text, ids (n,); return log P(x(t) | all before) of every token but the text's first."""
        return np.concatenate([np.zeros(0), *(window.log_prob for window in self.windows(ids))])

    def windows(self, ids: Ids) -> Iterator[ScoredWindow]:
        """Read more of the text, ids (n,); yield its targets by segments, each before the update on it."""
        tokens = np.concatenate([np.array(self._tokens, np.int32), self._checked(ids)])
        S, begin, scored = self.learning.learn_segment, 0, len(self._tokens)
        while len(tokens) - begin > S:
            segment = tokens[begin : begin + S + 1]
            output, window = self._forward(segment, scored, learn=True)
            yield window
            self._optimiser.update(self.model.parameters, self._gradient.flat)
            self._state, self._tokens = [(h.copy(), None if s is None else s.copy()) for h, s in output], []
            self._weights = self._stream = None
            begin, scored = begin + S, 1
            self._tokens = [int(segment[-1])]
        rest = tokens[begin:]
        if len(rest) > max(scored, 1):
            yield self._forward(rest, scored, learn=False)[1]
        self._tokens, self._stream = rest.tolist(), None

    def _forward(self, tokens: Ids, scored: int, *, learn: bool) -> tuple[State, ScoredWindow]:
        """Read a segment from its beginning; return the state after it and the targets that were not scored yet.

        With `learn`, compute the gradient too.
        """
        model, gradient, weights = self.model, self._gradient, self._packed()
        x, y = (np.ascontiguousarray(each[:, None]) for each in (tokens[:-1], tokens[1:]))
        output = model.forward(x, self._state, weights=weights, y=y)
        if learn:
            gradient.clear()
            loss = model.loss(output, y, scale=1.0 / len(y), weights=weights, gradient=gradient)
        else:
            loss = model.loss(output, y, weights=weights)
        if not math.isfinite(loss.sum):
            rate = self.learning.learn_rate
            raise Diverged(f"the loss is {loss.sum} after update {self.updates:,}: lower learn_rate={rate:g}")
        if learn:
            model.backward(output, loss.dh, gradient, weights=weights, consume=True)
            model.fold_input_tables(gradient, weights)
        new = slice(max(scored - 1, 0), None)
        found = ScoredWindow(y[new, 0], -loss.per_target[new, 0], output.h[new, 0], weights.output)
        return output.state, found

    def read(self, token: int) -> None:
        """Read one token and compute the logits of the next one; at the end of a segment, learn first."""
        self._ready(token).read(token)

    def logits(self) -> Floats:
        """Return o(t) (K,), the unnormalised log-probabilities of the next token."""
        return self._current().logits()

    def advance(self, token: int, **sampling: Any) -> int:
        """Read a token as `read` does and draw the next one; for the arguments see `Stream.advance`."""
        return self._ready(token).advance(token, **sampling)

    def stream(self) -> Stream:
        """Return a stream of the learned model that has read all tokens but the last: it does not learn any further."""
        stream = Stream(self.model, self._packed())
        stream.restore(self._stream_state())
        for token in self._tokens[:-1]:
            stream.read(token)
        return stream

    def _ready(self, token: int) -> Stream:
        """Take a token; return the stream that has read all tokens before it, with the parameters that it is read with."""
        (token,) = self._checked(np.array([token])).tolist()
        if len(self._tokens) == self.learning.learn_segment:
            for _ in self.windows(np.array([token], np.int32)):
                pass
        else:
            self._tokens.append(token)
        if self._stream is None:
            self._stream = self.stream()
        return self._stream

    def _current(self) -> Stream:
        """Return the stream that has read all tokens."""
        if not self._tokens:
            raise InputError("logits: no token has been read; call read(token) first")
        if self._stream is None:
            self._stream = self.stream()
            self._stream.read(self._tokens[-1])
        return self._stream

    def _packed(self) -> Weights:
        """Return the current parameters in the layout of the kernels, packed once per update."""
        if self._weights is None:
            self._weights = self.model.weights()
        return self._weights

    def _stream_state(self) -> list[tuple[Floats, Floats | None]]:
        """Return the carried state as a stream takes it."""
        if not self.model.config.feeds_tokens:
            return rows_of(self._state, 0)
        h = np.zeros(self.model.config.hidden, np.float32)
        return [(h, np.full_like(h, self._state[0][0][0] >= 0))]

    def _checked(self, ids: Ids) -> Ids:
        """Return ids as int32; raise unless each is a token of the vocabulary."""
        ids, K = as_int32(np.asarray(ids), "ids"), self.model.config.inputs
        if ids.ndim != 1 or (ids.size and not 0 <= ids.min() <= ids.max() < K):
            raise InputError(f"ids have shape {ids.shape}; expected (n,), each from 0 to {K - 1}")
        return ids

    def continue_after(self, stream: Stream, token: int) -> None:
        """Begin a new segment with a token that follows what a stream has read: what the stream read is not learned from."""
        self._checked(np.array([token]))
        if self.model.config.feeds_tokens:
            self._state = [(np.array([token], np.int32), None)]
        else:
            pairs = zip(stream.state(), self._state, strict=True)
            self._state = [
                (h[None].copy(), None if old is None else s[None].copy()) for (h, s), (_, old) in pairs
            ]
        self._tokens, self._stream = [token], None

    def save(self, path: str | Path) -> None:
        """Write everything that changes while reading; `load` goes on to the same bits."""
        write_arrays(path, *self.to_arrays())

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what `save` writes: arrays and plain values."""
        arrays: dict[str, Any] = {"parameters": self.model.parameters.flat}
        arrays |= {f"optimiser.{name}": array for name, array in self._optimiser.arrays.items()}
        arrays |= {f"state.{i}.{name}": array for i, pair in enumerate(self._state)
                   for name, array in zip("hs", pair, strict=True) if array is not None}  # fmt: skip
        arrays["tokens"] = np.array(self._tokens, np.int32)
        return arrays, {"learning": asdict(self.learning), "step": self.updates, "model": self._begun_with}

    @classmethod
    def load(cls, path: str | Path, model: Model) -> LearningReader:
        """Return the reader that `save` wrote; `model` is the one that it began with."""
        return cls.from_arrays(*read_arrays(path), path, model)

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, Any], metadata: Mapping[str, Any], path: str | Path, model: Model
    ) -> LearningReader:
        """Return the reader whose `to_arrays` was read from a file; error messages name the file."""
        saved = read_as(SavedReader, metadata, path)
        if saved["model"] != model.parameters.sha256:
            raise FileError(f"{path}: a reader that began with another model; pass that model")
        reader = cls(model, saved["learning"])
        optimiser, flat = reader._optimiser, reader.model.parameters.flat
        flat[:] = check_array(arrays, "parameters", flat.shape, path)
        moments = {name: check_array(arrays, f"optimiser.{name}", flat.shape, path)
                   for name in optimiser.state_arrays if saved["step"]}  # fmt: skip
        try:
            optimiser.restore({"step": saved["step"]} | moments)
            tokens = check_array(arrays, "tokens", (None,), path, np.int32)
            reader._tokens = reader._checked(tokens).tolist()
        except InputError as error:
            raise FileError(f"{path}: damaged or manipulated: {error}") from error
        if len(reader._tokens) > saved["learning"].learn_segment:
            raise FileError(f"{path}: damaged or manipulated: more tokens than a segment has")
        reader._state = [
            tuple(None if old is None else check_array(arrays, f"state.{i}.{name}", old.shape, path, old.dtype)
                  for name, old in zip("hs", pair, strict=True))  # type: ignore[misc]
            for i, pair in enumerate(reader._state)
        ]  # fmt: skip
        return reader


@dataclass(frozen=True)
class LearningScorer:
    """A network that learns while it reads, as a language model like any other: see `ScoresText`."""

    model: Model
    learning: Learning = Learning()
    on_progress: Callable[[int, int], None] = no_progress

    def log_prob(self, ids: Ids, given: int = 1) -> Real:
        """Return log P(x(t) | all before) of all tokens but the first ``given``; each is scored before it is learned."""
        if given < 1:
            raise InputError("a network needs a token to start from: given must be at least 1")
        found, done = [np.zeros(0)], 0
        for window in LearningReader(self.model, self.learning).windows(ids):
            found.append(window.log_prob)
            done += len(window.log_prob)
            self.on_progress(done, len(ids) - 1)
        return np.concatenate(found)[given - 1 :]
