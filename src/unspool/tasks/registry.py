"""The kinds of runs, and `load`: read the object of any run. A new kind is a class with `load` and one line here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from unspool.errors import InputError
from unspool.storage import run_folder
from unspool.tasks.classify import SequenceClassifier
from unspool.tasks.forecast.run import load_forecasts
from unspool.tasks.generate_from import SequenceGenerator
from unspool.tasks.language.estimator import LanguageModel
from unspool.tasks.regress import SequenceRegressor
from unspool.tasks.tag import SequenceTagger
from unspool.tasks.translate import SequenceTranslator

KINDS: dict[str, Callable[[str | Path], Any]] = {
    "language": LanguageModel.load,
    "classify": SequenceClassifier.load,
    "regress": SequenceRegressor.load,
    "tag": SequenceTagger.load,
    "translate": SequenceTranslator.load,
    "generate-from": SequenceGenerator.load,
    "forecast": load_forecasts,
}


def load(path: str | Path) -> Any:
    """Read what a run has learned: a LanguageModel, an estimator of sequences, a Forecaster, or a ForecastRun of many."""
    kind = run_folder.read_kind(path)
    if kind not in KINDS:
        raise InputError(f"{path}: a run of the kind {kind!r}; expected one of {', '.join(KINDS)}")
    return KINDS[kind](path)
