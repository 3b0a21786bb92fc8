"""Train a classifier of sequences (texts, images, recordings) from a table, a folder, .npz or .ts (sktime), and use it."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from cyclopts import App
from rich.console import Console
from rich.text import Text

from unspool.cli.checks import (
    check_before,
    files_of,
    note_empty,
    refuse_broken,
    refuse_numbers,
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
from unspool.data.formats.labelled import DefaultColumns, Labelled, may_hold_images, read_labelled
from unspool.data.split import split_stratified
from unspool.errors import InputError
from unspool.evaluation.scores import score
from unspool.model import options as network
from unspool.tasks.classify import SequenceClassifier
from unspool.training.options import SET_ASIDE, ModelChoice

By: TypeAlias = Literal["rows", "pixels"]
app = App(name="classify")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Where texts and classes stand in a table."""

    text: OfData[Column] = None
    """The column with the texts, by name or by index counted from 0 [default: text]."""
    label: OfData[Column] = None
    """The column with the classes [default: label]."""
    delimiter: OfData[str | None] = None
    """Character between the fields of a table [default: detected]."""
    by: OfData[By | None] = None
    """Read an image row by row or pixel by pixel: one row, or one pixel, per time step [default: rows]."""


@option_class
class Options(FitOptions, Columns):
    """What `classify fit` is given."""

    tokens: str = "char"
    hold_out: OfData[float] = 0.2
    """Fraction of each class that is held out for evaluation and not used for training."""
    learning_rate: float = 3e-3
    recurrent_dropout: float = 0.0
    chrono_steps: int = 0
    pool: network.Pool = "last"
    prior_correction: float = 0.0
    model: ModelChoice = "best"
    validation: float | None = SET_ASIDE.field(None)  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class Asked(OutputOptions, Columns):
    """What `classify predict` is given."""

    text: OfData[Column] = None
    """The column with the texts, by name or by index counted from 0 [default: as in the fit]."""
    label: OfData[Column] = None
    """The column with the classes; none if the data has no labels [default: as in the fit, if the column exists]."""
    delimiter: OfData[str | None] = None
    """Character between the fields of a table [default: as in the fit, or detected]."""
    by: OfData[By | None] = None
    """Read an image row by row or pixel by pixel [default: as in the fit]."""


@app.command
def fit(data: Path, /, *, options: Options = Options()) -> None:
    """Train a classifier, evaluate it on held-out rows, and save it in a run.

    Parameters
    ----------
    data
        A table with a text column and a label column (CSV, TSV), a folder with one text file or one folder of images
        per class, .npz, .ts.
    """
    start_fit(FIT, data, options)


@app.command
def predict(run: RunFolder, data: Path, /, *, options: Asked = Asked()) -> None:
    """Print the class of every sequence and its probability, one per line; with labels, print scores too.

    Parameters
    ----------
    data
        A file or folder as for fit; labels may be missing.
    """
    check_before(None, options, inputs=files_of(data))
    model: SequenceClassifier = load_fitted(run, "classify")
    read = _asked(run, data, options)
    if read.blank:
        print(f"unspool: {_blank(read)}", file=sys.stderr)
    refuse_unlabelled(options.plot, read.labels, data)
    note_empty(read.name, read.sequences)
    proba = model.predict_proba(read.sequences)
    answers = [str(name) for name in model.classes_[proba.argmax(axis=1)]]
    refuse_unknown(read.labels or (), read.locations, [str(name) for name in model.classes_])
    scores = None if read.labels is None else score(read.labels, answers, model.classes_.tolist())
    draw_scores(scores, options)
    rows = [
        {"class": a, "probability": float(p.max()), "probabilities": p.tolist()}
        for a, p in zip(answers, proba, strict=True)
    ]
    content = {"classes": model.classes_.tolist(), "answers": rows}
    lines = (f"{answer}\t{p.max():.4f}" for answer, p in zip(answers, proba, strict=True))
    print_predictions(run, options, with_scores(content, lines, scores, str(data)))


def _asked(run: Path, data: Path, options: Asked) -> Labelled:
    """Read the data; columns that are not given are those of the fit."""
    known = columns_of_fit(run, "classify", data)
    usual = DefaultColumns(as_column(known.get("text", "text")), as_column(known.get("label", "label")))
    options = replace(options, delimiter=options.delimiter or known.get("delimiter"))
    by = options.by or (known.get("by") if may_hold_images(data) else None)
    return read_labelled(data, *_columns(options), need_labels=False, defaults=usual, by=by)


def read_as_fitted(run: Path, data: Path) -> tuple[Any, Any]:
    """Read sequences, and their classes if there are any, as the fit of a run did."""
    read = _asked(run, data, Asked())
    return read.sequences, read.labels


def _blank(data: Labelled) -> str:
    return f"{data.name}: {data.blank:,} blank {'line is' if data.blank == 1 else 'lines are'} no example: skipped"


def _columns(options: Columns) -> tuple[Any, Any, str | None]:
    return as_column(options.text), as_column(options.label), options.delimiter


def _read(data: Path, options: Options) -> Read:
    learned, judged = _parts(data, options)
    said = _described(learned, judged)
    for each in (learned, judged):
        if each and each.blank:
            said.append(f"\n  {_blank(each)}")
    return Read(learned.sequences, learned.labels, judged, said, {"inputs": _kind(learned)})


def _parts(data: Path, options: Options) -> tuple[Labelled, Labelled | None]:
    """Read the training rows and the held-out rows."""
    learned = read_labelled(data, *_columns(options), by=options.by)
    note_empty(learned.name, learned.sequences, fit=True)
    assert learned.labels is not None
    if len(learned.classes) < 2:
        raise InputError(f"{data}: there is one class only, {learned.classes[0]!r}; expected at least two")
    refuse_broken(learned.labels, learned.name)
    refuse_numbers(learned.name, learned.labels)
    if options.test is not None:
        judged = read_labelled(options.test, *_columns(options), by=options.by)
        note_empty(judged.name, judged.sequences)
        refuse_unknown(judged.labels or (), judged.locations, learned.classes)
        return learned, judged
    rows, kept = split_stratified(learned.labels, options.hold_out, options.seed)
    return _part(learned, rows, learned.blank), _part(learned, kept) if kept else None


def _part(data: Labelled, rows: list[int], blank: int = 0) -> Labelled:
    sequences: Any = [data.sequences[i] for i in rows]
    labels, locations = ([part[i] for i in rows] for part in (data.labels or [], data.locations))
    return Labelled(data.name, sequences, labels, locations, blank)


def _kind(data: Labelled) -> str:
    """Return the kind of input: integers in one row are token ids."""
    first = data.sequences[0]
    ids = isinstance(first, np.ndarray) and first.ndim == 1 and first.dtype.kind in "iu"
    return "ids" if ids else "auto"


def _described(learned: Labelled, judged: Labelled | None) -> Text:
    lengths = [len(each) for each in learned.sequences]
    return title(
        learned.name,
        f": {len(learned):,} sequences of {min(lengths)} to {max(lengths)} steps for "
        f"training{held_out(judged)}; {len(learned.classes)} classes",
    )


def _evaluate(
    console: Console, model: SequenceClassifier, judged: Labelled | None, options: Options
) -> dict[str, Any]:
    if judged is None:
        return {"scores": None}
    assert judged.labels is not None
    scores = score(judged.labels, model.predict(judged.sequences).tolist(), model.classes_.tolist())
    content = report_held_out(console, scores, options)
    found = model.predict_by_model(judged.sequences)
    accuracies = {
        name: score(judged.labels, answers.tolist(), model.classes_.tolist()).accuracy
        for name, answers in found.items()
    }
    show_models(
        console,
        model.choice_,
        OF_CLASSES,
        "held out: accuracy",
        {name: f"{each:.4f}" for name, each in accuracies.items()},
    )
    return content | {"compared": models_json(model.choice_, accuracies)}


FIT = FitCommand("classify", SequenceClassifier, Options, _read, _evaluate)
