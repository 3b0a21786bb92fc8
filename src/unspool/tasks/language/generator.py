"""Read and generate text one token at a time; the position can be saved and restored.

The token read last is held back until the next token is sampled: `pending`. The state, the pending token, the tokens just before
it (the context of n-grams) and the number of tokens sampled with the seed are all that is needed to continue exactly.
"""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from unspool.baselines.mixture_stream import MixtureStream
from unspool.errors import FileError
from unspool.evaluation.language import in_reading_order
from unspool.kernels.arrays import Floats
from unspool.model.generate import Sampling
from unspool.model.stream import Stream
from unspool.options import MOST_ORDER
from unspool.storage.schema import read_as
from unspool.storage.tensors import check_array, read_arrays, write_arrays
from unspool.tasks.language.text_model import TextModel

Snapshot = tuple[list[tuple[Floats, Floats]], int | None, list[int]]


class SavedGenerator(TypedDict):
    """The fields of a saved state, besides its arrays."""

    pending: int
    drawn: int
    seed: int | None
    recent: NotRequired[list[int]]


class TextGenerator:
    """Reads a text and generates its continuation, by the network or by its mixture with n-grams."""

    def __init__(self, model: TextModel, *, mixture: bool = False) -> None:
        self.model = model
        self.stream: Stream | MixtureStream = model.stream(mixture=mixture)
        self.recent: deque[int] = deque(maxlen=MOST_ORDER - 1)
        """The tokens read before `pending`, as many as n-grams can look back."""
        self.pending: int | None = None
        """The token that was read last; the state does not include it yet."""
        self.drawn = 0
        """The number of tokens sampled so far."""
        self.seed: int | None = None
        """The seed that they were sampled with, where known."""
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
            self.recent.append(self.pending)
        self.pending = token

    def write(self, seed: int, sampling: Sampling) -> Iterator[int]:
        """Sample one token after the other, without end."""
        assert self.pending is not None
        while True:
            self.recent.append(self.pending)
            self.pending = self.stream.advance(
                self.pending,
                seed=seed,
                index=self.drawn,
                temperature=sampling.temperature,
                top_k=sampling.top_k,
                top_p=sampling.top_p,
            )
            self.drawn += 1
            yield self.pending

    def copy_state(self) -> Snapshot:
        """Return the state, the pending token and the tokens before it."""
        return self.stream.state(), self.pending, list(self.recent)

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a saved state, pending token and the tokens before it."""
        state, self.pending, recent = snapshot
        self.recent.clear()
        self.recent.extend(recent)
        pairs: list[tuple[Floats, Floats | None]] = [(h, s) for h, s in state]
        if isinstance(self.stream, MixtureStream):
            self.stream.restore(pairs, recent)
        else:
            self.stream.restore(pairs)

    def save(self, path: Path, seed: int) -> None:
        """Write the position to a file, atomically; an existing file is replaced."""
        arrays: dict[str, Floats] = {}
        for i, (h, s) in enumerate(self.stream.state()):
            arrays |= {f"h.{i}": h, f"s.{i}": s}
        metadata = {"pending": self.pending, "recent": list(self.recent), "drawn": self.drawn, "seed": seed}
        write_arrays(path, arrays, metadata | {"model": self._signature()})

    def load(self, path: Path) -> None:
        """Return to the position in a file; refuse a file of another model."""
        arrays, metadata = read_arrays(path)
        if metadata.get("model") != self._signature():
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
        self.restore((parts, pending, recent))
        self.drawn, self.seed = saved["drawn"], seed
        self.before = [pending]

    def _signature(self) -> dict[str, Any]:
        """Return the hashes of vocabulary and model, which a saved state belongs to."""
        return {"vocab": self.model.vocab.sha256, "model": self.model.model.parameters.sha256}
