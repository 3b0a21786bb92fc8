"""Train a tagger, which predicts a label for every step of a sequence (columns as in CoNLL, or a table), and use it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from cyclopts import App
from rich.console import Console

from unspool.cli.checks import (
    check_before,
    files_of,
    note_empty,
    refuse_broken,
    refuse_unknown,
    refuse_unlabelled,
)
from unspool.cli.fit import FitCommand, Read, start_fit
from unspool.cli.fit_options import Column, FitOptions, as_column
from unspool.cli.options import OfData, OutputOptions, option_class
from unspool.cli.output import held_out, title
from unspool.cli.predict import columns_of_fit, load_fitted, print_predictions
from unspool.cli.sources import RunFolder
from unspool.cli.views.models import OF_CLASSES, models_json, show_models
from unspool.cli.views.scores import draw_scores, report_held_out, with_scores
from unspool.data.formats.tagged import DefaultTagColumns, Tagged, read_tagged
from unspool.data.split import split_random
from unspool.errors import InputError
from unspool.evaluation.scores import score
from unspool.tasks.tag import SequenceTagger
from unspool.training.options import SET_ASIDE, ModelChoice

app = App(name="tag")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Where tokens and labels stand."""

    token: OfData[Column] = None
    """The column with the tokens [default: the first; in a table, token; in CoNLL-U, form]."""
    tag: OfData[Column] = None
    """The column with the labels [default: the last; in a table, tag; in CoNLL-U, upos]."""
    sequence: OfData[Column] = None
    """In a table: the column that names the sequence [default: sequence]."""
    delimiter: OfData[str | None] = None
    """Character between the fields of a table [default: detected]."""


@option_class
class Options(FitOptions, Columns):
    """What `tag fit` is given."""

    epochs: int = 30
    embedding: int = 32
    batch_size: int = 16
    subwords: bool = True
    crf: bool = False
    model: ModelChoice = "best"
    validation: float | None = SET_ASIDE.field(None)  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class Asked(OutputOptions, Columns):
    """What `tag predict` is given."""

    token: OfData[Column] = None
    """The column with the tokens [default: as in the fit]."""
    tag: OfData[Column] = None
    """The column with the labels; none if the data has no labels [default: as in the fit, if the column exists]."""
    sequence: OfData[Column] = None
    """In a table: the column that names the sequence [default: as in the fit]."""
    delimiter: OfData[str | None] = None
    """Character between the fields of a table [default: as in the fit, or detected]."""


@app.command
def fit(data: Path, /, *, options: Options = Options()) -> None:
    """Train a tagger, evaluate it on held-out sequences, and save it in a run.

    Parameters
    ----------
    data
        Columns with a blank line between sequences (CoNLL, CoNLL-U), or a table (CSV, TSV) with a column that names
        the sequence of every row.
    """
    start_fit(FIT, data, options)


@app.command
def predict(run: RunFolder, data: Path, /, *, options: Asked = Asked()) -> None:
    """Print every token and its label, one per line, with a blank line between sequences.

    Parameters
    ----------
    data
        A file as for fit; labels may be missing.
    """
    check_before(None, options, inputs=files_of(data))
    model: SequenceTagger = load_fitted(run, "tag")
    read = _asked(run, data, options)
    refuse_unlabelled(options.plot, read.tags, data)
    note_empty(read.name, read.tokens)
    _refuse_unknown(read, [str(name) for name in model.classes_])
    answers = [row.tolist() for row in model.predict(read.tokens)]
    truth = _flat(read.tags or [])
    scores = score(truth, _flat(answers), model.classes_.tolist()) if truth else None
    draw_scores(scores, options)
    content = {"labels": model.classes_.tolist(), "answers": answers}
    lines = (
        "\n" * bool(number) + "\n".join(f"{t}\t{a}" for t, a in zip(tokens, labels, strict=True))
        for number, (tokens, labels) in enumerate(zip(read.tokens, answers, strict=True))
    )
    print_predictions(run, options, with_scores(content, lines, scores, str(data), "tokens"))


def _asked(run: Path, data: Path, options: Asked) -> Tagged:
    """Read the data; columns that are not given are those of the fit."""
    known = columns_of_fit(run, "tag", data)
    usual = DefaultTagColumns(*(as_column(known.get(name)) for name in DefaultTagColumns._fields))
    options = replace(options, delimiter=options.delimiter or known.get("delimiter"))
    return read_tagged(data, *_columns(options), need_tags=False, defaults=usual)


def read_as_fitted(run: Path, data: Path) -> tuple[Any, Any]:
    """Read sequences of tokens, and their labels if there are any, as the fit of a run did."""
    read = _asked(run, data, Asked())
    return read.tokens, read.tags


def _columns(options: Columns) -> tuple[Any, Any, Any, str | None]:
    return as_column(options.token), as_column(options.tag), as_column(options.sequence), options.delimiter


def _read(data: Path, options: Options) -> Read:
    learned, judged = _parts(data, options)
    said = title(
        str(data),
        f": {len(learned):,} sequences, {sum(map(len, learned.tokens)):,} tokens for "
        f"training{held_out(judged)}; {len(_tags(learned))} labels",
    )
    return Read(learned.tokens, learned.tags, judged, said, {"inputs": "tokens"})


def _parts(data: Path, options: Options) -> tuple[Tagged, Tagged | None]:
    """Read the training sequences and the held-out sequences."""
    learned = read_tagged(data, *_columns(options))
    note_empty(learned.name, learned.tokens, fit=True)
    refuse_broken(_tags(learned), learned.name)
    if len(_tags(learned)) < 2:
        raise InputError(f"{data}: there is one label only, {_tags(learned)[0]!r}; expected at least two")
    if options.test is not None:
        judged = read_tagged(options.test, *_columns(options))
        note_empty(judged.name, judged.tokens)
        _refuse_unknown(judged, _tags(learned))
        return learned, judged
    rows, aside = split_random(len(learned), options.hold_out, options.seed)
    fitted = _part(learned, rows)
    if not aside:
        return fitted, None
    judged = _part(learned, aside)
    known = set(_tags(fitted))
    kept = [i for i in range(len(judged)) if judged.tags and known.issuperset(judged.tags[i])]
    return fitted, _part(judged, kept) if kept else None


def _part(data: Tagged, rows: list[int]) -> Tagged:
    parts: Any = ([part[i] for i in rows] for part in (data.tokens, data.tags or (), data.lines))
    return Tagged(data.name, *parts)


def _tags(data: Tagged) -> list[str]:
    return sorted(set(_flat(data.tags or [])))


def _flat(rows: list[list[str]]) -> list[str]:
    return [each for row in rows for each in row]


def _refuse_unknown(data: Tagged, labels: list[str]) -> None:
    locations = (f"{data.name}: line {line}" for lines in data.lines for line in lines)
    refuse_unknown(_flat(data.tags or []), locations, labels)


def _evaluate(
    console: Console, model: SequenceTagger, judged: Tagged | None, options: Options
) -> dict[str, Any]:
    truth = [] if judged is None else _flat(judged.tags or [])
    if judged is None or not truth:
        return {"scores": None}
    found = np.concatenate(model.predict(judged.tokens)).tolist()
    content = report_held_out(console, score(truth, found, model.classes_.tolist()), options, "tokens")
    right = {
        name: float(np.mean(np.concatenate(answers) == np.array(truth)))
        for name, answers in model.predict_by_model(judged.tokens).items()
    }
    show_models(
        console,
        model.choice_,
        OF_CLASSES,
        "held out: accuracy",
        {name: f"{each:.4f}" for name, each in right.items()},
    )
    return content | {"compared": models_json(model.choice_, right)}


FIT = FitCommand("tag", SequenceTagger, Options, _read, _evaluate)
