"""`unspool tag fit` and `unspool tag predict`: a label for every step of a sequence."""

import json as jsonlib
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
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
    rows_aside,
)
from unspool.cli.following import follow, show_scores
from unspool.cli.options import Flag
from unspool.data.tagged import Tagged, read_tagged
from unspool.draw.confusion import draw_confusion
from unspool.errors import InputError
from unspool.sequences.estimators import SequenceTagger
from unspool.sequences.scores import Scores, score
from unspool.sequences.store import load, save

app = App(name="tag", help="A label for every step: words to their parts of speech, and the like.")


@app.command
def fit(
    data: Path,
    /,
    *,
    out: Annotated[Path, Parameter(group=OUTPUT)],
    token: Annotated[Column, Parameter(group=DATA)] = None,
    tag: Annotated[Column, Parameter(group=DATA)] = None,
    sequence: Annotated[Column, Parameter(group=DATA)] = None,
    delimiter: Annotated[str | None, Parameter(group=DATA)] = None,
    test: Annotated[Path | None, Parameter(group=DATA)] = None,
    hold_out: Annotated[float, Parameter(group=DATA)] = 0.2,
    minutes: Annotated[float, Parameter(group=TIME)] = 2.0,
    epochs: Annotated[int, Parameter(group=TIME)] = 30,
    steps: Annotated[int | None, Parameter(group=TIME)] = None,
    threads: Annotated[int | None, Parameter(group=TIME)] = None,
    cell: Annotated[Literal["elman", "gru", "lstm"], Parameter(group=NETWORK)] = "gru",
    hidden: Annotated[int, Parameter(group=NETWORK)] = 64,
    layers: Annotated[int, Parameter(group=NETWORK)] = 1,
    bidirectional: Annotated[bool, Parameter(group=NETWORK)] = True,
    embedding: Annotated[int, Parameter(group=NETWORK)] = 32,
    dropout: Annotated[float, Parameter(group=NETWORK)] = 0.3,
    batch: Annotated[int, Parameter(group=TRAINING)] = 16,
    learning_rate: Annotated[float, Parameter(group=TRAINING)] = 5e-3,
    validation: Annotated[float, Parameter(group=TRAINING)] = 0.1,
    patience: Annotated[int, Parameter(group=TRAINING)] = 10,
    seed: Annotated[int, Parameter(group=TRAINING)] = 0,
    json: Annotated[Flag, Parameter(group=OUTPUT)] = False,
    plot: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
) -> None:
    """Learn a label for every token, judge it on sequences held out, and keep it in a run.

    Parameters
    ----------
    data
        Columns with a blank line between sequences (as CoNLL has them), or a table (CSV, TSV) with a column that
        names the sequence of every row.
    out
        The folder to make: the model, its vocabulary, settings and log.
    token
        The column with the tokens [default: the first; in a table, token].
    tag
        The column with the labels [default: the last; in a table, tag].
    sequence
        In a table: the column that names the sequence [default: sequence].
    delimiter
        What stands between the fields of a table [default: guessed].
    test
        A file of the same kind to judge by, instead of sequences held out.
    hold_out
        The share of the sequences that is judged by and not learned from.
    minutes
        The most time that training may take.
    epochs
        The most often that the sequences are read.
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
    batch
        B, sequences side by side.
    learning_rate
        The highest; it falls to zero with the last update.
    validation
        The share of the sequences learned from that chooses the best parameters; 0: the last are kept.
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
    columns = (as_column(token), as_column(tag), as_column(sequence), delimiter)
    learned, judged = _data(data, test, hold_out, seed, columns)
    assert learned.tags is not None
    steps_read, aside = sum(map(len, learned.tokens)), f", {len(judged):,} to judge by" if judged else ""
    console.print(
        f"[bold]{data}[/bold]: {len(learned):,} sequences, {steps_read:,} tokens to learn from{aside}; "
        f"{len(_tags(learned))} labels",
        soft_wrap=True,
    )
    model = SequenceTagger(
        cell=cell, hidden=hidden, layers=layers, bidirectional=bidirectional, embedding=embedding, dropout=dropout,
        epochs=epochs, steps=steps, minutes=None if steps else minutes, batch_size=batch,
        learning_rate=learning_rate, validation=validation, patience=patience if validation else 0, seed=seed,
        inputs="tokens",
    )  # fmt: skip
    reports = model.fitting(learned.tokens, learned.tags)
    save(model, out, data=str(data))
    follow(console, model, reports, out)
    scores = None if judged is None else _scores(model, judged)
    if scores is not None:
        console.print()
        show_scores(console, scores, "held out", "tokens")
        if plot is not None:
            _draw(scores, plot)
    console.print(f"\nkept in {out}; try: unspool tag predict {out} FILE", soft_wrap=True)
    if json:
        content = {"run": str(out), "steps": model.n_iter_, "scores": scores.to_json() if scores else None}
        print(jsonlib.dumps(content, ensure_ascii=False))


@app.command
def predict(
    run: Path,
    data: Path,
    /,
    *,
    token: Annotated[Column, Parameter(group=DATA)] = None,
    tag: Annotated[Column, Parameter(group=DATA)] = None,
    sequence: Annotated[Column, Parameter(group=DATA)] = None,
    delimiter: Annotated[str | None, Parameter(group=DATA)] = None,
    threads: Annotated[int | None, Parameter(group=TIME)] = None,
    json: Annotated[Flag, Parameter(group=OUTPUT)] = False,
    plot: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
) -> None:
    """Label every token: a token and its label a line, a blank line between sequences.

    Parameters
    ----------
    run
        The folder of the run.
    data
        A file as for fit; labels may be missing.
    token
        The column with the tokens [default: the first; in a table, token].
    tag
        The column with the labels, where there are some [default: the last; in a table, tag].
    sequence
        In a table: the column that names the sequence [default: sequence].
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
    model: SequenceTagger = load(run, "tag")
    columns = (as_column(token), as_column(tag), as_column(sequence), delimiter)
    read = read_tagged(data, *columns, need_tags=plot is not None)
    _refuse_unknown(read, [str(name) for name in model.classes_])
    answers = [row.tolist() for row in model.predict(read.tokens)]
    scores = None if read.tags is None else score(_flat(read.tags), _flat(answers), model.classes_.tolist())
    if plot is not None and scores is not None:
        _draw(scores, plot)
    if json:
        content = {"run": str(run), "labels": model.classes_.tolist(), "answers": answers}
        print(jsonlib.dumps(content | ({"scores": scores.to_json()} if scores else {}), ensure_ascii=False))
        return
    for number, (tokens, labels) in enumerate(zip(read.tokens, answers, strict=True)):
        print("\n" * bool(number) + "\n".join(f"{t}\t{a}" for t, a in zip(tokens, labels, strict=True)))
    if scores is not None:
        show_scores(Console(highlight=False, stderr=True), scores, str(data), "tokens")


def _data(
    data: Path, test: Path | None, share: float, seed: int, columns: tuple[Column, Column, Column, str | None]
) -> tuple[Tagged, Tagged | None]:
    learned = read_tagged(data, *columns)
    if len(_tags(learned)) < 2:
        raise InputError(f"{data}: there is one label only, {_tags(learned)[0]!r}; expected at least two")
    if test is not None:
        judged = read_tagged(test, *columns)
        _refuse_unknown(judged, _tags(learned))
        return learned, judged
    rows, aside = rows_aside(len(learned), share, seed)
    fitted = _part(learned, rows)
    if not aside:
        return fitted, None
    judged = _part(learned, aside)
    known = set(_tags(fitted))
    kept = [i for i in range(len(judged)) if judged.tags and known.issuperset(judged.tags[i])]
    return fitted, _part(judged, kept) if kept else None


def _part(data: Tagged, rows: list[int]) -> Tagged:
    assert data.tags is not None
    tokens, tags, lines = ([part[i] for i in rows] for part in (data.tokens, data.tags, data.lines))
    return Tagged(data.name, tokens, tags, lines)  # type: ignore[arg-type]


def _tags(data: Tagged) -> list[str]:
    return sorted(set(_flat(data.tags or [])))


def _flat(rows: list[list[str]]) -> list[str]:
    return [each for row in rows for each in row]


def _refuse_unknown(data: Tagged, labels: list[str]) -> None:
    for tags, lines in zip(data.tags or [], data.lines, strict=False):
        for label, line in zip(tags, lines, strict=True):
            if label not in labels:
                raise InputError(f"{data.name}: line {line}: the label {label!r} was never seen in training")


def _scores(model: SequenceTagger, judged: Tagged) -> Scores:
    assert judged.tags is not None
    found = np.concatenate(model.predict(judged.tokens)).tolist()
    return score(_flat(judged.tags), found, model.classes_.tolist())


def _draw(scores: Scores, path: Path) -> None:
    draw_confusion(scores.confusion, [each.name for each in scores.classes], path)
