"""A declaration gives fields their check, help and name in files; estimators share its conventions."""

import dataclasses
import json
from dataclasses import dataclass

import pytest

from unspool.cli.commands import classify, forecast, generate_from, regress, tag, train, translate
from unspool.cli.options import DECLARED
from unspool.errors import InputError
from unspool.model import options as network
from unspool.model.config import ModelConfig
from unspool.model.sequence_config import SequenceConfig
from unspool.options import build, check_fields, check_values, declared, option_of, to_json
from unspool.storage.schema import read_as
from unspool.tasks import SequenceClassifier, SequenceRegressor, SequenceTagger, SequenceTranslator
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.language.estimator import LanguageModel
from unspool.tasks.registry import load
from unspool.training import options as training
from unspool.training.events import RunConfig
from unspool.training.recipe import FitConfig, Recipe


@declared(network, training, keys={"batch_size": "B"})
@dataclass(frozen=True)
class Small:
    hidden: int = 0
    batch_size: int = 4
    recompute: str = "none"
    steps: int | None = None
    note: str = ""

    def __post_init__(self):
        check_fields(self)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hidden": -1}, "hidden is -1; expected a whole number of 1 or more"),
        ({"hidden": False}, "hidden is False; expected a whole number"),
        ({"batch_size": None}, "batch_size is None; expected a whole number"),
        ({"recompute": "full"}, "recompute is 'full'; expected one of none, sqrt"),
        ({"steps": 0}, "steps is 0; expected a whole number of 1 or more"),
    ],
)
def test_a_field_is_checked_as_declared_and_its_default_always_passes(wrong, message):
    assert Small() == Small(hidden=0, steps=None)
    with pytest.raises(InputError, match=message):
        Small(**wrong)


def test_names_and_values_in_files_are_those_of_before():
    content = to_json(Small(hidden=3, recompute="none"))
    assert content == {"hidden": 3, "B": 4, "memory": "full", "steps": None, "note": ""}
    assert read_as(Small, json.loads(json.dumps(content)), "x.json") == Small(hidden=3)
    assert RunConfig(given={"B": 2, "window": 5}).to_json()["given"] == {"B": 2, "tau": 5}
    assert {"B", "tau"} <= set(to_json(Recipe())) and {"B", "warmup"} <= set(to_json(FitConfig()))


def test_an_estimator_is_saved_under_the_former_names(tmp_path):
    model = SequenceClassifier(hidden=2, steps=1, chrono_steps=9, prior_correction=0.5)
    model.fit(["ab", "ba"] * 4, list("xy") * 4, run=tmp_path / "run")
    content = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (content["arguments"]["remember"], content["arguments"]["balance"]) == (9, 0.5)
    assert content["network"]["remember"] == 9
    assert load(tmp_path / "run").get_params() == model.get_params()


def test_a_config_is_built_from_the_attributes_of_the_same_names():
    sizes = {"shape": "many-to-one", "head": "classes", "inputs": 3, "outputs": 2}
    made = build(SequenceConfig, SequenceClassifier(hidden=7, pool="mean"), **sizes)
    assert (made.hidden, made.pool, made.inputs) == (7, "mean", 3)


KINDS = [
    *(LanguageModel, SequenceClassifier, SequenceRegressor, SequenceTagger, SequenceTranslator, Forecaster),
    *(
        ModelConfig,
        SequenceConfig,
        FitConfig,
        Recipe,
        RunConfig,
        train.Options,
        train.Reading,
        classify.Options,
    ),
    *(regress.Options, tag.Options, translate.Options, generate_from.Options, forecast.Options),
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_every_hyper_parameter_has_its_declaration_and_a_default_that_passes(kind):
    for field in dataclasses.fields(kind):
        option = option_of(field)
        if field.name in DECLARED and field.name not in ("inputs", "pattern", "bidirectional", "tokens"):
            assert option is not None, field.name
            assert option.name == field.name
        if option is not None:
            assert field.metadata["help"]
            if field.default is not dataclasses.MISSING:
                check_values(kind, {field.name: field.default})
