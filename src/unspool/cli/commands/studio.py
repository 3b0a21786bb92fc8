"""Open a page on this machine in which a language model is trained, rewound, inspected and taken apart while it learns.

Prints the address of the page in one line; whoever has the address can use the page. With a run, it is shown and can be resumed;
with a text, or without an argument on a built-in one, a new run begins in the folder runs. Ctrl-C saves it and ends the page.
"""

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from unspool.cli.default_out import RUNS, default_run
from unspool.cli.follow import repeat
from unspool.cli.signals import Stop
from unspool.data.text.source import resolve
from unspool.storage import run_folder
from unspool.studio.server import Studio
from unspool.studio.session import BUILTIN, Place, Session

FIRST = {"hidden": 128}
"""The options of the run that a text begins with: it moves at once."""


def studio(
    run_or_text: str | None = None,
    /,
    *,
    port: int = 0,
    open: Annotated[bool, Parameter(negative="--no-open")] = True,
) -> None:
    """Run `unspool studio`.

    Parameters
    ----------
    run_or_text
        The folder of a run, or a text: a file, a folder or builtin:… [default: builtin:python-docs].
    port
        The port of the page; 0 chooses a free one.
    open
        Open the page in the browser.
    """
    session = Session(Place(lambda name: default_run([name], "studio"), repeat))
    begin = _first(session, run_or_text)
    served, stop = Studio(session, port), Stop()
    stop.listen()

    def ready() -> None:
        begin()
        tunnel = f"ssh -L {served.port}:127.0.0.1:{served.port} HOST"
        print(f"{served.address}  (from another machine: {tunnel}, then the same address there)", flush=True)
        if open and _has_browser():
            webbrowser.open(served.address)

    served.serve(stop, ready)
    run = session.trainer.run_now
    if stop.signal is not None and run is not None and run.status == "paused" and run.config is not None:
        stop.leave(run.out, run.step)
    sys.exit(128 + (stop.signal or 0) if stop.signal else 0)


def _first(session: Session, name: str | None) -> Any:
    """Return what begins when the page is there: a run is shown, a text is trained on."""
    session.add_folder(RUNS)
    if name is not None and run_folder.is_run(Path(name)):
        known = [each for each in session.runs.values() if each.out.resolve() == Path(name).resolve()]
        run = known[0] if known else session.add_stored(Path(name))
        session.show(run)
        return lambda: None
    if name is not None:
        resolve(name)
    known_text = next(iter(session.texts.values()))
    text = known_text if name in (None, BUILTIN) else session.add_text(str(name))
    made = session.new_run(text, FIRST)
    return lambda: session.trainer.call(lambda: session.trainer.start_run(made))


def _has_browser() -> bool:
    """Return whether a browser can be shown here."""
    shown = (
        sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    return bool(shown) and "SSH_CONNECTION" not in os.environ
