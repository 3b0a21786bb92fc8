"""Options of commands: made from the declarations of hyper-parameters, and those that several commands share.

    @option_class
    class Options(FitOptions):
        hidden: int = 64                        declared: --hidden, with the help, group and former names
        plot: OfOutput[Path | None] = None      an option without a declaration: its docstring is the help

A command's class inherits from these classes and adds its own options; the help lists the last base class first.
"""

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from inspect import get_annotations
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, dataclass_transform, get_args

from cyclopts import Group, Parameter

from unspool.cli.config_file import FORMER
from unspool.data import options as data
from unspool.kernels.native import set_threads
from unspool.model import options as network
from unspool.optimisers import options as optimiser
from unspool.options import Option, declarations, declare, option_of
from unspool.training import options as training

Flag: TypeAlias = Annotated[bool, Parameter(negative="")]
"""Without a second option that takes the first one back."""


def _no_option(type_: Any, path: Path | None) -> None:
    """Refuse what was meant as an option: ``-`` had to be allowed, and the rest came with it."""
    if str(path).startswith("-") and str(path) != "-":
        raise ValueError(f"expected a file before {path}")


FileOrDash: TypeAlias = Annotated[Path | None, Parameter(allow_leading_hyphen=True, validator=_no_option)]
"""A file, or - for standard output."""

T = TypeVar("T")
ORDER = {"Text": 1, "Data": 1, "Time": 2, "Network": 3, "Training": 4, "Output": 5}
"""The headings in the help of a command, and their places."""
GROUPS = {name: Group(name, sort_key=place) for name, place in ORDER.items()}
TEXT, DATA, TIME, _, _, OUTPUT = GROUPS.values()
OfText: TypeAlias = Annotated[T, Parameter(group=TEXT)]
OfData: TypeAlias = Annotated[T, Parameter(group=DATA)]
OfTime: TypeAlias = Annotated[T, Parameter(group=TIME)]
OfOutput: TypeAlias = Annotated[T, Parameter(group=OUTPUT)]
Own: TypeAlias = Annotated[T, Parameter()]
"""An option of one command that has the name of a declared hyper-parameter and another meaning."""


DECLARED = declarations(network, optimiser, training, data)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def option_class(
    kind: type[T] | None = None,
    *,
    groups: Mapping[str, Group] = GROUPS,
    known: Mapping[str, Option[Any]] = DECLARED,
) -> Any:
    """Make a frozen dataclass whose fields are options; a declaration gives its fields choices, names and a group."""

    def made(kind: type[T]) -> type[T]:
        hints, found = get_annotations(kind), {}
        for name, hint in hints.items():
            own, *more = (hint.__origin__, *hint.__metadata__) if hasattr(hint, "__metadata__") else (hint,)
            default = kind.__dict__.get(name)
            option = option_of(default) if isinstance(default, Field) else None if more else known.get(name)
            if option is not None:
                found[name] = option
                if option.choices:
                    own = (
                        Literal[tuple(option.choices)] | None
                        if NoneType in get_args(own)
                        else Literal[tuple(option.choices)]
                    )
                hints[name] = Annotated[own, _parameter(option, groups), *more]
        kind.__annotations__ = hints
        options = Parameter(name="*")(dataclass(frozen=True, kw_only=True)(kind))
        declare(options, found, {name: option.option for name, option in found.items()})
        return options

    return made if kind is None else made(kind)


def _parameter(option: Option[Any], groups: Mapping[str, Group]) -> Parameter:
    """Return how cyclopts names and shows an option."""
    names = dict.fromkeys(
        _dashed(name) for name in (option.option or option.name, option.name, *option.former)
    )
    FORMER.update({_dashed(old): (_dashed(option.name), values) for old, values in option.former.items()})
    return Parameter(name=[*names], group=groups.get(option.group), negative="" if option.single else None)


def _dashed(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@option_class
class ConfigFile:
    """Options from a file."""

    config_file: Annotated[
        Path | None, Parameter(name="--config", group=Group("Config file", sort_key=0))
    ] = None
    """Read options from this file (.toml, .json), for example hidden = 128; the command line takes precedence."""


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
    """Number of threads; the results do not depend on it [default: UNSPOOL_THREADS, else OMP_NUM_THREADS, else the CPUs that the process may use]."""
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
    """Number of threads; the results do not depend on it [default: UNSPOOL_THREADS, else OMP_NUM_THREADS, else the CPUs that the process may use]."""
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
    """Save a checkpoint every N updates [default: every 30 seconds]."""


@dataclass(frozen=True, kw_only=True)
class RunOptions(CheckpointOptions, OutputOptions):
    """What does not decide the result of a command that keeps what it does in a run."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """How a command divides many jobs."""

    workers: OfTime[int | None] = None
    """Number of processes that work at the same time, each with one thread; the results do not depend on it (extra `sweep`) [default: the number of threads, for many jobs]."""
    backend: OfTime[Literal["loky", "dask", "ray"]] = "loky"
    """What starts the processes: loky (on this machine), or the joblib backend of dask or ray (also on other machines)."""


def names_of(kind: type[Any]) -> list[str]:
    """Give the names of a dataclass's fields."""
    return [field.name for field in fields(kind)]
