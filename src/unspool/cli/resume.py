"""`unspool resume`: go on with a run that was stopped, whatever it learns."""

from dataclasses import dataclass
from pathlib import Path

from unspool import checkpoint
from unspool.cli.classify import CLASSIFY
from unspool.cli.fit import Work, go_on
from unspool.cli.follow import follow
from unspool.cli.generate_from import GENERATE_FROM
from unspool.cli.options import Flag, Kept, OfOutput
from unspool.cli.refusals import check_before
from unspool.cli.regress import REGRESS
from unspool.cli.stopping import Stop
from unspool.cli.tag import TAG
from unspool.cli.terminal import terminal
from unspool.cli.translate import TRANSLATE
from unspool.cli.view import View
from unspool.errors import InputError
from unspool.keeping import Keeping
from unspool.run import resume as resumed

WORKS: dict[str, Work] = {work.name: work for work in (CLASSIFY, REGRESS, TAG, TRANSLATE, GENERATE_FROM)}


@dataclass(frozen=True, kw_only=True)
class Options(Kept):
    """What `resume` is given."""

    plot: OfOutput[Path | None] = None
    """Draw what the command that began it draws into this file (.png, .svg, .pdf)."""
    tensorboard: OfOutput[Flag] = False
    """Of a language model: write curves for TensorBoard into the run as well (extra `tensorboard`)."""


def resume(run: Path, /, *, options: Options = Options()) -> None:
    """Go on with a run that was stopped, to the same bits as if it never had been.

    Parameters
    ----------
    run
        The folder of the run.
    """
    kind = checkpoint.read_kind(run)
    if kind in WORKS:
        if options.tensorboard:
            raise InputError("--tensorboard goes with language models")
        return go_on(WORKS[kind], run, options)
    if kind != "language":
        raise InputError(
            f"{run}: a run of the kind {kind!r} cannot be gone on with from here; expected one of unspool train, "
            f"{', '.join(f'{name} fit' for name in WORKS)}"
        )
    check_before(None, options)
    view, stop = View(terminal(quiet=options.json)), Stop()
    keeping = Keeping(steps=options.save_every, stop=stop, told=stop.heeded(view.judging))
    events = resumed(run, keeping=keeping)
    follow(events, run, view, stop, shown=options, tensorboard=options.tensorboard)
