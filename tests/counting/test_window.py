"""The network without hidden state: its gradients, what it learns, and that it plays by the protocol."""

import numpy as np
import pytest

from unspool.counting.ahead import error_by_steps
from unspool.counting.autoregression import fit_autoregression
from unspool.counting.laplace import laplace
from unspool.counting.mlp import Moments, Parameters, adam, backward, forward, softmax_cross_entropy
from unspool.counting.ngram import count_ngrams
from unspool.counting.window import Training, WindowLanguageModel, train_on_numbers, train_on_tokens
from unspool.data.series import noisy_sine
from unspool.errors import InputError
from unspool.measure import measure

H, K, N, TAU = 4, 5, 6, 3


def parameters(shape: tuple[int, ...]) -> Parameters:
    rng = np.random.default_rng(0)
    sizes = {"U": shape, "b": (H,), "V": (K, H), "c": (K,)}
    return {name: rng.standard_normal(size) for name, size in sizes.items()}


@pytest.mark.parametrize("tokens", [False, True])
def test_gradients_are_those_of_finite_differences(tokens: bool) -> None:
    rng = np.random.default_rng(1)
    p = parameters((TAU, K, H) if tokens else (H, TAU))
    x = rng.integers(K, size=(N, TAU)) if tokens else rng.standard_normal((N, TAU))
    y = rng.integers(K, size=N)

    def loss() -> float:
        return -float(softmax_cross_entropy(forward(p, x)[0], y)[0].mean())

    o, tape = forward(p, x)
    gradients = backward(p, tape, softmax_cross_entropy(o, y)[1])
    for name, values in p.items():
        for index in np.ndindex(values.shape):
            kept, step = values[index], 1e-6
            values[index] = kept + step
            above = loss()
            values[index] = kept - step
            below = loss()
            values[index] = kept
            assert gradients[name][index] == pytest.approx((above - below) / (2 * step), abs=1e-8)


def test_a_window_of_tokens_is_a_window_of_one_hot_vectors() -> None:
    rng = np.random.default_rng(2)
    tables, x = parameters((TAU, K, H)), rng.integers(K, size=(N, TAU))
    dense = tables | {"U": tables["U"].transpose(2, 0, 1).reshape(H, TAU * K)}
    np.testing.assert_allclose(forward(tables, x)[0], forward(dense, np.eye(K)[x].reshape(N, -1))[0])


def test_adam_takes_the_published_steps() -> None:
    p, moments = {"w": np.array([1.0, -2.0])}, Moments()
    m = v = np.zeros(2)
    expected = p["w"].copy()
    for t in range(1, 6):
        g = 2 * expected
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        expected = expected - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        adam(p, {"w": 2 * p["w"]}, moments, 0.1)
        np.testing.assert_allclose(p["w"], expected)


def test_it_learns_what_a_line_cannot() -> None:
    rng = np.random.default_rng(0)
    x = np.zeros(1500)
    for t in range(1, 1500):
        x[t] = 1 - 1.4 * x[t - 1] ** 2 + 0.1 * rng.standard_normal() * (abs(x[t - 1]) < 0.5)
        x[t] = np.clip(x[t], -1.2, 1.2)
    network = train_on_numbers(x[:1000], 2, rng, Training(H=32, steps=1500))
    line = fit_autoregression(x[:1000], 2)
    network_error, line_error = (error_by_steps(model, x[1000:], [1])[0] for model in (network, line))
    assert network_error < 0.5 * line_error


def test_its_errors_pile_up_too() -> None:
    x = noisy_sine(1000, np.random.default_rng(0))
    model = train_on_numbers(x[:600], 4, np.random.default_rng(0), Training(H=16, steps=600))
    errors = error_by_steps(model, x[600:], [1, 16, 64])
    assert errors[0] < 0.25
    assert (np.diff(errors) > 0).all()


def test_on_tokens_it_comes_close_to_the_counts_of_a_chain() -> None:
    rng = np.random.default_rng(0)
    step = rng.dirichlet(np.full(4, 0.5), size=4)
    text = [0]
    for _ in range(12_000):
        text.append(int(rng.choice(4, p=step[text[-1]])))
    ids = np.array(text, np.int32)
    model = train_on_tokens(ids[:10_000], 4, 2, rng, Training(H=16, steps=1200))
    counts = laplace(count_ngrams(ids[:10_000], 4, 2))
    assert measure(model.log_prob(ids[10_000:])).nats == pytest.approx(
        measure(counts.log_prob(ids[10_000:])).nats, abs=0.02
    )


def test_every_target_is_scored_once_and_with_what_stands_before_it() -> None:
    p = {name: values.astype(np.float32) for name, values in parameters((TAU, K, H)).items()}
    model = WindowLanguageModel(p)
    ids = np.random.default_rng(3).integers(K, size=20_000).astype(np.int32)
    assert len(model.log_prob(ids)) == len(ids) - 1
    assert len(model.log_prob(ids, given=0)) == len(ids)
    o, _ = forward(p, ids[None, 7:10])
    assert model.log_prob(ids)[9] == pytest.approx(softmax_cross_entropy(o, ids[10:11])[0][0], rel=1e-5)
    o, _ = forward(p, np.array([[0, 0, ids[0]]]))
    assert model.log_prob(ids)[0] == pytest.approx(softmax_cross_entropy(o, ids[1:2])[0][0], rel=1e-5)


def test_the_same_seed_trains_the_same_network() -> None:
    ids = np.random.default_rng(0).integers(5, size=500).astype(np.int32)
    one, two = (
        train_on_tokens(ids, 5, 2, np.random.default_rng(1), Training(H=4, steps=20)) for _ in range(2)
    )
    for name in one.parameters:
        np.testing.assert_array_equal(one.parameters[name], two.parameters[name])


def test_nonsense_is_refused() -> None:
    with pytest.raises(InputError, match="above 0"):
        Training(H=0)
    with pytest.raises(InputError, match="tau"):
        train_on_tokens(np.zeros(3, np.int32), 2, 3, np.random.default_rng(0))
