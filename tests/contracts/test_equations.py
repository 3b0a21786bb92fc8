"""Every formula of the textbook's walk through an RNN and of BPTT, computed independently, under its number.

The letters are the book's (Goodfellow, Bengio, Courville, *Deep Learning*, chapter 10; *Dive into Deep Learning*
for truncation and the linear case). Nothing here calls a twin: plain NumPy in float64, loops, and differences. The
model under test is the one that trains: float32 kernels.
"""

import numpy as np
import pytest

from unspool.gradients.by_lag import gradient_by_lag
from unspool.gradients.decomposition import decompose_gradient
from unspool.gradients.linear import decayed, linear_gradients, of_radius, powers, spectral_radius
from unspool.model.config import ModelConfig
from unspool.model.feedback import shift_right
from unspool.model.network import Model
from unspool.model.parameters import Parameters
from unspool.optimisers.base import Optimiser, OptimiserConfig

TAU, X, H, K = 5, 3, 4, 6
NEAR = {"rtol": 2e-5, "atol": 2e-6}


class Network:
    """One row through an Elman network, by the equations; everything is kept."""

    def __init__(self, activation="tanh", seed=0):
        rng = np.random.default_rng(seed)
        config = ModelConfig(
            cell="elman", inputs=X, outputs=K, hidden=H, dense=True, activation=activation, learn_h0=True
        )
        self.model = Model.initialise(config, seed=seed)
        self.model.parameters.flat[:] = rng.uniform(-0.8, 0.8, self.model.parameters.flat.shape)
        self.x, self.y = rng.standard_normal((TAU, X)).astype(np.float32), rng.integers(0, K, TAU)
        self.act = {"tanh": np.tanh, "identity": lambda a: a}[activation]
        self.p = {n.removeprefix("layer0."): v.astype(np.float64) for n, v in self.model.parameters.items()}

    def states(self, p=None, x=None, nudge=None):
        """10.8, 10.9; `nudge` (t, vector) is added to h(t)."""
        p, h, a_all, h_all = p or self.p, (p or self.p)["h0"], [], []
        for t in range(TAU):
            a = p["b"] + p["W"] @ h + p["U"] @ (self.x if x is None else x)[t]
            h = self.act(a) + (nudge[1] if nudge is not None and nudge[0] == t else 0)
            a_all.append(a)
            h_all.append(h)
        return np.array(a_all), np.array(h_all)

    def outputs(self, p=None, **more):
        """10.10, 10.11."""
        p = p or self.p
        o = p["c"] + self.states(p, **more)[1] @ p["V"].T
        return o, np.exp(o) / np.exp(o).sum(axis=1, keepdims=True)

    def loss(self, p=None, **more):
        """10.12 to 10.14: the sum over steps."""
        return -np.log(self.outputs(p, **more)[1][np.arange(TAU), self.y]).sum()

    def differences(self, name):
        found = np.zeros(self.p[name].shape)
        for at in np.ndindex(found.shape):
            sides = []
            for step in (1e-6, -1e-6):
                moved = self.p[name].copy()
                moved[at] += step
                sides.append(self.loss(self.p | {name: moved}))
            found[at] = (sides[0] - sides[1]) / 2e-6
        return found

    def kernels(self):
        """What the engine says: output, loss and gradients of one row."""
        model, gradient = self.model, self.model.gradient()
        output = model.forward(self.x[:, None])
        loss = model.loss(output, self.y[:, None].astype(np.int32), gradient=gradient)
        _, starts = model.backward(output, loss.dh, gradient)
        model.add_initial_state_gradient(starts, gradient)
        model.fold_input_tables(gradient)
        return output, loss, gradient.values

    def apart(self):
        return decompose_gradient(self.model, self.x[:, None], self.y[:, None].astype(np.int32))


@pytest.fixture(scope="module")
def network():
    return Network()


def test_equation_10_8_the_pre_activation(network):
    np.testing.assert_allclose(network.apart().a()[:, 0], network.states()[0], rtol=1e-10)


def test_equation_10_9_the_state(network):
    np.testing.assert_allclose(network.kernels()[0].h[:, 0], network.states()[1], **NEAR)


def test_equation_10_10_the_output(network):
    output = network.kernels()[0]
    np.testing.assert_allclose(network.model.logits(output)[:, 0], network.outputs()[0], **NEAR)


def test_equation_10_11_the_softmax(network):
    np.testing.assert_allclose(network.apart().y_hat[:, 0], network.outputs()[1], rtol=1e-10)


def test_equations_10_12_to_10_14_the_loss_is_a_sum_over_steps_and_its_mean_is_another_number(network):
    loss = network.kernels()[1]
    by_step = -np.log(network.outputs()[1][np.arange(TAU), network.y])
    np.testing.assert_allclose(loss.per_target[:, 0], by_step, rtol=1e-5)
    assert loss.sum == pytest.approx(by_step.sum(), rel=1e-6) and loss.count == TAU
    assert loss.mean == pytest.approx(by_step.mean(), rel=1e-6)


def test_equation_10_17_the_whole_loss_moves_as_much_as_one_steps(network):
    assert network.loss() == pytest.approx(sum(network.apart().L[:, 0]))  # ∂L/∂L(t) = 1


def test_equation_10_18_the_gradient_of_an_output(network):
    do = network.outputs()[1] - np.eye(K)[network.y]
    np.testing.assert_allclose(network.apart().do[:, 0], do, rtol=1e-9)


def nudged_states(network):
    """∂L/∂h(t), by differences of the states themselves."""
    found = np.zeros((TAU, H))
    for t, i in np.ndindex(TAU, H):
        step = 1e-6 * np.eye(H)[i]
        found[t, i] = (network.loss(nudge=(t, step)) - network.loss(nudge=(t, -step))) / 2e-6
    return found


def test_equation_10_19_the_gradient_of_the_last_state(network):
    do = network.outputs()[1] - np.eye(K)[network.y]
    expected = network.p["V"].T @ do[-1]
    np.testing.assert_allclose(network.apart().dh()[-1, 0], expected, rtol=1e-9)
    np.testing.assert_allclose(nudged_states(network)[-1], expected, rtol=1e-6, atol=1e-8)


def test_equations_10_20_and_10_21_the_gradient_of_every_state_and_the_misprint_of_lecture_notes(network):
    (_, h), do, p = network.states(), network.outputs()[1] - np.eye(K)[network.y], network.p
    right, misprinted = np.zeros((TAU, H)), np.zeros((TAU, H))
    right[-1] = misprinted[-1] = p["V"].T @ do[-1]
    for t in range(TAU - 2, -1, -1):
        slopes = 1 - h[t + 1] ** 2
        right[t] = p["W"].T @ np.diag(slopes) @ right[t + 1] + p["V"].T @ do[t]
        misprinted[t] = (p["W"].T @ misprinted[t + 1]) @ np.diag(slopes) + p["V"].T @ do[t]
    truth = nudged_states(network)
    np.testing.assert_allclose(right, truth, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(network.apart().dh()[:, 0], right, rtol=1e-9)
    assert np.abs(misprinted[:-1] - truth[:-1]).max() > 0.01


@pytest.mark.parametrize(
    ("number", "name"), [("10.22", "c"), ("10.23", "b"), ("10.24", "V"), ("10.26", "W"), ("10.28", "U")]
)
def test_equations_10_22_to_10_28_the_gradients_are_sums_over_steps(network, number, name):
    (_, h), do, p = network.states(), network.outputs()[1] - np.eye(K)[network.y], network.p
    before = np.concatenate([p["h0"][None], h[:-1]])
    dh = nudged_states(network)
    total = 0
    for t in range(TAU):
        da = np.diag(1 - h[t] ** 2) @ dh[t]
        total = (
            total
            + {
                "c": do[t],
                "b": da,
                "V": np.outer(do[t], h[t]),
                "W": np.outer(da, before[t]),
                "U": np.outer(da, network.x[t]),
            }[name]
        )
    np.testing.assert_allclose(total, network.differences(name), rtol=1e-5, atol=1e-7)
    full = name if name in "cV" else f"layer0.{name}"
    np.testing.assert_allclose(network.kernels()[2][full], total, **NEAR)
    np.testing.assert_allclose(network.apart().gradient(full), total, rtol=1e-6, atol=1e-9)


def test_the_delta_form_of_the_same_sums(network):
    """δ(t) = ∂L/∂h(t) from t = τ back, then W, b and U from δ: the other way lecture notes write it."""
    (_, h), do, p = network.states(), network.outputs()[1] - np.eye(K)[network.y], network.p
    delta = p["V"].T @ do[-1]
    dW, db, dU = np.zeros((H, H)), np.zeros(H), np.zeros((H, X))
    for t in range(TAU - 1, -1, -1):
        da = (1 - h[t] ** 2) * delta
        before = h[t - 1] if t else p["h0"]
        dW, db, dU = dW + np.outer(da, before), db + da, dU + np.outer(da, network.x[t])
        delta = p["W"].T @ da + (p["V"].T @ do[t - 1] if t else 0)
    gradient = network.kernels()[2]
    for name, value in (("W", dW), ("b", db), ("U", dU), ("h0", delta)):
        np.testing.assert_allclose(gradient[f"layer0.{name}"], value, **NEAR)


def test_without_the_state_before_it_is_a_network_without_memory(network):
    """h = f(U x + b): with W = 0 the order of the steps does not matter."""
    model = Model(
        network.model.config,
        Parameters(network.model.parameters.shapes, network.model.parameters.flat.copy()),
    )
    model.parameters["layer0.W"][:] = 0
    there, back = model.forward(network.x[:, None]).h, model.forward(network.x[::-1, None].copy()).h
    np.testing.assert_array_equal(there, back[::-1])
    np.testing.assert_allclose(there[:, 0], np.tanh(network.x @ network.p["U"].T + network.p["b"]), **NEAR)


def test_figure_10_4_the_output_before_takes_the_place_of_the_state():
    config = ModelConfig(cell="elman", inputs=X, outputs=K, hidden=H, dense=True, pattern="10.4")
    model, rng = Model.initialise(config, seed=1), np.random.default_rng(1)
    x, y = rng.standard_normal((TAU, 1, X)).astype(np.float32), rng.integers(0, K, (TAU, 1)).astype(np.int32)
    p = {n.removeprefix("layer0."): v.astype(np.float64) for n, v in model.parameters.items()}
    for t in range(TAU):
        fed = np.eye(K)[y[t - 1, 0]] if t else np.zeros(K)
        h = np.tanh(p["b"] + p["U"] @ x[t, 0] + p["R"] @ fed)
        np.testing.assert_allclose(model.forward(x, y=y).h[t, 0], h, **NEAR)
    assert shift_right(y, np.array([-1])).tolist() == [[-1], *y[:-1].tolist()]


def test_figure_10_5_one_output_after_the_whole_sequence(network):
    config = ModelConfig(
        cell="elman", inputs=X, outputs=K, hidden=H, dense=True, learn_h0=True, pattern="10.5"
    )
    model = Model(config, network.model.parameters)
    o = model.logits(model.forward(network.x[:, None]))
    np.testing.assert_allclose(o[0], network.outputs()[0][-1], **NEAR)


def test_c5_the_concatenation_identity():
    """[X, H] [W_xh; W_hh] = X W_xh + H W_hh."""
    rng = np.random.default_rng(0)
    X_, H_, W_xh, W_hh = (rng.standard_normal(shape) for shape in ((3, 1), (3, 4), (1, 4), (4, 4)))
    apart = X_ @ W_xh + H_ @ W_hh
    at_once = np.concatenate([X_, H_], axis=1) @ np.concatenate([W_xh, W_hh], axis=0)
    np.testing.assert_allclose(at_once, apart, rtol=1e-12)


def test_c5_a_step_of_the_model_is_one_product_of_the_concatenation(network):
    p, (_, h) = network.p, network.states()
    both = np.concatenate([p["U"], p["W"]], axis=1)  # H X+H
    for t in range(1, TAU):
        step = np.tanh(both @ np.concatenate([network.x[t], h[t - 1]]) + p["b"])
        np.testing.assert_allclose(network.kernels()[0].h[t, 0], step, **NEAR)


# ── the general recurrence, its closed sum, the linear case ────────────────────────────────────────────────


def test_the_sequence_a_t_is_b_t_plus_c_t_times_the_one_before_in_closed_form():
    rng = np.random.default_rng(0)
    b, c = rng.standard_normal((2, 9))
    a = 0.0
    for t in range(9):
        a = b[t] + c[t] * a
        closed = b[t] + sum(np.prod(c[i + 1 : t + 1]) * b[i] for i in range(t))
        assert a == pytest.approx(closed)


def test_the_closed_sum_for_dh_by_dw_ends_with_the_derivative_by_w_at_its_own_step(network):
    """dh(t)/dW = Σ_i (Π_{j>i} ∂h(j)/∂h(j-1)) ∂f(x(i), h(i-1), W)/∂W; lecture notes end with ∂f/∂h(t-1)."""
    (_, h), p = network.states(), network.p
    before = np.concatenate([p["h0"][None], h[:-1]])
    t = TAU - 1
    closed = np.zeros((H, H, H))
    for i in range(TAU):
        product = np.eye(H)
        for j in range(t, i, -1):
            product = product @ np.diag(1 - h[j] ** 2) @ p["W"]
        by_W = np.einsum("i,ij,k->ijk", 1 - h[i] ** 2, np.eye(H), before[i])
        closed += np.einsum("ij,jkl->ikl", product, by_W)
    moved = np.zeros((H, H, H))
    for k, j in np.ndindex(H, H):
        sides = []
        for step in (1e-6, -1e-6):
            W = p["W"].copy()
            W[k, j] += step
            sides.append(network.states(p | {"W": W})[1][-1])
        moved[:, k, j] = (sides[0] - sides[1]) / 2e-6
    np.testing.assert_allclose(closed, moved, rtol=1e-5, atol=1e-8)


def test_the_linear_case_in_closed_form_equals_the_kernels_and_the_books_way_of_counting():
    network = Network("identity", seed=3)
    network.p["h0"] = np.zeros(H)
    network.model.parameters["layer0.h0"][:] = 0
    network.model.parameters["layer0.b"][:] = 0
    network.p["b"] = np.zeros(H)
    do = network.outputs()[1] - np.eye(K)[network.y]
    p = network.p
    closed = linear_gradients(p["U"], p["W"], p["V"], network.x.astype(np.float64), do)
    gradient = network.kernels()[2]
    for name, full in (("W", "layer0.W"), ("U", "layer0.U"), ("V", "V")):
        np.testing.assert_allclose(gradient[full], closed[name], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(network.apart().dh()[:, 0], closed["dh"], rtol=1e-6, atol=1e-8)
    for t in range(1, TAU + 1):  # Σ_{i=t}^{T} (Wᵀ)^(T-i) W_qhᵀ ∂L/∂o(T+t-i), steps counted from 1
        other = sum(
            np.linalg.matrix_power(p["W"].T, TAU - i) @ p["V"].T @ do[TAU + t - i - 1]
            for i in range(t, TAU + 1)
        )
        np.testing.assert_allclose(other, closed["dh"][t - 1], rtol=1e-10)


@pytest.mark.parametrize(("radius", "fate"), [(0.9, "dies"), (1.0, "stays"), (1.1, "explodes")])
def test_powers_of_w_die_stay_or_explode_with_the_spectral_radius(radius, fate):
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0]
    W = of_radius(rotation, radius)
    assert spectral_radius(W) == pytest.approx(radius)
    norms = powers(W, np.ones(8), 60) / np.sqrt(8)
    np.testing.assert_allclose(norms, radius ** np.arange(61), rtol=1e-9)
    end = norms[-1]
    assert {"dies": end < 0.002, "stays": abs(end - 1) < 1e-9, "explodes": end > 300}[fate]


def test_clipping_bounds_an_update_and_decay_brings_the_radius_down():
    parameters = Parameters({"W": (8, 8)})
    gradient = parameters.like()
    gradient["W"][:] = 1.1**60
    sgd = Optimiser(OptimiserConfig(kind="sgd", learning_rate=1.0, clip=1.0))
    norm = sgd.update(parameters, gradient.flat)
    assert norm > 2000 and np.linalg.norm(parameters["W"]) == pytest.approx(1.0, rel=1e-5)
    W = of_radius(np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0], 1.1)
    decaying = Optimiser(OptimiserConfig(kind="sgd", learning_rate=0.1, decay=0.1, clip=0))
    parameters["W"][:] = W
    gradient["W"][:] = 0
    for _ in range(20):
        decaying.update(parameters, gradient.flat)
    shrunk = decayed(W, rate=0.1, decay=0.1, updates=20)
    np.testing.assert_allclose(parameters["W"], shrunk, rtol=1e-5)
    assert spectral_radius(shrunk) == pytest.approx(1.1 * 0.99**20) and spectral_radius(shrunk) < 1


def test_the_gradient_by_lag_is_the_double_sum_over_the_step_of_the_loss_and_the_step_of_w(network):
    (_, h), do, p = network.states(), network.outputs()[1] - np.eye(K)[network.y], network.p
    before, parts = np.concatenate([p["h0"][None], h[:-1]]), np.zeros((TAU, H, H))
    for t in range(TAU):
        carried = p["V"].T @ do[t]
        for k in range(t, -1, -1):
            da = (1 - h[k] ** 2) * carried
            parts[t - k] += np.outer(da, before[k])
            carried = p["W"].T @ da
    by_lag = gradient_by_lag(network.model, network.x[:, None], network.y[:, None].astype(np.int32))
    np.testing.assert_allclose(by_lag.norms["layer0.W"], [np.linalg.norm(part) for part in parts], rtol=1e-9)
    np.testing.assert_allclose(parts.sum(axis=0), network.differences("W"), rtol=1e-5, atol=1e-7)
