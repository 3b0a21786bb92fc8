"""Updates against PyTorch's optimisers, with clipping and decay as they say."""

import numpy as np
import pytest

import torch
from cases import config_of
from unspool.errors import Diverged, InputError
from unspool.model.parameters import Parameters, initialise
from unspool.optimisers import make_optimiser
from unspool.optimisers.adam import Adam
from unspool.optimisers.sgd import SGD


def gradients(n, steps=12, seed=0):
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal(n) * rng.choice([0.01, 1.0])).astype(np.float32) for _ in range(steps)]


def vector(*values):
    """Parameters that hold these values in one matrix."""
    parameters = Parameters({"W": (1, len(values))})
    parameters["W"][0] = values
    return parameters


@pytest.mark.parametrize("clip", [0.0, 0.5])
@pytest.mark.parametrize(
    ("name", "options", "theirs"),
    [
        ("sgd", {"momentum": 0}, lambda p: torch.optim.SGD(p, lr=0.01)),
        ("sgd", {}, lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9)),
        ("adam", {}, lambda p: torch.optim.Adam(p, lr=0.01)),
        ("rmsprop", {}, lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.0, 0.999))),
        ("rmsprop", {"beta2": 0.9}, lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.0, 0.9))),
        (
            "adam",
            {"beta2": 0.9, "epsilon": 1e-3},
            lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.9, 0.9), eps=1e-3),
        ),
    ],
)
def test_updates_with_clipping_equal_pytorchs(name, options, theirs, clip):
    parameters = initialise(config_of("lstm", "one-hot", 6), np.random.default_rng(0))
    value = torch.nn.Parameter(torch.tensor(parameters.flat, dtype=torch.float64))
    optimiser, other = make_optimiser(name, learning_rate=0.01, clip=clip, **options), theirs([value])
    for g in gradients(len(parameters.flat)):
        value.grad = torch.tensor(g, dtype=torch.float64)
        norm = torch.nn.utils.clip_grad_norm_([value], clip or torch.inf).item()
        other.step()
        assert optimiser.update(parameters, g) == pytest.approx(norm, rel=1e-6)
    # PyTorch divides by the norm plus 1e-6; ours by the norm.
    assert np.allclose(parameters.flat, value.detach().numpy(), rtol=2e-5, atol=2e-6)


def test_decay_shrinks_matrices_and_no_biases():
    parameters = initialise(config_of("gru", "embedded", 6), np.random.default_rng(0))
    parameters.flat[:] = 1
    matrices = torch.nn.Parameter(torch.ones(parameters.matrices, dtype=torch.float64))
    vectors = torch.nn.Parameter(torch.ones(len(parameters.flat) - parameters.matrices, dtype=torch.float64))
    groups = [{"params": [matrices], "weight_decay": 0.1}, {"params": [vectors], "weight_decay": 0.0}]
    other = torch.optim.AdamW(groups, lr=0.01)
    optimiser = Adam(learning_rate=0.01, decay=0.1, clip=0)
    for g in gradients(len(parameters.flat)):
        matrices.grad = torch.tensor(g[: parameters.matrices], dtype=torch.float64)
        vectors.grad = torch.tensor(g[parameters.matrices :], dtype=torch.float64)
        other.step()
        optimiser.update(parameters, g)
    expected = torch.cat([matrices, vectors]).detach().numpy()
    assert np.allclose(parameters.flat, expected, rtol=1e-5, atol=1e-6)


def test_clipping_keeps_the_direction_and_sets_the_length():
    parameters = vector(0, 0)
    assert SGD(learning_rate=1.0, momentum=0).update(parameters, vector(3, 4).flat) == 5.0
    assert parameters["W"][0].tolist() == pytest.approx([-0.6, -0.8], abs=1e-7)
    parameters = vector(0, 0)
    SGD(learning_rate=1.0, clip=6.0, momentum=0).update(parameters, vector(3, 4).flat)
    assert parameters["W"][0].tolist() == [-3, -4]


def test_a_schedules_rate_multiplies_the_learning_rate():
    full, half, g = vector(0, 0), vector(0, 0), vector(0.5, 0.25).flat
    SGD(learning_rate=0.5, momentum=0).update(full, g)
    SGD(learning_rate=1.0, momentum=0).update(half, g, rate=0.5)
    assert np.array_equal(full.flat, half.flat) and full.flat.any()


@pytest.mark.parametrize("kind", ["adam", "rmsprop", "sgd"])
def test_a_restored_optimiser_goes_on_to_the_same_bits(kind):
    first, straight = make_optimiser(kind), Parameters({"W": (16, 10)})
    steps = gradients(160)
    for g in steps:
        first.update(straight, g)
    second, broken = make_optimiser(kind), Parameters({"W": (16, 10)})
    for g in steps[:5]:
        second.update(broken, g)
    saved = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in second.state().items()}
    third = make_optimiser(kind)
    third.restore(saved)
    for g in steps[5:]:
        third.update(broken, g)
    assert np.array_equal(straight.flat, broken.flat) and third.step == 12


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_not_finite_moves_nothing(value):
    parameters, optimiser = vector(1, 2, 3), Adam()
    with pytest.raises(Diverged, match="step 1"):
        optimiser.update(parameters, vector(0, value, 1).flat)
    assert parameters["W"][0].tolist() == [1, 2, 3] and optimiser.step == 0


def test_a_gradient_of_another_length_moves_nothing():
    parameters = Parameters({"W": (1, 3), "b": (2,)})
    optimiser = Adam()
    for n in (16, 31, 33, 0):
        with pytest.raises(InputError):
            optimiser.update(parameters, np.ones(n, np.float32))
    assert not parameters.flat.any() and optimiser.step == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"optimiser": "lion"}, {"optimiser": None}, {"learning_rate": -1}, {"learning_rate": float("nan")},
        {"learning_rate": "fast"}, {"clip": float("inf")}, {"decay": -0.1}, {"beta1": 1.0}, {"beta2": -0.1},
        {"momentum": 1.0}, {"momentum": None}, {"epsilon": -1e-8},
    ],
    ids=str,
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(wrong):
    wrong = dict(wrong)
    with pytest.raises(InputError, match=next(iter(wrong))):
        make_optimiser(wrong.pop("optimiser", "adam" if "momentum" not in wrong else "sgd"), **wrong)


def test_a_vanishing_gradient_moves_nothing_however_small_epsilon_is():
    for size in (1e-13, 1e-18, 1e-20, 1e-30, 1e-38):
        parameters = Parameters({"W": (1, 20)})
        gradient = parameters.like()
        gradient["W"][:] = size
        Adam(epsilon=1e-30, learning_rate=0.1, clip=0).update(parameters, gradient.flat)
        assert np.abs(parameters["W"]).max() <= 0.1001


def test_a_saved_state_is_not_written_over_by_later_updates():
    parameters = Parameters({"W": (1, 20)})
    gradient = parameters.like()
    gradient["W"][:] = 1
    optimiser = Adam()
    optimiser.update(parameters, gradient.flat)
    saved = optimiser.state()
    before = saved["m"].copy()
    optimiser.update(parameters, gradient.flat)
    assert np.array_equal(saved["m"], before)
    with pytest.raises(InputError, match="m or v is missing"):
        Adam().restore({"step": 3, "m": None, "v": None})
