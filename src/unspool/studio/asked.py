"""The bodies of requests, as dataclasses: `storage.schema` checks their types, the views their ranges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from unspool.errors import InputError

TEXT_TOKENS = 5000
"""Tokens of a text that is read."""
MOST_EDITS = 64


@dataclass(frozen=True)
class Edit:
    """A weight, or a unit after a step, that is set to a value in a copy."""

    kind: Literal["weight", "unit"]
    name: str
    value: float
    index: list[int] = field(default_factory=list)
    t: int | None = None


@dataclass(frozen=True, kw_only=True)
class OfModel:
    """Which model a request is about."""

    run: str | None = None
    update: int | None = None
    edits: list[Edit] = field(default_factory=list)
    serial: int = 0

    def __post_init__(self) -> None:
        if len(self.edits) > MOST_EDITS:
            raise InputError(f"edits: {len(self.edits)}; expected at most {MOST_EDITS}")


@dataclass(frozen=True, kw_only=True)
class Read(OfModel):
    """Read a text."""

    text: str
    states: list[str] | None = None
    plane: str | None = None
    """A reading in whose plane the path is drawn; by default that of the principal components of this text."""
    after: str | None = None
    """A reading that this one continues: the states before the first difference are not sent again."""
    at: int | None = None
    """A step whose exact values are wanted too; the last one if there are fewer."""


@dataclass(frozen=True, kw_only=True)
class OfReading:
    """A request about a text that was read."""

    reading: str
    serial: int = 0


@dataclass(frozen=True, kw_only=True)
class AtStep(OfReading):
    """One step of it."""

    t: int


@dataclass(frozen=True, kw_only=True)
class Units(OfReading):
    """Its most informative units."""

    count: int = 8


@dataclass(frozen=True, kw_only=True)
class OneUnit(OfReading):
    """One unit or gate."""

    name: str
    stretches: int = 8
    off: bool = True


@dataclass(frozen=True, kw_only=True)
class ShowParameters(OfModel):
    """The parameters, and one matrix of them."""

    matrix: str | None = None


@dataclass(frozen=True, kw_only=True)
class Generate(OfModel):
    """A text that the model generates."""

    prompt: str = ""
    length: int = 200
    temperature: float = 1.0
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Back(OfModel):
    """Gradients that flow back through a window of a text."""

    text: str
    reading: str | None = None
    """A reading whose model is taken: that of one update for several requests while a run is trained."""
    begin: int = 0
    tau: int = 48
    scale: float = 1.0
    radius: float | None = None
    parts: list[str] = field(default_factory=lambda: ["flow", "lags", "truncations"])
    kinds: list[str] = field(
        default_factory=lambda: ["truncated:4", "truncated:8", "truncated:16", "random:0.5", "random:0.75", "random:0.9"]
    )  # fmt: skip
    draws: int = 32
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Unfold(OfModel):
    """A graph with its values: of a run, or of a small network to look at."""

    text: str
    of: Literal["run", "demo"] = "run"
    cell: str | None = None
    pattern: str = "10.3"
    feedback: str = "logits"
    activation: str = "tanh"
    hidden: int = 4
    seed: int = 0
    tau: int = 3


@dataclass(frozen=True, kw_only=True)
class Weight:
    """One weight of an unfolded graph."""

    unfolding: str
    name: str
    index: list[int]
    serial: int = 0


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The tokens of a run."""

    run: str | None = None
    serial: int = 0


@dataclass(frozen=True, kw_only=True)
class Train:
    """Start, stop, one update."""

    action: Literal["start", "stop", "one"] | None = None
    run: str | None = None
    pace: float | None = None


@dataclass(frozen=True, kw_only=True)
class New:
    """A new run."""

    text: str = "t1"
    options: dict[str, Any] = field(default_factory=dict)
    start: bool = True


@dataclass(frozen=True, kw_only=True)
class Fork:
    """A run that goes on from an update of another one."""

    update: int
    run: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    start: bool = True


@dataclass(frozen=True, kw_only=True)
class Show:
    """A run to show."""

    run: str


@dataclass(frozen=True, kw_only=True)
class NewText:
    """A text to train on."""

    name: str
    content: str


def within(name: str, value: float, least: float, most: float) -> None:
    """Raise where a number of a request is out of range."""
    if not least <= value <= most:
        raise InputError(f"{name} is {value:g}; expected {least:g} to {most:g}")
