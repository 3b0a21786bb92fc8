"""The kinds of runs: how each is loaded, and which command makes and resumes it; and `load`.

A new kind is a class with `load` and one line here. Commands ask this registry: `resume`, `show`, `runs`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from unspool.errors import InputError
from unspool.storage import run_folder
from unspool.tasks.classify import SequenceClassifier
from unspool.tasks.forecast.run import load_forecasts
from unspool.tasks.generate_from import SequenceGenerator
from unspool.tasks.language.estimator import LanguageModel
from unspool.tasks.regress import SequenceRegressor
from unspool.tasks.tag import SequenceTagger
from unspool.tasks.translate import SequenceTranslator


class RunKind(NamedTuple):
    """One kind of runs."""

    load: Callable[[str | Path], Any]
    command: str
    """The command that makes such runs, resumes them and knows what they are used for."""


KINDS: dict[str, RunKind] = {
    "language": RunKind(LanguageModel.load, "train"),
    "classify": RunKind(SequenceClassifier.load, "classify"),
    "regress": RunKind(SequenceRegressor.load, "regress"),
    "tag": RunKind(SequenceTagger.load, "tag"),
    "translate": RunKind(SequenceTranslator.load, "translate"),
    "generate-from": RunKind(SequenceGenerator.load, "generate-from"),
    "forecast": RunKind(load_forecasts, "forecast"),
}


def kind_of(path: str | Path) -> RunKind:
    """Return the kind of a run; raise where there is no such kind."""
    kind = run_folder.read_kind(path)
    if kind not in KINDS:
        raise InputError(f"{path}: a run of the kind {kind!r}; expected one of {', '.join(KINDS)}")
    return KINDS[kind]


def load(path: str | Path) -> Any:
    """Read what a run has learned: a LanguageModel, an estimator of sequences, a Forecaster, or a ForecastRun of many."""
    return kind_of(path).load(path)
