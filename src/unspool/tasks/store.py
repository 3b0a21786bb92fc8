"""Estimators on disk: written into a run (`unspool.training.fit_checkpoint`) and read from one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from unspool.data.encoders import Encoder, Fields, TokenFields, encoder_from_fields
from unspool.data.tokens.vocab import Vocab
from unspool.errors import FileError, InputError
from unspool.model.sequence_config import SequenceConfig
from unspool.storage import run_folder
from unspool.storage.schema import read_as
from unspool.tasks.estimator import Estimator, not_fitted
from unspool.tasks.predictors import SequenceClassifier, SequenceRegressor, SequenceTagger
from unspool.tasks.writers import SequenceGenerator, SequenceTranslator
from unspool.training.fit_checkpoint import ARRAYS, TARGET_VOCAB, check_fits, read_network, write
from unspool.training.recipe import FitConfig

ESTIMATORS = (SequenceClassifier, SequenceRegressor, SequenceTagger, SequenceTranslator, SequenceGenerator)
KINDS: dict[str, type[Estimator]] = {each.run_kind: each for each in ESTIMATORS}
LABEL_BYTES = 1 << 26
"""The largest array of labels that is read."""


class Labels(TypedDict):
    """An array of labels in a config."""

    dtype: str
    values: list[str | bool | int | float]


class Learned(TypedDict, total=False):
    """What the training part taught, besides the coders."""

    single_: bool
    longest_: int
    n_features_in_: int
    n_iter_: int
    classes_: dict[str, Any]
    class_prior_: dict[str, Any]


class Config(TypedDict):
    """The fields of a run's config that its estimator is used with."""

    kind: str
    arguments: dict[str, Any]
    learned: Learned
    input: Fields
    target: NotRequired[Fields]
    network: SequenceConfig
    fit: FitConfig
    provenance: NotRequired[dict[str, Any]]


def save(estimator: Estimator, path: str | Path, **more: Any) -> None:
    """Write a fitted estimator as a new run; `more` goes into the config as it is.

    >>> import tempfile
    >>> model = SequenceClassifier(hidden=4, epochs=1).fit(["aa", "ab"], ["x", "y"])
    >>> with tempfile.TemporaryDirectory() as place:
    ...     save(model, Path(place) / "run")
    ...     again = load(Path(place) / "run")
    >>> again, bool((again.predict_proba(["ba"]) == model.predict_proba(["ba"])).all())
    (SequenceClassifier(hidden=4, epochs=1), True)
    """
    if not hasattr(estimator, "network_"):
        raise not_fitted(f"this {type(estimator).__name__} is not fitted yet: there is nothing to save")
    write(estimator, path, more)


def load(path: str | Path, kind: str | None = None) -> Any:
    """Read an estimator from a run; with `kind`, refuse one of another."""
    run = run_folder.check_run(path)
    found = run_folder.read_kind(run)
    if found not in KINDS and kind is None:
        raise InputError(f"{path}: a run of the kind {found!r}; expected one of {', '.join(KINDS)}")
    content = read_as(Config, run_folder.read_config(run, kind or found), run / run_folder.CONFIG)
    estimator = read_as(KINDS[content["kind"]], content["arguments"], run / run_folder.CONFIG, "arguments")
    for name, value in content["learned"].items():
        learned = _labels(value, run / run_folder.CONFIG, name) if name in ARRAYS else value
        setattr(estimator, name, learned)
    estimator.coder_ = _coder(content["input"], run, run_folder.VOCAB)
    if "target" in content:
        target = _coder(content["target"], run, TARGET_VOCAB)
        estimator.target_coder_ = target  # type: ignore[attr-defined]
    check_fits(estimator, content["network"], run / run_folder.CONFIG)
    estimator.network_, estimator.n_iter_ = read_network(content["network"], run)
    estimator.fit_config_ = content["fit"]
    if (told := content.get("provenance")) is not None:
        estimator.provenance_ = told
    return estimator


def _coder(fields: Fields, run: Path, vocab: str) -> Encoder:
    """Make a coder from what a run holds; one of tokens has a vocabulary in a file of its own."""
    of_tokens = isinstance(fields, TokenFields)
    if of_tokens and not (run / vocab).exists():
        raise FileError(f"{run / vocab}: the vocabulary is missing; restore it from a copy")
    try:
        return encoder_from_fields(fields, Vocab.load(run / vocab) if of_tokens else None)
    except InputError as error:
        raise FileError(f"{run / run_folder.CONFIG}: damaged or crafted: {error}") from error


def _labels(value: Any, path: Path, name: str) -> Any:
    """Make an array of labels or shares from plain values."""
    fields = read_as(Labels, value, path, f"learned.{name}")
    try:
        dtype = np.dtype(fields["dtype"])
        if dtype.kind not in "biufUO" or dtype.itemsize * len(fields["values"]) > LABEL_BYTES:
            raise TypeError(f"dtype {fields['dtype']!r}")
        return np.array(fields["values"], dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{path}: damaged or crafted: learned.{name}: {error}") from error
