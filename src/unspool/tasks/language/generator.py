"""A text model that reads and writes, one token at a time, whose place can be saved and found again.

What was read last is held back until the next token is drawn: `pending`. The state, the pending token and how many
numbers of the seed's sequence have been used are all that is needed to go on exactly where it was.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

from unspool.errors import FileError
from unspool.evaluation.language import in_reading_order
from unspool.kernels.arrays import Floats
from unspool.model.generate import Sampling
from unspool.model.stream import Stream
from unspool.storage.schema import read_as
from unspool.storage.tensors import check_array, read_arrays, write_arrays
from unspool.tasks.language.text_model import TextModel

Snapshot = tuple[list[tuple[Floats, Floats]], int | None]


class Saved(TypedDict):
    """The fields of a saved state, besides its arrays."""

    pending: int
    drawn: int
    seed: int | None


class TextGenerator:
    """Reads a text, writes on."""

    def __init__(self, model: TextModel) -> None:
        self.model = model
        self.stream = Stream(model.model)
        self.pending: int | None = None
        """The token that was read last, and that the state does not hold yet."""
        self.drawn = 0
        """How many tokens have been drawn."""
        self.seed: int | None = None
        """The seed that they were drawn with, where known."""
        self.before: list[int] = []
        """What was read, in the order of the text: what is written stands beside it."""

    def read(self, text: str) -> None:
        """Read a text, in the direction of the model."""
        ids = self.model.encode(text)
        for token in in_reading_order(ids, self.model.backward).tolist():
            self._take(token)
        self.before = ids.tolist() or self.before

    def read_start(self) -> None:
        """Read what stands for the beginning of a text."""
        self._take(self.model.start("")[0])

    def _take(self, token: int) -> None:
        if self.pending is not None:
            self.stream.read(self.pending)
        self.pending = token

    def write(self, seed: int, sampling: Sampling) -> Iterator[int]:
        """Draw one token after the other, without end."""
        assert self.pending is not None
        while True:
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
        """Give the place."""
        return self.stream.state(), self.pending

    def restore(self, place: Snapshot) -> None:
        """Go to a place."""
        state, self.pending = place
        self.stream.restore([(h, s) for h, s in state])

    def save(self, path: Path, seed: int) -> None:
        """Write the place to a file, for this model, atomically; an existing file is replaced."""
        arrays: dict[str, Floats] = {}
        for i, (h, s) in enumerate(self.stream.state()):
            arrays |= {f"h.{i}": h, f"s.{i}": s}
        about = {"pending": self.pending, "drawn": self.drawn, "seed": seed, "model": self._signature()}
        write_arrays(path, arrays, about)

    def load(self, path: Path) -> None:
        """Go to the place that a file holds; refuse that of another model."""
        arrays, about = read_arrays(path)
        if about.get("model") != self._signature():
            raise FileError(f"{path}: the state of another model; save one with this run first")
        saved, config = read_as(Saved, about, path), self.model.model.config
        pending, seed = saved["pending"], saved["seed"]
        if not 0 <= pending < config.inputs or not 0 <= saved["drawn"] < 2**62 or (seed or 0) < 0:
            raise FileError(f"{path}: damaged or crafted: pending, drawn or seed is out of range")
        parts = [
            (
                check_array(arrays, f"h.{i}", (config.hidden,), path),
                check_array(arrays, f"s.{i}", (config.hidden,), path),
            )
            for i in range(config.layers)
        ]
        self.restore((parts, pending))
        self.drawn, self.seed = saved["drawn"], seed
        self.before = [pending]

    def _signature(self) -> dict[str, Any]:
        """What a state belongs to: a state of one model means nothing to another."""
        return {"vocab": self.model.vocab.sha256, "model": self.model.model.parameters.sha256}
