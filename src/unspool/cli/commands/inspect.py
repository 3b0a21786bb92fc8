"""Inspect a model while it reads: loss per token, units, states, gradients and graph, or predictions by step, on an HTML page.

Writes report.html, the views of the studio as one file that opens from disk; all numbers in numbers.json; and graph.svg. With
matplotlib (extra plot) also pictures: surprise.svg (the loss of each token), units.svg, path.svg (the path of the hidden state),
influence.svg, bias.svg, states.png. For a classifier, tagger or regressor, the page shows how the prediction of each sequence
changes with every step that is read.
"""

import json as jsonlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from unspool.cli.default_out import default_report
from unspool.cli.follow import repeat
from unspool.cli.inspect_steps import SEQUENCES, print_steps, read_steps, refuse_others, step_numbers
from unspool.cli.options import CommonOptions, Replacing
from unspool.cli.output import notes, plain_table, print_json
from unspool.cli.output_files import check_output_folder, output_folder
from unspool.cli.progress import stages
from unspool.cli.sources import RunFolder
from unspool.data.text.decoding import iter_text
from unspool.data.text.source import resolve, source_names, text_source
from unspool.errors import EmptyInput
from unspool.inspect.describe import clearest_span, describe_unit, pretty, scaled
from unspool.inspect.graph.picture import save_graph
from unspool.inspect.reading import visible
from unspool.inspect.report import InspectReport, inspect, numbers
from unspool.inspect.steps import StepsReport
from unspool.options import at_least
from unspool.plots import inspection
from unspool.storage import run_folder
from unspool.storage.files import write_atomic
from unspool.storage.html_page import HtmlPage
from unspool.studio.inspection import text_page
from unspool.studio.steps_page import steps_page
from unspool.tasks.language.text_model import TextModel

Text = Annotated[str, Parameter(allow_leading_hyphen=True)]
STAGES, STEP_STAGES = 5, 3
REPORT = "report.html"
WRITTEN = (
    *("graph.svg", "surprise.svg", "units.svg", "path.svg", "influence.svg", "bias.svg"),
    *("states.png", "numbers.json", REPORT),
)
"""The files of a report."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What `inspect` is given."""

    out: Path | None = None
    """The folder to create for the report; with --force, an existing report is replaced [default: reports/RUN-TEXT]."""
    characters: int | None = None
    """Number of characters to read [default: 2000]."""
    skip: int = 0
    """Number of characters, or of sequences, to leave out first."""
    sequences: int = SEQUENCES
    """Number of sequences to read, for a classifier, tagger or regressor."""
    units: str | None = None
    """Units to show, for example 17,h42,s3,layer1.h5: s is the cell state of an LSTM; 17 is h17; layers count from 0, and a unit without a layer is in the last one [default: the most informative units]."""


def inspect_command(
    run: RunFolder,
    text: Text,
    /,
    *,
    options: Options = Options(),
    common: CommonOptions = CommonOptions(),
    replacing: Replacing = Replacing(),
) -> None:
    """Run `unspool inspect`.

    Parameters
    ----------
    text
        A file, a folder, - for standard input or builtin:…; for a classifier, tagger or regressor, data as for its predict.
    """
    characters = at_least("characters", 2000 if options.characters is None else options.characters, 2)
    at_least("skip", options.skip, 0)
    at_least("sequences", options.sequences, 1)
    common.apply()
    kind = run_folder.read_kind(run)
    if kind != "language":
        refuse_others(run, kind, {"characters": options.characters, "units": options.units})
    out = options.out or default_report(run, text)
    check_output_folder(out, force=replacing.force, known=WRITTEN)
    console = notes(common)
    if kind != "language":
        steps = _inspect_steps(console, run, kind, text, options, out, force=replacing.force)
        found, show = step_numbers(steps), partial(print_steps, console, steps, out / REPORT)
    else:
        report = _inspect(console, run, text, options, characters, out, force=replacing.force)
        found, show = numbers(report), partial(_print, console, report, out)
    if common.json:
        print_json(found)
    elif common.quiet:
        print(out / REPORT)
    else:
        show()


def _inspect_steps(
    console: Console, run: Path, kind: str, data: str, options: Options, out: Path, *, force: bool
) -> StepsReport:
    """Inspect a classifier, tagger or regressor, and write the report."""
    with stages(console, STEP_STAGES) as note:
        report = read_steps(run, kind, data, skip=options.skip, count=options.sequences, note=note)
        note("drawing")
        page = steps_page(report)
        with output_folder(out, force=force, known=WRITTEN) as folder:
            _write_numbers(step_numbers(report), folder)
            page.save(folder / REPORT)
    return report


def _inspect(
    console: Console, run: Path, text: str, options: Options, characters: int, out: Path, *, force: bool
) -> InspectReport:
    """Inspect a run, and write the report."""
    source = TextModel.load(run)
    content, name = _beginning(text, source, options.skip, characters)
    units = [each.strip() for each in options.units.split(",")] if options.units else None
    with stages(console, STAGES) as note:
        where = Path(run).resolve().name
        report = inspect(source, text_source(content), run=where, name=name, units=units, note=note)
        page = text_page(report, content, run=run, repeat=repeat, note=note)
        with output_folder(out, force=force, known=WRITTEN) as folder:
            _write(report, page, folder)
    return report


def _beginning(text: str, source: TextModel, skip: int, characters: int) -> tuple[str, str]:
    """Read as much of a text as is wanted, and not more."""
    sources = resolve(text)
    errors = "replace" if source.tokenizer.reads_bytes else source.settings.errors
    found = ""
    for block in iter_text(sources, errors, source.settings.newlines):
        found += block
        if len(found) >= skip + characters:
            break
    if len(found) <= skip:
        raise EmptyInput(
            f"{source_names(sources)}: {len(found):,} characters; --skip {skip} leaves nothing to read"
        )
    return found[skip : skip + characters], Path(source_names(sources)).name


def _write(report: InspectReport, page: HtmlPage, out: Path) -> None:
    """Write all files; the page last."""
    save_graph(report.made, out / "graph.svg", labels=report.labels)
    if find_spec("matplotlib") is not None:
        for name, draw in _pictures(report).items():
            draw(path=out / name)
    _write_numbers(numbers(report), out)
    page.save(out / REPORT)


def _write_numbers(found: dict[str, Any], out: Path) -> None:
    words = jsonlib.dumps(found, ensure_ascii=False) + "\n"
    write_atomic(out / "numbers.json", words.encode("utf-8", "replace"))


def _pictures(report: InspectReport) -> dict[str, Callable[..., None]]:
    """Return what draws each picture to a path."""
    reading, plane, back = report.reading, report.path, report.back
    pieces = [visible(piece) for piece in reading.pieces]
    spans = []
    for unit in report.units:
        start = clearest_span(unit, inspection.COLUMNS * inspection.ROWS)
        title = f"{pretty(unit.name)}   {describe_unit(unit)}"
        spans.append((title, scaled(unit.activation)[start:], pieces[start:]))
    found: dict[str, Callable[..., None]] = {
        "surprise.svg": partial(inspection.draw_surprise, reading.surprise),
        "units.svg": partial(inspection.draw_units, spans),
        "path.svg": partial(inspection.draw_path, plane.positions, plane.shares, pieces),
        "states.png": partial(inspection.draw_states, reading.last_h),
    }
    if back is None:
        return found
    norms = [each.norm for each in back.trained]
    return found | {
        "influence.svg": partial(
            inspection.draw_influence, back.fresh.lags, norms, back.fresh.norm, back.horizons
        ),
        "bias.svg": partial(
            inspection.draw_bias, back.by_lag.parts, back.by_lag.bias, back.advice, back.by_lag.letter
        ),
    }


def _print(console: Console, report: InspectReport, out: Path) -> None:
    found: dict[str, Any] = numbers(report)
    console.print(
        f"{report.text}: {found['tokens']:,} tokens, {found['nats']:.4f} nats each, "
        f"perplexity {found['perplexity']:.2f}"
        + ", products in bf16"
        * (report.model.config.precision == "bf16")
    )
    table = plain_table("unit", "property", gap=3)
    for unit in report.units:
        table.add_row(pretty(unit.name), describe_unit(unit))
    console.print(table)
    if report.back is not None:
        farthest = report.back.fresh.lags[-1]
        reach = [f"more than {farthest}" if each is None else str(each) for each in report.back.horizons]
        console.print(f"memory length (influence stays below 1 %): {', '.join(reach)} steps")
        for bias, steps in report.back.advice.items():
            enough = f"more than {farthest}" if steps is None else f"{steps}"
            console.print(f"  for a bias of at most {bias:.0%}, backpropagate through {enough} steps")
    there = [name for name in WRITTEN[:-1] if (out / name).exists()]
    console.print(f"written: {out / REPORT} and {', '.join(there)}")
