"""The prediction after t steps is what the model predicts for a sequence that ends there."""

import json

import numpy as np
import pytest

import unspool
from inspect_cases import frozen_in
from unspool.errors import InputError
from unspool.inspect import predictions_by_step
from unspool.storage.html_page import HtmlPage
from unspool.studio.payload import array_from
from unspool.studio.steps_page import steps_page

X = ["abba", "baab", "ab", "b", "aabba"] * 8
Y = ["even" if row.count("a") % 2 == 0 else "odd" for row in X]
NUMBERS = np.random.default_rng(0).standard_normal((12, 9, 2))


@pytest.mark.parametrize(
    "more", [{}, {"pool": "mean"}, {"bidirectional": True}, {"layers": 2, "cell": "lstm"}]
)
def test_a_classifier_is_asked_for_every_beginning(more):
    model = unspool.SequenceClassifier(hidden=6, epochs=2, seed=1, model="network", **more).fit(X, Y)
    report = predictions_by_step(model, ["abba", "b"], ["even", "even"])
    for row, found in zip(("abba", "b"), report.sequences, strict=True):
        beginnings = [row[: t + 1] for t in range(len(row))]
        assert (found.predictions == model.predict_proba(beginnings)).all()
        assert found.pieces == list(row) and found.truth == "even"
    assert report.names == ["even", "odd"] and report.classes and not report.per_step


def test_without_a_second_direction_the_steps_are_those_of_predict_proba_steps():
    model = unspool.SequenceClassifier(hidden=6, epochs=2, seed=1, model="network", bidirectional=False).fit(
        NUMBERS, [0, 1] * 6
    )
    report = predictions_by_step(model, NUMBERS[:3])
    for found, steps in zip(report.sequences, model.predict_proba_steps(NUMBERS[:3]), strict=True):
        assert np.allclose(found.predictions, steps, atol=1e-6)
        assert found.values.shape == (9, 2) and found.states.shape == (9, 6)


def test_a_regressor_and_a_tagger():
    numbers = unspool.SequenceRegressor(hidden=5, epochs=2, seed=1, model="network").fit(
        NUMBERS, NUMBERS[:, :, 0].sum(axis=1)
    )
    (found,) = predictions_by_step(numbers, NUMBERS[:1], [1.5]).sequences
    expected = [numbers.predict(NUMBERS[:1, :t])[0] for t in range(1, 10)]
    assert np.array_equal(found.predictions[:, 0], expected) and found.truth == [1.5]
    tagger = unspool.SequenceTagger(hidden=5, epochs=2, seed=1).fit(X, [list(row.upper()) for row in X])
    report = predictions_by_step(tagger, ["abba"], [list("ABBA")])
    assert np.array_equal(report.sequences[0].predictions, tagger.predict_proba(["abba"])[0])
    assert report.per_step and report.sequences[0].truth == list("ABBA")


def test_of_a_long_sequence_some_beginnings_are_predicted_and_the_last_one_always():
    model = unspool.SequenceClassifier(hidden=4, epochs=1, model="network").fit(X, Y)
    (found,) = predictions_by_step(model, ["ab" * 300]).sequences
    assert len(found.steps) == 256 and found.steps[0] == 1 and found.steps[-1] == 600
    assert (found.predictions[-1] == model.predict_proba(["ab" * 300])[0]).all()


def test_the_page_holds_the_predictions():
    model = unspool.SequenceClassifier(hidden=4, epochs=1).fit(X, ["<b>", "x"] * 20)
    report = predictions_by_step(model, ["ab", "</script>\u202e"], run="<i>run", data="a&b")
    page = steps_page(report)
    held = frozen_in(page.html)["steps"]
    assert held["names"] == ["<b>", "x"] and "<i>" not in page.html
    for found, shown in zip(report.sequences, held["sequences"], strict=True):
        assert (array_from(shown["predictions"]) == found.predictions).all()
        assert array_from(shown["states"]).shape == found.states.shape
    json.dumps(held, allow_nan=False)


def test_models_show_themselves_in_a_notebook(trained, tmp_path):
    model = unspool.SequenceClassifier(hidden=4, epochs=1).fit(X, Y)
    for page in (model.inspect(["ab"], ["odd"]), trained.inspect("Go home, TOM! " * 4, units=["3"])):
        assert isinstance(page, HtmlPage) and page._repr_html_().count("<") == 2
        page.save(tmp_path / "page.html")
        assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html


def test_what_cannot_be_inspected_is_one_clear_line():
    model = unspool.SequenceClassifier(hidden=4, epochs=1)
    with pytest.raises(InputError, match="not fitted"):
        model.inspect(["ab"])
    model.fit(X, Y)
    for rows, truths, said in (
        ([], None, "not one sequence"),
        (["ab"], ["x", "y"], "2 truths"),
        ([""], None, "empty"),
    ):
        with pytest.raises(InputError, match=said):
            predictions_by_step(model, rows, truths)
    translator = unspool.SequenceTranslator(hidden=4, epochs=1).fit(["ab"], ["ba"])
    with pytest.raises(InputError, match="cannot be inspected"):
        translator.inspect(["ab"])
