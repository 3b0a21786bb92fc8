"""Baselines of sequences: features against a count by hand and scikit-learn, bits, files, and the choice of the model."""

from collections import Counter

import numpy as np
import pytest

from unspool.baselines.sequences import BASELINES
from unspool.baselines.sequences.base import Rows
from unspool.baselines.sequences.choice import Aside, Choice, choose, mixed
from unspool.baselines.sequences.ngrams import Ngrams, counts_of
from unspool.baselines.sequences.sparse_linear import SparseObjective, SparseRows, fit_sparse, loss_of
from unspool.errors import FileError, InputError
from unspool.kernels.elementwise import softmax
from unspool.model.heads import HEADS
from unspool.storage.tensors import read_arrays, write_arrays
from unspool.tasks import SequenceClassifier, SequenceRegressor
from unspool.tasks.registry import load

RNG = np.random.default_rng(2)
TEXTS = [
    " ".join(
        RNG.choice(["dog", "river", "Émile", "walks", "日本"] if i % 2 else ["cat", "lake", "sleeps"], 4)
    )
    for i in range(60)
]
LABELS = (np.arange(60) % 2).astype(np.int32)
CLASSES = HEADS["classes"](2)


def test_n_grams_are_counted_as_by_hand():
    text = "To be, to be!"
    (_, characters), (_, words) = counts_of(text)
    marked = f"\x02{text.lower()}\x03"
    expected = Counter(marked[i : i + n] for n in range(1, 6) for i in range(len(marked) - n + 1))
    assert sorted(characters.tolist()) == sorted(expected.values())
    said = ["to", "be", "to", "be"]
    expected = Counter(tuple(said[i : i + n]) for n in (1, 2) for i in range(len(said) - n + 1))
    assert sorted(words.tolist()) == sorted(expected.values())


def test_equal_n_grams_have_equal_hashes_wherever_they_stand():
    (first, _), (one, _) = counts_of("a dog")
    (second, _), (two, _) = counts_of("the big dog")
    assert len(np.intersect1d(one, two)) == 1
    shared = {"dog"[i : i + n] for n in (1, 2, 3) for i in range(4 - n)} | {" ", "\x02", "\x03"}
    shared |= {" d", " do", " dog", " dog\x03", "g\x03", "og\x03", "dog\x03"}
    assert len(np.intersect1d(first, second)) == len(shared)
    assert all(len(hashes) == 0 or (np.diff(hashes) > 0).all() for hashes in (first, second))
    assert [len(hashes) for hashes, _ in counts_of("")] == [3, 0]


def sparse(dense):
    rows, ids = np.nonzero(dense)
    begin = np.searchsorted(rows, np.arange(len(dense) + 1))
    return SparseRows(begin, ids.astype(np.int32), dense[rows, ids].astype(np.float32), dense.shape[1])


@pytest.mark.parametrize("name", ["classes", "numbers"])
def test_the_gradient_is_that_of_finite_differences(name):
    dense, head = RNG.standard_normal((9, 5)) * (RNG.random((9, 5)) < 0.6), HEADS[name](3)
    y = (
        RNG.integers(0, 3, 9).astype(np.int32)
        if name == "classes"
        else RNG.standard_normal((9, 3)).astype(np.float32)
    )
    objective = SparseObjective(sparse(dense), y, head, C=0.5)
    objective.parameters.flat[:] = RNG.standard_normal(len(objective.parameters.flat))
    W, c = (objective.parameters[each].astype(np.float64).copy() for each in "Wc")

    def loss(W, c):
        found = loss_of(head, (dense @ W + c).astype(np.float32), y)
        return found.sum / 9 + 0.5 / (0.5 * 9) * (W**2).sum()

    gradient = objective(np.arange(9), 0).gradient.copy()
    numeric = []
    for array in (W, c):
        for i in np.ndindex(array.shape):
            array[i] += 1e-2
            above = loss(W, c)
            array[i] -= 2e-2
            numeric.append((above - loss(W, c)) / 2e-2)
            array[i] += 1e-2
    objective.gradient.flat[:] = gradient
    found = np.concatenate([objective.gradient["W"].ravel(), objective.gradient["c"]])
    assert found == pytest.approx(np.array(numeric), abs=2e-3)


def test_the_linear_model_is_scikit_learns():
    linear_model = pytest.importorskip("sklearn.linear_model")
    dense = RNG.standard_normal((300, 8)) * (RNG.random((300, 8)) < 0.7)
    y = (dense[:, 0] + dense[:, 1] * 0.5 + RNG.standard_normal(300) * 0.5 > 0).astype(np.int32)
    theirs = linear_model.LogisticRegression(C=1.0, tol=1e-8).fit(dense, y)
    W, c = fit_sparse(sparse(dense), y, CLASSES, seed=0, C=1.0)
    ours = softmax(sparse(dense).outputs(W, c))[:, 1]
    assert ours == pytest.approx(theirs.predict_proba(dense)[:, 1], abs=0.03)


@pytest.mark.parametrize("name", ["majority class", "mean of the training split", "n-grams"])
def test_a_baseline_learns_is_saved_and_does_not_depend_on_the_batch(name, tmp_path):
    kind = BASELINES[name]
    rows = Rows(TEXTS, [np.zeros(1, np.int32)] * 60, False)
    head, y = next(
        (head, y)
        for head, y in ((CLASSES, LABELS), (HEADS["numbers"](1), LABELS[:, None].astype(np.float32)))
        if kind.accepts(rows, head, False)
    )
    fitted = kind.fit(rows, y, head, 0)
    o = fitted.outputs(rows)
    assert o.dtype == np.float32 and o.shape == (60, head.K)
    write_arrays(tmp_path / "b", fitted.arrays(), fitted.fields())
    arrays, fields = read_arrays(tmp_path / "b")
    again = kind.restore(fields, arrays, head.K, "b")
    alone = [again.outputs(rows.part(np.array([i])))[0] for i in range(60)]
    assert (np.stack(alone) == o).all()
    assert (kind.fit(rows, y, head, 0).outputs(rows) == o).all()
    with pytest.raises(FileError, match="damaged or manipulated"):
        kind.restore(fields, arrays, head.K + 1, "b")


def network_of(wrong):
    """A network that is right but for some rows."""
    return lambda rows: np.stack(
        [[4.0, -4.0] if (label == 0) != (text in wrong) else [-4.0, 4.0] for text, label in rows.raw]
    ).astype(np.float32)


@pytest.mark.parametrize(
    ("model", "wrong", "kept"),
    [("best", 0, "network"), ("best", 9, "baseline"), ("mean", 0, "mean"), ("baseline", 0, "baseline")],
)
def test_the_model_with_the_fewest_errors_on_the_rows_aside_answers(model, wrong, kept):
    X = [(text, int(label)) for text, label in zip(TEXTS, LABELS, strict=True)]
    rows = Rows(X, [np.zeros(1, np.int32)] * 60, False)
    aside = Aside(np.arange(50), np.arange(50, 60))

    class Reads(Ngrams):
        """N-grams of the text of a pair."""

        @classmethod
        def fit(cls, rows, y, head, seed):
            return super().fit(Rows([text for text, _ in rows.raw], rows.x, False), y, head, seed)

        def outputs(self, rows):
            return super().outputs(Rows([text for text, _ in rows.raw], rows.x, False))

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BASELINES, Ngrams.name, Reads)
        choice = choose(
            model, rows, LABELS, CLASSES, aside, network_of([t for t, _ in X[50 : 50 + wrong]]), 0
        )
    assert choice.kept == kept and choice.rows == 10
    names = [each.name for each in choice.judged]
    assert names[:2] == ["majority class", "n-grams"]
    if model != "baseline":
        assert names[2:] == ["network", "mean of network and n-grams"]
        assert choice.judged[2].error == wrong / 10


def test_the_mean_is_the_mean_of_probabilities_or_numbers():
    a, b = RNG.standard_normal((2, 4, 3)).astype(np.float32)
    expected = (softmax(a).astype(np.float64) + softmax(b)) / 2
    assert softmax(mixed(HEADS["classes"](3), a, b)) == pytest.approx(expected, abs=1e-6)
    assert mixed(HEADS["numbers"](3), a, b) == pytest.approx((a + b) / 2)


@pytest.mark.parametrize("model", ["network", "baseline", "best", "mean"])
def test_an_estimator_answers_by_the_model_of_its_choice_also_from_a_run(model, tmp_path):
    made = SequenceClassifier(hidden=4, epochs=1, model=model).fit(TEXTS, LABELS)
    assert made.choice_.kept == (model if model != "best" else made.choice_.kept)
    assert (made.n_iter_ == 0) == (model == "baseline")
    found = made.predict_proba(TEXTS)
    by_model = made.predict_by_model(TEXTS)
    assert (by_model[made.choice_.name] == made.predict(TEXTS)).all()
    made.save(tmp_path / "saved")
    fitted = SequenceClassifier(hidden=4, epochs=1, model=model).fit(TEXTS, LABELS, run=tmp_path / "run")
    again = SequenceClassifier(hidden=4, epochs=1, model=model).fit(TEXTS, LABELS, run=tmp_path / "run")
    for each in (load(tmp_path / "saved"), load(tmp_path / "run"), fitted, again):
        assert (each.predict_proba(TEXTS) == found).all() and each.choice_.name == made.choice_.name


def test_a_regressor_keeps_the_better_model():
    y = np.array([float(len(text)) for text in TEXTS])
    made = SequenceRegressor(hidden=4, epochs=1, model="best").fit(TEXTS, y)
    assert [each.name for each in made.choice_.judged][:2] == ["mean of the training split", "n-grams"]
    assert made.predict(TEXTS).shape == (60,) and made.score(TEXTS, y) > 0.5
    with pytest.raises(InputError, match="no baseline has a standard deviation"):
        SequenceRegressor(std=True, model="mean").fit(TEXTS, y)
    assert SequenceRegressor(hidden=4, epochs=1, std=True).fit(TEXTS, y).choice_.kept == "network"


def test_without_rows_aside_the_network_answers_unless_another_model_is_asked_for():
    few, labels = TEXTS[:6], LABELS[:6]
    for model, kept in (("best", "network"), ("baseline", "baseline"), ("mean", "mean")):
        choice = SequenceClassifier(hidden=4, epochs=1, model=model).fit(few, labels).choice_
        assert choice.kept == kept and not choice.judged and choice.rows == 0


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"kept": "mean", "baseline": None}, "without a baseline"),
        ({"baseline": {"name": "oracle"}}, "no baseline 'oracle'"),
        ({"rows": "many"}, "rows"),
    ],
)
def test_a_manipulated_choice_is_refused(change, line, tmp_path):
    made = SequenceClassifier(hidden=4, epochs=1).fit(TEXTS, LABELS)
    made.save(tmp_path / "run")
    path = tmp_path / "run" / "choice.safetensors"
    arrays, metadata = read_arrays(path)
    write_arrays(path, arrays, metadata | change)
    with pytest.raises(FileError, match=line):
        load(tmp_path / "run")
    path.unlink()
    with pytest.raises(FileError, match=r"choice\.safetensors: it is missing; restore it"):
        load(tmp_path / "run")


def test_a_choice_without_baseline_names_the_network():
    assert Choice("network").name == "network" and Choice("network").answers == ["network"]
