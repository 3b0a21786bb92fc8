"""The contributions add up to the gradient; every quantity is what PyTorch's autograd says; lags add up too."""

import numpy as np
import pytest

import torch
from cases import CELLS, Windowed, config_of
from torch_cells import STEPS
from unspool.errors import InputError
from unspool.gradients.bptt import backpropagate
from unspool.gradients.by_lag import gradient_by_lag
from unspool.gradients.decomposition import decompose_gradient
from unspool.gradients.jacobians import horizon, influence, jacobian, radii
from unspool.gradients.linear import spectral_radius
from unspool.kernels import reference
from unspool.model.config import ModelConfig
from unspool.model.network import Model


def kernels(case):
    """The gradients that training uses."""
    model, gradient = case.model, case.model.gradient()
    output = model.forward(case.x, case.start, lengths=case.lengths)
    loss = model.loss(output, case.y, gradient=gradient)
    model.backward(output, loss.dh, gradient)
    model.fold_input_tables(gradient)
    return loss, gradient.values


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", ["one-hot", "dense", "embedded"])
@pytest.mark.parametrize("cell", CELLS)
def test_the_shares_of_all_steps_add_up_to_the_gradient_of_the_kernels(cell, kind, bidirectional):
    case = Windowed(config_of(cell, kind, 5, layers=2, bidirectional=bidirectional), tau=6, B=3, ragged=True)
    apart = decompose_gradient(case.model, case.x, case.y, case.start, lengths=case.lengths)
    loss, gradient = kernels(case)
    np.testing.assert_allclose(apart.L, loss.per_target, rtol=1e-5, atol=1e-6)
    for name in apart.names:
        total = apart.contributions(name).sum(axis=0)
        np.testing.assert_allclose(total, apart.gradient(name), rtol=1e-12, atol=1e-12)
        scale = np.abs(total).max()
        np.testing.assert_allclose(gradient[name], total, rtol=0, atol=2e-5 * scale, err_msg=name)
        norms = [np.linalg.norm(part) for part in apart.contributions(name)]
        np.testing.assert_allclose(apart.contribution_norms(name), norms)


def elman_in_torch(case):
    """Equations 10.8 to 10.14 in PyTorch, every intermediate quantity kept for its gradient."""
    p = {name: torch.tensor(v.astype(np.float64)) for name, v in case.model.parameters.items()}
    h, found = (
        torch.zeros(case.B, case.config.hidden, dtype=torch.float64),
        {"a": [], "h": [], "o": [], "L": []},
    )
    for t in range(case.tau):
        a = p["layer0.b"] + h @ p["layer0.W"].T + torch.tensor(case.x[t].astype(np.float64)) @ p["layer0.U"].T
        a.requires_grad_() if t == 0 else a.retain_grad()
        h = torch.tanh(a)
        o = h @ p["V"].T + p["c"]
        for each in (h, o):
            each.retain_grad()
        y = torch.tensor(case.y[t]).long()
        L = torch.nn.functional.cross_entropy(o, y, reduction="none", ignore_index=-1)
        for name, value in (("a", a), ("h", h), ("o", o), ("L", L)):
            found[name].append(value)
    torch.stack(found["L"]).sum().backward()
    return found


def test_every_named_quantity_is_what_autograd_finds():
    case = Windowed(config_of("elman", "dense", 4), tau=5, B=2)
    theirs = elman_in_torch(case)
    arrays = dict(decompose_gradient(case.model, case.x, case.y).arrays())
    for name, key in (("layer0.a", "a"), ("layer0.h", "h"), ("o", "o"), ("L", "L")):
        np.testing.assert_allclose(arrays[name], torch.stack(theirs[key]).detach(), rtol=1e-12, atol=1e-12)
    for name, key in (("layer0.da", "a"), ("layer0.dh", "h"), ("do", "o")):
        slopes = np.stack([each.grad.numpy() for each in theirs[key]])
        np.testing.assert_allclose(arrays[name], slopes, rtol=1e-11, atol=1e-12)
    e = np.exp(arrays["o"])
    np.testing.assert_allclose(arrays["y_hat"], e / e.sum(axis=-1, keepdims=True))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("cell", CELLS)
def test_the_gradient_of_every_state_is_what_a_nudge_of_it_finds(cell, reverse):
    case = Windowed(config_of(cell, "dense", 3, bidirectional=reverse), tau=4, B=2, ragged=True)
    apart = decompose_gradient(case.model, case.x, case.y, lengths=case.lengths)
    tape, arriving = apart.output.tape[0].directions[reverse], apart.layers[0].dh[reverse]
    dh = apart.dh(0, reverse)
    ds = np.zeros(dh.shape[1:]) if tape.cell.has_cell_state else None
    order = list(range(4)) if not reverse else [3, 2, 1, 0]
    for place, t in enumerate(order):  # what arrives at h(t), by taking only the later steps back
        later = order[place + 1 :]
        first, last = (min(later), max(later) + 1) if later else (0, 0)
        if not later:
            expected = arriving[t]
        else:
            cut = reference.Tape(
                tape.cell, tape.activation, reverse, np.clip(tape.lengths - first, 0, last - first), None,
                tape.hs[first : last + 1], None if tape.ss is None else tape.ss[first : last + 1],
                None if tape.gates is None else tape.gates[first:last], None,
            )  # fmt: skip
            own = apart.model.parameters.layer(0, reverse)
            extra = [own[each.name] for each in tape.cell.extra]
            after = reference.window_backward(
                cut, own.get("W"), extra=extra, dh=arriving[first:last], ds_end=ds
            )
            expected = arriving[t] + after.dh0
        np.testing.assert_allclose(dh[t], expected, rtol=1e-11, atol=1e-13)


def test_a_share_that_is_not_there_is_refused():
    case = Windowed(config_of("elman", "one-hot", 3), tau=4, B=2)
    apart = decompose_gradient(case.model, case.x, case.y)
    with pytest.raises(InputError, match="'X' is not decomposed"):
        apart.contribution("X", 0)
    with pytest.raises(InputError, match="step 4 is beyond the window"):
        apart.contribution("c", 4)
    with pytest.raises(InputError, match="y is"):
        decompose_gradient(case.model, case.x, case.y[:2])


# ── Jacobians ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid", "identity"])
@pytest.mark.parametrize("cell", CELLS)
def test_a_steps_jacobian_is_what_the_backward_pass_does_to_every_unit_vector(cell, activation):
    if cell != "elman" and activation != "tanh":
        return
    case = Windowed(config_of(cell, "one-hot", 4, activation=activation), tau=3, B=1)
    model = case.model.on(reference)
    tape = model.forward(case.x, case.start).tape[0].directions[0]
    own, width = model.parameters.layer(0, False), 4 * tape.cell.parts
    W, extra = own.get("W"), [own[each.name] for each in tape.cell.extra]
    product = np.eye(width)
    for t in (2, 1, 0):
        product = product @ jacobian(tape, W, t, extra=extra)
    for i, unit in enumerate(np.eye(width)):
        ds = unit[None, 4:] if tape.cell.has_cell_state else None
        back = reference.window_backward(tape, W, extra=extra, dh_end=unit[None, :4], ds_end=ds)
        row = back.dh0[0] if back.ds0 is None else np.concatenate([back.dh0[0], back.ds0[0]])
        np.testing.assert_allclose(product[i], row, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("cell", CELLS)
def test_vector_products_find_the_same_influence_as_products_of_jacobians(cell):
    model = Model.initialise(ModelConfig(cell=cell, inputs=7, outputs=7, hidden=24), seed=3)
    x = np.random.default_rng(0).integers(0, 7, (60, 2)).astype(np.int32)
    lags = [0, 1, 2, 5, 12, 30]
    products = influence(model, x, lags=lags, row=1, places=3, exact=True)
    vectors = influence(model, x, lags=lags, row=1, places=3, exact=False)
    assert products.exact and not vectors.exact
    np.testing.assert_allclose(vectors.norm, products.norm, rtol=0.02)
    np.testing.assert_allclose(vectors.mean, products.mean, rtol=0.5)
    assert all(mean <= norm * (1 + 1e-9) for mean, norm in zip(products.mean, products.norm, strict=True))


def test_a_linear_network_forgets_by_the_powers_of_w():
    model = Model.initialise(
        ModelConfig(cell="elman", inputs=3, outputs=3, hidden=6, activation="identity"), seed=0
    )
    model.parameters["layer0.W"][:] *= 0.8  # a rotation, shortened: all singular values 0.8
    seen = influence(model, np.zeros((20, 1), np.int32), lags=10)
    np.testing.assert_allclose(seen.norm, 0.8 ** np.arange(11), rtol=1e-5)
    assert radii(model)["a"] == pytest.approx(0.8, rel=1e-5)
    assert horizon(seen.lags, seen.norm, 0.5) == 4  # 0.8^4 = 0.41


def test_the_horizon_is_where_the_influence_stays_below_and_not_where_it_dips():
    assert horizon([0, 1, 2, 3, 4], [1, 0.1, 0.9, 0.1, 0.1], 0.5) == 3
    assert horizon([0, 2, 4], [4, 1, 1], 0.5) == 2
    assert horizon([0, 1], [1, 0.9], 0.5) is None


# ── gradients by lag ───────────────────────────────────────────────────────────────────────────────────────


def torch_parameters(case, layer):
    """One layer's parameters in float64 under their letters."""
    found = case.model.parameters.layer(layer, False)
    return {name: torch.tensor(value.astype(np.float64), requires_grad=True) for name, value in found.items()}


def losses_in_torch(case, uses):
    """The loss of every step, from the equations of the cells; step k of layer n multiplies by uses[n][k]."""
    layers = [torch_parameters(case, n) for n in range(len(uses))]
    V, c = (torch.tensor(case.model.parameters[name].astype(np.float64)) for name in "Vc")
    state = [[None if v is None else torch.tensor(v.astype(np.float64)) for v in pair] for pair in case.start]
    losses = []
    for k in range(case.tau):
        x = torch.nn.functional.one_hot(torch.tensor(case.x[k]).long(), case.config.inputs).double()
        for p, W, pair in zip(layers, (each[k] for each in uses), state, strict=True):
            h, s = pair
            a, w = p["b"] + x @ p["U"].T, h @ W.T
            if case.config.cell in STEPS:
                h, s = STEPS[case.config.cell](p | {"W": W}, x, h, s)
            elif case.config.cell == "elman":
                h = torch.tanh(a + w)
            elif case.config.cell == "lstm":
                i, f, g, o = (a + w).chunk(4, dim=1)
                s = torch.sigmoid(f) * s + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(s)
            else:
                (ar, az, an), (wr, wz, wn) = a.chunk(3, dim=1), w.chunk(3, dim=1)
                z = torch.sigmoid(az + wz)
                h = (1 - z) * torch.tanh(an + torch.sigmoid(ar + wr) * (wn + p["d"])) + z * h
            x, pair[:] = h, [h, s]
        y = torch.tensor(case.y[k]).long()
        losses.append(torch.nn.functional.cross_entropy(x @ V.T + c, y, reduction="sum", ignore_index=-1))
    return losses


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", CELLS)
def test_the_parts_by_lag_are_what_is_left_when_every_loss_looks_back_alone(cell, layers):
    case = Windowed(config_of(cell, "one-hot", 4, layers=layers), tau=5, B=2)
    by_lag = gradient_by_lag(case.model, case.x, case.y, state=case.start)
    parts = {f"layer{n}.W": np.zeros((5, *case.model.parameters[f"layer{n}.W"].shape)) for n in range(layers)}
    uses = [[torch_parameters(case, n)["W"] for _ in range(5)] for n in range(layers)]  # W of every step
    losses = losses_in_torch(case, uses)
    for t, loss in enumerate(losses):  # its part at step k has the lag t - k
        found = torch.autograd.grad(
            loss, [W for layer in uses for W in layer], retain_graph=True, allow_unused=True
        )
        for (n, k), part in zip(np.ndindex(layers, 5), found, strict=True):
            if k <= t:
                parts[f"layer{n}.W"][t - k] += part.numpy()
    for name, expected in parts.items():
        norms = [np.linalg.norm(part) for part in expected]
        np.testing.assert_allclose(by_lag.norms[name], norms, rtol=1e-10)
    assert by_lag.bias[0] == 1.0 and by_lag.bias[5] < 1e-12
    assert sum(by_lag.contributions()) == pytest.approx(1)


def test_the_bias_by_lag_is_the_bias_of_a_gradient_that_looks_back_so_far():
    model = Model.initialise(ModelConfig(cell="elman", inputs=5, outputs=5, hidden=6), seed=1)
    ids = np.random.default_rng(0).integers(0, 5, (41, 1)).astype(np.int32)
    by_lag = gradient_by_lag(model, ids[:-1], ids[1:], lags=30)
    full, cut = model.gradient(), model.gradient()
    for gradient, K in ((full, 40), (cut, 7)):
        for t in range(40):  # each loss in a window of its own, of at most K steps
            begin = max(0, t + 1 - K)
            state = model.forward(ids[:begin]).state if begin else None
            output = model.forward(ids[begin : t + 1], state)
            y = np.full((t + 1 - begin, 1), -1, np.int32)
            y[-1] = ids[t + 1]
            loss = model.loss(output, y, gradient=gradient)
            model.backward(output, loss.dh, gradient)
        model.fold_input_tables(gradient)
    recurrent = [name for name in full.values if name.startswith("layer")]
    missing, whole = (
        np.sqrt(sum(np.linalg.norm(part[name]) ** 2 for name in recurrent))
        for part in ({n: full.values[n] - cut.values[n] for n in recurrent}, full.values)
    )
    assert by_lag.bias[7] == pytest.approx(missing / whole, rel=1e-3)
    assert by_lag.full == pytest.approx(whole, rel=1e-4)
    enough = by_lag.steps_for(0.05)
    assert by_lag.bias[enough] <= 0.05 < by_lag.bias[enough - 1]
    assert by_lag.steps_for(1e-9) is None


def test_a_lag_beyond_the_window_is_refused():
    model = Model.initialise(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=6), seed=1)
    x = np.zeros((8, 1), np.int32)
    with pytest.raises(InputError, match="a lag of 9 is beyond the window of 8 steps"):
        influence(model, x, lags=9)
    with pytest.raises(InputError, match="a lag of 8 is beyond the window of 8 steps"):
        gradient_by_lag(model, x, x, lags=8)
    large = Model(ModelConfig(cell="elman", inputs=1, outputs=1, hidden=600), model.parameters)
    with pytest.raises(InputError, match="GiB"):
        influence(large, np.zeros((8000, 1), np.int32), lags=8000)
    with pytest.raises(InputError, match="fraction is 2"):
        horizon([0, 1], [1, 0], 2)
    with pytest.raises(InputError, match="square"):
        spectral_radius(np.zeros((2, 3)))


# ── the other patterns ─────────────────────────────────────────────────────────────────────────────────────


def test_the_shares_of_the_other_patterns_add_up_to_the_gradient_of_the_kernels():
    for pattern, cell, y in (("output", "elman", None), ("last", "lstm", np.array([1, 2, -1], np.int32))):
        case = Windowed(config_of(cell, "one-hot", 5, pattern=pattern), tau=6, B=3, ragged=True)
        y = case.y if y is None else y
        apart = decompose_gradient(case.model, case.x, y, lengths=case.lengths)
        gradient = case.model.gradient()
        backpropagate(case.model, case.x, y, None, gradient, lengths=case.lengths)
        case.model.fold_input_tables(gradient)
        for name in apart.names:
            total = apart.contributions(name).sum(axis=0)
            np.testing.assert_allclose(gradient.values[name], total, rtol=1e-4, atol=1e-5, err_msg=name)
    names = [name for name, _ in decompose_gradient(case.model, case.x, y).arrays()]
    assert {"layer0.a", "layer0.s", "o", "L", "do"} <= set(names)


def test_a_chain_of_states_is_not_looked_for_where_there_is_none():
    model = Model.initialise(ModelConfig(cell="elman", inputs=5, outputs=5, hidden=6, pattern="10.4"), seed=1)
    x = np.zeros((8, 1), np.int32)
    for look in (lambda: influence(model, x, lags=3), lambda: gradient_by_lag(model, x, x)):
        with pytest.raises(InputError, match="no chain of states"):
            look()
