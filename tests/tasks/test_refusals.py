"""What estimators cannot use is refused in one line that says what was expected."""

import numpy as np
import pytest

from unspool.errors import InputError
from unspool.tasks.classify import SequenceClassifier
from unspool.tasks.generate_from import SequenceGenerator
from unspool.tasks.regress import SequenceRegressor
from unspool.tasks.tag import SequenceTagger
from unspool.tasks.translate import SequenceTranslator

QUICK = {"hidden": 4, "epochs": 1}
X = [[0.0, 1.0], [2.0, 1.0], [3.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("model", "X", "y", "message"),
    [
        (SequenceClassifier(**QUICK, seed=-1), X, list("aba"), "seed is -1; expected a whole number of 0 or more"),
        (SequenceClassifier(**QUICK), X, ["a", None, "b"], "y has None at position 2"),
        (SequenceClassifier(**QUICK), X, np.array(["a", 1, "b"], object), "y has 1 among strings"),
        (SequenceTagger(**QUICK), ["ab"], [["a", None]], "the labels of sequence 1 has None at position 2"),
        (SequenceClassifier(**QUICK), X, ["x"] * 3, "there is only one class, 'x':"),
        (SequenceClassifier(**QUICK), "aba", list("xyx"), r"X is one string; .*pass \[X\]"),
        (SequenceClassifier(**QUICK, prior_correction=1.5), X, list("aba"), "prior_correction is 1.5; expected a number from 0 to 1"),
        (SequenceClassifier(**QUICK, learning_rate=0.0), X, list("aba"), "learning_rate is 0.0; expected a number"),
        (SequenceRegressor(**QUICK), X, ["1", "two", "3"], "y holds something that is not a number.*two"),
        (SequenceRegressor(**QUICK), X, [1.0, np.inf, 2.0], "y has inf at sequence 2"),
        (SequenceRegressor(**QUICK, every_step=True), X, [[1, 2], [np.nan, 2], [1, 2, 3]], "y has nan at sequence 2"),
        (SequenceRegressor(**QUICK), X, [1e308, -1e308, 0], "y has 1e.308: values too large"),
        (SequenceTranslator(**QUICK, beam=0), ["a", "b"], ["a", "b"], "beam is 0; expected a whole number of 1"),
        (SequenceTranslator(**QUICK), ["a", "b"], "ab", "y is one string"),
    ],
)  # fmt: skip
def test_a_fit_refuses(model, X, y, message):
    with pytest.raises(InputError, match=message):
        model.fit(X, y)


def test_a_spread_that_was_not_learned_is_not_given():
    model = SequenceRegressor(**QUICK).fit(X, [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="fit with std=True"):
        model.predict_distribution(X)
    assert model.predict(X).shape == (3,)


def test_a_beam_is_checked_when_it_is_used():
    model = SequenceTranslator(**QUICK).fit(["ab", "ba"], ["AB", "BA"])
    with pytest.raises(InputError, match="beam is -1"):
        model.set_params(beam=-1).predict(["ab"])


def test_a_generator_refuses_a_class_that_it_never_saw():
    model = SequenceGenerator(**QUICK).fit(["one", "two"], ["ab", "xy"])
    for ask in (model.predict, model.sample):
        for strange in ("three", "<unk>", "<bos>"):
            with pytest.raises(
                InputError, match=rf"X\[1\]: the class '{strange}' was never seen.*there are one, two"
            ):
                ask(["one", strange])
    with pytest.raises(InputError, match="seed is -1"):
        model.sample(["one"], seed=-1)
    assert len(model.predict(["one", "two"])) == 2
