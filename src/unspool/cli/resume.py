"""`unspool resume`: go on with a run that was stopped, whatever it learns."""

from pathlib import Path

from rich.console import Console

from unspool import checkpoint
from unspool.cli.classify import CLASSIFY
from unspool.cli.fit_options import Shown
from unspool.cli.fits import Work, go_on
from unspool.cli.follow import follow
from unspool.cli.options import Flag
from unspool.cli.stopping import Stop
from unspool.cli.tag import TAG
from unspool.cli.translate import TRANSLATE
from unspool.cli.view import View
from unspool.errors import InputError
from unspool.kernel.ops import set_threads
from unspool.place import Keeping
from unspool.run import resume as resumed

WORKS: dict[str, Work] = {work.name: work for work in (CLASSIFY, TAG, TRANSLATE)}


def resume(
    run: Path,
    /,
    *,
    threads: int | None = None,
    save_every: int | None = None,
    json: Flag = False,
    plot: Path | None = None,
    tensorboard: Flag = False,
) -> None:
    """Go on with a run that was stopped, to the same bits as if it never had been.

    Parameters
    ----------
    run
        The folder of the run.
    threads
        How many threads; it changes no bit of the result.
    save_every
        Save the state after every so many updates [default: every half minute].
    json
        Print the result as JSON, and nothing else.
    plot
        Draw what the command that began it draws into this file (.png, .svg, .pdf).
    tensorboard
        Of a language model: write curves for TensorBoard into the run as well (extra `tensorboard`).
    """
    kind = checkpoint.read_json(checkpoint.check_run(run) / checkpoint.CONFIG).get("kind")
    if kind in WORKS:
        if tensorboard:
            raise InputError("--tensorboard goes with language models")
        return go_on(WORKS[kind], run, Shown(threads=threads, json=json, plot=plot), save_every)
    if kind != "language":
        raise InputError(
            f"{run}: a run of the kind {kind!r} cannot be gone on with from here; expected one of unspool train, "
            f"{', '.join(f'{name} fit' for name in WORKS)}"
        )
    if threads is not None:
        set_threads(threads)
    view, stop = View(Console(highlight=False, quiet=json)), Stop()
    keeping = Keeping(steps=save_every, stop=stop, told=stop.heeded(view.judging))
    follow(resumed(run, keeping=keeping), run, view, stop, json=json, plot=plot, tensorboard=tensorboard)
