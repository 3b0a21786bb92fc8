"""What users of scikit-learn expect of the estimators: weights, names of columns, random_state, features, searches."""

import numpy as np
import pytest

from unspool.data.batches.examples import Examples
from unspool.errors import InputError
from unspool.kernels import reference
from unspool.model.heads import HEADS
from unspool.model.linear import Linear
from unspool.model.losses.weighted import weighted_loss
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.tasks import SequenceClassifier, SequenceRegressor
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.frames import row_weights
from unspool.tasks.language.estimator import LanguageModel
from unspool.tasks.tag import SequenceTagger

RNG = np.random.default_rng(5)
X = RNG.standard_normal((40, 6))
Y = (X[:, 0] > 0.3).astype(int)
QUICK = {"hidden": 4, "epochs": 3, "model": "network"}


def test_random_state_is_another_name_of_seed():
    for kind in (SequenceClassifier, SequenceTagger, Forecaster, LanguageModel):
        assert kind(random_state=7).seed == 7 and kind(random_state=None).seed == kind().seed
        assert "random_state" not in kind().get_params() and kind().set_params(random_state=3).seed == 3
    with pytest.raises(InputError, match="one argument"):
        SequenceClassifier(seed=1, random_state=2)
    with pytest.raises(InputError, match="random_state"):
        SequenceClassifier(random_state=-1)
    one, two = (SequenceClassifier(**QUICK, **each).fit(X, Y) for each in ({"seed": 4}, {"random_state": 4}))
    assert (one.predict_proba(X) == two.predict_proba(X)).all()


@pytest.mark.parametrize("head", ["classes", "numbers", "distribution"])
@pytest.mark.parametrize("shape", ["many-to-one", "many-to-many"])
def test_the_gradient_of_a_weighted_loss_is_that_of_finite_differences(head, shape):
    config = SequenceConfig(shape, head, inputs=2, dense=True, outputs=3, hidden=4)
    steps = (5,) if shape == "many-to-many" else ()
    y = (
        RNG.integers(0, 3, (3, *steps)).astype(np.int32)
        if head == "classes"
        else RNG.standard_normal((3, *steps, 3))
    )
    x = RNG.standard_normal((3, 5, 2))
    examples = Examples(x, y, np.array([0.5, 2.0, 0.0]))
    network, batch = (
        Network.initialise(config, 0).on(reference),
        examples.batch(np.arange(3), per_step=bool(steps)),
    )
    gradient = network.gradient()
    total, flat = network.loss(batch, gradient=gradient), network.parameters.flat
    for i in RNG.choice(np.flatnonzero(gradient.values.flat), 12):
        around = []
        for step in (1e-5, -1e-5):
            flat[i] += step
            around.append(network.loss(batch).sum)
            flat[i] -= step
        assert gradient.values.flat[i] == pytest.approx(
            (around[0] - around[1]) / 2e-5 / total.count, abs=1e-6
        )


def test_weights_of_one_give_the_loss_without_weights():
    h, V, c = RNG.standard_normal((7, 5)), RNG.standard_normal((3, 5)), RNG.standard_normal(3)
    head, y = HEADS["classes"](3), RNG.integers(-1, 3, 7).astype(np.int32)
    layer = Linear.of(V, c, reference)
    own, usual = weighted_loss(head, layer, h, y, np.ones(7)), head.loss(layer, h, y)
    assert own.sum == pytest.approx(usual.sum, rel=1e-12) and own.count == usual.count
    assert row_weights(np.full(4, 3.0), 4) is None and row_weights(None, 4) is None


def test_a_class_or_a_row_with_more_weight_is_predicted_more():
    y = (RNG.random(40) < 0.2).astype(int)
    usual = SequenceClassifier(hidden=4, epochs=20, model="network").fit(X, y)
    for how in ({"class_weight": "balanced"}, {"class_weight": {1: 20.0}}, {}):
        more = None if how else np.where(y == 1, 20.0, 1.0)
        model = SequenceClassifier(hidden=4, epochs=20, model="network", **how).fit(X, y, sample_weight=more)
        assert model.predict_proba(X)[:, 1].mean() > usual.predict_proba(X)[:, 1].mean() + 0.01
    same = SequenceClassifier(hidden=4, epochs=20, model="network").fit(X, y, sample_weight=np.full(40, 2.5))
    assert (same.predict_proba(X) == usual.predict_proba(X)).all()
    regressor = SequenceRegressor(hidden=4, epochs=5, model="network").fit(
        X, X[:, 0], sample_weight=RNG.random(40)
    )
    assert np.isfinite(regressor.predict(X)).all()


def test_wrong_weights_are_refused():
    for wrong in ([1.0], np.full(40, -1.0), np.zeros(40), np.full(40, np.nan), ["a"] * 40):
        with pytest.raises(InputError, match="sample_weight"):
            SequenceClassifier(**QUICK).fit(X, Y, sample_weight=wrong)
    with pytest.raises(InputError, match="class_weight has '7'"):
        SequenceClassifier(**QUICK, class_weight={7: 2.0}).fit(X, Y)
    with pytest.raises(InputError, match="class_weight is 'even'"):
        SequenceClassifier(**QUICK, class_weight="even").fit(X, Y)
    with pytest.raises(InputError, match="baselines take none"):
        SequenceClassifier(hidden=4, epochs=1, model="baseline").fit(X, Y, sample_weight=RNG.random(40))


def test_columns_must_be_those_of_the_fit_in_their_order(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = SequenceClassifier(**QUICK).fit(frame, Y)
    assert model.feature_names_in_.tolist() == list("abcdef")
    model.save(tmp_path / "run")
    for each in (model, SequenceClassifier.load(tmp_path / "run")):
        assert (each.predict(frame) == each.predict(X)).all()
        with pytest.raises(InputError, match="another order"):
            each.predict(frame[list("bacdef")])
        with pytest.raises(InputError, match="unseen in the fit: g; missing: a"):
            each.predict(frame.rename(columns={"a": "g"}))
    assert not hasattr(model.fit(X, Y), "feature_names_in_")


def test_a_frame_of_one_column_is_texts_or_numbers_or_refused():
    pandas = pytest.importorskip("pandas")
    texts = ["abba", "cd", "ab", "dcd"] * 5
    frame, labels = pandas.DataFrame({"text": texts}), [0, 1] * 10
    model = SequenceClassifier(**QUICK).fit(frame, labels)
    assert (model.predict(frame) == model.predict(texts)).all()
    numbers = SequenceClassifier(**QUICK).fit(pandas.DataFrame({"x": X[:, 0]}), Y)
    assert (numbers.predict(X[:, :1]) == numbers.predict(pandas.DataFrame({"x": X[:, 0]}))).all()
    with pytest.raises(InputError, match="pass one column"):
        SequenceClassifier(**QUICK).fit(pandas.DataFrame({"text": texts, "more": texts}), labels)


def test_states_are_features_and_probabilities_have_logarithms():
    model = SequenceClassifier(**QUICK).fit(X[:9], Y[:9])  # so few that one network answers
    features = model.transform(X)
    assert features.shape == (40, 4) and (model.transform(X[:1])[0] == features[0]).all()
    o = model.network_.weights().output(features)
    assert (o.argmax(1) == model.predict_proba(X).argmax(1)).all()
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-12)
    tagger = SequenceTagger(**QUICK).fit([["ab", "cd"], ["cd"]] * 4, [[0, 1], [1]] * 4)
    assert [row.shape for row in tagger.transform([["ab"], ["cd", "ab", "x"]])] == [(1, 4), (3, 4)]


def test_a_search_over_forecasters_runs():
    selection = pytest.importorskip("sklearn.model_selection")
    y = 10 + np.sin(np.arange(96) * np.pi / 3) + 0.01 * RNG.standard_normal(96)
    model = Forecaster(horizon=6, members=1, steps=20, calibration=0)
    search = selection.GridSearchCV(model, {"hidden": [4, 8]}, cv=selection.TimeSeriesSplit(2, test_size=6))
    assert np.isfinite(search.fit(y).best_score_) and search.best_score_ <= 0
    fitted = model.fit(y[:90])
    error = np.abs(fitted.predict(6) - y[90:]).mean() / np.abs(y[6:90] - y[:84]).mean()
    assert fitted.score(y[90:]) == pytest.approx(-error)
