"""Show one run: its data, hyper-parameters, learning curve, scores compared with baselines, provenance, and the next commands."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from unspool.baselines.language import NGRAMS
from unspool.cli.commands import fit_of
from unspool.cli.fit import COMMAND
from unspool.cli.follow import repeat
from unspool.cli.options import Flag
from unspool.cli.output import print_json, terminal
from unspool.cli.run_summary import DAMAGED, RESUMABLE, UNREADABLE, RunSummary, as_options, summarise
from unspool.cli.sources import RunFolder
from unspool.cli.views.runs import show_run
from unspool.data.text.settings import TextConfig
from unspool.storage import run_folder
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.registry import KINDS
from unspool.training.events import RunConfig


def show(run: RunFolder, /, *, json: Flag = False) -> None:
    """Run `unspool show`.

    Parameters
    ----------
    json
        Print JSON.
    """
    run_folder.check_run(run)
    found = summarise(run)
    given, again = _given(run, found)
    commands = _next(found)
    if json:
        print_json(found.to_json() | {"given": sorted(given), "next": commands, "repeat": again})
        return
    show_run(terminal(), found, given, commands)


def _given(run: Path, found: RunSummary) -> tuple[set[str], str | None]:
    """Return the hyper-parameters that the user gave, and the command that repeats the run, where it is known."""
    if found.state == DAMAGED:
        return set(), None
    try:
        content = run_folder.read_config(run, found.kind)
        if found.kind == "language":
            config = RunConfig.from_json(content["run"])
            given = set(as_options(config.given)) | _changed(
                vars(config) | vars(config.settings), RunConfig, TextConfig
            )
            return given & set(found.options), repeat(config)
        if COMMAND in content:
            changed = _changed(content[COMMAND]["options"], fit_of(KINDS[found.kind].command).options)
            return changed & set(found.options), None
        if found.kind == "forecast":  # of Python code, or of an older version
            first = next(iter(content["columns"].values()))
            return _changed(first["arguments"], Forecaster) & set(found.options), None
    except UNREADABLE:
        pass
    return set(), None


def _changed(values: dict[str, Any], *kinds: Any) -> set[str]:
    """Return the names of options that differ from the defaults of dataclasses."""
    usual = as_options({each.name: each.default for kind in kinds for each in fields(kind)})
    options = as_options(values)
    return {name for name, value in options.items() if name in usual and value not in (None, usual[name])}


def _next(found: RunSummary) -> list[str]:
    """Return suggested next commands."""
    run = found.run
    if found.state == DAMAGED:
        return []
    if found.state == RESUMABLE:
        return [f"unspool resume {run}"]
    uses = fit_of(KINDS[found.kind].command).uses if found.kind in KINDS else ()
    own = f"{run} --model mixture" if _ngrams_win(found) else run
    return [f"unspool {use.replace('RUN', own if use.startswith('generate RUN') else run)}" for use in uses]


def _ngrams_win(found: RunSummary) -> bool:
    """Return whether n-grams predict better than the network of a language model that has a mixture with them."""
    values = {each.model: each.value for each in found.figures if each.value is not None}
    network = values.get("network")
    return (
        network is not None
        and "mixture" in values
        and any(name.endswith(NGRAMS) and value < network for name, value in values.items())
    )
