"""The options of commands that fit something other than a language model: sequences, and series of numbers."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias, get_type_hints

from cyclopts import Parameter

from unspool.cells import TASK_DEFAULT, CellName
from unspool.cli.options import DATA, OfData, OfNetwork, OfOutput, OfTime, OfTraining, RunOptions, names_of
from unspool.errors import FileError
from unspool.storage.schema import read_as

Column: TypeAlias = str | None
"""A column's name, or its number from 0."""


def as_column(name: Column) -> Any:
    """Read a column's number from 0 as a number, anything else as its name."""
    return int(name) if name is not None and name.isdecimal() else name


@dataclass(frozen=True, kw_only=True)
class SequenceOptions:
    """How a network for sequences is fitted and judged."""

    test: OfData[Path | None] = None
    """A file of the same kind to judge by, instead of sequences held out."""
    hold_out: OfData[float] = 0.2
    """The share of the sequences that is judged by and not learned from."""
    minutes: OfTime[float] = 2.0
    """The most time that training may take."""
    epochs: OfTime[int] = 60
    """The most often that the sequences are read."""
    steps: OfTime[int | None] = None
    """How many updates instead: the number that a fit prints repeats it to the bit."""
    cell: OfNetwork[CellName] = TASK_DEFAULT
    """The recurrence."""
    hidden: OfNetwork[int] = 64
    """H, the units of a layer and direction."""
    layers: OfNetwork[int] = 1
    """Layers on each other."""
    bidirectional: OfNetwork[bool] = True
    """Whether sequences are also read from the end."""
    embedding: OfNetwork[int] = 0
    """The width of the token table; 0: one-hot tokens."""
    dropout: OfNetwork[float] = 0.3
    """The share of a layer's outputs that is dropped in training."""
    batch: OfTraining[int] = 32
    """B, sequences side by side."""
    learning_rate: OfTraining[float] = 5e-3
    """The highest; it falls to zero with the last update."""
    validation: OfTraining[float] = 0.1
    """The share of the sequences learned from that chooses the best parameters; 0: the last are kept."""
    patience: OfTraining[int] = 10
    """Stop after so many validations without a better one."""
    seed: OfTraining[int] = 0
    """Where all random numbers come from."""
    out: OfOutput[Path | None] = None
    """The folder to create: model, vocabulary, settings, log and checkpoint [default: runs/NAME-COMMAND, NAME from DATA]."""

    def arguments(self, names: Iterable[str]) -> dict[str, Any]:
        """Give those arguments of an estimator, of all the names it has, that are options."""
        given = {name: value for name, value in vars(self).items() if name in set(names)}
        return given | {
            "batch_size": self.batch,
            "minutes": None if self.steps else self.minutes,
            "patience": self.patience if self.validation else 0,
        }


@dataclass(frozen=True, kw_only=True)
class FitOptions(RunOptions, SequenceOptions):
    """All that fitting commands for sequences have in common."""

    def to_json(self) -> dict[str, Any]:
        """Give what decides the result, ready for JSON."""
        passing = {*names_of(RunOptions), "out"}
        return {
            name: str(value) if isinstance(value, Path) else value
            for name, value in vars(self).items()
            if name not in passing
        }

    @classmethod
    def from_json(cls, content: dict[str, Any], path: Path, **passing: Any) -> Self:
        """Make options from the plain values of a config, and from what does not decide the result."""
        known = {name: kind for name, kind in get_type_hints(cls).items() if name not in passing}
        if unknown := sorted(set(content) - set(known)):
            raise FileError(f"{path}: damaged or crafted: unknown field {unknown[0]!r}")
        made = {
            name: read_as(known[name], value, path, f"command.options.{name}")
            for name, value in content.items()
        }
        return cls(**made | passing)


@dataclass(frozen=True, kw_only=True)
class Forecasting:
    """What a series is taken for, and how it is learned."""

    columns: Annotated[list[str] | None, Parameter(group=DATA, negative="", consume_multiple=True)] = None
    """The columns to forecast, by name or number from 0 [default: all that have numbers]."""
    time: OfData[str | None] = None
    """The column of times [default: recognised]; none: there is none."""
    missing: OfData[Literal["refuse", "interpolate", "mask"]] = "refuse"
    """Missing values: refuse, interpolate (and take it for observed) or mask (interpolate to read, never learn)."""
    delimiter: OfData[str | None] = None
    """What stands between the fields [default: guessed]."""
    horizon: OfData[int] = 12
    """How many steps ahead."""
    season: OfData[str] = "guess"
    """Steps until the series looks as before; 1: no season; guess: from the autocorrelation."""
    power: OfData[Literal["guess", "none", "root", "log"]] = "guess"
    """Whether the logarithm or the root is learned; guess: by how the spread follows the level."""
    differences: OfData[str] = "guess"
    """d,D: ordinary and seasonal, each 0 or 1; guess: by autocorrelations."""
    steps: OfTime[int] = 0
    """Updates of each network; 0: chosen by the length."""
    cell: OfNetwork[CellName] = TASK_DEFAULT
    """The recurrence."""
    hidden: OfNetwork[int] = 0
    """H, the units; 0: chosen by the length."""
    members: OfNetwork[int] = 0
    """How many networks are averaged; 0: 4, or 2 for long series."""
    window: OfNetwork[int] = 0
    """How many values a network reads; 0: three seasons, or what a second season needs."""
    seed: OfTraining[int] = 0
    """Where all random numbers come from."""
    level: OfOutput[float] = 0.8
    """The share of what comes that the band should hold."""
