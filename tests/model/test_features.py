"""Several tokens per step, whose embeddings are added: against sums by hand, finite differences and both backends."""

import numpy as np
import pytest

from unspool.data.batches.examples import Examples
from unspool.data.encoders import TokenEncoder, encoder_from_fields
from unspool.data.tokens.affixes import COUNT, features_of
from unspool.errors import InputError
from unspool.kernels import reference
from unspool.model.config import ModelConfig
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.storage.schema import read_as
from unspool.tasks.tag import SequenceTagger

RNG = np.random.default_rng(3)
F, K = 3, 4
CONFIG = SequenceConfig(
    "many-to-many", "classes", inputs=9, outputs=K, hidden=5, embedding=6, features=F, bidirectional=True
)
EXAMPLES = Examples(
    [RNG.integers(0, 9, (n, F)).astype(np.int32) for n in (4, 1, 6)],
    [RNG.integers(0, K, n).astype(np.int32) for n in (4, 1, 6)],
)


def test_the_input_of_a_step_is_the_sum_of_its_embeddings() -> None:
    network = Network.initialise(CONFIG, 0)
    E, ids = network.parameters["encoder.E"], EXAMPLES.x[2][:, None]
    expected = sum(E[ids[..., f]] for f in range(F)) / np.sqrt(F)
    np.testing.assert_allclose(network.encoder._embed(ids), expected, rtol=1e-6)


def test_the_gradient_is_that_of_finite_differences_and_of_the_native_kernels() -> None:
    native, network = Network.initialise(CONFIG, 0), Network.initialise(CONFIG, 0).on(reference)
    batch = EXAMPLES.batch(np.arange(3), per_step=True)
    gradient, own = network.gradient(), native.gradient()
    total = network.loss(batch, gradient=gradient)
    native.loss(batch, gradient=own)
    np.testing.assert_allclose(own.values.flat, gradient.values.flat, atol=1e-6)
    E, dE = network.parameters["encoder.E"], gradient.values["encoder.E"]
    for i, j in [(0, 0), (3, 2), (8, 5), (5, 1)]:
        around = []
        for step in (1e-5, -1e-5):
            E[i, j] += step
            around.append(network.loss(batch).sum)
            E[i, j] -= step
        assert dE[i, j] == pytest.approx((around[0] - around[1]) / 2e-5 / total.count, abs=1e-7)


def test_a_row_does_not_depend_on_the_batch() -> None:
    network = Network.initialise(CONFIG, 0)
    whole = network.outputs(EXAMPLES.batch(np.arange(3), per_step=True))
    for row, x in enumerate(EXAMPLES.x):
        alone = network.outputs(EXAMPLES.batch(np.array([row]), per_step=True))
        assert (alone[:, 0] == whole[: len(x), row]).all()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="embedding"):
        ModelConfig(inputs=3, outputs=3, features=2)
    network = Network.initialise(CONFIG, 0)
    with pytest.raises(InputError, match=r"\(tau, B, 3\)"):
        network.encoder.forward(np.zeros((4, 2), np.int32))


def test_words_are_read_by_their_features() -> None:
    encoder = TokenEncoder.fit([["reading", "Reading", "singing"]], tokens="char", subwords=True)
    (ids,) = encoder.encode([["reading", "ringing"]])
    known = [feature in encoder.vocab for feature in features_of("ringing")]
    assert ids.shape == (2, COUNT) and ((ids[1] > 0) == known).all() and sum(known) > 3
    assert encoder.encode([[]])[0].shape == (0, COUNT)
    from unspool.data.encoder_fields import Fields

    fields = read_as(Fields, encoder.to_json(), "config.json", "input")
    assert encoder_from_fields(fields, encoder.vocab) == encoder


def test_an_unseen_word_gets_the_label_of_its_form() -> None:
    rng, stems = np.random.default_rng(0), ["bad", "kor", "mit", "pel", "san", "tur", "vin", "gol"]
    X = [
        [stem + end for stem, end in zip(rng.permutation(stems), rng.choice(["as", "os"], 8), strict=True)]
        for _ in range(60)
    ]
    X = [[str(word) for word in row] for row in X]
    y = [[word[-2:] for word in row] for row in X]
    unseen = [["zubas", "lekos", "firas"]]
    scores = [
        SequenceTagger(steps=150, hidden=8, learning_rate=0.02, model="network", subwords=subwords)
        .fit(X, y)
        .score(unseen, [["as", "os", "as"]])
        for subwords in (True, False)
    ]
    assert scores[0] == 1.0 > scores[1]
