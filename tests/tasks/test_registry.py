"""Every kind of run is written, loaded by `unspool.load`, and every task can name its optimiser and schedule."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unspool
from unspool.errors import InputError
from unspool.optimisers import OPTIMISERS
from unspool.optimisers.schedules import SCHEDULES
from unspool.storage import run_folder
from unspool.tasks import (
    SequenceClassifier,
    SequenceGenerator,
    SequenceRegressor,
    SequenceTagger,
    SequenceTranslator,
)
from unspool.tasks.forecast import Forecaster, ForecastRun
from unspool.tasks.language.estimator import LanguageModel
from unspool.tasks.registry import KINDS

SMALL = {"hidden": 4, "steps": 4}
TEXT = "she sells sea shells by the sea shore\n" * 30
CHOSEN = {"split": (0.9, 0.1, 0.0), "validation_tokens": 114}
"""The arguments of a language model that its run has chosen."""
SERIES = 10 + np.sin(np.arange(60) * np.pi / 3)


def fitted(kind: str, **more: Any) -> Any:
    """Return a small fitted model of a kind."""
    words, upper = ["ab", "ba", "aab", "bba"] * 2, ["AB", "BA", "AAB", "BBA"] * 2
    made: dict[str, tuple[Any, ...]] = {
        "language": (LanguageModel(**SMALL, batch_size=4, window=8, **more), TEXT),
        "classify": (SequenceClassifier(**SMALL, **more), words, [0, 1] * 4),
        "regress": (SequenceRegressor(**SMALL, **more), words, np.arange(8.0)),
        "tag": (SequenceTagger(**SMALL, **more), words, [list(word) for word in words]),
        "translate": (SequenceTranslator(**SMALL, **more), words, upper),
        "generate-from": (SequenceGenerator(**SMALL, **more), ["x", "y"] * 4, upper),
        "forecast": (Forecaster(horizon=2, members=1, **SMALL, **more), SERIES),
    }
    model, *data = made[kind]
    return model.fit(*data)


def parameters(model: Any) -> np.ndarray:
    """Return all parameters of a fitted model."""
    if isinstance(model, LanguageModel):
        return model.text_model_.model.parameters.flat
    return (model.fitted_.networks[0] if isinstance(model, Forecaster) else model.network_).parameters.flat


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_is_loaded_as_it_was(kind: str, tmp_path: Path) -> None:
    model = fitted(kind, optimiser="sgd", schedule="constant")
    model.save(tmp_path / "run")
    assert run_folder.read_kind(tmp_path / "run") == kind
    chosen = CHOSEN if kind == "language" else {}
    for again in (unspool.load(tmp_path / "run"), type(model).load(tmp_path / "run")):
        assert type(again) is type(model)
        assert np.array_equal(parameters(again), parameters(model))
        assert again.get_params() == model.get_params() | chosen


@pytest.mark.parametrize("kind", KINDS)
def test_every_task_trains_with_every_optimiser_and_schedule(kind: str) -> None:
    usual = parameters(fitted(kind))
    assert np.array_equal(parameters(fitted(kind, optimiser="adam", schedule="cosine")), usual)
    for name in OPTIMISERS.keys() - {"adam"}:
        assert not np.array_equal(parameters(fitted(kind, optimiser=name)), usual)
    for name in SCHEDULES.keys() - {"cosine"}:
        assert not np.array_equal(parameters(fitted(kind, schedule=name)), usual)
    with pytest.raises(InputError, match="optimiser"):
        fitted(kind, optimiser="lion")
    with pytest.raises(InputError, match="schedule"):
        fitted(kind, schedule="zigzag")


def test_a_run_of_several_columns_is_loaded_whole(tmp_path: Path) -> None:
    model = fitted("forecast")
    ForecastRun({"a": model, "b": model}).save(tmp_path / "run")
    assert list(unspool.load(tmp_path / "run").forecasters) == ["a", "b"]


def test_a_run_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with run_folder.new_run(tmp_path / "run") as folder:
        run_folder.write_config(folder, "dance", {})
    with pytest.raises(InputError, match=r"'dance'.*expected one of language"):
        unspool.load(tmp_path / "run")


def test_a_language_model_that_was_trained_into_a_run_keeps_its_arguments(tmp_path: Path) -> None:
    model = LanguageModel(**SMALL, batch_size=4, window=8, seed=3, out=tmp_path / "run").fit(TEXT)
    again = unspool.load(tmp_path / "run")
    assert again.get_params() == model.get_params() | {"out": None} | CHOSEN
    assert np.array_equal(parameters(again), parameters(model))
