"""Inspect a language model while it reads a text: loss per token, units, states, gradients and graph, on an HTML page.

Writes report.html, a self-contained page, and in the same folder its pictures: graph.svg, surprise.svg (the loss of each
token), units.svg, path.svg (the path of the hidden state), influence.svg, bias.svg, states.png; and all numbers in numbers.json.
"""

import json as jsonlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from unspool.cli.default_out import default_report
from unspool.cli.options import CommonOptions, Replacing
from unspool.cli.output import notes, plain_table, print_json
from unspool.cli.output_files import check_output_folder, output_folder
from unspool.cli.progress import stages
from unspool.cli.sources import RunFolder
from unspool.data.text.decoding import iter_text
from unspool.data.text.source import resolve, source_names, text_source
from unspool.errors import EmptyInput
from unspool.inspect.graph.picture import save_graph
from unspool.inspect.page.charts import describe_unit, path_chart, pretty, surprise_chart, units_chart
from unspool.inspect.page.lags import bias_chart, influence_chart
from unspool.inspect.page.page import page
from unspool.inspect.page.states import states_png
from unspool.inspect.report import InspectReport, inspect, numbers
from unspool.options import at_least
from unspool.storage.files import write_atomic
from unspool.tasks.language.text_model import TextModel

Text = Annotated[str, Parameter(allow_leading_hyphen=True)]
STAGES = 5
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
    characters: int = 2000
    """Number of characters to read."""
    skip: int = 0
    """Number of characters to leave out first."""
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
        A file, a folder, - for standard input or builtin:…
    """
    at_least("characters", options.characters, 2)
    at_least("skip", options.skip, 0)
    common.apply()
    out = options.out or default_report(run, text)
    check_output_folder(out, force=replacing.force, known=WRITTEN)
    console = notes(common)
    report = _inspect(console, run, text, options, out, force=replacing.force)
    if common.json:
        print_json(numbers(report))
    elif common.quiet:
        print(out / REPORT)
    else:
        _print(console, report, out)


def _inspect(
    console: Console, run: Path, text: str, options: Options, out: Path, *, force: bool
) -> InspectReport:
    """Inspect a run, and write the report."""
    source = TextModel.load(run)
    content, name = _beginning(text, source, options.skip, options.characters)
    units = [each.strip() for each in options.units.split(",")] if options.units else None
    with stages(console, STAGES) as note:
        where = Path(run).resolve().name
        report = inspect(source, text_source(content), run=where, name=name, units=units, note=note)
        note("drawing")
        with output_folder(out, force=force, known=WRITTEN) as folder:
            _write(report, folder)
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


def _write(report: InspectReport, out: Path) -> None:
    """Write all files; the page last."""
    save_graph(report.made, out / "graph.svg", labels=report.labels)
    pictures = {
        "surprise.svg": surprise_chart(report.reading),
        "units.svg": units_chart(report.reading, report.units),
        "path.svg": path_chart(report.reading, report.path),
    }
    if report.back is not None:
        pictures |= {"influence.svg": influence_chart(report.back), "bias.svg": bias_chart(report.back)}
    for name, picture in pictures.items():
        picture.save(out / name)
    contents: dict[str, bytes] = {
        "states.png": states_png(report),
        "numbers.json": (jsonlib.dumps(numbers(report), ensure_ascii=False) + "\n").encode(
            "utf-8", "replace"
        ),
        REPORT: page(report).encode("utf-8", "replace"),
    }
    for name, content in contents.items():
        write_atomic(out / name, content)


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
