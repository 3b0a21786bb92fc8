"""Train a model that generates text from a class or a vector, and use it."""

import math
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NotRequired, TypeAlias, TypedDict

import numpy as np
from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from unspool.baselines.kneser_ney_smoothing import kneser_ney
from unspool.baselines.ngram_counts import count_ngrams
from unspool.cli.checks import refuse_broken, refuse_unknown
from unspool.cli.fit import FitCommand, Read, start_fit
from unspool.cli.fit_options import Column, FitOptions, as_column
from unspool.cli.options import DATA, CommonOptions, OfData, OfOutput, option_class
from unspool.cli.output import held_out, plain_table, title
from unspool.cli.predict import Predictions, columns_of_fit, load_fitted, print_predictions
from unspool.cli.sources import RunFolder
from unspool.data.formats.conditioned import Conditioned, read_conditioned
from unspool.data.formats.labelled import DefaultColumns
from unspool.data.split import split_random
from unspool.errors import FileError, InputError
from unspool.evaluation.scores import score_texts
from unspool.model.sequence_config import BOS
from unspool.options import at_least
from unspool.storage import run_folder
from unspool.storage.schema import read_as
from unspool.tasks.generate_from import SequenceGenerator

app = App(name="generate-from")
Names: TypeAlias = Annotated[list[str] | None, Parameter(group=DATA, negative="", consume_multiple=True)]
SHOWN, DRAWN = 8, 4
"""How many rows are shown after a fit, and how many texts of each class."""
WIDEST, MOST_COUNT = 1000, 100_000
"""The widest beam, and the most texts per row."""
ORDER = 3
"""Of the n-grams that the network is compared with."""


@option_class
class Options(FitOptions):
    """What `generate-from fit` is given."""

    text: OfData[Column] = None
    """The column with the texts to generate [default: text]."""
    label: OfData[Column] = None
    """The column with the classes to generate from [default: label]."""
    features: Names = None
    """The columns of numbers to generate from, instead of a class."""
    delimiter: OfData[str | None] = None
    """Character between the fields of a table [default: detected]."""
    tokens: str = "char"
    hold_out: OfData[float] = 0.1
    minutes: float = 3.0
    hidden: int = 96
    dropout: float = 0.0
    bidirectional: Annotated[bool, Parameter(parse=False)] = False
    batch_size: int = 64
    learning_rate: float = 4e-3
    validation: float = 0.05
    plot: Annotated[Path | None, Parameter(parse=False)] = None


@option_class
class Asked(CommonOptions):
    """What `generate-from predict` is given."""

    of: Names = None
    """The classes to generate from, instead of DATA [default: every class of the fit]."""
    text: OfData[Column] = None
    """The column with the true texts, for scores; none if the data has no texts [default: as in the fit, if the column exists]."""
    label: OfData[Column] = None
    """The column with the classes [default: as in the fit]."""
    features: Names = None
    """The columns of numbers to generate from, in the order of the fit [default: the columns with the names used in the fit]."""
    delimiter: OfData[str | None] = None
    """Character between the fields of a table [default: as in the fit, or detected]."""
    count: OfOutput[int] = 1
    """Number of texts per row."""
    temperature: OfOutput[float | None] = None
    """Below 1 less random, above 1 more random; 0 takes the most probable token at every step, or with --beam searches for the most probable text [default: 1 from a class, 0 from a vector]."""
    beam: OfOutput[int | None] = None
    """Beam width; 1 is greedy decoding. Requires temperature 0."""
    seed: OfOutput[int] = 0
    """Seed of the random draws: the same seed gives the same texts."""


class Config(TypedDict):
    """The field of a run's config that says which numbers the fit read; a run from Python has none."""

    features: NotRequired[tuple[str, ...]]


class Parts(NamedTuple):
    """The training rows, for the n-grams, and the held-out rows."""

    learned: Conditioned
    judged: Conditioned


@app.command
def fit(data: Path, /, *, options: Options = Options()) -> None:
    """Train a generator of texts, evaluate it on held-out rows, and save it in a run.

    Parameters
    ----------
    data
        A table with a text column and a label column or columns of numbers (CSV, TSV), or a folder with one text file per class.
    """
    start_fit(FIT, data, options)


@app.command
def predict(run: RunFolder, data: Path | None = None, /, *, options: Asked = Asked()) -> None:
    """Generate one text per row, one per line; without DATA, one for every class, after the name of the class.

    Parameters
    ----------
    data
        Rows to generate from: a file as for fit, where texts may be missing, or a text file with one class per line.
    """
    options.apply()
    model: SequenceGenerator = load_fitted(run, "generate-from")
    temperature, width = _sampling(model, options)
    read = _asked(run, data, model, options)
    given = np.repeat(np.array(read.given, object) if read.are_classes else read.given, options.count, axis=0)
    given = given.tolist() if read.are_classes else given
    if temperature:
        written = model.sample_scored(given, temperature=temperature, seed=options.seed)
    else:
        model.beam = width
        written = model.predict_scored(given)
    scores = None if read.texts is None else _scores(model, read)
    rows = given if read.are_classes else given.tolist()
    answers = [{"of": of, "text": t, "log_prob": p} for of, (t, p) in zip(rows, written, strict=True)]
    content = {"temperature": temperature, "beam": width, "seed": options.seed, "answers": answers}
    texts = (str(text).replace("\n", "\\n") for text, _ in written)  # a text is one line
    lines = texts if data is not None else (f"{of}\t{text}" for of, text in zip(given, texts, strict=True))
    show = lambda console: console.print(_scores_line(scores or {}))  # noqa: E731
    print_predictions(run, options, Predictions(content, lines, scores, show))


def _sampling(model: SequenceGenerator, options: Asked) -> tuple[float, int]:
    """Return temperature and beam width; refuse values that do not go together."""
    at_least("count", options.count, 1, MOST_COUNT)
    if options.beam is not None:
        at_least("beam", options.beam, 1, WIDEST)
    if options.beam is not None and options.temperature:
        raise InputError(
            "--beam searches for the most probable text, and --temperature draws one; give one of them"
        )
    if options.temperature is not None and not 0 <= options.temperature < 1e6:
        raise InputError(f"temperature is {options.temperature}; expected a number of 0 or more")
    usual = 1.0 if model.input_classes is not None and options.beam is None else 0.0
    return usual if options.temperature is None else options.temperature, options.beam or model.beam


def _asked(run: Path, data: Path | None, model: SequenceGenerator, options: Asked) -> Conditioned:
    """Read the rows to generate from, in the columns of the fit."""
    classes = model.input_classes
    if data is not None and options.of:
        raise InputError("give DATA or --of, not both")
    if data is not None and classes is not None and not data.exists():
        raise FileError(f"{data}: no such file or folder; to generate from a class, say --of {data}")
    if data is None:
        if classes is None:
            raise InputError(f"{run}: it generates from vectors; give a table with their columns as DATA")
        of = list(options.of or classes)
        read = Conditioned("--of", of, None, [f"--of, class {i}" for i in range(1, len(of) + 1)])
    else:
        known = columns_of_fit(run, "generate-from", data)
        usual = DefaultColumns(as_column(known.get("text", "text")), as_column(known.get("label", "label")))
        config = read_as(Config, run_folder.read_config(run, "generate-from"), run / run_folder.CONFIG)
        kept = config.get("features", ())
        features = tuple(map(as_column, options.features)) if options.features else kept
        delimiter = options.delimiter or known.get("delimiter")
        columns = as_column(options.text), as_column(options.label)
        read = read_conditioned(data, *columns, features, delimiter, need_texts=False, defaults=usual)
    if classes is not None:
        refuse_unknown(read.given, read.locations, classes)
    return read


def _read(data: Path, options: Options) -> Read:
    if options.plot is not None:
        raise InputError("--plot: generate-from draws nothing; leave it out")
    learned, judged = _parts(data, options)
    source = (
        f"{len(set(learned.given))} classes"
        if learned.are_classes
        else f"vectors of {', '.join(learned.features)}"
    )
    said = title(learned.name, f": {len(learned):,} texts for training{held_out(judged)}; from {source}")
    parts = None if judged is None else Parts(learned, judged)
    inputs = "tokens" if learned.are_classes else "values"
    return Read(
        learned.given, learned.texts, parts, said, {"inputs": inputs}, {"features": list(learned.features)}
    )


def _parts(data: Path, options: Options) -> tuple[Conditioned, Conditioned | None]:
    columns = as_column(options.text), as_column(options.label), tuple(map(as_column, options.features or ()))
    whole = read_conditioned(data, *columns, options.delimiter)
    if whole.are_classes:
        refuse_broken(whole.given, str(data))
    if whole.are_classes and len(set(whole.given)) < 2:
        raise InputError(
            f"{data}: there is one class only, {whole.given[0]!r}; expected at least two to generate from"
        )
    if options.test is not None:
        judged = read_conditioned(options.test, *columns[:2], whole.features, options.delimiter)
        if whole.are_classes:
            refuse_unknown(judged.given, judged.locations, sorted(set(whole.given)))
        return whole, judged
    rows, aside = split_random(len(whole), options.hold_out, options.seed)
    learned = whole.part(rows)
    if learned.are_classes:  # a class that is only held out cannot be generated from
        known = set(learned.given)
        rows, aside = (
            sorted(rows + [i for i in aside if whole.given[i] not in known]),
            [i for i in aside if whole.given[i] in known],
        )
        learned = whole.part(rows)
    return learned, whole.part(aside) if aside else None


def _scores(model: SequenceGenerator, data: Conditioned) -> dict[str, Any]:
    """Measure nats per token; of vectors also how many of the decoded texts are right."""
    assert data.texts is not None
    nats = model.log_loss(data.given, data.texts)
    scores: dict[str, Any] = {"rows": len(data), "nats": nats, "perplexity": math.exp(min(nats, 700.0))}
    if data.are_classes:
        return scores | {"exact": None, "error_rate": None}
    found = model.predict(data.given)
    return scores | score_texts(data.texts, found)


def _ngram_nats(model: SequenceGenerator, parts: Parts) -> float:
    """Return nats per token of n-grams that know the texts and not what they belong to."""
    learned, judged = (
        np.concatenate([np.append(BOS, ids) for ids in model.target_ids(each.texts)]) for each in parts
    )
    counted = kneser_ney(count_ngrams(learned, model.target_coder_.size, min(ORDER, len(learned))))
    log_p = counted.log_prob(np.append(learned[-1], judged))
    return float(-log_p[judged != BOS].mean())


def _scores_line(scores: dict[str, Any]) -> str:
    line = f"{scores['rows']:,} texts: {scores['nats']:.4f} nats per token, perplexity {scores['perplexity']:.2f}"
    if scores["exact"] is not None:
        line += (
            f"; exact-match rate {scores['exact']:.4f}, {scores['error_rate']:.4f} edits per target character"
        )
    return line


def _evaluate(
    console: Console, model: SequenceGenerator, parts: Parts | None, options: Options
) -> dict[str, Any]:
    if parts is None:
        return {"scores": None}
    scores = _scores(model, parts.judged)
    counted = _ngram_nats(model, parts)
    console.print(title("\nheld out", f": {_scores_line(scores)}"))
    better = "" if scores["nats"] < counted else ": lower than the network; train longer, or with more texts"
    source = "class" if parts.judged.are_classes else "vector"
    console.print(f"  {ORDER}-grams that do not see the {source}: {counted:.4f} nats per token{better}\n")
    console.print(_examples(model, parts.judged, options.seed))
    return {"scores": scores | {"ngram_nats": counted}}


def _examples(model: SequenceGenerator, judged: Conditioned, seed: int) -> Table:
    table = plain_table("from", "generated", "", wide=True)
    if judged.are_classes:
        counts = Counter(judged.given)
        classes = sorted(counts, key=lambda each: (-counts[each], each))[:SHOWN]
        drawn = model.sample([each for each in classes for _ in range(DRAWN)], seed=seed)
        for i, name in enumerate(classes):
            table.add_row(name, ", ".join(map(str, drawn[i * DRAWN : (i + 1) * DRAWN])), "")
        return table
    assert judged.texts is not None
    found = model.predict(judged.given[:SHOWN])
    for vector, text, truth in zip(judged.given, found, judged.texts, strict=False):
        table.add_row(", ".join(f"{x:.4g}" for x in vector), str(text), "" if text == truth else f"✗ {truth}")
    return table


FIT = FitCommand("generate-from", SequenceGenerator, Options, _read, _evaluate, "")
