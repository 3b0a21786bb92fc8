"""`unspool translate fit` and `unspool translate predict`: a text to a text of another length."""

import json as jsonlib
import math
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from unspool.cli.fitting import DATA, NETWORK, OUTPUT, TIME, TRAINING, check_before, rows_aside
from unspool.cli.following import follow
from unspool.cli.options import Flag
from unspool.data.pairs import Pairs, read_pairs
from unspool.draw.weights import draw_weights
from unspool.errors import InputError
from unspool.sequences.scores import error_rate
from unspool.sequences.store import load, save
from unspool.sequences.writers import SequenceTranslator

app = App(name="translate", help="A text to a text of another length, learned from pairs.")
SHOWN = 8


@app.command
def fit(
    data: Path,
    /,
    *,
    out: Annotated[Path, Parameter(group=OUTPUT)],
    columns: Annotated[tuple[int, int] | None, Parameter(group=DATA)] = None,
    tokens: Annotated[str, Parameter(group=DATA)] = "char",
    test: Annotated[Path | None, Parameter(group=DATA)] = None,
    hold_out: Annotated[float, Parameter(group=DATA)] = 0.1,
    minutes: Annotated[float, Parameter(group=TIME)] = 3.0,
    epochs: Annotated[int, Parameter(group=TIME)] = 60,
    steps: Annotated[int | None, Parameter(group=TIME)] = None,
    threads: Annotated[int | None, Parameter(group=TIME)] = None,
    cell: Annotated[Literal["elman", "gru", "lstm"], Parameter(group=NETWORK)] = "gru",
    hidden: Annotated[int, Parameter(group=NETWORK)] = 96,
    layers: Annotated[int, Parameter(group=NETWORK)] = 1,
    bidirectional: Annotated[bool, Parameter(group=NETWORK)] = True,
    embedding: Annotated[int, Parameter(group=NETWORK)] = 0,
    dropout: Annotated[float, Parameter(group=NETWORK)] = 0.0,
    attention: Annotated[Literal["none", "general", "additive"], Parameter(group=NETWORK)] = "general",
    beam: Annotated[int, Parameter(group=OUTPUT)] = 1,
    batch: Annotated[int, Parameter(group=TRAINING)] = 64,
    learning_rate: Annotated[float, Parameter(group=TRAINING)] = 5e-3,
    validation: Annotated[float, Parameter(group=TRAINING)] = 0.05,
    patience: Annotated[int, Parameter(group=TRAINING)] = 10,
    seed: Annotated[int, Parameter(group=TRAINING)] = 0,
    json: Annotated[Flag, Parameter(group=OUTPUT)] = False,
    plot: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
) -> None:
    """Learn from pairs of texts, judge it on pairs held out, and keep it in a run.

    Parameters
    ----------
    data
        Pairs, one a line, with a tab between (TSV).
    out
        The folder to make: the model, its vocabularies, settings and log.
    columns
        Which two columns, counted from 0, where there are more than two.
    tokens
        How texts are cut: char, word, byte …
    test
        A file of pairs to judge by, instead of pairs held out.
    hold_out
        The share of the pairs that is judged by and not learned from.
    minutes
        The most time that training may take.
    epochs
        The most often that the pairs are read.
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
        Whether the input is also read from the end.
    embedding
        The width of the token tables; 0: one-hot tokens.
    dropout
        The share of a layer's outputs that is dropped in training.
    attention
        Whether the decoder looks back at every step of the input, and how it scores them.
    beam
        How many beginnings are followed while writing; 1: greedy.
    batch
        B, pairs side by side.
    learning_rate
        The highest; it falls to zero with the last update.
    validation
        The share of the pairs learned from that chooses the best parameters; 0: the last are kept.
    patience
        Stop after so many validations without a better one.
    seed
        Where all random numbers come from.
    json
        Print the result as JSON, and nothing else.
    plot
        Draw where the decoder looks for the first pair held out (.png, .svg, .pdf): needs attention.
    """
    check_before(out, plot, threads)
    if beam < 1:
        raise InputError(f"beam is {beam}; expected 1 or more")
    if plot is not None and attention == "none":
        raise InputError("--plot draws attention, and --attention is none")
    console = Console(highlight=False, quiet=json)
    sources, targets, judged = _data(data, test, hold_out, seed, columns)
    aside = f", {len(judged[0]):,} to judge by" if judged[0] else ""
    console.print(f"[bold]{data}[/bold]: {len(sources):,} pairs to learn from{aside}", soft_wrap=True)
    model = SequenceTranslator(
        cell=cell, hidden=hidden, layers=layers, bidirectional=bidirectional, embedding=embedding, dropout=dropout,
        attention=attention, beam=beam, epochs=epochs, steps=steps, minutes=None if steps else minutes,
        batch_size=batch, learning_rate=learning_rate, validation=validation,
        patience=patience if validation else 0, seed=seed, tokens=tokens,
    )  # fmt: skip
    reports = model.fitting(sources, targets)
    save(model, out, data=str(data))
    follow(console, model, reports, out)
    content: dict[str, Any] = {"run": str(out), "steps": model.n_iter_}
    if judged[0]:
        content |= _judge(console, model, *judged)
        if plot is not None:
            draw_weights(*model.attention_of(judged[0][0]), plot)
    console.print(f"\nkept in {out}; try: unspool translate predict {out} FILE", soft_wrap=True)
    if json:
        print(jsonlib.dumps(content, ensure_ascii=False))


@app.command
def predict(
    run: Path,
    data: Path,
    /,
    *,
    columns: Annotated[tuple[int, int] | None, Parameter(group=DATA)] = None,
    beam: Annotated[int | None, Parameter(group=OUTPUT)] = None,
    threads: Annotated[int | None, Parameter(group=TIME)] = None,
    json: Annotated[Flag, Parameter(group=OUTPUT)] = False,
    plot: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
) -> None:
    """Write a text for every line; with targets beside them, scores as well.

    Parameters
    ----------
    run
        The folder of the run.
    data
        Texts, one a line, or pairs with a tab between.
    columns
        Which two columns, counted from 0, where there are more than two.
    beam
        How many beginnings are followed; 1: greedy [default: as it was fitted].
    threads
        How many threads; it changes no bit of the result.
    json
        Print JSON.
    plot
        Draw where the decoder looks for the first text (.png, .svg, .pdf): needs attention.
    """
    check_before(None, plot, threads)
    model: SequenceTranslator = load(run, "translate")
    if beam is not None:
        if beam < 1:
            raise InputError(f"beam is {beam}; expected 1 or more")
        model.beam = beam
    read: Pairs = read_pairs(data, columns, need_targets=False)
    written = model.predict_scored(read.sources)
    if plot is not None:
        draw_weights(*model.attention_of(read.sources[0]), plot)
    scores = None if read.targets is None else _scores([text for text, _ in written], read.targets)
    if json:
        answers = [{"text": text, "log_prob": log_prob} for text, log_prob in written]
        content = {"run": str(run), "beam": model.beam, "answers": answers}
        print(jsonlib.dumps(content | ({"scores": scores} if scores else {}), ensure_ascii=False))
        return
    for text, _ in written:
        print(text)
    if scores is not None:
        Console(highlight=False, stderr=True).print(_told(scores), soft_wrap=True)


def _data(
    data: Path, test: Path | None, share: float, seed: int, columns: tuple[int, int] | None
) -> tuple[list[str], list[str], tuple[list[str], list[str]]]:
    learned = read_pairs(data, columns)
    assert learned.targets is not None
    if test is not None:
        judged = read_pairs(test, columns)
        assert judged.targets is not None
        return learned.sources, learned.targets, (judged.sources, judged.targets)
    rows, aside = rows_aside(len(learned), share, seed)
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
    console: Console, model: SequenceTranslator, sources: list[str], targets: list[str]
) -> dict[str, Any]:
    written = model.predict_scored(sources)
    scores = _scores([text for text, _ in written], targets)
    console.print(f"\n[bold]held out[/bold]: {_told(scores)}\n", soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    for name in ("input", "written", "P", ""):
        table.add_column(name, no_wrap=name == "P")
    for source, target, (text, log_prob) in list(zip(sources, targets, written, strict=True))[:SHOWN]:
        table.add_row(source, text, f"{math.exp(log_prob):.3f}", "" if text == target else f"✗ {target}")
    console.print(table)
    return {"scores": scores}
