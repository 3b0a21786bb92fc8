"""Train a model that predicts numbers from a sequence or a vector (table, .npz or .ts (sktime)), and use it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypeAlias, TypedDict

import numpy as np
from cyclopts import App, Parameter
from rich.console import Console
from rich.text import Text

from unspool.baselines.ridge import Ridge, features
from unspool.baselines.sequences.constant import MeanTarget
from unspool.cli.checks import check_before, files_of, note_empty, refuse_unlabelled
from unspool.cli.fit import FitCommand, Read, start_fit
from unspool.cli.fit_options import Column, FitOptions, as_column
from unspool.cli.options import DATA, Flag, OfData, OfOutput, OutputOptions, option_class
from unspool.cli.output import held_out, title
from unspool.cli.output_files import output
from unspool.cli.predict import Predictions, columns_of_fit, load_fitted, print_predictions
from unspool.cli.sources import RunFolder
from unspool.cli.views.models import models_json, show_models
from unspool.cli.views.regression import show_regression
from unspool.data.encoders import ValueEncoder
from unspool.data.formats.numeric import DEFAULTS, Columns, Measured, read_measured
from unspool.data.formats.registry import array_format
from unspool.data.split import split_random
from unspool.errors import FileError, InputError
from unspool.evaluation.regression import score_numbers
from unspool.kernels.arrays import Real
from unspool.model import options as network
from unspool.plots.predictions import draw_predictions
from unspool.storage import run_folder
from unspool.storage.schema import read_as
from unspool.tasks.regress import SequenceRegressor, refuse_constant
from unspool.training.options import SET_ASIDE, ModelChoice

app = App(name="regress")
ASIDE = {"mean squared error": lambda judged: f"{judged.error:.4f}"}
"""The figure of the models on the sequences set aside, of standardised targets."""
By: TypeAlias = Literal["rows", "pixels"]
Names: TypeAlias = Annotated[list[str] | None, Parameter(group=DATA, negative="", consume_multiple=True)]
KEPT = "columns"
"""The key in the config of the columns that were read."""


class Known(TypedDict, total=False):
    """The columns that the fit read."""

    target: tuple[str, ...]
    features: tuple[str, ...]
    text: str | None
    series: bool
    names: list[str]


class Config(TypedDict):
    """The field of a run's config that says how its data was read; a run from Python has none."""

    columns: NotRequired[Known]


@option_class
class Options(FitOptions):
    """What `regress fit` is given."""

    target: Names = None
    """The columns to predict, by name or by index counted from 0 [default: target]."""
    features: Names = None
    """The columns of numbers to read [default: all but the targets]."""
    text: OfData[Column] = None
    """The column with the texts to read, instead of numbers."""
    series: OfData[Flag] = False
    """Read the features as the steps of one series, oldest first, and not as one vector."""
    delimiter: OfData[str | None] = None
    """Character between the fields of a table [default: detected]."""
    by: OfData[By | None] = None
    """Read an image row by row or pixel by pixel: one row, or one pixel, per time step [default: rows]."""
    tokens: str = "char"
    dropout: float = 0.0
    recurrent_dropout: float = 0.0
    chrono_steps: int = 0
    pool: network.Pool = "last"
    std: bool = False
    learning_rate: float = 3e-3
    model: ModelChoice = "best"
    validation: float | None = SET_ASIDE.field(None)  # type: ignore[assignment]
    plot: OfOutput[Path | None] = None
    """Draw predictions against the true values into this file (.png, .svg, .pdf)."""


@dataclass(frozen=True, kw_only=True)
class Asked(OutputOptions):
    """What `regress predict` is given."""

    target: Names = None
    """The columns with the true values; none if the data has none [default: as in the fit, if the columns exist]."""
    features: Names = None
    """The columns of numbers to read, in the order of the fit [default: the columns with the names used in the fit]."""
    text: OfData[Column] = None
    """The column with the texts to read [default: as in the fit]."""
    delimiter: OfData[str | None] = None
    """Character between the fields of a table [default: detected]."""
    by: OfData[By | None] = None
    """Read an image row by row or pixel by pixel [default: as in the fit]."""
    plot: OfOutput[Path | None] = None
    """Draw predictions against the true values into this file (.png, .svg, .pdf): needs targets in the data."""


class Parts(NamedTuple):
    """The training rows, for the baselines, and the held-out rows."""

    learned: Measured
    judged: Measured


@app.command
def fit(data: Path, /, *, options: Options = Options()) -> None:
    """Train a regression model, evaluate it on held-out rows, and save it in a run.

    Parameters
    ----------
    data
        A table (CSV, TSV) with numeric target columns, and numeric columns or a text column as input; or .npz, .ts.
    """
    start_fit(FIT, data, options)


@app.command
def predict(run: RunFolder, data: Path, /, *, options: Asked = Asked()) -> None:
    """Print the predicted numbers of every row, separated by tabs; with targets in the data, print scores too.

    Parameters
    ----------
    data
        A file as for fit; the numbers to predict may be missing.
    """
    check_before(None, options, inputs=files_of(data))
    model: SequenceRegressor = load_fitted(run, "regress")
    read = _asked(run, data, options)
    refuse_unlabelled(options.plot, read.targets, data)
    if model.every_step:
        raise InputError(f"{run}: it predicts numbers at every step; use it from Python")
    note_empty(read.name, read.sequences)
    means, spreads = (
        model.predict_distribution(read.sequences) if model.std else (model.predict(read.sequences), None)
    )
    found = np.reshape(means, (len(read), -1))
    names = _names(run, found.shape[1])
    scores = _scores_of_predictions(model, read, found, names)
    if options.plot is not None and read.targets is not None:
        _draw(read.targets, found, names, options)
    deviations = None if spreads is None else np.reshape(spreads, found.shape)
    content = {"targets": names, "answers": found.tolist()}
    content |= {} if deviations is None else {"spreads": deviations.tolist()}
    rows = found if deviations is None else np.hstack([found, deviations])
    lines = ("\t".join(repr(float(number)) for number in row) for row in rows)
    show = partial(show_regression, scores=scores or {}, of=str(data))
    print_predictions(run, options, Predictions(content, lines, scores, show))


def _asked(run: Path, data: Path, options: Asked) -> Measured:
    """Read the data in the columns of the fit."""
    known, given = _known(run), columns_of_fit(run, "regress", data)
    columns = Columns(
        tuple(map(as_column, options.target)) if options.target else known.get("target", ()),
        tuple(map(as_column, options.features)) if options.features else known.get("features", ()),
        known.get("text") if options.text is None else as_column(options.text),
        known.get("series", False),
    )
    format = array_format(data)
    by = options.by or (given.get("by") if format and format.may_hold_images else None)
    return read_measured(data, DEFAULTS if format else columns, options.delimiter, by, need_targets=False)


def read_as_fitted(run: Path, data: Path) -> tuple[Any, Any]:
    """Read sequences, and their numbers if there are any, as the fit of a run did."""
    read = _asked(run, data, Asked())
    return read.sequences, read.targets


def _names(run: Path, count: int) -> list[str]:
    names = _known(run).get("names") or [
        f"target {i}" if count > 1 else "target" for i in range(1, count + 1)
    ]
    if len(names) != count:
        raise FileError(
            f"{run / run_folder.CONFIG}: damaged or manipulated: columns.names has {len(names)} entries; expected {count}"
        )
    return names


def _known(run: Path) -> Known:
    content = read_as(Config, run_folder.read_config(run, "regress"), run / run_folder.CONFIG)
    return content.get("columns", Known())


def _scores_of_predictions(
    model: SequenceRegressor, read: Measured, found: Any, names: list[str]
) -> dict[str, Any] | None:
    if read.targets is None:
        return None
    if read.targets.shape != found.shape:
        raise InputError(
            f"{read.name}: {read.targets.shape[1]} numbers in every row; the run predicts {found.shape[1]}: {', '.join(names)}"
        )
    assert isinstance(model.target_coder_, ValueEncoder)
    mean = np.broadcast_to(model.target_coder_.mean, found.shape)
    return score_numbers(read.targets, {model.choice_.name: found, "mean": mean}, names)


def _read(data: Path, options: Options) -> Read:
    columns = Columns(
        tuple(map(as_column, options.target or ())),
        tuple(map(as_column, options.features or ())),
        as_column(options.text),
        options.series,
    )
    learned, judged = _parts(data, options, columns)
    assert learned.targets is not None
    refuse_constant(learned.targets, [f"{learned.name}: the target {name!r}" for name in learned.names])
    arguments: dict[str, Any] = {"inputs": _inputs(learned)}
    if learned.kind == "vectors":
        arguments["bidirectional"] = False  # one step has no two directions
    kept = learned.columns._asdict() | {"names": list(learned.names)}
    parts = None if judged is None else Parts(learned, judged)
    return Read(
        learned.sequences, learned.targets, parts, _described(learned, judged), arguments, {KEPT: kept}
    )


def _parts(data: Path, options: Options, columns: Columns) -> tuple[Measured, Measured | None]:
    """Read the training rows and the held-out rows."""
    whole = read_measured(data, columns, options.delimiter, options.by)
    note_empty(whole.name, whole.sequences, fit=True)
    if options.test is None:
        rows, aside = split_random(len(whole), options.hold_out, options.seed)
        return whole.part(rows), whole.part(aside) if aside else None
    judged = read_measured(options.test, whole.columns, options.delimiter, options.by)
    note_empty(judged.name, judged.sequences)
    assert judged.targets is not None and whole.targets is not None
    if judged.targets.shape[1] != whole.targets.shape[1]:
        raise InputError(
            f"{judged.name}: {judged.targets.shape[1]} numbers in every row; {whole.name} has {whole.targets.shape[1]}"
        )
    return whole, judged


def _inputs(data: Measured) -> str:
    first = data.sequences[0]
    if isinstance(first, str):
        return "tokens"
    return "ids" if np.ndim(first) == 1 and first.dtype.kind in "iu" else "values"


def _described(learned: Measured, judged: Measured | None) -> Text:
    lengths = [len(each) for each in learned.sequences]
    what = f"sequences of {min(lengths)} to {max(lengths)} steps"
    if learned.kind == "vectors":
        what = f"vectors of {learned.sequences.shape[2]} numbers ({', '.join(map(str, learned.columns.features))})"
    left = f"\n  left out, no numbers: {', '.join(learned.left_out)}" if learned.left_out else ""
    return title(
        learned.name,
        f": {len(learned):,} {what} for training{held_out(judged)}; to predict: {', '.join(learned.names)}{left}",
    )


def _draw(truth: Real, found: Real, names: Sequence[str], shown: OutputOptions) -> None:
    assert shown.plot is not None
    with output(shown.plot, force=shown.force) as unfinished:
        draw_predictions(truth, found, names, unfinished)


def _evaluate(
    console: Console, model: SequenceRegressor, parts: Parts | None, options: Options
) -> dict[str, Any]:
    if parts is None:
        return {"scores": None}
    learned, judged = parts
    assert learned.targets is not None and judged.targets is not None
    by_model = {} if model.std else model.predict_by_model(judged.sequences)
    by_model = {
        name: np.reshape(found, judged.targets.shape)
        for name, found in by_model.items()
        if name != MeanTarget.name or name == model.choice_.name
    }
    found = by_model[model.choice_.name] if by_model else model.predict(judged.sequences)
    size = None if isinstance(model.coder_, ValueEncoder) else model.coder_.size
    x, asked = (model.coder_.encode(each.sequences) for each in (learned, judged))
    ridge = Ridge.fit(features(x, size), learned.targets)
    answers = {model.choice_.name: found} | by_model
    answers |= {
        "mean": np.broadcast_to(learned.targets.mean(axis=0), found.shape),
        "ridge": ridge.predict(features(asked, size, like=x)),
    }
    scores = score_numbers(judged.targets, answers, learned.names)
    console.print()
    show_regression(console, scores, "held out")
    show_models(console, model.choice_, ASIDE)
    if options.plot is not None:
        _draw(judged.targets, found, learned.names, options)
    return {"scores": scores, "compared": models_json(model.choice_, {})}


FIT = FitCommand("regress", SequenceRegressor, Options, _read, _evaluate)
