"""Read and generate text one token at a time; the position can be saved and restored.

The token read last is held back until the next token is sampled: `pending`. The state, the pending token and the number of
tokens sampled with the seed are all that is needed to continue exactly; with a repetition penalty, also the tokens so far.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from unspool.errors import FileError
from unspool.evaluation.language import in_reading_order
from unspool.kernels.arrays import Floats
from unspool.model.generate import Sampling
from unspool.model.history import LONGEST_WINDOW, TokenHistory
from unspool.model.stream import Stream
from unspool.storage.schema import read_as
from unspool.storage.tensors import check_array, read_arrays, write_arrays
from unspool.tasks.language.text_model import TextModel

Snapshot = tuple[list[tuple[Floats, Floats]], int | None, TokenHistory]


class SavedGenerator(TypedDict):
    """The fields of a saved state, besides its arrays."""

    pending: int
    drawn: int
    seed: int | None


class TextGenerator:
    """Reads a text and generates its continuation."""

    def __init__(self, model: TextModel) -> None:
        self.model = model
        self.stream = Stream(model.model)
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

    def read(self, text: str) -> None:
        """Read a text, in the direction of the model."""
        ids = self.model.encode(text)
        for token in in_reading_order(ids, self.model.backward).tolist():
            self._take(token)
        self.before = ids.tolist() or self.before

    def read_start(self) -> None:
        """Read the token that stands for the beginning of a text."""
        self._take(self.model.start("")[0])

    def _take(self, token: int) -> None:
        if self.pending is not None:
            self.stream.read(self.pending)
        self.pending = token
        self.history.add(token)

    def write(self, seed: int, sampling: Sampling) -> Iterator[int]:
        """Sample one token after the other, without end."""
        assert self.pending is not None
        how, changes = sampling.arguments(self.history), sampling.repetition_penalty != 1
        while True:
            self.pending = self.stream.advance(self.pending, seed=seed, index=self.drawn, **how)
            self.history.add(self.pending)
            self.drawn += 1
            yield self.pending
            if changes:
                how = sampling.arguments(self.history)

    def copy_state(self) -> Snapshot:
        """Return the state, the pending token and the history."""
        return self.stream.state(), self.pending, self.history.copy()

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a saved state, pending token and history."""
        state, self.pending, history = snapshot
        self.history = history.copy()
        self.stream.restore([(h, s) for h, s in state])

    def save(self, path: Path, seed: int) -> None:
        """Write the position to a file, atomically; an existing file is replaced."""
        arrays: dict[str, Floats] = {**self.history.to_arrays()}
        for i, (h, s) in enumerate(self.stream.state()):
            arrays |= {f"h.{i}": h, f"s.{i}": s}
        metadata = {"pending": self.pending, "drawn": self.drawn, "seed": seed, "model": self._signature()}
        write_arrays(path, arrays, metadata)

    def load(self, path: Path) -> None:
        """Return to the position in a file; refuse a file of another model."""
        arrays, metadata = read_arrays(path)
        if metadata.get("model") != self._signature():
            raise FileError(f"{path}: the state of another model; save one with this run first")
        saved, config = read_as(SavedGenerator, metadata, path), self.model.model.config
        pending, seed = saved["pending"], saved["seed"]
        if not 0 <= pending < config.inputs or not 0 <= saved["drawn"] < 2**62 or (seed or 0) < 0:
            raise FileError(f"{path}: damaged or manipulated: pending, drawn or seed is out of range")
        parts = [
            (
                check_array(arrays, f"h.{i}", (config.hidden,), path),
                check_array(arrays, f"s.{i}", (config.hidden,), path),
            )
            for i in range(config.layers)
        ]
        self.restore((parts, pending, _history(arrays, config.outputs, path)))
        self.drawn, self.seed = saved["drawn"], seed
        self.before = [pending]

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
