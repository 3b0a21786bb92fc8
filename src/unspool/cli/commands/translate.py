"""Train a model on pairs of texts, and translate texts with it (sequence to sequence)."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.console import Console

from unspool.cli.checks import check_before, files_of
from unspool.cli.fit import FitCommand, Read, start_fit
from unspool.cli.fit_options import FitOptions
from unspool.cli.options import DATA, OfData, OfOutput, OutputOptions, option_class
from unspool.cli.output import held_out, plain_table, title
from unspool.cli.output_files import output
from unspool.cli.predict import Predictions, columns_of_fit, load_fitted, print_predictions
from unspool.cli.sources import RunFolder
from unspool.data.formats.pairs import Pairs, read_pairs
from unspool.data.split import split_random
from unspool.errors import InputError
from unspool.evaluation.scores import score_texts
from unspool.model import options as network
from unspool.options import at_least
from unspool.plots.attention import draw_attention
from unspool.tasks.translate import SequenceTranslator

app = App(name="translate")
SHOWN = 8
WIDEST = 1000
"""The largest beam width."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Where the pairs stand."""

    columns: Annotated[tuple[int, int] | None, Parameter(group=DATA, negative="")] = None
    """Indices of the source and the target column, counted from 0; needed if there are more than two columns."""


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
    """Draw the attention weights of the first held-out pair into this file (.png, .svg, .pdf): needs attention."""


@option_class
class Asked(OutputOptions, Columns):
    """What `translate predict` is given."""

    columns: Annotated[tuple[int, int] | None, Parameter(group=DATA, negative="")] = None
    """Indices of the source and the target column, counted from 0, if there are more than two columns [default: as in the fit]."""
    plot: OfOutput[Path | None] = None
    """Draw the attention weights of the first text into this file (.png, .svg, .pdf): needs attention."""
    beam: int | None = network.BEAM.field(
        None, help="Beam width; 1 is greedy decoding [default: as in the fit]."
    )


@app.command
def fit(data: Path, /, *, options: Options = Options()) -> None:
    """Train a translator on pairs of texts, evaluate it on held-out pairs, and save it in a run.

    Parameters
    ----------
    data
        Pairs, one per line, separated by a tab (TSV).
    """
    start_fit(FIT, data, options)


@app.command
def predict(run: RunFolder, data: Path, /, *, options: Asked = Asked()) -> None:
    """Print the translation of every line; with targets in the data, print scores too.

    Parameters
    ----------
    data
        Texts, one per line, or pairs separated by a tab.
    """
    check_before(None, options, inputs=files_of(data))
    model: SequenceTranslator = load_fitted(run, "translate")
    if options.beam is not None:
        model.beam = at_least("beam", options.beam, 1, WIDEST)
    known = columns_of_fit(run, "translate", data).get("columns")
    usual = None if known is None else (known[0], known[1])
    read: Pairs = read_pairs(data, options.columns, need_targets=False, defaults=usual)
    written = model.predict_scored(read.sources)
    if options.plot is not None:
        _draw(model, read.sources[0], options.plot, force=options.force)
    scores = None if read.targets is None else _scores([text for text, _ in written], read.targets)
    answers = [{"text": text, "log_prob": log_prob} for text, log_prob in written]
    content = {"beam": model.beam, "answers": answers}
    lines = (text for text, _ in written)
    print_predictions(
        run,
        options,
        Predictions(content, lines, scores, lambda console: console.print(_scores_line(scores or {}))),
    )


def _draw(model: SequenceTranslator, source: str, plot: Path, *, force: bool) -> None:
    with output(plot, force=force) as unfinished:
        draw_attention(*model.attention_of(source), unfinished)


def _read(data: Path, options: Options) -> Read:
    at_least("beam", options.beam, 1, WIDEST)
    if options.plot is not None and options.attention == "none":
        raise InputError("--plot draws attention, and --attention is none")
    learned, judged = _parts(data, options)
    said = title(str(data), f": {len(learned):,} pairs for training{held_out(judged)}")
    return Read(learned.sources, learned.targets, judged, said, {})


def _parts(data: Path, options: Options) -> tuple[Pairs, Pairs | None]:
    whole = read_pairs(data, options.columns)
    if options.test is not None:
        return whole, read_pairs(options.test, options.columns)
    rows, aside = split_random(len(whole), options.hold_out, options.seed)
    return _part(whole, rows), _part(whole, aside) if aside else None


def _part(data: Pairs, rows: list[int]) -> Pairs:
    parts: Any = ([part[i] for i in rows] for part in (data.sources, data.targets or (), data.lines))
    return Pairs(data.name, *parts)


def _scores(answers: list[str], truth: list[str]) -> dict[str, float]:
    return {"pairs": len(truth)} | score_texts(truth, answers)


def _scores_line(scores: dict[str, float]) -> str:
    return (
        f"{scores['pairs']:,} pairs: exact-match rate {scores['exact']:.4f}, "
        f"{scores['error_rate']:.4f} edits per target character"
    )


def _evaluate(
    console: Console, model: SequenceTranslator, judged: Pairs | None, options: Options
) -> dict[str, Any]:
    if judged is None or judged.targets is None:
        return {"scores": None}
    sources, targets = judged.sources, judged.targets
    written = model.predict_scored(sources)
    scores = _scores([text for text, _ in written], targets)
    console.print(title("\nheld out", f": {_scores_line(scores)}\n"))
    table = plain_table("input", "written", "P", "", wide=True)
    table.columns[2].no_wrap = True
    for source, target, (text, log_prob) in list(zip(sources, targets, written, strict=True))[:SHOWN]:
        table.add_row(source, text, f"{math.exp(log_prob):.3f}", "" if text == target else f"✗ {target}")
    console.print(table)
    if options.plot is not None:
        _draw(model, sources[0], options.plot, force=options.force)
    return {"scores": scores}


FIT = FitCommand("translate", SequenceTranslator, Options, _read, _evaluate)
