"""Read and generate text one token at a time; the position can be saved and restored.

The token read last is held back until the next token is sampled: `pending`. The state, the pending token, the tokens just before
it (the context of n-grams) and the number of tokens sampled with the seed are all that is needed to continue exactly; with a
repetition penalty, also which tokens have occurred.

With `learning`, the model learns from the texts that it reads (`unspool.training.dynamic`) and generates with what it learned.
Generated tokens are read, but not learned from: the next text begins a new segment. The file of a position then contains the
learned parameters.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from unspool.baselines.mixture_stream import MixtureStream
from unspool.errors import FileError
from unspool.evaluation.language import in_reading_order, no_progress
from unspool.kernels.arrays import Floats, Ids
from unspool.model.generate import Sampling
from unspool.model.history import LONGEST_WINDOW, TokenHistory
from unspool.model.stream import Stream
from unspool.options import MOST_ORDER
from unspool.storage.schema import read_as
from unspool.storage.tensors import check_array, read_arrays, write_arrays
from unspool.tasks.language.text_model import TextModel
from unspool.training.dynamic import Learning, LearningReader

LEARNER = "learner."
"""What the names of a learner's arrays begin with."""
STATE = "a saved state of a generator"
Snapshot = tuple[list[tuple[Floats, Floats]], int | None, list[int], TokenHistory]


class SavedGenerator(TypedDict):
    """The fields of a saved state, besides its arrays."""

    pending: int
    drawn: int
    seed: int | None
    recent: NotRequired[list[int]]


class SavedLearner(TypedDict):
    """The further fields of a saved state whose model has learned."""

    learner: dict[str, Any]
    behind: bool


class TextGenerator:
    """Reads a text, learns from it if `learning` is given, and generates its continuation, with `mixture` mixed with n-grams."""

    def __init__(self, model: TextModel, learning: Learning | None = None, *, mixture: bool = False) -> None:
        if learning is not None:
            model.refuse_lines("learn")
        self.model = model
        self.learning = learning
        self.learner: LearningReader | None = None
        """What has learned from the texts that were read; None before the first."""
        self.learned_nats = 0.0
        """The mean nats of the targets of the text that was learned from last."""
        self._behind = False  # the stream has read tokens that the learner has not
        self._mixture = model.require_mixture() if mixture else None
        self.recent: deque[int] = deque(maxlen=MOST_ORDER - 1)
        """The tokens read before `pending`, as many as n-grams can look back."""
        self.stream = self._with_ngrams(Stream(model.model))
        self.pending: int | None = None
        """The token that was read last; the state does not include it yet."""
        self.drawn = 0
        """The number of tokens sampled so far."""
        self.seed: int | None = None
        """The seed that they were sampled with, where known."""
        self.history = TokenHistory(model.model.config.outputs)
        """The tokens read and sampled so far."""
        self.before: list[int] = []
        """The tokens read, in the order of the text: generated text is decoded after or before them."""

    def _with_ngrams(self, network: Stream) -> Stream | MixtureStream:
        """Return the stream that tokens are sampled from: the network, or its mixture with n-grams."""
        return network if self._mixture is None else MixtureStream(network, self._mixture, self.recent)

    def read(self, text: str, on_progress: Callable[[int, int], None] = no_progress) -> None:
        """Read a text, in the direction of the model. `on_progress` is called with the number of tokens that were learned from."""
        ids = self.model.encode(text)
        ordered = in_reading_order(ids, self.model.backward)
        if self.learning is not None and len(ids):
            self._learn(ordered, self.learning, on_progress)
        else:
            fresh = self.model.end is not None and self.pending is None
            for token in self.model.start(text) if fresh else ordered.tolist():
                self._take(token)
        self.before = ids.tolist() or self.before

    def _learn(self, ids: Ids, learning: Learning, on_progress: Callable[[int, int], None]) -> None:
        """Read ids and learn from them; the stream then has the learned parameters and the state after all but the last."""
        learner = self.learner or LearningReader(self.model.model, learning)
        if self.pending is not None and self._behind:
            network = self.stream.network if isinstance(self.stream, MixtureStream) else self.stream
            learner.continue_after(network, self.pending)
        done, total = 0, 0.0
        for window in learner.windows(ids):
            done, total = done + len(window.y), total - float(window.log_prob.sum())
            on_progress(done, len(ids))
        self.learned_nats = total / max(done, 1)
        for token in ids.tolist():
            self.history.add(token)
        self.learner, self._behind = learner, False
        self.recent.extend([*([] if self.pending is None else [self.pending]), *ids[:-1].tolist()])
        self.stream, self.pending = self._with_ngrams(learner.stream()), int(ids[-1])

    def read_start(self) -> None:
        """Read the token that stands for the beginning of a text."""
        self._take(self.model.start("")[0])

    def _take(self, token: int) -> None:
        if self.pending is not None:
            self.stream.read(self.pending)
            self.recent.append(self.pending)
        self.pending, self._behind = token, True
        self.history.add(token)

    def write(self, seed: int, sampling: Sampling) -> Iterator[int]:
        """Sample one token after the other, without end."""
        assert self.pending is not None
        how, changes = sampling.arguments(self.history), sampling.repetition_penalty != 1
        while True:
            self._behind = True
            self.recent.append(self.pending)
            self.pending = self.stream.advance(self.pending, seed=seed, index=self.drawn, **how)
            self.history.add(self.pending)
            self.drawn += 1
            yield self.pending
            if changes:
                how = sampling.arguments(self.history)

    def copy_state(self) -> Snapshot:
        """Return the state, the pending token, the tokens before it and the history."""
        return self.stream.state(), self.pending, list(self.recent), self.history.copy()

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a saved state, pending token, the tokens before it and the history."""
        state, self.pending, recent, history = snapshot
        self.history = history.copy()
        self.recent.clear()
        self.recent.extend(recent)
        pairs: list[tuple[Floats, Floats | None]] = [(h, s) for h, s in state]
        if isinstance(self.stream, MixtureStream):
            self.stream.restore(pairs, recent)
        else:
            self.stream.restore(pairs)

    def save(self, path: Path, seed: int) -> None:
        """Write the position to a file, atomically; an existing file is replaced."""
        arrays: dict[str, Floats] = {**self.history.to_arrays()}
        for i, (h, s) in enumerate(self.stream.state()):
            arrays |= {f"h.{i}": h, f"s.{i}": s}
        metadata: dict[str, Any] = {
            "pending": self.pending,
            "recent": list(self.recent),
            "drawn": self.drawn,
            "seed": seed,
            "model": self._signature(),
        }
        if self.learner is not None:
            learned, fields = self.learner.to_arrays()
            arrays |= {LEARNER + name: array for name, array in learned.items()}
            metadata |= {"learner": fields, "behind": self._behind}
            metadata["model"] |= {
                "learned": True
            }  # versions that do not read the learned parameters refuse the file
        write_arrays(path, arrays, metadata)

    def load(self, path: Path) -> None:
        """Return to the position in a file; refuse a file of another model."""
        arrays, metadata = read_arrays(path, STATE)
        if not SavedGenerator.__required_keys__ <= metadata.keys():
            raise FileError(f"{path}: not {STATE}")
        learned = {"learned": True} if "learner" in metadata else {}
        if metadata.get("model") != self._signature() | learned:
            raise FileError(f"{path}: the state of another model; save one with this run first")
        saved, config = read_as(SavedGenerator, metadata, path), self.model.model.config
        pending, seed, recent = saved["pending"], saved["seed"], saved.get("recent", [])
        known = all(0 <= token < config.inputs for token in [*recent, pending])
        if not known or not 0 <= saved["drawn"] < 2**62 or (seed or 0) < 0:
            raise FileError(f"{path}: damaged or manipulated: pending, recent, drawn or seed is out of range")
        parts = [
            (
                check_array(arrays, f"h.{i}", (config.hidden,), path),
                check_array(arrays, f"s.{i}", (config.hidden,), path),
            )
            for i in range(config.layers)
        ]
        self._behind = True
        if learned:
            self._load_learner(arrays, metadata, path)
        self.restore((parts, pending, recent, _history(arrays, config.outputs, path)))
        self.drawn, self.seed = saved["drawn"], seed
        self.before = [pending]

    def _load_learner(self, arrays: Mapping[str, Any], metadata: dict[str, Any], path: Path) -> None:
        """Return to what was learned; if it goes on learning, then with the rate and segment of the file."""
        saved = read_as(SavedLearner, metadata, path)
        own = {name.removeprefix(LEARNER): each for name, each in arrays.items() if name.startswith(LEARNER)}
        self.learner = LearningReader.from_arrays(own, saved["learner"], path, self.model.model)
        self._behind, self.stream = saved["behind"], self._with_ngrams(self.learner.stream())
        if self.learning is not None:
            self.learning = self.learner.learning

    def _signature(self) -> dict[str, Any]:
        """Return the hashes of vocabulary and model, which a saved state belongs to."""
        return {"vocab": self.model.vocab.sha256, "model": self.model.model.parameters.sha256}


def _history(arrays: dict[str, Floats], K: int, path: Path) -> TokenHistory:
    """Return the saved history; a file of an older version has none."""
    found = {name: arrays.get(name, np.zeros(0, np.int32)) for name in ("seen", "recent")}
    for name, ids in found.items():
        longest = K if name == "seen" else LONGEST_WINDOW
        if ids.ndim != 1 or ids.dtype != np.int32 or len(ids) > longest or not ((ids >= 0) & (ids < K)).all():
            raise FileError(f"{path}: damaged or manipulated: {name} is not a list of token ids")
    return TokenHistory.from_arrays(K, found["seen"], found["recent"])
