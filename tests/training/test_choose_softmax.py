"""The choice of the output layer by the vocabulary, and what follows from a large one in a recipe."""

import json
import math

import numpy as np
import pytest

from command_line import call, must
from unspool.model.config import ModelConfig
from unspool.model.cutoffs import parse_cutoffs
from unspool.training import choose_softmax as module
from unspool.training.choose_softmax import choose_softmax, expected_loss
from unspool.training.recipe import choose_recipe, tokens_to_beat_ngrams


def zipf(K):
    return 1 / np.arange(1.0, K + 1)


@pytest.mark.parametrize("cutoffs", [(), (30,), (10, 60)])
def test_the_expected_loss_is_the_mean_over_all_tokens(cutoffs):
    p, H = zipf(100) / zipf(100).sum(), module.H
    edges, cost, narrow = (*cutoffs, 100), 0.0, 0.0
    for w in range(100):
        i = sum(w >= cut for cut in cutoffs)
        outputs = (edges[0] + len(cutoffs)) * (H + module.OVERHEAD)
        if i:
            d, K = H // 4**i, edges[i] - edges[i - 1]
            outputs += K * (d + module.OVERHEAD) + H * d
        cost, narrow = cost + p[w] * outputs, narrow + i * p[w]
    expected = module.SPEED * math.log(module.RECURRENT + cost) + module.NARROW * narrow
    expected += module.CLUSTER * len(cutoffs)
    assert expected_loss(cutoffs, np.concatenate([[0], np.cumsum(p)])) == pytest.approx(expected)


def test_auto_takes_clusters_for_a_large_vocabulary_only():
    assert choose_softmax("auto", zipf(65)) == choose_softmax("auto", zipf(1000)) == "full"
    for K in (4_000, 33_000, 250_000):
        chosen = choose_softmax("auto", zipf(K))
        cutoffs = parse_cutoffs(chosen)
        assert 200 < cutoffs[0] < K / 2 and chosen == choose_softmax("adaptive", zipf(K))
        assert ModelConfig(inputs=K, outputs=K, hidden=64, softmax=chosen).cutoffs == cutoffs


@pytest.mark.parametrize("K", [1, 2, 3, 20])
def test_adaptive_works_for_the_smallest_vocabularies(K):
    chosen = choose_softmax("adaptive", zipf(K))
    ModelConfig(inputs=K, outputs=K, hidden=4, softmax=chosen)
    assert choose_softmax("adaptive:7", zipf(K)) == "adaptive:7"


def words(steps, vocabulary=33_000, tokens=2_000_000, **given):
    given = {"steps": steps, "hidden": 64} | given
    return choose_recipe(vocabulary=vocabulary, tokens=tokens, seconds=1, measure=lambda _: 1.0, given=given)


def test_dropout_and_decay_grow_with_the_epochs_and_the_rarity_of_tokens():
    recipes = [words(steps) for steps in (1000, 10_000, 40_000)]
    assert recipes[0].decay < 0.05 and recipes[0].dropout < 0.1
    assert [each.dropout for each in recipes] == sorted(each.dropout for each in recipes)
    assert recipes[2].dropout > 0.4 and recipes[2].decay > 0.3
    assert words(10_000, vocabulary=4000).decay < recipes[1].decay
    assert words(10_000, vocabulary=65).decay == 0 and words(10_000, dropout=0.1, decay=0.0).dropout == 0.1


def test_a_run_that_is_too_short_for_its_words_is_announced(tmp_path):
    assert tokens_to_beat_ngrams(1024, 10**9) == 0
    text = tmp_path / "words.txt"
    rng = np.random.default_rng(0)
    text.write_text(" ".join(f"w{w}" for w in rng.zipf(1.1, 9000) % 4000))
    train = ["train", text, "--tokens", "space", "--steps", 2, "--hidden", 8, "--order", 1, "--window", 8]
    shown = " ".join(must(*train, "--softmax", "adaptive", "--out", tmp_path / "run").split())
    assert "16,384" not in shown and "too few" in shown and "1,000,000 (--steps" in shown
    recipe = json.loads((tmp_path / "run" / "config.json").read_text())["run"]["recipe"]
    assert recipe["softmax"].startswith("adaptive:") and recipe["tied"]
    done = call(*train, "--softmax", "adaptive:9999", "--out", tmp_path / "other")
    assert done.code == 2 and "the last cluster is empty" in done.err
    full = json.loads(must(*train, "--softmax", "full", "--out", tmp_path / "full", "--json"))
    assert "--softmax full" in full["repeat"]  # without it, the repeated run would choose clusters
    other = ["--pattern", "10.4", "--out", tmp_path / "fed", "--softmax"]
    assert "which needs pattern 10.3" in call(*train, *other, "adaptive").err
    assert call(*train, *other, "auto").code == 0
