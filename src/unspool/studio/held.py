"""Readings that later requests can name: a text as a model read it, with what is computed from it when it is asked for."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import Any

import numpy as np

from unspool.errors import InputError
from unspool.gradients.decomposition import softmax
from unspool.inspect.components import Components, components
from unspool.inspect.properties import Property, properties_of
from unspool.inspect.reading import Reading, gates_of
from unspool.inspect.report import read_with
from unspool.inspect.units import parse_unit
from unspool.kernels.arrays import Floats, Real
from unspool.model.packed import Weights
from unspool.studio.asked import TEXT_TOKENS, Edit, Read
from unspool.studio.models import Asked, asked, at_every_step
from unspool.studio.payload import clean
from unspool.studio.session import Session
from unspool.studio.worker import Job

KEPT, FEWEST = 24, 4
MEMORY = 192 << 20
"""Bytes of the states of the readings that are kept; the newest few are kept in any case."""

WORD = 100
"""Characters of which a text may have while it is a single token."""


class Short(Exception):
    """The text is a single token."""


@dataclass
class Held:
    """A text that was read, and with what."""

    model: Asked
    edits: list[Edit]
    known: list[bool]
    reading: Reading
    text: str
    weights: Weights
    plane: Components | None = None
    positions: Real = field(default_factory=lambda: np.empty((0, 2)))
    """The states of the last layer in the plane."""

    @cached_property
    def properties(self) -> list[Property]:
        """The properties of the text that units are compared with."""
        return properties_of(self.reading.pieces)

    @cached_property
    def gates(self) -> dict[str, Floats]:
        """The gates at all steps."""
        return read_text(self.model, self.text, gates=True, weights=self.weights)[1].gates

    def gates_at(self, t: int) -> dict[str, Floats]:
        """Return the gates at one step, H each."""
        model, T = self.model.source.model, len(self.reading.ids)
        if "gates" in self.__dict__ or model.config.feeds_tokens:
            return {name: values[t] for name, values in self.gates.items()}
        before = t + 1 if self.model.source.backward else t - 1
        state = self.reading.state_after(before) if 0 <= before < T else None
        ids = np.ascontiguousarray(self.reading.ids[t : t + 1, None], np.int32)
        tapes = model.forward(ids, state, weights=self.weights, y=ids).tape
        return {
            f"layer{layer}.{gate}": values[0]
            for layer, made in enumerate(tapes)
            for gate, values in gates_of(made.directions[0])
        }

    @property
    def columns(self) -> dict[str, Floats]:
        """States and gates by name."""
        return self.reading.states | self.gates

    def column(self, name: str) -> tuple[str, int, Floats]:
        """Return the state or gate of a unit by its name, its number, and its values."""
        letter = name.rpartition(".")[2][:1]
        found = self.reading.states if letter in "hs" or not letter.isalpha() else self.columns
        key, index = parse_unit(name, found)
        return key, index, found[key][:, index]

    def next_probabilities(self, t: int) -> Real:
        """Return the distribution of the token after step t, (K,)."""
        h = np.ascontiguousarray(self.reading.last_h[t : t + 1])
        probabilities: Real = softmax(self.weights.output(h).astype(np.float64))[0]
        return probabilities

    def is_of(self, run: str, update: int | None, edits: list[Edit]) -> bool:
        """Return whether this was read by the parameters of an update with these edits."""
        version = self.model.version
        return (version["run"], version["update"]) == (run, update) and self.edits == edits

    def same_steps(self, found: Asked, edits: list[Edit]) -> int:
        """Return how many first steps of a text are the same for another request's model and edits."""
        if any(found.version[name] != self.model.version[name] for name in ("run", "update")):
            return 0
        common = sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self.edits, edits, strict=False))
        )
        changed = self.edits[common:] + edits[common:]
        if any(each.kind == "weight" or each.t is None for each in changed):
            return 0
        return min((each.t for each in changed if each.t is not None), default=TEXT_TOKENS)

    @property
    def nbytes(self) -> int:
        """Bytes of the states."""
        return sum(values.nbytes for values in self.reading.states.values())


class Readings:
    """The last readings, by name."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._count = 0
        self.radii: dict[tuple[str, int], dict[str, float]] = {}
        """Spectral radii by run and update."""

    def add(self, held: Held) -> str:
        """Keep a reading; return its name."""
        self._count += 1
        name = f"g{self._count}"
        self._held[name] = held
        size = sum(each.nbytes for each in self._held.values())
        while len(self._held) > KEPT or (size > MEMORY and len(self._held) > FEWEST):
            size -= self._held.popitem(last=False)[1].nbytes
        return name

    def __getitem__(self, name: str) -> Held:
        if name not in self._held:
            raise LookupError(f"reading {clean(name)[:20]!r} is not held any more; read the text again")
        self._held.move_to_end(name)
        return self._held[name]

    def read(self, session: Session, request: Read, job: Job) -> Held:
        """Read a text; the steps that are those of the reading `request.after` are copied from it."""
        after = None if request.after is None else self[request.after]
        if after is not None and after.is_of(session.run_of(request.run).id, request.update, request.edits):
            found = after.model
        else:
            found = asked(session, request, job.check)
        if request.text.strip() and len(request.text) < WORD and len(found.source.encode(request.text)) < 2:
            raise Short
        same = 0 if after is None else after.same_steps(found, request.edits)
        weights = after.weights if after is not None and same else found.source.model.weights()
        known, reading = read_text(
            found, request.text, after=after.reading if after is not None and same else None, same=same, weights=weights
        )  # fmt: skip
        held = Held(found, request.edits, known, reading, request.text, weights)
        held.plane = None if request.plane is None else self[request.plane].plane
        self._place(held, after)
        return held

    def _place(self, held: Held, after: Held | None) -> None:
        """Compute where the states are in the plane; without one, in that of their principal components."""
        h, begin = held.reading.last_h, held.reading.begin
        if held.plane is None:
            held.plane = components(h)
            held.positions = held.plane.positions
            return
        if len(held.plane.mean) != h.shape[1]:
            raise InputError("plane: a reading of a model of another size")
        if after is None or after.plane is not held.plane:
            begin = 0
        earlier = [] if after is None else [after.positions[:begin]]
        held.positions = np.concatenate([*earlier, held.plane.project(h[begin:])])


def read_text(found: Asked, text: str, **more: Any) -> tuple[list[bool], Reading]:
    """Read a text with the model of a request."""
    tokens = len(found.source.encode(text)) if found.outputs else 0
    edits = at_every_step(found.outputs, tokens)
    return read_with(found.source, text, edits=edits, most=TEXT_TOKENS, **more)
