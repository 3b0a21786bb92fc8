"""Options that several commands have in common: each stands here once, with its help under it.

A command's own class puts these together, adds what it alone has, and gives other defaults where it needs them;
cyclopts makes an option of every field.

    class Options(Shown, Saved): …      the help lists what Saved has first, then what Shown has
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from cyclopts import Group, Parameter

from unspool.kernels.native import set_threads

Flag: TypeAlias = Annotated[bool, Parameter(negative="")]
"""Without a second option that takes the first one back."""


def _no_option(type_: Any, path: Path | None) -> None:
    """Refuse what was meant as an option: ``-`` had to be allowed, and the rest came with it."""
    if str(path).startswith("-") and str(path) != "-":
        raise ValueError(f"expected a file before {path}")


FileOrDash: TypeAlias = Annotated[Path | None, Parameter(allow_leading_hyphen=True, validator=_no_option)]
"""A file, or - for standard output."""

T = TypeVar("T")
TEXT = Group("Text", sort_key=1)
DATA = Group("Data", sort_key=1)
TIME = Group("Time", sort_key=2)
NETWORK = Group("Network", sort_key=3)
TRAINING = Group("Training", sort_key=4)
OUTPUT = Group("Output", sort_key=5)
OfText: TypeAlias = Annotated[T, Parameter(group=TEXT)]
OfData: TypeAlias = Annotated[T, Parameter(group=DATA)]
OfTime: TypeAlias = Annotated[T, Parameter(group=TIME)]
OfNetwork: TypeAlias = Annotated[T, Parameter(group=NETWORK)]
OfTraining: TypeAlias = Annotated[T, Parameter(group=TRAINING)]
OfOutput: TypeAlias = Annotated[T, Parameter(group=OUTPUT)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Replacing:
    """Whether a command replaces files."""

    force: Flag = False
    """Replace output files that exist. Runs, files in a run and files that the command reads are never replaced."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """How a command that only looks does its work."""

    threads: int | None = None
    """How many threads; it changes no bit of the result."""
    json: Flag = False
    """Print JSON."""
    quiet: Flag = False
    """Print only the result: no progress, no notes. Errors still go to standard error."""

    def apply(self) -> None:
        """Set the number of threads."""
        if self.threads is not None:
            set_threads(self.threads)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OutputOptions(Replacing):
    """How a command works and what it shows."""

    threads: OfTime[int | None] = None
    """How many threads; it changes no bit of the result."""
    json: OfOutput[Flag] = False
    """Print the result as JSON, and nothing else."""
    quiet: OfOutput[Flag] = False
    """Print only the result: no progress, no notes. Errors still go to standard error."""
    plot: OfOutput[Path | None] = None
    """Draw the confusion matrix into this file (.png, .svg, .pdf): needs labels."""
    force: OfOutput[Flag] = False


@dataclass(frozen=True, kw_only=True)
class CheckpointOptions:
    """How a command keeps what it does in a run."""

    save_every: OfOutput[int | None] = None
    """Save the state after every so many updates [default: every half minute]."""


@dataclass(frozen=True, kw_only=True)
class RunOptions(CheckpointOptions, OutputOptions):
    """What does not decide the result of a command that keeps what it does in a run."""


def names_of(kind: type[Any]) -> list[str]:
    """Give the names of a dataclass's fields."""
    return [field.name for field in fields(kind)]
