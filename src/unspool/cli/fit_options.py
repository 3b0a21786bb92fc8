"""The options of commands that fit something other than a language model: sequences, and series of numbers."""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias, get_type_hints

from cyclopts import Parameter

from unspool.cells import TASK_DEFAULT, CellName
from unspool.cli.options import (
    DATA,
    DECLARED,
    ConfigFile,
    OfData,
    OfOutput,
    RunOptions,
    WorkerOptions,
    names_of,
    option_class,
)
from unspool.cli.precision import PRECISION
from unspool.errors import FileError
from unspool.options import declarations, key_of, to_json
from unspool.storage.schema import read_as
from unspool.tasks.forecast import options as forecast

Column: TypeAlias = str | None
"""A column's name, or its number from 0."""


def as_column(name: Column) -> Any:
    """Read a column's number from 0 as a number, anything else as its name."""
    return int(name) if name is not None and name.isdecimal() else name


OF_FORECASTS = DECLARED | declarations(forecast)


@option_class
class SequenceOptions(ConfigFile):
    """How a network for sequences is fitted and judged."""

    test: OfData[Path | None] = None
    """File of the same format for evaluation, instead of held-out sequences."""
    hold_out: OfData[float] = 0.2
    """Fraction of the sequences that is held out for evaluation and not used for training."""
    minutes: float = 2.0
    epochs: int = 60
    steps: int | None = None
    cell: CellName = TASK_DEFAULT
    hidden: int = 64
    layers: int = 1
    bidirectional: bool = True
    embedding: int = 0
    dropout: float = 0.3
    precision: str = PRECISION.field("float32")
    batch_size: int = 32
    shards: int = 1
    optimiser: str = "adam"
    schedule: str = "cosine"
    learning_rate: float = 5e-3
    validation: float = 0.1
    patience: int = 10
    seed: int = 0
    out: OfOutput[Path | None] = None

    def arguments(self, names: Iterable[str]) -> dict[str, Any]:
        """Give those arguments of an estimator, of all the names it has, that are options."""
        given = {name: value for name, value in vars(self).items() if name in set(names)}
        return given | {
            "minutes": None if self.steps else self.minutes,
            "patience": 0 if self.validation == 0 else self.patience,
        }


@option_class
class StoredOptions(RunOptions, ConfigFile):
    """The options of a fit, which its run stores to be resumed."""

    out: OfOutput[Path | None] = None
    """The folder to create: model, vocabulary, settings, log and checkpoint [default: runs/NAME-COMMAND, NAME from DATA]."""

    def to_json(self) -> dict[str, Any]:
        """Return the options that decide the result, ready for JSON."""
        passing = {*names_of(RunOptions), *names_of(WorkerOptions), "out", "config_file"}
        return {
            name: str(value.absolute()) if isinstance(value, Path) else value
            for name, value in to_json(self).items()
            if name not in passing
        }

    @classmethod
    def from_json(cls, content: dict[str, Any], path: Path, **passing: Any) -> Self:
        """Make options from the plain values of a config, and from what does not decide the result."""
        names = {key_of(field): field.name for field in fields(cls) if field.name not in passing}
        hints = get_type_hints(cls)
        if unknown := sorted(set(content) - set(names)):
            raise FileError(f"{path}: damaged or manipulated: unknown field {unknown[0]!r}")
        made = {
            names[key]: read_as(hints[names[key]], value, path, f"command.options.{key}")
            for key, value in content.items()
        }
        return cls(**made | passing)


@option_class
class FitOptions(StoredOptions, SequenceOptions):
    """All that fitting commands for sequences have in common."""


@option_class(known=OF_FORECASTS)
class Forecasting(ConfigFile):
    """What a series is taken for, and how it is learned."""

    columns: Annotated[list[str] | None, Parameter(group=DATA, negative="", consume_multiple=True)] = None
    """The columns to forecast, by name or by index counted from 0 [default: all numeric columns]."""
    series: OfData[str | None] = None
    """For a long table: the column that names the series of each row [default: each column is a series]."""
    time: OfData[str | None] = None
    """The column of times; none if there is no such column [default: detected]."""
    missing: OfData[Literal["refuse", "interpolate", "mask"]] = "refuse"
    """Missing values: refuse (an error), interpolate (linearly; treated as observed) or mask (interpolated as input, excluded from the loss and the scores)."""
    delimiter: OfData[str | None] = None
    """Character between the fields [default: detected]."""
    dates: OfData[Literal["guess", "day-first", "month-first"]] = "guess"
    """Order of dates as 03/04/2020: day-first, month-first or guess (from all rows; an error if both fit)."""
    horizon: int = 12
    model: forecast.ModelName = "best"
    season: str = "guess"
    power: forecast.Power = "guess"
    differences: str = "guess"
    steps: int = 0
    cell: CellName = TASK_DEFAULT
    precision: str = PRECISION.field("float32")
    hidden: int = 0
    members: int = 0
    window: int = 0
    optimiser: str = "adam"
    schedule: str = "cosine"
    seed: int = 0
    level: float = 0.8
