"""Resume an interrupted run; the result is bit-identical to an uninterrupted one."""

from dataclasses import dataclass
from pathlib import Path

from unspool.cli.commands import fit_of
from unspool.cli.options import Flag, OfOutput, RunOptions
from unspool.cli.sources import RunFolder
from unspool.tasks.registry import kind_of


@dataclass(frozen=True, kw_only=True)
class Options(RunOptions):
    """What `resume` is given."""

    plot: OfOutput[Path | None] = None
    """Draw the plot of the command that started the run (for example the learning curve of train) into this file (.png, .svg, .pdf)."""
    tensorboard: OfOutput[Flag] = False
    """For language models: also write curves for TensorBoard into the run (extra `tensorboard`)."""


def resume(run: RunFolder, /, *, options: Options = Options()) -> None:
    """Run `unspool resume`."""
    fit_of(kind_of(run).command).resume(run, options)
