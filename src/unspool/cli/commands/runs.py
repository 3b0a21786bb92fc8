"""List runs: kind, data, size, progress and scores; or compare them.

Damaged runs are marked. With --compare, each run is a column with its scores and the hyper-parameters that differ.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter

from unspool.cli.checks import check_plot
from unspool.cli.options import Flag, Replacing
from unspool.cli.output import print_json, terminal
from unspool.cli.output_files import output
from unspool.cli.run_summary import DAMAGED, RunSummary, find_runs, summarise
from unspool.cli.views.runs import differing, print_comparison, print_runs
from unspool.errors import InputError
from unspool.plots.curve import draw_curves

Folders: TypeAlias = Annotated[list[Path] | None, Parameter(negative="")]
By: TypeAlias = Literal["path", "date", "kind", "valid", "size"]
KEYS = {
    "path": lambda each: (each.run,),
    "date": lambda each: (each.started or "", each.run),
    "kind": lambda each: (each.kind, each.run),
    "valid": lambda each: (each.kind, each.valid is None, each.valid or 0.0),
    "size": lambda each: (-each.bytes, each.run),
}
"""How runs are sorted."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What `runs` is given."""

    compare: Flag = False
    """Show the hyper-parameters that differ, and the scores, one column per run."""
    sort: By | None = None
    """Order of the runs: path, date (oldest first), kind, valid (lowest loss first) or size (largest first) [default: as given]."""
    json: Flag = False
    """Print JSON."""
    plot: Path | None = None
    """Draw the learning curves of all runs into this file (.png, .svg, .pdf)."""


def runs(
    folder: Folders = None, /, *, options: Options = Options(), replacing: Replacing = Replacing()
) -> None:
    """Run `unspool runs`.

    Parameters
    ----------
    folder
        Runs, or folders with runs below them [default: the working directory].
    """
    check_plot(options.plot, force=replacing.force)
    folders = folder or [Path()]
    found = [summarise(each) for each in dict.fromkeys(find_runs(folders))]
    if options.sort is not None:
        found.sort(key=KEYS[options.sort])
    if options.plot is not None:
        _draw(found, options.plot, force=replacing.force)
    if options.json:
        content = {"runs": [each.to_json() for each in found]}
        print_json(content | ({"differing": differing(found)} if options.compare else {}))
        return
    console = terminal()
    if not found:
        where = ", ".join(str(each) for each in folders)
        console.print(f"{where}: no run here or below; make one with: unspool train TEXT")
    elif options.compare:
        print_comparison(console, found)
    else:
        print_runs(console, found)
    for each in found:
        if each.state == DAMAGED:
            console.print(f"{each.run}: {each.error}", style="yellow")


def _draw(found: list[RunSummary], plot: Path, *, force: bool) -> None:
    curves = {each.run: [(at["step"], at["valid"]) for at in each.curve] for each in found if each.curve}
    if not curves:
        raise InputError("--plot: none of the runs has a learning curve")
    with output(plot, force=force) as unfinished:
        draw_curves(curves, unfinished)
