"""A config refuses contradictions when it is made, and survives a trip through JSON."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.cells import CELLS
from unspool.errors import InputError
from unspool.model.config import ModelConfig

GOOD = {"inputs": 5, "outputs": 5}


@pytest.mark.parametrize(
    "wrong",
    [
        {"inputs": 0}, {"outputs": 0}, {"hidden": 0}, {"layers": 0}, {"hidden": -1}, {"hidden": 2.0},
        {"hidden": True}, {"hidden": "8"}, {"hidden": None}, {"embedding": -1}, {"cell": "rnn"},
        {"cell": ["lstm"]}, {"cell": None}, {"activation": "softplus", "cell": "elman"},
        {"activation": "relu", "cell": "gru"},
        {"dropout": 1.0}, {"dropout": -0.1}, {"dropout": float("nan")}, {"dropout": "a"}, {"dropout": None},
        {"recurrent_dropout": 1.5}, {"dense": True, "embedding": 3}, {"dense": True, "tied": True},
        {"tied": True}, {"tied": True, "embedding": 64}, {"tied": True, "embedding": 128, "outputs": 6},
        {"tied": True, "embedding": 128, "bidirectional": True}, {"tied": "yes"}, {"dense": 1},
        {"learn_h0": None},
    ],
    ids=str,
)  # fmt: skip
def test_a_contradiction_is_refused_when_it_is_made(wrong):
    with pytest.raises(InputError) as caught:
        ModelConfig(**(GOOD | wrong))
    assert any(name in str(caught.value) for name in wrong)


def test_a_config_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ModelConfig(**GOOD).hidden = 5


@given(
    st.builds(
        ModelConfig,
        inputs=st.integers(1, 5000),
        outputs=st.integers(1, 9),
        cell=st.sampled_from(list(CELLS)),
        hidden=st.integers(1, 99),
        layers=st.integers(1, 4),
        bidirectional=st.booleans(),
        embedding=st.integers(0, 9),
        dropout=st.floats(0, 0.99),
        learn_h0=st.booleans(),
    )
)
def test_a_config_survives_a_trip_through_json(config):
    assert ModelConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    assert config.width == config.hidden * config.directions
    assert config.uses_input_table == (config.embedding == 0 or config.inputs <= 1024)
    assert config.input_width(0) == (config.embedding or config.inputs)


def test_an_unknown_or_missing_field_is_refused():
    with pytest.raises(InputError, match="hiden"):
        ModelConfig.from_json(GOOD | {"hiden": 5})
    with pytest.raises(InputError, match="outputs"):
        ModelConfig.from_json({"inputs": 5})


def test_every_field_says_what_it_is():
    source = __import__("inspect").getsource(ModelConfig)
    for field in dataclasses.fields(ModelConfig):
        after = source.split(f"    {field.name}: ", 1)[1].split("\n")[1]
        assert field.metadata.get("help") or after.strip().startswith('"""'), field.name


def test_integers_of_numpy_become_pythons_since_json_cannot_hold_them():
    assert json.dumps(ModelConfig(inputs=np.int64(5), outputs=np.uint8(5)).to_json())
