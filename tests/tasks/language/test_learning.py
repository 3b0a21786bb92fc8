"""Learning while reading, from text: scores that do not use the future, and a generator that goes on to the same bits."""

from itertools import islice, product
from pathlib import Path

import numpy as np
import pytest

from cases import CELLS
from unspool.baselines.kneser_ney_smoothing import kneser_ney
from unspool.baselines.mixture import Mixture, cross_fitted, fit_mixture
from unspool.baselines.ngram_counts import count_ngrams
from unspool.data.text.settings import TextConfig
from unspool.data.tokens.registry import make_tokenizer
from unspool.data.tokens.vocab import Vocab
from unspool.errors import FileError
from unspool.evaluation.language import in_reading_order
from unspool.kernels import native
from unspool.model.config import ModelConfig
from unspool.model.generate import Sampling
from unspool.model.network import Model
from unspool.tasks.language.generator import TextGenerator
from unspool.tasks.language.learning import score_learning
from unspool.tasks.language.text_model import TextModel
from unspool.training.choose_learning import FEWEST
from unspool.training.dynamic import Learning, LearningReader, LearningScorer

LETTERS = "abcdefgh \n"
VOCAB = Vocab(list(LETTERS))
LEARNING = Learning(learn_rate=0.01, learn_segment=8)
TEXT = "a bad cab\nhad a bed; dad fed a cad\n" * 3
FIELDS: list[dict[str, object]] = [
    *({"cell": cell} for cell in CELLS),
    {"cell": "lstm", "layers": 2, "embedding": 6},
    {"cell": "gru", "hidden": 8, "embedding": 8, "tied": True},
    {"cell": "gru", "precision": "bf16"},
    {"cell": "gru", "embedding": 6, "softmax": "adaptive:4,8"},
    {"cell": "elman", "pattern": "output", "feedback": "token"},
    {"cell": "elman", "pattern": "output", "feedback": "logits"},
]


def made(backward: bool = False, tokens: str = "char", vocab: Vocab = VOCAB, **fields) -> TextModel:
    K = len(vocab)
    config = ModelConfig(**({"cell": "gru", "inputs": K, "outputs": K, "hidden": 9} | fields))
    return TextModel(
        Model.initialise(config, seed=5), vocab, make_tokenizer(tokens), TextConfig(tokens=tokens), backward
    )


def drawn(generator: TextGenerator, count: int = 20) -> list[int]:
    return list(islice(generator.write(3, Sampling(1.0)), count))


def ids_of(length: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(len(VOCAB), size=length).astype(np.int32)


def mixture() -> Mixture:
    ngrams = kneser_ney(count_ngrams(ids_of(400, 9), K=len(VOCAB), order=3))
    return fit_mixture(ngrams, ids_of(200, 8), np.full(199, -np.log(len(VOCAB))))


@pytest.mark.parametrize("cut", [3, 8, 77])
def test_the_future_of_the_text_changes_no_score_of_its_past(cut: int) -> None:
    model, ids, valid = made().model, ids_of(120, 1), ids_of(FEWEST + 100, 2)
    other = ids.copy()
    other[cut + 1 :] = (other[cut + 1 :] + 1) % len(VOCAB)
    settings = {"default": LEARNING, "choose": (True, False), "valid": valid, "mixture": mixture()}
    one, two = score_learning(model, ids, **settings), score_learning(model, other, **settings)
    assert one.choice == two.choice and len(one.choice.tried) > 1
    np.testing.assert_array_equal(one.log_probs[:cut], two.log_probs[:cut])
    assert one.mixed is not None and two.mixed is not None
    np.testing.assert_array_equal(one.mixed[:cut], two.mixed[:cut])


def test_rate_and_share_are_fitted_on_the_validation_split_and_the_text_starts_from_the_trained_network() -> (
    None
):
    model, ids, valid, counts = made().model, ids_of(300, 1), ids_of(500, 2), mixture()
    found = score_learning(model, ids, default=LEARNING, valid=valid, mixture=counts)
    assert found.choice.learning == LEARNING  # 499 targets are too few for a choice
    log_probs = LearningScorer(model, LEARNING).log_prob(ids)
    np.testing.assert_array_equal(found.log_probs, log_probs)
    fitted = fit_mixture(counts.ngrams, valid, LearningScorer(model, LEARNING).log_prob(valid))
    np.testing.assert_array_equal(found.mixed, fitted.log_prob(ids, log_probs))


def test_on_the_validation_split_itself_nothing_is_chosen_and_each_half_is_mixed_by_the_other() -> None:
    model, ids, counts = made().model, ids_of(300, 1), mixture()
    found = score_learning(model, ids, default=LEARNING, mixture=counts)
    assert found.choice.learning == LEARNING and found.choice.tried == ()
    np.testing.assert_array_equal(found.mixed, cross_fitted(counts, ids, found.log_probs))


def test_progress_ends_with_the_last_target() -> None:
    seen = list[tuple[int, int]]()
    score_learning(
        made().model, ids_of(90, 1), default=LEARNING, valid=ids_of(50, 2), mixture=mixture(),
        on_progress=lambda *counts: seen.append(counts),
    )  # fmt: skip
    assert seen[-1] == (49 + 89, 49 + 89)


@pytest.mark.parametrize("fields", FIELDS, ids=str)
@pytest.mark.parametrize("backward", [False, True])
def test_a_generator_learns_what_a_reader_learns(fields, backward: bool) -> None:
    model = made(backward, **fields)
    generator, reader = TextGenerator(model, LEARNING), LearningReader(model.model, LEARNING)
    generator.read(TEXT)
    reader.log_prob(in_reading_order(model.encode(TEXT), backward))
    assert generator.learner is not None and generator.learner.updates == reader.updates == len(TEXT) // 8
    np.testing.assert_array_equal(generator.learner.model.parameters.flat, reader.model.parameters.flat)
    stream, pending = reader.stream(), int(in_reading_order(model.encode(TEXT), backward)[-1])
    expected = []
    for index in range(20):
        pending = stream.advance(pending, seed=3, index=index)
        expected.append(pending)
    assert drawn(generator) == expected


@pytest.mark.parametrize("fields", FIELDS, ids=str)
@pytest.mark.parametrize("generated", [0, 5])
def test_a_saved_position_goes_on_to_the_same_bits(fields, generated: int, tmp_path: Path) -> None:
    model, path = made(**fields), tmp_path / "state"
    whole = TextGenerator(model, LEARNING)
    whole.read(TEXT[:50])
    drawn(whole, generated)
    whole.save(path, 3)
    other = TextGenerator(model, Learning())  # the file's rate and segment are the ones that count
    other.load(path)
    assert other.learning == LEARNING
    for each in (whole, other):
        each.read(TEXT[50:])
    assert drawn(whole) == drawn(other)
    assert whole.learner is not None and other.learner is not None
    np.testing.assert_array_equal(whole.learner.model.parameters.flat, other.learner.model.parameters.flat)
    if not generated:  # then it is as if the text had been read at once
        once = TextGenerator(model, LEARNING)
        once.read(TEXT)
        assert once.learner is not None
        np.testing.assert_array_equal(whole.learner.model.parameters.flat, once.learner.model.parameters.flat)


def test_a_learned_position_is_used_without_learning_any_further(tmp_path: Path) -> None:
    model, path = made(), tmp_path / "state"
    first = TextGenerator(model, LEARNING)
    first.read(TEXT)
    first.save(path, 3)
    static, learned = TextGenerator(model), TextGenerator(model)
    static.read(TEXT)
    learned.load(path)
    assert drawn(learned) == drawn(first) != drawn(static)
    before = learned.learner.model.parameters.flat.copy()  # type: ignore[union-attr]
    learned.read(TEXT)
    np.testing.assert_array_equal(learned.learner.model.parameters.flat, before)  # type: ignore[union-attr]


def test_a_position_that_did_not_learn_can_begin_to(tmp_path: Path) -> None:
    model, path = made(), tmp_path / "state"
    static = TextGenerator(model)
    static.read(TEXT[:20])
    static.save(path, 3)
    found = TextGenerator(model, LEARNING)
    found.load(path)
    found.read(TEXT[20:])
    reader = LearningReader(model.model, LEARNING)
    reader.continue_after(static.stream, int(model.encode(TEXT[19])[0]))
    reader.log_prob(model.encode(TEXT[20:]))
    np.testing.assert_array_equal(found.learner.model.parameters.flat, reader.model.parameters.flat)  # type: ignore[union-attr]
    with pytest.raises(FileError, match="another model"):
        TextGenerator(made(cell="lstm")).load(path)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_threads_and_instruction_sets_generate_the_same_text(precision) -> None:
    model, before, found = made(hidden=33, precision=precision), native.kernel_info(), set()
    try:
        for isa, threads in product(before["available"], (1, 2)):
            native.choose_isa(isa)
            native.set_threads(threads)
            generator = TextGenerator(model, LEARNING)
            generator.read(TEXT)
            found.add((generator.learner.model.parameters.sha256, *drawn(generator)))  # type: ignore[union-attr]
    finally:
        native.choose_isa(before["isa"])
        native.set_threads(before["threads"])
    assert len(found) == 1


def test_a_model_of_words_learns_from_a_text() -> None:
    model = made(tokens="word", vocab=Vocab(["a", "bad", "cab", "had", "bed"]))
    text = "a bad cab had a bed " * 60
    assert model.perplexity(text, learn=LEARNING) < 0.7 * model.perplexity(text)
    assert model.perplexity(text, learn=True) == model.perplexity(text, learn=Learning())
    assert model.reader(LEARNING).log_prob(model.encode(text)).shape == (len(model.encode(text)) - 1,)


def test_a_final_model_keeps_the_shares_of_its_mixture() -> None:
    model, ids, kept = made().model, ids_of(300, 1), mixture()
    scores = score_learning(model, ids, default=LEARNING, mixture=kept, refit=False)
    assert scores.choice.learning == LEARNING and not scores.choice.tried
    assert scores.mixed is not None
    assert (scores.mixed == kept.log_prob(ids, scores.log_probs)).all()
    assert (scores.log_probs == LearningScorer(model, LEARNING).log_prob(ids)).all()
