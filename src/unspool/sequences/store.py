"""Estimators on disk: written into a run (`unspool.sequences.kept`) and read from one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from unspool import checkpoint
from unspool.data.vocab import Vocab
from unspool.errors import FileError, InputError
from unspool.parameters import Parameters
from unspool.sequences.config import FitConfig, SequenceConfig
from unspool.sequences.estimator import Estimator, not_fitted
from unspool.sequences.estimators import SequenceClassifier, SequenceRegressor, SequenceTagger
from unspool.sequences.inputs import coder_from_json
from unspool.sequences.kept import ARRAYS, TARGET_VOCAB, write
from unspool.sequences.layout import shapes_of_network
from unspool.sequences.network import Network
from unspool.sequences.writers import SequenceGenerator, SequenceTranslator

ESTIMATORS = (SequenceClassifier, SequenceRegressor, SequenceTagger, SequenceTranslator, SequenceGenerator)
KINDS: dict[str, type[Estimator]] = {each.run_kind: each for each in ESTIMATORS}


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
    arrays, about = checkpoint.read_arrays(run / checkpoint.MODEL)
    estimator.n_iter_ = about["step"]
    if "provenance" in content:
        estimator.provenance_ = content["provenance"]
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
