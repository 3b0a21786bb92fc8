"""Resume an interrupted run; the result is bit-identical to an uninterrupted one."""

from dataclasses import dataclass
from pathlib import Path

from unspool.cli.checks import check_before
from unspool.cli.commands.classify import CLASSIFY
from unspool.cli.commands.forecast import FORECAST
from unspool.cli.commands.generate_from import GENERATE_FROM
from unspool.cli.commands.regress import REGRESS
from unspool.cli.commands.tag import TAG
from unspool.cli.commands.translate import TRANSLATE
from unspool.cli.fit import Resumable, resume_fit
from unspool.cli.follow import follow
from unspool.cli.options import Flag, OfOutput, RunOptions
from unspool.cli.output import notes
from unspool.cli.signals import Stop
from unspool.cli.sources import RunFolder
from unspool.cli.views.training import View
from unspool.errors import InputError
from unspool.storage import run_folder
from unspool.tasks.language.run import resume as resumed
from unspool.training.checkpoint import CheckpointPolicy

WORKS: dict[str, Resumable] = {
    work.name: work for work in (CLASSIFY, REGRESS, TAG, TRANSLATE, GENERATE_FROM, FORECAST)
}


@dataclass(frozen=True, kw_only=True)
class Options(RunOptions):
    """What `resume` is given."""

    plot: OfOutput[Path | None] = None
    """Draw what the command that began it draws into this file (.png, .svg, .pdf)."""
    tensorboard: OfOutput[Flag] = False
    """Of a language model: write curves for TensorBoard into the run as well (extra `tensorboard`)."""


def resume(run: RunFolder, /, *, options: Options = Options()) -> None:
    """Run `unspool resume`."""
    kind = run_folder.read_kind(run)
    if kind in WORKS:
        if options.tensorboard:
            raise InputError("--tensorboard goes with language models")
        return resume_fit(WORKS[kind], run, options)
    if kind != "language":
        raise InputError(
            f"{run}: a run of the kind {kind!r} cannot be resumed; expected one of unspool train, "
            f"{', '.join(f'{name} fit' for name in WORKS)}"
        )
    check_before(None, options)
    view, stop = View(notes(options)), Stop()
    policy = CheckpointPolicy(steps=options.save_every)
    events = resumed(run, policy=policy)
    follow(events, run, view, stop, shown=options, tensorboard=options.tensorboard)
