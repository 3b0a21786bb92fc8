"""How far back a gradient reaches: cut where it should be, unbiased where it is random, resumed to the bit."""

import statistics

import numpy as np
import pytest

import torch
from cases import CELLS, Batch, config_of, same_bits
from unspool.cells import cell_named
from unspool.errors import InputError
from unspool.gradients.truncation import FULL, CarriedState, Truncation
from unspool.kernels import native, reference
from unspool.kernels.tape import Lookup
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.optimisers.adam import Adam
from unspool.optimisers.sgd import SGD
from unspool.training.loop import train
from windows import layer_arguments

FALSE_ALARMS = 1e-6
"""How often a right estimator would fail a test of unbiasedness, were the seed not fixed: over all parameters."""


# ── values ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", ["full", "truncated:35", "truncated:8,32", "random:0.9", "random:1"])
def test_a_truncation_is_read_as_it_is_written(text):
    assert str(Truncation.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("random:0", "P is 0"),
        ("random:1.5", "P is 1.5"),
        ("random:-1", "P is -1"),
        ("random:nan", "P is nan"),
        ("truncated:8,4", "K2 is 4 and K1 8"),
        ("truncated:0", "K1 is 0"),
        ("truncated:1,2,3", "expected full"),
        ("truncated:", "expected full"),
        ("random:", "expected full"),
        ("half", "expected full"),
        ("full:3", "expected full"),
    ],
)
def test_a_truncation_that_makes_no_sense_is_refused_in_one_line(text, says):
    with pytest.raises(InputError, match=says) as refused:
        Truncation.parse(text)
    assert "\n" not in str(refused.value)


# ── the kernel ─────────────────────────────────────────────────────────────────────────────────────────────


def window(cell, dtype, tau=6, B=5, H=19, seed=0):
    rng = np.random.default_rng(seed)

    def values(*shape):
        return (0.5 * rng.standard_normal(shape)).astype(np.float32).astype(dtype)

    args = {"cell": cell_named(cell)} | layer_arguments(cell_named(cell), values, tau=tau, B=B, H=H)
    args |= {"lengths": rng.integers(0, tau + 1, B).astype(np.int32)}
    xi = (rng.integers(0, 3, (tau, B)) / 2).astype(dtype)
    arriving = {"dh": values(tau, B, H), "dh_end": values(B, H), "xi": xi}
    return args, arriving | ({"ds_end": values(B, H)} if "s0" in args else {})


@pytest.mark.parametrize("cell", CELLS)
def test_the_kernel_weighs_the_chain_as_its_twin_does_with_every_instruction_set(cell):
    args, arriving = window(cell, np.float32)
    theirs = reference.window_backward(
        reference.window_forward(**args), args["W"], extra=args["extra"], **arriving
    )
    before = native.kernel_info()
    found = []
    for isa in before["available"]:
        native.choose_isa(isa)
        for threads in (1, 3):
            native.set_threads(threads)
            found.append(
                native.window_backward(
                    native.window_forward(**args), args["W"], extra=args["extra"], **arriving
                )
            )
    native.choose_isa(before["bf16"])
    native.set_threads(before["threads"])
    for ours in found:
        for mine, first, twin in zip(ours, found[0], theirs, strict=True):
            if mine is not None:
                assert mine.tobytes() == first.tobytes()
                np.testing.assert_allclose(mine, twin, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("cell", CELLS)
def test_zero_cuts_the_chain_and_one_leaves_it(cell):
    args, arriving = window(cell, np.float32)
    tape = native.window_forward(**args)
    plain = {name: value for name, value in arriving.items() if name != "xi"}
    plain |= {"extra": args["extra"]}
    ones = native.window_backward(tape, args["W"], **plain, xi=np.ones((6, 5), np.float32))
    same_bits(ones._asdict(), native.window_backward(tape, args["W"], **plain)._asdict())
    xi = np.ones((6, 5), np.float32)
    xi[3] = 0  # step 3 hands nothing to step 2: steps 0 to 2 do not know of what comes after
    cut = native.window_backward(tape, args["W"], extra=args["extra"], dh=arriving["dh"], xi=xi)
    alone = arriving["dh"].copy()
    alone[3:] = 0
    before = native.window_backward(tape, args["W"], extra=args["extra"], dh=alone)
    live = np.arange(6)[:, None] < args["lengths"]
    assert (cut.da[:3][live[:3] & live[3]] == before.da[:3][live[:3] & live[3]]).all()


def test_a_wrong_xi_is_refused():
    args, _ = window("gru", np.float32)
    with pytest.raises(InputError, match="xi"):
        native.window_backward(native.window_forward(**args), args["W"], xi=np.ones((6, 4), np.float32))


# ── randomised truncation is unbiased ──────────────────────────────────────────────────────────────────────


def furthest(draws, truth):
    """How many standard errors the mean of the draws is from the truth, at the worst parameter."""
    draws = draws.reshape(len(draws), -1).astype(np.float64)
    errors = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    away = np.abs(draws.mean(axis=0) - truth.reshape(-1))
    moved = errors > 1e-12
    assert (away[~moved] < 1e-6).all()  # what no draw changes is right without chance
    return float((away[moved] / errors[moved]).max(initial=0)), int(moved.sum())


def allowed(parameters):
    """The distance that all of so many right means keep, but for the stated rate of false alarms."""
    return statistics.NormalDist().inv_cdf(1 - FALSE_ALARMS / parameters / 2)


@pytest.mark.parametrize("P", [0.5, 0.8])
@pytest.mark.parametrize("cell", CELLS)
def test_the_mean_of_random_truncation_is_the_full_gradient_for_every_parameter(cell, P):
    draws, tau, H, K = 40_000, 6, 3, 4
    rng = np.random.default_rng(1)
    cell = cell_named(cell)
    G = len(cell.gates)
    ids = np.repeat(rng.integers(0, K, (tau, 1)), draws, axis=1).astype(np.int32)  # every row the same text
    table, W = (rng.standard_normal(shape).astype(np.float32) for shape in ((K, G * H), (G * H, H)))
    W = W if cell.has_W else None
    zero = np.zeros((draws, H), np.float32)
    extra = [np.full(each.shape(H, G * H), 0.3, np.float32) for each in cell.extra]
    s0 = zero if cell.has_cell_state else None
    tape = native.window_forward(cell, Lookup(table, ids), W, zero, s0=s0, extra=extra)
    dh = np.repeat(rng.standard_normal((tau, 1, H)).astype(np.float32), draws, axis=1)
    xi = Truncation.parse(f"random:{P}").xi(tau, draws, seed=2, step=3)

    def gradients(back):
        da = cell.da_of_W(back.da, H)[..., : G * H if cell.has_W else 0]
        to_table = back.da[:, :, : G * H]
        one_hot = np.eye(K, dtype=np.float32)[ids[:, 0]]
        return np.concatenate(
            [
                np.einsum("tbg,tbh->bgh", da, tape.h_before).reshape(len(da[0]), -1),
                np.einsum("tbg,tk->bkg", to_table, one_hot).reshape(len(da[0]), -1),
            ],
            axis=1,
        )

    full = gradients(native.window_backward(tape, W, extra=extra, dh=dh))[0]
    distance, parameters = furthest(
        gradients(native.window_backward(tape, W, extra=extra, dh=dh, xi=xi)), full
    )
    assert parameters > 15
    assert distance < allowed(parameters)
    # The test can fail: cutting without the weight 1/P is found to be biased, far beyond the limit.
    unweighted = (xi > 0).astype(np.float32)
    biased, _ = furthest(gradients(native.window_backward(tape, W, extra=extra, dh=dh, xi=unweighted)), full)
    assert biased > 3 * allowed(parameters)


def scalar_network(draws, *, misprinted, P=0.5, tau=6):
    """Draw z(t) forwards in time for h(t) = tanh(w h(t-1) + u x(t) + b), and sum dL/dh(t) z(t)."""
    rng = np.random.default_rng(3)
    x, g, w, u, b = rng.standard_normal(tau), rng.standard_normal(tau), 0.9, 0.7, 0.2
    xi = (rng.random((tau, draws, 1)) < P) / P
    h, z, total, full, exact = 0.0, np.zeros((draws, 3)), 0.0, np.zeros(3), np.zeros(3)
    for t in range(tau):
        before = h
        h = np.tanh(w * before + u * x[t] + b)
        slope = 1 - h * h
        by_w, by_h = slope * np.array([before, x[t], 1.0]), slope * w  # ∂f/∂(w, u, b), ∂f/∂h(t-1)
        z = by_w + xi[t] * (by_w if misprinted else by_h) * z
        exact = by_w + by_h * exact
        total, full = total + g[t] * z, full + g[t] * exact
    return total, full


def test_the_formula_of_common_lecture_notes_fails_where_the_right_one_passes():
    right, full = scalar_network(40_000, misprinted=False)
    assert furthest(right, full)[0] < allowed(3)
    wrong, full = scalar_network(40_000, misprinted=True)
    assert furthest(wrong, full)[0] > 10 * allowed(3)


def test_backwards_is_the_same_sum_as_forwards_for_the_same_draws():
    rng = np.random.default_rng(4)
    tau, B, H = 5, 3, 2
    p, W = rng.standard_normal((tau, B, H)), rng.standard_normal((H, H))
    xi, dh = rng.integers(0, 2, (tau, B)) * 2.0, rng.standard_normal((tau, B, H))
    tape = reference.window_forward(cell_named("elman"), p, W, np.zeros((B, H)))
    back = reference.window_backward(tape, W, dh=dh, xi=xi)
    dW = np.einsum("tbg,tbh->gh", back.da, tape.h_before)
    total = np.zeros((H, H))
    for row in range(B):
        z = np.zeros((H, H, H))  # dh(t)/dW
        for t in range(tau):
            slope = 1 - tape.h[t, row] ** 2
            by_W = np.einsum("i,ij,k->ijk", slope, np.eye(H), tape.h_before[t, row])
            z = by_W + xi[t, row] * np.einsum("i,ij,jkl->ikl", slope, W, z)
            total += np.einsum("i,ikl->kl", dh[t, row], z)
    np.testing.assert_allclose(dW, total, rtol=1e-12, atol=1e-12)


# ── training ───────────────────────────────────────────────────────────────────────────────────────────────


def text(config, steps, B=3, seed=5):
    return np.random.default_rng(seed).integers(0, config.outputs, (steps + 1, B)).astype(np.int32)


def windows(tokens, tau, reset=(0,)):
    edges = range(0, len(tokens) - 1, tau)
    return [
        Batch(tokens[at : at + tau], tokens[at + 1 : at + tau + 1], i in reset) for i, at in enumerate(edges)
    ]


def run(config, batches, bptt=FULL, recompute="none", optimiser=None, model=None, carried=None):
    model = model or Model.initialise(config, seed=4)
    optimiser = optimiser or Adam(clip=0.5)
    reports = list(train(model, batches, optimiser, seed=7, bptt=bptt, recompute=recompute, carried=carried))
    losses = np.array([(r.loss, r.norm, r.targets) for r in reports])
    return {"parameters": model.parameters.flat, "losses": losses}


TRAINED = config_of("gru", "embedded", 10, layers=2, dropout=0.2, recurrent_dropout=0.1, learn_h0=True)


def test_truncated_every_k_steps_is_the_same_as_windows_of_k():
    tokens = text(TRAINED, 24)
    same_bits(
        run(TRAINED, windows(tokens, 4)), run(TRAINED, windows(tokens, 12), Truncation.parse("truncated:4"))
    )


def test_random_truncation_that_never_cuts_is_the_full_gradient():
    tokens = text(TRAINED, 24)
    same_bits(
        run(TRAINED, windows(tokens, 8)), run(TRAINED, windows(tokens, 8), Truncation.parse("random:1"))
    )


@pytest.mark.parametrize("bptt", ["full", "truncated:3", "truncated:3,7", "random:0.7"])
def test_few_states_kept_train_to_the_same_bits(bptt):
    batches, how = windows(text(TRAINED, 50), 10, reset=(0, 3)), Truncation.parse(bptt)
    same_bits(run(TRAINED, batches, how), run(TRAINED, batches, how, recompute="sqrt"))


@pytest.mark.parametrize("tau", [3, 7])
@pytest.mark.parametrize(("K1", "K2"), [(1, 4), (2, 5), (3, 3), (4, 6)])
def test_update_every_k1_and_look_back_k2_as_pytorch_does_it_with_detached_states(K1, K2, tau):
    config = ModelConfig(cell="elman", inputs=5, outputs=5, hidden=4)
    model, tokens, rate = Model.initialise(config, seed=4), text(config, 21, B=2), 0.3
    U, W, b, V, c = (
        torch.tensor(model.parameters[n].astype(np.float64), requires_grad=True)
        for n in ("layer0.U", "layer0.W", "layer0.b", "V", "c")
    )
    known = [torch.zeros(2, 4, dtype=torch.float64)]  # h before each step
    ends = [*range(K1, 21, K1), 21]  # the last stretch may be shorter
    for last, end in zip([0, *ends], ends, strict=False):
        begin = max(0, last - (K2 - K1))
        h, loss = known[begin].detach(), 0.0
        del known[begin + 1 :]
        for t in range(begin, end):
            h = torch.tanh(b + h @ W.T + U.T[tokens[t].tolist()])
            known.append(h)
            if t >= last:
                o = h @ V.T + c
                loss = loss + torch.nn.functional.cross_entropy(o, torch.tensor(tokens[t + 1]).long())
        for parameter, slope in zip(
            (U, W, b, V, c), torch.autograd.grad(loss / (end - last), (U, W, b, V, c)), strict=True
        ):
            parameter.data -= rate * slope
    sgd = SGD(learning_rate=rate, clip=0, momentum=0)
    run(config, windows(tokens, tau), Truncation("truncated", K1, K2), optimiser=sgd, model=model)
    assert sgd.step == -(-21 // K1)
    for name, theirs in (("layer0.W", W), ("layer0.U", U), ("layer0.b", b), ("V", V), ("c", c)):
        np.testing.assert_allclose(model.parameters[name], theirs.detach().numpy(), rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("tau", [1, 10, 12, 13])
@pytest.mark.parametrize("bptt", ["truncated:4", "truncated:4,7", "truncated:20", "truncated:20,30"])
def test_every_target_of_a_finite_window_is_scored_exactly_once(bptt, tau):
    config = ModelConfig(cell="elman", inputs=40, outputs=40, hidden=4)
    tokens = np.arange(2 * (tau + 1), dtype=np.int32).reshape(2, tau + 1).T.copy()  # each token once
    carried, scored = CarriedState(Truncation.parse(bptt)), []
    for segment in carried.segments(windows(tokens, tau)):
        scored += segment.y[segment.y >= 0].tolist()
        carried.carry(segment, [])
    assert sorted(scored) == sorted(tokens[1:].reshape(-1).tolist())
    counted = run(config, windows(tokens, tau), Truncation.parse(bptt))["losses"][:, 2]
    assert counted.sum() == 2 * tau
    assert len(counted) == -(-tau // Truncation.parse(bptt).K1)


@pytest.mark.parametrize("stop", [1, 4, 6, 9])
@pytest.mark.parametrize("bptt", ["full", "truncated:4", "truncated:3,8", "random:0.6"])
def test_training_goes_on_from_a_saved_past_to_the_same_bits(bptt, stop):
    how, batches = Truncation.parse(bptt), windows(text(TRAINED, 70), 7, reset=(0, 6))
    whole = run(TRAINED, batches, how, carried=CarriedState(how))
    model, optimiser = Model.initialise(TRAINED, seed=4), Adam(clip=0.5)
    data, carried = iter(batches), CarriedState(how)
    first = train(model, data, optimiser, seed=7, carried=carried)
    losses = [next(first) for _ in range(stop)]
    saved, kept, flat = carried.state(), optimiser.state(), model.parameters.flat.copy()
    model, optimiser, carried = (
        Model.initialise(TRAINED, seed=9),
        Adam(clip=0.5),
        CarriedState(how),
    )
    model.parameters.flat[:] = flat
    optimiser.restore(kept)
    carried.restore(saved)
    losses += train(model, data, optimiser, seed=7, carried=carried)
    found = np.array([(r.loss, r.norm, r.targets) for r in losses])
    same_bits(whole, {"parameters": model.parameters.flat, "losses": found})


@pytest.mark.parametrize("cut", [1, 3, 9])
@pytest.mark.parametrize("bptt", ["full", "truncated:4", "truncated:3,8", "truncated:20", "random:0.6"])
def test_windows_in_two_calls_with_one_past_train_as_in_one_call(bptt, cut):
    how, batches = Truncation.parse(bptt), windows(text(TRAINED, 70), 7, reset=(0, 6))
    whole = run(TRAINED, batches, how, carried=CarriedState(how))
    model, optimiser, carried = (
        Model.initialise(TRAINED, seed=4),
        Adam(clip=0.5),
        CarriedState(how),
    )
    found = [
        run(TRAINED, part, optimiser=optimiser, model=model, carried=carried)
        for part in (batches[:cut], batches[cut:])
    ]
    losses = np.concatenate([each["losses"].reshape(-1, 3) for each in found])
    same_bits(whole, {"parameters": model.parameters.flat, "losses": losses})


def test_steps_left_over_wait_in_a_past_that_was_passed_and_else_get_an_update():
    how, batches = Truncation.parse("truncated:4"), windows(text(TRAINED, 30), 10)
    B, carried = batches[0].x.shape[1], CarriedState(how)
    targets = [run(TRAINED, batches, how, carried=each)["losses"][:, 2].tolist() for each in (None, carried)]
    assert targets == [[4 * B] * 7 + [2 * B], [4 * B] * 7]
    assert carried.pending is not None and carried.pending[0].shape == (2, B)
