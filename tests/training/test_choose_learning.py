"""The rate and the segment of learning while reading: the lowest loss on the head of a text, and on nothing else."""

import math

import numpy as np
import pytest

from unspool.errors import Diverged
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.training import choose_learning as module
from unspool.training.choose_learning import choose_learning, targets_to_try
from unspool.training.dynamic import Learning, LearningScorer

MODEL = Model.initialise(ModelConfig(cell="gru", inputs=7, outputs=7, hidden=8), seed=2)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 300)
    monkeypatch.setattr(module, "FEWEST", 100)


def text(length: int) -> np.ndarray:
    ids = np.random.default_rng(1).integers(7, size=length)
    return np.where(np.arange(length) % 3 == 0, 1, ids).astype(np.int32)


def nats(learning: Learning, ids: np.ndarray) -> float:
    return -float(LearningScorer(MODEL, learning).log_prob(ids).mean())


def test_the_choice_has_the_lowest_loss_of_all_that_were_tried() -> None:
    ids = text(500)
    choice = choose_learning(MODEL, ids)
    assert choice.targets == 300
    rates = [each.learning.learn_rate for each in choice.tried if each.learning.learn_segment == 32]
    assert rates == list(module.RATES)
    assert {each.learning.learn_segment for each in choice.tried} == {*module.SEGMENTS}
    for each in choice.tried:
        assert each.nats == nats(each.learning, ids[:301])
    assert min(choice.tried, key=lambda each: each.nats).learning == choice.learning


def test_the_text_after_the_head_does_not_change_the_choice() -> None:
    ids = text(500)
    other = ids.copy()
    other[301:] = (other[301:] + 1) % 7
    assert choose_learning(MODEL, ids) == choose_learning(MODEL, other)


def test_what_is_given_is_not_chosen() -> None:
    given = Learning(learn_rate=3e-3, learn_segment=8)
    assert choose_learning(MODEL, text(500), given, choose=(False, False)).tried == ()
    by_segment = choose_learning(MODEL, text(500), given, choose=(False, True))
    assert {each.learning.learn_rate for each in by_segment.tried} == {3e-3}
    assert [each.learning.learn_segment for each in by_segment.tried] == [8, *module.SEGMENTS]
    by_rate = choose_learning(MODEL, text(500), given, choose=(True, False))
    assert {each.learning.learn_segment for each in by_rate.tried} == {8}


def test_a_text_that_is_too_short_gives_the_default() -> None:
    choice = choose_learning(MODEL, text(100))
    assert choice.learning == Learning() and not choice.tried and targets_to_try(text(100), Learning()) == 0


def test_progress_counts_every_scored_target() -> None:
    seen = list[tuple[int, int]]()
    choice = choose_learning(MODEL, text(200), on_progress=lambda *counts: seen.append(counts))
    assert seen[-1][0] == 199 * len(choice.tried) == targets_to_try(text(200), Learning())
    assert {total for _, total in seen} == {seen[-1][0]}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_rate_that_diverges_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    config = ModelConfig(cell="elman", inputs=7, outputs=7, hidden=8, activation="relu", layers=2)
    model = Model.initialise(config, seed=2)
    monkeypatch.setattr(module, "RATES", (1e38, 1e-3))
    choice = choose_learning(model, text(2000))
    assert math.isinf(choice.tried[0].nats) and choice.learning.learn_rate == 1e-3
    monkeypatch.setattr(module, "RATES", (1e38,))
    with pytest.raises(Diverged, match=r"even with learn_rate=1e\+38: choose a lower one"):
        choose_learning(model, text(2000))
