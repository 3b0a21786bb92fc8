"""A network with products in bf16: near float64, the bits of the reference, and the same bits however a window is read."""

import pickle
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from unspool import CutWarning, Model, ModelConfig, Stream, choose_isa, kernel_info, set_threads
from unspool.errors import InputError
from unspool.gradients.bptt import backpropagate
from unspool.gradients.check import by_backend
from unspool.kernels import native, native_bf16, reference, reference_bf16
from unspool.model.gradient import Gradient, steps_between_cuts
from unspool.optimisers.adam import Adam

K, TAU = 11, 96
CONFIGS = {
    "elman": {"cell": "elman", "hidden": 33},
    "gru": {"cell": "gru", "hidden": 37, "embedding": 9},
    "lstm": {"cell": "lstm", "hidden": 40, "layers": 2, "recurrent_dropout": 0.2},
    "lnlstm": {"cell": "lnlstm", "hidden": 17, "learn_h0": True},
    "tied": {"cell": "gru", "hidden": 24, "embedding": 24, "tied": True, "dropout": 0.3},
    "logits": {"cell": "elman", "hidden": 20, "pattern": "10.4", "feedback": "logits"},
    "both": {"cell": "gru", "hidden": 21, "bidirectional": True},
    "dense": {"cell": "lstm", "hidden": 18, "dense": True},
}
ONE_WAY = [name for name in CONFIGS if name != "both"]


def model_of(name: str) -> Model:
    return Model.initialise(ModelConfig(inputs=K, outputs=K, precision="bf16", **CONFIGS[name]), seed=1)  # type: ignore[arg-type]


def window(model: Model, B: int, tau: int = TAU):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(5)
    x = rng.integers(0, K, (TAU, 8)).astype(np.int32)
    values = rng.standard_normal((TAU, 8, K)).astype(np.float32)
    y = rng.integers(0, K, (TAU, 8)).astype(np.int32)
    lengths = np.array([TAU, 50, 3, TAU, 70, 1, TAU, 95], np.int32)
    x = values if model.config.dense else x
    return x[:tau, :B].copy(), y[:tau, :B].copy(), np.minimum(lengths[:B], tau)


def gradient_of(model: Model, B: int, recompute: str = "none", carry_after: int | None = None):  # type: ignore[no-untyped-def]
    x, y, lengths = window(model, B)
    gradient, weights = model.gradient(), model.weights()
    masks = model.masks(B, seed=3, step=7)
    y[np.arange(TAU)[:, None] >= lengths] = -1
    found = backpropagate(
        model, x, y, None, gradient, lengths=lengths, masks=masks, weights=weights, recompute=recompute, carry_after=carry_after
    )  # type: ignore[arg-type] # fmt: skip
    model.add_initial_state_gradient(found.d_initial_state, gradient)
    model.fold_input_tables(gradient, weights)
    return found, gradient.flat.copy()


@pytest.fixture(params=[(isa, threads) for isa in kernel_info()["available"] for threads in (1, 3)], ids=str)
def machine(request: pytest.FixtureRequest) -> Iterator[None]:
    before = kernel_info()
    choose_isa(request.param[0])
    set_threads(request.param[1])
    yield
    choose_isa(before["bf16"])
    set_threads(before["threads"])


@pytest.fixture(scope="module")
def plain() -> dict[str, bytes]:
    before = kernel_info()
    choose_isa("plain")
    set_threads(1)
    found = {name: gradient_of(model_of(name), 8)[1].tobytes() for name in CONFIGS}
    choose_isa(before["bf16"])
    set_threads(before["threads"])
    return found


@pytest.mark.parametrize("name", CONFIGS)
def test_every_machine_finds_the_same_gradient(machine: None, plain: dict[str, bytes], name: str) -> None:
    assert gradient_of(model_of(name), 8)[1].tobytes() == plain[name]


@pytest.mark.parametrize("name", CONFIGS)
def test_a_gradient_is_near_that_of_float64_and_nearer_to_that_of_the_reference_in_bf16(name: str) -> None:
    model = model_of(name)
    x, y, _ = window(model, 5, tau=20)
    ours, theirs, exact, in_float32 = (
        by_backend(model, x, y, backend) for backend in (native_bf16, reference_bf16, reference, native)
    )
    for each, value in exact.items():
        norm = np.linalg.norm(value)
        assert np.linalg.norm(ours[each] - value) <= 0.05 * norm
        assert np.linalg.norm(ours[each] - theirs[each]) <= 0.01 * norm
        assert np.linalg.norm(in_float32[each] - value) <= 1e-5 * norm
    assert any((ours[each] != in_float32[each]).any() for each in exact)


@pytest.mark.parametrize("name", ONE_WAY)
@pytest.mark.parametrize("B", [1, 3, 8])
def test_recomputing_a_window_changes_no_bit(name: str, B: int) -> None:
    model = model_of(name)
    kept, few = (gradient_of(model, B, recompute, carry_after=41) for recompute in ("none", "sqrt"))
    assert (kept[1] == few[1]).all()
    assert kept[0].loss.sum == few[0].loss.sum
    for a, b in zip(kept[0].at, few[0].at, strict=True):
        assert (a[0] == b[0]).all()


@pytest.mark.parametrize("name", ["elman", "gru", "lstm", "lnlstm"])
def test_rows_and_steps_alone_have_the_bits_of_the_whole_window(name: str) -> None:
    model = model_of(name)
    x, _, _ = window(model, 8)
    whole = model.logits(model.forward(x))
    assert (model.logits(model.forward(x[:, 2:3].copy()))[:, 0] == whole[:, 2]).all()
    first = model.forward(x[:40])
    assert (model.logits(model.forward(x[40:], first.state)) == whole[40:]).all()
    stream = Stream(model)
    for t in range(20):
        stream.read(int(x[t, 0]))
        assert (stream.logits() == whole[t, 0]).all()


def in_two_parts(model: Model, cut: int) -> Gradient:
    x, y, _ = window(model, 8)
    gradient, first = model.gradient(), model.forward(x[:cut])
    second = model.forward(x[cut:], first.state)
    loss = model.loss(second, y[cut:], gradient=gradient)
    _, arriving = model.backward(second, loss.dh, gradient)
    loss = model.loss(first, y[:cut], gradient=gradient)
    model.backward(first, loss.dh, gradient, d_final_state=arriving)
    model.fold_input_tables(gradient)
    return gradient


def test_a_window_that_is_cut_on_the_grid_has_the_same_gradient_and_off_it_is_reported() -> None:
    model = model_of("gru")
    assert steps_between_cuts(model.backend.BLOCK, 8) == 4
    whole = model.gradient()
    x, y, _ = window(model, 8)
    backpropagate(model, x, y, None, whole)
    model.fold_input_tables(whole)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cut in (4, 40, 92):
            assert (in_two_parts(model, cut).flat == whole.flat).all()
    with pytest.warns(CutWarning, match="after 408 rows.*multiples of 4 steps"):
        in_two_parts(model, 45)


def test_another_window_has_another_gradient_which_is_added() -> None:
    model = model_of("tied")
    x, y, _ = window(model, 8)
    a, b, together = (model.gradient() for _ in range(3))
    for gradient, steps in ((a, slice(48)), (b, slice(48, None))):
        backpropagate(model, x[steps], y[steps], None, gradient)
        model.fold_input_tables(gradient)
    with pytest.raises(InputError, match="this gradient is complete"):
        backpropagate(model, x, y, None, a)
    backpropagate(model, x[48:], y[48:], None, together)
    model.fold_input_tables(together)
    assert (b.flat == together.flat).all()
    together.add(a)
    assert (together.flat == a.flat + b.flat).all()
    together.clear()
    backpropagate(model, x[48:], y[48:], None, together)
    model.fold_input_tables(together)
    assert (together.flat == b.flat).all()


def test_float32_and_float64_are_cut_anywhere_without_a_word() -> None:
    model = model_of("gru")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_two_parts(model.on(native), 45)
        in_two_parts(model.on(reference), 45)


def test_twenty_updates_end_in_the_same_bits_on_every_machine(machine: None, updated: bytes) -> None:
    assert twenty_updates() == updated


@pytest.fixture(scope="module")
def updated() -> bytes:
    return twenty_updates()


def twenty_updates() -> bytes:
    model, optimiser = model_of("lstm"), Adam(learning_rate=0.01)
    x, y, _ = window(model, 8)
    gradient = model.gradient()
    for step in range(20):
        gradient.clear()
        backpropagate(model, x, y, None, gradient, scale=1 / y.size, masks=model.masks(8, seed=0, step=step))
        model.fold_input_tables(gradient)
        optimiser.update(model.parameters, gradient.flat)
    return model.parameters.flat.tobytes()


def test_a_copy_keeps_its_precision() -> None:
    model = pickle.loads(pickle.dumps(model_of("gru")))
    assert model.config.precision == "bf16" and model.backend is native_bf16


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(InputError, match="precision is 'fp8'; expected one of float32, bf16"):
        ModelConfig(inputs=3, outputs=3, precision="fp8")  # type: ignore[arg-type]
