"""The network without hidden state: its gradients, what it learns, and that it plays by the protocol."""

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from unspool.baselines.autoregression import fit_autoregression
from unspool.baselines.laplace_smoothing import laplace
from unspool.baselines.multi_step import error_by_steps
from unspool.baselines.ngram_counts import count_ngrams
from unspool.baselines.window_network import (
    Training,
    WindowLanguageModel,
    backward_hidden,
    hidden,
    train_on_numbers,
    train_on_tokens,
)
from unspool.data.series.lags import noisy_sine
from unspool.errors import InputError
from unspool.evaluation.metrics import measure
from unspool.kernels import native, reference
from unspool.kernels.tape import Loss

Parameters = dict[str, np.ndarray]

H, K, N, TAU = 4, 5, 6, 3


def parameters(shape: tuple[int, ...]) -> Parameters:
    rng = np.random.default_rng(0)
    sizes = {"U": shape, "b": (H,), "V": (K, H), "c": (K,)}
    return {name: rng.standard_normal(size) for name, size in sizes.items()}


def inputs(tokens: bool) -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.integers(K, size=(N, TAU), dtype=np.int32) if tokens else rng.standard_normal((N, TAU))


def agree_with_differences(p: Parameters, loss: Callable[[], float], gradients: Parameters) -> None:
    for name, values in p.items():
        for index in np.ndindex(values.shape):
            kept, step = values[index], 1e-6
            values[index] = kept + step
            above = loss()
            values[index] = kept - step
            below = loss()
            values[index] = kept
            assert gradients[name][index] == pytest.approx((above - below) / (2 * step), rel=1e-6, abs=1e-8)


def cross_entropy(p: Parameters, x: np.ndarray, y: np.ndarray, kernel: ModuleType) -> tuple[Loss, Parameters]:
    """Score targets and compute all gradients."""
    h, gradients = hidden(p, x, kernel), {name: np.zeros_like(values) for name, values in p.items()}
    loss = kernel.softmax_cross_entropy(
        h, p["V"], p["c"], y, scale=1 / len(y), dV=gradients["V"], dc=gradients["c"]
    )
    backward_hidden(x, h, loss.dh, gradients, kernel)
    return loss, gradients


@pytest.mark.parametrize("tokens", [False, True])
def test_gradients_are_those_of_finite_differences(tokens: bool) -> None:
    p, x = parameters((TAU, K, H) if tokens else (H, TAU)), inputs(tokens)
    y = np.random.default_rng(2).integers(K, size=N, dtype=np.int32)
    gradients = cross_entropy(p, x, y, reference)[1]
    agree_with_differences(p, lambda: cross_entropy(p, x, y, reference)[0].mean, gradients)


@pytest.mark.parametrize("tokens", [False, True])
def test_the_native_kernels_agree_with_the_reference(tokens: bool) -> None:
    exact, x = parameters((TAU, K, H) if tokens else (H, TAU)), inputs(tokens)
    p = {name: values.astype(np.float32) for name, values in exact.items()}
    y = np.random.default_rng(2).integers(K, size=N, dtype=np.int32)
    found = []
    for kernel, at in ((reference, exact), (native, p)):
        loss, gradients = cross_entropy(at, x if tokens else x.astype(at["U"].dtype), y, kernel)
        found.append({"loss": loss.per_target} | gradients)
    for name, expected in found[0].items():
        np.testing.assert_allclose(found[1][name], expected, rtol=1e-4, atol=1e-6, err_msg=name)


def test_a_window_of_tokens_is_a_window_of_one_hot_vectors() -> None:
    tables, x = parameters((TAU, K, H)), inputs(tokens=True)
    dense = tables | {"U": tables["U"].transpose(2, 0, 1).reshape(H, TAU * K)}
    np.testing.assert_allclose(
        hidden(tables, x, reference), hidden(dense, np.eye(K)[x].reshape(N, -1), reference)
    )


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
    before = np.array([ids[7:10], [0, 0, ids[0]]], np.int32)
    nats = cross_entropy(p, before, ids[[10, 1]], native)[0].per_target
    assert model.log_prob(ids)[9] == -nats[0]
    assert model.log_prob(ids)[0] == -nats[1]


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
