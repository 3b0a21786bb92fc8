"""Baselines with one label per token, against counting and scikit-learn."""

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression

from unspool.baselines.sequences.base import Rows
from unspool.baselines.sequences.tags import LinearTagger, MostFrequentTag, token_features
from unspool.data.tokens.affixes import COUNT, features_of
from unspool.errors import FileError
from unspool.model.heads.classes import Classes
from unspool.tasks.tag import SequenceTagger

HEAD = Classes(3)
RNG = np.random.default_rng(0)


def sentences(n: int, seed: int) -> tuple[list[list[str]], list[np.ndarray]]:
    """Words whose ending gives the label, but for "la", whose label is that of the word before."""
    rng, X, y = np.random.default_rng(seed), [], []
    for _ in range(n):
        words, labels = [], []
        for _ in range(rng.integers(1, 9)):
            label = int(rng.integers(3))
            stem = "".join(rng.choice(list("bdgkmnprst"), 3))
            words.append(stem + ("as", "os", "is")[label])
            if rng.random() < 0.2 and labels:
                words[-1], label = "la", labels[-1]
            labels.append(label)
        X.append(words)
        y.append(np.array(labels, np.int32))
    return X, y


X, Y = sentences(300, 1)
TEST, TRUTH = sentences(80, 2)


def right(found: list[np.ndarray], truth: list[np.ndarray]) -> float:
    return float((np.concatenate(found) == np.concatenate(truth)).mean())


def test_every_word_has_as_many_features() -> None:
    assert {len(features_of(word)) for word in ("", "a", "Straße", "世界", "1,000.5", "x" * 1000)} == {COUNT}


def test_the_most_frequent_label_is_that_of_counting() -> None:
    model = MostFrequentTag.fit(Rows(X, X, False), Y, HEAD, 0)
    counts, total = defaultdict(Counter), Counter(np.concatenate(Y).tolist())
    for row, labels in zip(X, Y, strict=True):
        for word, label in zip(row, labels.tolist(), strict=True):
            counts[word][label] += 1
    found = model.outputs(Rows(TEST, TEST, False))
    assert [len(o) for o in found] == [len(row) for row in TEST]
    for row, o in zip(TEST, found, strict=True):
        for word, own in zip(row, o, strict=True):
            p = np.array([counts[word][k] + (total[k] + 1) / (sum(total.values()) + 3) for k in range(3)])
            np.testing.assert_allclose(np.exp(own.astype(np.float64)), p, rtol=1e-5)


def test_the_linear_model_learns_affixes_and_neighbours_like_scikit_learn() -> None:
    rows, test = Rows(X, X, False), Rows(TEST, TEST, False)
    model = LinearTagger.fit(rows, Y, HEAD, 0)
    own = right([o.argmax(1) for o in model.outputs(test)], TRUTH)

    def as_dicts(sentences: list[list[str]]) -> list[dict[str, int]]:
        return [{str(each): 1 for each in features} for row in sentences for features in token_features(row)]

    vectorizer = DictVectorizer()
    peer = LogisticRegression(C=3.0, max_iter=300).fit(
        vectorizer.fit_transform(as_dicts(X)), np.concatenate(Y)
    )
    theirs = peer.score(vectorizer.transform(as_dicts(TEST)), np.concatenate(TRUTH))
    assert own >= theirs - 0.02 and own > 0.9


@pytest.mark.parametrize("kind", [MostFrequentTag, LinearTagger])
def test_a_row_does_not_depend_on_the_others_and_files_are_checked(kind) -> None:
    model = kind.fit(Rows(X, X, False), Y, HEAD, 0)
    whole = model.outputs(Rows(TEST, TEST, False))
    alone = [model.outputs(Rows([row], [row], False))[0] for row in TEST]
    assert all((a == b).all() for a, b in zip(whole, alone, strict=True))
    arrays = model.arrays()
    again = kind.restore(model.fields(), arrays, 3, "file")
    assert all((a == b).all() for a, b in zip(again.outputs(Rows(TEST, TEST, False)), whole, strict=True))
    first = next(iter(arrays))
    with pytest.raises(FileError):
        kind.restore({}, arrays | {first: arrays[first][::-1].copy()}, 3, "file")
    with pytest.raises(FileError):
        kind.restore({}, arrays, 4, "file")


def test_a_tagger_keeps_the_best_model_and_is_saved_with_it(tmp_path: Path) -> None:
    labels = [np.array(["A", "B", "C"])[row] for row in Y]
    model = SequenceTagger(hidden=4, epochs=1, embedding=4).fit(X, labels)
    assert {each.name for each in model.choice_.judged} >= {
        "network",
        MostFrequentTag.name,
        LinearTagger.name,
    }
    truth = [np.array(["A", "B", "C"])[row] for row in TRUTH]
    assert model.score(TEST, truth) > 0.9
    assert set(model.predict_by_model(TEST)) >= {"network", LinearTagger.name}
    model.save(tmp_path / "run")
    again = SequenceTagger.load(tmp_path / "run")
    assert all(
        (a == b).all() for a, b in zip(model.predict_proba(TEST), again.predict_proba(TEST), strict=True)
    )
    plain = SequenceTagger(hidden=4, epochs=1, model="network").fit(X, labels)
    assert plain.choice_.name == "network" and SequenceTagger(hidden=4, epochs=1).fit(
        ["abc", "ba"], [[1, 2, 3], [2, 1]]
    )
