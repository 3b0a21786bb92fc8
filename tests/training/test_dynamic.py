"""Learning while reading: score first, then learn; the same bits however the text is fed, on every kernel, after a save."""

import copy
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import CELLS, config_of
from unspool.data.batches.text_windows import Batch
from unspool.errors import Diverged, FileError, InputError
from unspool.evaluation.language import log_prob
from unspool.kernels import native
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.optimisers.rmsprop import RMSprop
from unspool.training.dynamic import Learning, LearningReader, LearningScorer
from unspool.training.loop import train

KINDS = ["one-hot", "embedded", "tied", "tied and gathered"]
LEARNING = Learning(learn_rate=0.01, learn_segment=8)


def made(cell="gru", kind="one-hot", **more) -> Model:
    return Model.initialise(config_of(cell, kind, 12, **more), seed=3)


def text(model: Model, length: int = 61) -> np.ndarray:
    return np.random.default_rng(length).integers(model.config.inputs, size=length).astype(np.int32)


def scored(model: Model, ids: np.ndarray, learning: Learning = LEARNING) -> np.ndarray:
    return LearningScorer(model, learning).log_prob(ids)


def by_tokens(reader: LearningReader, ids: np.ndarray) -> list[np.ndarray]:
    """The logits after every token but the last."""
    found = []
    for token in ids[:-1].tolist():
        reader.read(token)
        found.append(reader.logits())
    return found


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_future_does_not_change_the_past(cell: str, kind: str) -> None:
    model = made(cell, kind)
    ids = text(model)
    whole = scored(model, ids)
    assert (whole[8:] != log_prob(model, ids)[8:]).any()
    for cut in (1, 7, 8, 9, 17, 40):
        other = ids.copy()
        other[cut + 1 :] = (other[cut + 1 :] + 1) % model.config.inputs
        np.testing.assert_array_equal(scored(model, other)[:cut], whole[:cut])


def test_the_first_segment_is_scored_by_the_model_as_it_is() -> None:
    model = made()
    ids = text(model)
    np.testing.assert_array_equal(scored(model, ids)[:8], log_prob(model, ids)[:8])


@pytest.mark.parametrize("cell", CELLS)
def test_it_learns_what_training_on_the_same_windows_learns(cell: str) -> None:
    model = made(cell, layers=2)
    ids, trained = text(model), copy.deepcopy(model)
    windows = [Batch(ids[at : at + 8, None], ids[at + 1 : at + 9, None], False) for at in range(0, 56, 8)]
    for _ in train(trained, windows, RMSprop(learning_rate=0.01), state=model.initial_state(1)):
        pass
    reader, before = LearningReader(model, LEARNING), model.parameters.flat.copy()
    reader.log_prob(ids)
    assert reader.updates == 7
    np.testing.assert_array_equal(reader.model.parameters.flat, trained.parameters.flat)
    np.testing.assert_array_equal(model.parameters.flat, before)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(0, 61), max_size=8), segment=st.integers(1, 20))
def test_pieces_of_any_size_give_the_same_bits(precision, cuts, segment) -> None:
    model = made(precision=precision)
    ids, learning = text(model), Learning(0.01, segment)
    reader = LearningReader(model, learning)
    pieces = [reader.log_prob(piece) for piece in np.split(ids, sorted(cuts))]
    np.testing.assert_array_equal(np.concatenate(pieces), scored(model, ids, learning))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_token_by_token_sees_the_logits_of_whole_segments(cell: str, kind: str, precision) -> None:
    model = made(cell, kind, layers=2, precision=precision)
    ids = text(model)
    whole = np.concatenate([window.logits() for window in LearningReader(model, LEARNING).windows(ids)])
    np.testing.assert_array_equal(by_tokens(LearningReader(model, LEARNING), ids), whole)
    mixed = LearningReader(model, LEARNING)
    mixed.log_prob(ids[:21])
    mixed.read(int(ids[21]))
    np.testing.assert_array_equal(by_tokens(mixed, ids[22:]), whole[22:])


@pytest.mark.parametrize("feedback", ["token", "logits"])
def test_outputs_that_are_fed_back_learn_the_same_bits_token_by_token(feedback: str) -> None:
    config = ModelConfig(cell="elman", inputs=6, outputs=6, hidden=9, pattern="output", feedback=feedback)
    model = Model.initialise(config, seed=3)
    ids = text(model)
    whole = np.concatenate([window.logits() for window in LearningReader(model, LEARNING).windows(ids)])
    np.testing.assert_array_equal(by_tokens(LearningReader(model, LEARNING), ids), whole)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_threads_and_instruction_sets_learn_the_same_bits(precision) -> None:
    model = made(precision=precision)
    ids, before = text(model), native.kernel_info()
    expected = scored(model, ids)
    try:
        for isa, threads in product(before["available"], (1, 2)):
            native.choose_isa(isa)
            native.set_threads(threads)
            np.testing.assert_array_equal(scored(model, ids), expected)
    finally:
        native.choose_isa(before["isa"])
        native.set_threads(before["threads"])


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("at", [0, 1, 8, 9, 30])
@pytest.mark.parametrize("optimiser", ["adam", "rmsprop", "sgd"])
def test_a_saved_reader_goes_on_to_the_same_bits(tmp_path, cell: str, at: int, optimiser: str) -> None:
    model = made(cell)
    ids, learning = text(model), Learning(0.01, 8, optimiser)
    reader = LearningReader(model, learning)
    first = reader.log_prob(ids[:at])
    reader.save(tmp_path / "reader")
    then = LearningReader.load(tmp_path / "reader", model).log_prob(ids[at:])
    np.testing.assert_array_equal(np.concatenate([first, then]), scored(model, ids, learning))
    with pytest.raises(FileError, match="another model"):
        LearningReader.load(tmp_path / "reader", made(cell, "embedded"))


def test_a_stream_of_the_learned_model_does_not_learn_any_further() -> None:
    model = made()
    ids, reader = text(model), LearningReader(made(), LEARNING)
    reader.log_prob(ids)
    stream, learned = reader.stream(), reader.model.parameters.flat.copy()
    stream.read(int(ids[-1]))
    np.testing.assert_array_equal(stream.logits(), reader.logits())
    for index in range(20):
        stream.advance(1, seed=1, index=index)
    np.testing.assert_array_equal(reader.model.parameters.flat, learned)


def test_drawing_the_next_token_reads_it_as_read_does() -> None:
    model = made()
    ids = text(model)
    one, two = LearningReader(model, LEARNING), LearningReader(model, LEARNING)
    for index, token in enumerate(ids.tolist()):
        assert 0 <= one.advance(token, seed=1, index=index) < model.config.outputs
        two.read(token)
        np.testing.assert_array_equal(one.logits(), two.logits())


def test_what_cannot_be_read_is_refused() -> None:
    model = made()
    reader = LearningReader(model, LEARNING)
    with pytest.raises(InputError, match="no token has been read"):
        reader.logits()
    with pytest.raises(InputError, match="each from 0 to"):
        reader.log_prob(np.array([0, 10**6], np.int32))
    with pytest.raises(InputError, match="each from 0 to"):
        reader.read(-1)
    with pytest.raises(InputError, match="given"):
        LearningScorer(model).log_prob(text(model), given=0)
    for wrong in ({"learn_rate": 0.0}, {"learn_segment": 0}, {"optimiser": "magic"}):
        with pytest.raises(InputError):
            Learning(**wrong)
    with pytest.raises(InputError, match="one direction"):
        LearningReader(Model.initialise(ModelConfig(inputs=3, outputs=3, bidirectional=True), seed=1))


def test_a_rate_that_diverges_says_so() -> None:
    model = made("elman", activation="relu", layers=2)
    with pytest.raises(Diverged, match=r"lower|look for"):
        scored(model, text(model, 2000), Learning(1e38, 8))
