"""`unspool translate fit` and `unspool translate predict`: a text to a text of another length."""

import json as jsonlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from unspool.cli.checks import check_before, files_of
from unspool.cli.fit import FitCommand, Read, start_fit
from unspool.cli.fit_options import FitOptions
from unspool.cli.options import DATA, OfData, OfOutput, OutputOptions, option_class
from unspool.cli.outputs import output
from unspool.cli.predict import columns_of_fit, load_fitted
from unspool.cli.terminal import terminal, title
from unspool.data.formats.pairs import Pairs, read_pairs
from unspool.data.split import split_random
from unspool.errors import InputError
from unspool.evaluation.scores import error_rate
from unspool.model import options as network
from unspool.plots.attention import draw_attention
from unspool.tasks.writers import SequenceTranslator

app = App(name="translate", help="A text to a text of another length, learned from pairs.")
SHOWN = 8
WIDEST = 1000
"""No beam beyond this: time and memory grow with it, and what it finds has long stopped changing."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Where the pairs stand."""

    columns: Annotated[tuple[int, int] | None, Parameter(group=DATA, negative="")] = None
    """Which two columns, counted from 0, where there are more than two."""


@option_class
class Options(FitOptions, Columns):
    """What `translate fit` is given."""

    tokens: str = "char"
    hold_out: OfData[float] = 0.1
    minutes: float = 3.0
    hidden: int = 96
    dropout: float = 0.0
    attention: network.Attention = "general"
    batch_size: int = 64
    validation: float = 0.05
    beam: int = 1
    plot: OfOutput[Path | None] = None
    """Draw where the decoder looks for the first pair held out (.png, .svg, .pdf): needs attention."""


@option_class
class Asked(OutputOptions, Columns):
    """What `translate predict` is given."""

    columns: Annotated[tuple[int, int] | None, Parameter(group=DATA, negative="")] = None
    """Which two columns, counted from 0, where there are more than two [default: as in the fit]."""
    beam: int | None = network.BEAM.field(
        None, help="Beam width; 1 is greedy decoding [default: as in the fit]."
    )
    plot: OfOutput[Path | None] = None
    """Draw where the decoder looks for the first text (.png, .svg, .pdf): needs attention."""


@app.command
def fit(data: Path, /, *, options: Options) -> None:
    """Learn from pairs of texts, judge it on pairs held out, and keep it in a run.

    Parameters
    ----------
    data
        Pairs, one a line, with a tab between (TSV).
    """
    start_fit(TRANSLATE, data, options)


@app.command
def predict(run: Path, data: Path, /, *, options: Asked = Asked()) -> None:
    """Write a text for every line; with targets beside them, scores as well.

    Parameters
    ----------
    run
        The folder of the run.
    data
        Texts, one a line, or pairs with a tab between.
    """
    check_before(None, options, inputs=files_of(data))
    model: SequenceTranslator = load_fitted(run, "translate")
    if options.beam is not None:
        _refuse_beam(options.beam)
        model.beam = options.beam
    known = columns_of_fit(run, "translate", data).get("columns")
    usual = None if known is None else (known[0], known[1])
    read: Pairs = read_pairs(data, options.columns, need_targets=False, defaults=usual)
    written = model.predict_scored(read.sources)
    if options.plot is not None:
        _draw(model, read.sources[0], options.plot, force=options.force)
    scores = None if read.targets is None else _scores([text for text, _ in written], read.targets)
    if options.json:
        answers = [{"text": text, "log_prob": log_prob} for text, log_prob in written]
        content = {"run": str(run), "beam": model.beam, "answers": answers}
        print(jsonlib.dumps(content | ({"scores": scores} if scores else {}), ensure_ascii=False))
        return
    for text, _ in written:
        print(text)
    if scores is not None:
        terminal(stderr=True).print(_told(scores), soft_wrap=True)


def _draw(model: SequenceTranslator, source: str, plot: Path, *, force: bool) -> None:
    with output(plot, force=force) as unfinished:
        draw_attention(*model.attention_of(source), unfinished)


def _refuse_beam(beam: int) -> None:
    if not 1 <= beam <= WIDEST:
        raise InputError(
            f"beam is {beam}; expected 1 to {WIDEST:,}: each beginning has a state of its own to be kept and gone on with"
        )


def _read(data: Path, options: Options) -> Read:
    _refuse_beam(options.beam)
    if options.plot is not None and options.attention == "none":
        raise InputError("--plot draws attention, and --attention is none")
    sources, targets, judged = _parts(data, options)
    aside = f", {len(judged[0]):,} to judge by" if judged[0] else ""
    said = title(str(data), f": {len(sources):,} pairs to learn from{aside}")
    return Read(sources, targets, judged if judged[0] else None, said, {})


def _parts(data: Path, options: Options) -> tuple[list[str], list[str], tuple[list[str], list[str]]]:
    learned = read_pairs(data, options.columns)
    assert learned.targets is not None
    if options.test is not None:
        judged = read_pairs(options.test, options.columns)
        assert judged.targets is not None
        return learned.sources, learned.targets, (judged.sources, judged.targets)
    rows, aside = split_random(len(learned), options.hold_out, options.seed)
    sources, targets = learned.sources, learned.targets
    held = ([sources[i] for i in aside], [targets[i] for i in aside])
    return [sources[i] for i in rows], [targets[i] for i in rows], held


def _scores(answers: list[str], truth: list[str]) -> dict[str, float]:
    exact = sum(a == b for a, b in zip(answers, truth, strict=True)) / len(truth)
    return {"pairs": len(truth), "exact": exact, "error_rate": error_rate(truth, answers)}


def _told(scores: dict[str, float]) -> str:
    return (
        f"{scores['pairs']:,} pairs: {scores['exact']:.4f} exactly right, "
        f"{scores['error_rate']:.4f} edits a character of the truth"
    )


def _judge(
    console: Console,
    model: SequenceTranslator,
    judged: tuple[list[str], list[str]] | None,
    options: Options,
) -> dict[str, Any]:
    if judged is None:
        return {"scores": None}
    sources, targets = judged
    written = model.predict_scored(sources)
    scores = _scores([text for text, _ in written], targets)
    console.print(title("\nheld out", f": {_told(scores)}\n"), soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    for name in ("input", "written", "P", ""):
        table.add_column(name, no_wrap=name == "P")
    for source, target, (text, log_prob) in list(zip(sources, targets, written, strict=True))[:SHOWN]:
        table.add_row(source, text, f"{math.exp(log_prob):.3f}", "" if text == target else f"✗ {target}")
    console.print(table)
    if options.plot is not None:
        _draw(model, sources[0], options.plot, force=options.force)
    return {"scores": scores}


TRANSLATE = FitCommand("translate", SequenceTranslator, Options, _read, _judge)
