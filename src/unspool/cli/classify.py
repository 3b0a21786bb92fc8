"""`unspool classify fit` and `unspool classify predict`: a sequence to a class."""

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.console import Console

from unspool.cli.fitting import (
    DATA,
    NETWORK,
    OUTPUT,
    TIME,
    TRAINING,
    Column,
    as_column,
    check_before,
    held_out,
    refuse_empty,
    refuse_unknown,
)
from unspool.cli.following import follow, show_scores
from unspool.cli.options import Flag
from unspool.data.labelled import Labelled, read_labelled
from unspool.draw.confusion import draw_confusion
from unspool.errors import InputError
from unspool.sequences.estimators import SequenceClassifier
from unspool.sequences.scores import Scores, score
from unspool.sequences.store import load, save

app = App(name="classify", help="A sequence to a class: texts, names, recordings, series.")


@app.command
def fit(
    data: Path,
    /,
    *,
    out: Annotated[Path, Parameter(group=OUTPUT)],
    text: Annotated[Column, Parameter(group=DATA)] = None,
    label: Annotated[Column, Parameter(group=DATA)] = None,
    delimiter: Annotated[str | None, Parameter(group=DATA)] = None,
    tokens: Annotated[str, Parameter(group=DATA)] = "char",
    test: Annotated[Path | None, Parameter(group=DATA)] = None,
    hold_out: Annotated[float, Parameter(group=DATA)] = 0.2,
    minutes: Annotated[float, Parameter(group=TIME)] = 2.0,
    epochs: Annotated[int, Parameter(group=TIME)] = 60,
    steps: Annotated[int | None, Parameter(group=TIME)] = None,
    threads: Annotated[int | None, Parameter(group=TIME)] = None,
    cell: Annotated[Literal["elman", "gru", "lstm"], Parameter(group=NETWORK)] = "gru",
    hidden: Annotated[int, Parameter(group=NETWORK)] = 64,
    layers: Annotated[int, Parameter(group=NETWORK)] = 1,
    bidirectional: Annotated[bool, Parameter(group=NETWORK)] = True,
    embedding: Annotated[int, Parameter(group=NETWORK)] = 0,
    dropout: Annotated[float, Parameter(group=NETWORK)] = 0.3,
    recurrent_dropout: Annotated[float, Parameter(group=NETWORK)] = 0.0,
    pool: Annotated[Literal["last", "mean"], Parameter(group=NETWORK)] = "last",
    balance: Annotated[float, Parameter(group=NETWORK)] = 0.0,
    batch: Annotated[int, Parameter(group=TRAINING)] = 32,
    learning_rate: Annotated[float, Parameter(group=TRAINING)] = 3e-3,
    validation: Annotated[float, Parameter(group=TRAINING)] = 0.1,
    patience: Annotated[int, Parameter(group=TRAINING)] = 10,
    seed: Annotated[int, Parameter(group=TRAINING)] = 0,
    json: Annotated[Flag, Parameter(group=OUTPUT)] = False,
    plot: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
) -> None:
    """Learn to tell classes apart, judge it on rows held out, and keep it in a run.

    Parameters
    ----------
    data
        A table with a text column and a label column (CSV, TSV), a folder with one text file a class, .npz, .ts.
    out
        The folder to make: the model, its vocabulary, settings and log.
    text
        The column with the texts: its name, or its number from 0 [default: text].
    label
        The column with the classes [default: label].
    delimiter
        What stands between the fields of a table [default: guessed].
    tokens
        How texts are cut: char, word, byte …
    test
        A file of the same kind to judge by, instead of rows held out.
    hold_out
        The share of each class that is judged by and not learned from.
    minutes
        The most time that training may take.
    epochs
        The most often that the rows are read.
    steps
        How many updates instead: the number that a fit prints repeats it to the bit.
    threads
        How many threads; it changes no bit of the result.
    cell
        The recurrence.
    hidden
        H, the units of a layer and direction.
    layers
        Layers on each other.
    bidirectional
        Whether sequences are also read from the end.
    embedding
        The width of the token table; 0: one-hot tokens.
    dropout
        The share of a layer's outputs that is dropped in training.
    recurrent_dropout
        The share of the state that is dropped inside the recurrence: helps where examples are few.
    pool
        The answer comes from the last state or from the mean of all.
    balance
        How far the classes' frequencies are taken out of the answers, 0 to 1: more helps rare classes.
    batch
        B, rows side by side.
    learning_rate
        The highest; it falls to zero with the last update.
    validation
        The share of the rows learned from that chooses the best parameters; 0: the last are kept.
    patience
        Stop after so many validations without a better one.
    seed
        Where all random numbers come from.
    json
        Print the result as JSON, and nothing else.
    plot
        Draw the confusion matrix into this file (.png, .svg, .pdf).
    """
    check_before(out, plot, threads)
    console = Console(highlight=False, quiet=json)
    learned, judged = _data(data, test, hold_out, seed, (text, label, delimiter))
    console.print(_described(learned, judged), soft_wrap=True)
    model = SequenceClassifier(
        cell=cell, hidden=hidden, layers=layers, bidirectional=bidirectional, embedding=embedding, dropout=dropout,
        recurrent_dropout=recurrent_dropout, pool=pool, balance=balance, epochs=epochs, steps=steps, minutes=None if steps else minutes,
        batch_size=batch, learning_rate=learning_rate, validation=validation,
        patience=patience if validation else 0, seed=seed, tokens=tokens,
    )  # fmt: skip
    reports = model.fitting(learned.sequences, learned.labels)
    save(model, out, data=str(data))
    console.print(
        f"  {model.network_.parameters.count:,} parameters, {model.fit_config_.steps:,} updates planned",
        soft_wrap=True,
    )
    follow(console, model, reports, out)
    scores = _scores(model, judged) if judged is not None else None
    _tell(console, model, scores, out, json, plot)


@app.command
def predict(
    run: Path,
    data: Path,
    /,
    *,
    text: Annotated[Column, Parameter(group=DATA)] = None,
    label: Annotated[Column, Parameter(group=DATA)] = None,
    delimiter: Annotated[str | None, Parameter(group=DATA)] = None,
    threads: Annotated[int | None, Parameter(group=TIME)] = None,
    json: Annotated[Flag, Parameter(group=OUTPUT)] = False,
    plot: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
) -> None:
    """Give the class of every sequence and its probability, a line each; with labels, scores as well.

    Parameters
    ----------
    run
        The folder of the run.
    data
        A file or folder as for fit; labels may be missing.
    text
        The column with the texts: its name, or its number from 0 [default: text].
    label
        The column with the classes, where there is one [default: label].
    delimiter
        What stands between the fields of a table [default: guessed].
    threads
        How many threads; it changes no bit of the result.
    json
        Print JSON.
    plot
        Draw the confusion matrix into this file (.png, .svg, .pdf): needs labels.
    """
    check_before(None, plot, threads)
    model: SequenceClassifier = load(run, "classify")
    read = read_labelled(data, as_column(text), as_column(label), delimiter, need_labels=plot is not None)
    refuse_empty(read)
    proba = model.predict_proba(read.sequences)
    answers = [str(name) for name in model.classes_[proba.argmax(axis=1)]]
    refuse_unknown(read, [str(name) for name in model.classes_])
    scores = None if read.labels is None else score(read.labels, answers, model.classes_.tolist())
    if plot is not None and scores is not None:
        _draw(scores, plot)
    if json:
        rows = [
            {"class": a, "probability": float(p.max()), "probabilities": p.tolist()}
            for a, p in zip(answers, proba, strict=True)
        ]
        content = {"run": str(run), "classes": model.classes_.tolist(), "answers": rows}
        print(jsonlib.dumps(content | ({"scores": scores.to_json()} if scores else {}), ensure_ascii=False))
        return
    for answer, p in zip(answers, proba, strict=True):
        print(f"{answer}\t{p.max():.4f}")
    if scores is not None:
        console = Console(highlight=False, stderr=True)
        show_scores(console, scores, str(data))


def _data(
    data: Path, test: Path | None, share: float, seed: int, columns: tuple[Column, Column, str | None]
) -> tuple[Labelled, Labelled | None]:
    """Read what is learned from and what is judged by."""
    chosen = (as_column(columns[0]), as_column(columns[1]), columns[2])
    learned = read_labelled(data, *chosen)
    refuse_empty(learned)
    assert learned.labels is not None
    if len(learned.classes) < 2:
        raise InputError(
            f"{data}: there is one class only, {learned.classes[0]!r}; expected at least two to tell apart"
        )
    if test is not None:
        judged = read_labelled(test, *chosen)
        refuse_empty(judged)
        refuse_unknown(judged, learned.classes)
        return learned, judged
    rows, kept = held_out(learned.labels, share, seed)
    return _part(learned, rows), _part(learned, kept) if kept else None


def _part(data: Labelled, rows: list[int]) -> Labelled:
    sequences: Any = [data.sequences[i] for i in rows]
    assert data.labels is not None
    return Labelled(data.name, sequences, [data.labels[i] for i in rows], [data.places[i] for i in rows])


def _described(learned: Labelled, judged: Labelled | None) -> str:
    lengths = [len(each) for each in learned.sequences]
    aside = f", {len(judged):,} to judge by" if judged is not None else ""
    return (
        f"[bold]{learned.name}[/bold]: {len(learned):,} sequences of {min(lengths)} to {max(lengths)} steps to "
        f"learn from{aside}; {len(learned.classes)} classes"
    )


def _scores(model: SequenceClassifier, judged: Labelled) -> Scores:
    assert judged.labels is not None
    return score(judged.labels, model.predict(judged.sequences).tolist(), model.classes_.tolist())


def _tell(
    console: Console,
    model: SequenceClassifier,
    scores: Scores | None,
    out: Path,
    json: bool,
    plot: Path | None,
) -> None:
    if scores is not None:
        console.print()
        show_scores(console, scores, "held out")
        if plot is not None:
            _draw(scores, plot)
    console.print(f"\nkept in {out}; try: unspool classify predict {out} FILE", soft_wrap=True)
    if json:
        content = {
            "run": str(out),
            "steps": model.n_iter_,
            "parameters": model.network_.parameters.count,
            "scores": None if scores is None else scores.to_json(),
        }
        print(jsonlib.dumps(content, ensure_ascii=False))


def _draw(scores: Scores, path: Path) -> None:
    draw_confusion(scores.confusion, [each.name for each in scores.classes], path)
