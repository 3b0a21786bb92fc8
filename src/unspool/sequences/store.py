"""Estimators on disk: the same folder as a language model's run, loadable at any moment.

    RUN/config.json           arguments, the network's sizes, what the training part taught
        vocab.json            the vocabulary of the input, where it is tokens
        vocab.target.json     the vocabulary of what is written, where there is one
        model.safetensors     the parameters under the textbook's letters
        log.jsonl             what happened, a line each

The folder gets its name when it is complete, with the untrained network in it; `keep` renews the parameters.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from unspool import checkpoint
from unspool.data.vocab import Vocab
from unspool.errors import FileError, InputError
from unspool.journal import Journal
from unspool.parameters import Parameters
from unspool.sequences.config import FitConfig, SequenceConfig
from unspool.sequences.estimator import Estimator, not_fitted
from unspool.sequences.estimators import SequenceClassifier, SequenceRegressor, SequenceTagger
from unspool.sequences.fit import Report
from unspool.sequences.inputs import Coder, TokenCoder, coder_from_json
from unspool.sequences.layout import shapes_of_network
from unspool.sequences.network import Network
from unspool.sequences.writers import SequenceGenerator, SequenceTranslator

KINDS: dict[str, type[Estimator]] = {
    "classify": SequenceClassifier,
    "regress": SequenceRegressor,
    "tag": SequenceTagger,
    "translate": SequenceTranslator,
    "generate-from": SequenceGenerator,
}
TARGET_VOCAB = "vocab.target.json"
LEARNED = ("single_", "longest_", "n_features_in_", "n_iter_")
ARRAYS = ("classes_", "class_prior_")


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
    with checkpoint.new_run(path) as run:
        checkpoint.write_config(run, kind_of(estimator), _described(estimator) | more)
        for name, coder in _coders(estimator).items():
            if isinstance(coder, TokenCoder):
                coder.vocab.save(run / name)
        keep(estimator, run)
        with Journal(run / checkpoint.LOG) as journal:
            journal.add({"event": "saved", "step": getattr(estimator, "n_iter_", 0)})


def keep(estimator: Estimator, run: str | Path) -> None:
    """Write the parameters as they are now into a run."""
    about = {"network": estimator.network_.config.to_json(), "step": getattr(estimator, "n_iter_", 0)}
    checkpoint.write_arrays(Path(run) / checkpoint.MODEL, dict(estimator.network_.parameters), about)


def log(run: str | Path, report: Report) -> None:
    """Add what a report says to the run's log."""
    with Journal(Path(run) / checkpoint.LOG) as journal:
        journal.add(
            {
                "step": report.step,
                "train": report.loss,
                "seconds": report.seconds,
                "valid": report.valid,
                "best": report.best,
            }
        )


def kind_of(estimator: Estimator) -> str:
    """Return what the config calls this estimator."""
    return next(kind for kind, cls in KINDS.items() if cls is type(estimator))


def _described(estimator: Estimator) -> dict[str, Any]:
    content: dict[str, Any] = {
        "arguments": estimator.get_params(),
        "network": estimator.network_.config.to_json(),
        "fit": estimator.fit_config_.to_json(),
        "input": estimator.coder_.to_json(),
    }
    if hasattr(estimator, "target_coder_"):
        content["target"] = estimator.target_coder_.to_json()
    content["learned"] = {name: getattr(estimator, name) for name in LEARNED if hasattr(estimator, name)}
    for name in ARRAYS:
        if hasattr(estimator, name):
            array = getattr(estimator, name)
            content["learned"][name] = {"dtype": array.dtype.str, "values": array.tolist()}
    return content


def _coders(estimator: Estimator) -> dict[str, Coder]:
    coders: dict[str, Coder] = {checkpoint.VOCAB: estimator.coder_}
    if hasattr(estimator, "target_coder_"):
        coders[TARGET_VOCAB] = estimator.target_coder_
    return coders


def load(path: str | Path, kind: str | None = None) -> Any:
    """Read an estimator from a run; with `kind`, refuse one of another."""
    run = checkpoint.check_run(path)
    found = checkpoint.read_json(run / checkpoint.CONFIG).get("kind")
    if found not in KINDS and kind is None:
        raise InputError(f"{path}: a run of the kind {found!r}; expected one of {', '.join(KINDS)}")
    content = checkpoint.read_config(run, kind or str(found))
    estimator = KINDS[content["kind"]](**content["arguments"])
    for name, value in content["learned"].items():
        learned = np.array(value["values"], np.dtype(value["dtype"])) if name in ARRAYS else value
        setattr(estimator, name, learned)
    estimator.coder_ = coder_from_json(content["input"], _vocab(run / checkpoint.VOCAB, content["input"]))
    if "target" in content:
        target = coder_from_json(content["target"], _vocab(run / TARGET_VOCAB, content["target"]))
        estimator.target_coder_ = target  # type: ignore[attr-defined]
    config = SequenceConfig.from_json(content["network"])
    arrays, _ = checkpoint.read_arrays(run / checkpoint.MODEL)
    parameters = Parameters(shapes_of_network(config))
    checkpoint.fill(parameters, arrays, run / checkpoint.MODEL)
    estimator.network_, estimator.fit_config_ = Network(config, parameters), FitConfig(**content["fit"])
    return estimator


def _vocab(path: Path, coder: dict[str, Any]) -> Vocab | None:
    if coder["kind"] != "tokens":
        return None
    if not path.exists():
        raise FileError(f"{path}: the vocabulary is missing; restore it from a copy")
    return Vocab.load(path)
