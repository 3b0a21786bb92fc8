"""The twins are the specification: checked by finite differences, by hand, and against the native kernels."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import torch
from unspool.cells.elman import CELL as ELMAN
from unspool.kernels import native, reference
from unspool.kernels.philox import philox
from unspool.kernels.tape import Lookup

ABOUT_THE_MACHINE = {"heed_environment", "kernel_info", "set_threads", "choose_isa"}


def functions_of(module):
    """The public functions that a module itself defines."""
    found = inspect.getmembers(module, inspect.isfunction)
    return {n: f for n, f in found if f.__module__ == module.__name__ and not n.startswith("_")}


def relative_error(ours, theirs):
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30)) if np.size(theirs) else 0.0


# ── twins ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_kernel_has_a_twin():
    assert set(functions_of(native)) - ABOUT_THE_MACHINE <= set(functions_of(reference))


@pytest.mark.parametrize("name", sorted(set(functions_of(native)) - ABOUT_THE_MACHINE))
def test_twins_have_the_same_signature(name):
    ours = inspect.signature(getattr(native, name)).parameters.values()
    theirs = inspect.signature(getattr(reference, name)).parameters.values()
    assert [(p.name, p.kind, p.default) for p in ours] == [(p.name, p.kind, p.default) for p in theirs]


# ── windows of every kind ──────────────────────────────────────────────────────────────────────────────────


def differences(objective, letters, step=1e-5):
    """Central differences of an objective by every element of every letter, in float64."""
    found = {}
    for name, value in letters.items():
        slopes = np.zeros_like(value)
        for at in np.ndindex(value.shape):
            moved = [value.copy(), value.copy()]
            moved[0][at] += step
            moved[1][at] -= step
            up, down = (objective(letters | {name: m}) for m in moved)
            slopes[at] = (up - down) / (2 * step)
        found[name] = slopes
    return found


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_the_gradients_of_the_loss_equal_finite_differences_in_float64(scale, bias):
    rng = np.random.default_rng(1)
    letters = {"h": rng.standard_normal((5, 3)), "V": rng.standard_normal((7, 3))}
    if bias:
        letters["c"] = rng.standard_normal(7)
    y = np.array([0, 6, -1, 3, 3], np.int32)

    def objective(at):
        return scale * reference.softmax_cross_entropy(at["h"], at["V"], at.get("c"), y).sum

    dV, dc = np.zeros((7, 3)), np.zeros(7)
    loss = reference.softmax_cross_entropy(
        letters["h"], letters["V"], letters.get("c"), y, scale=scale, dV=dV, dc=dc if bias else None
    )
    ours = {"h": loss.dh, "V": dV, "c": dc}
    assert loss.count == 4
    for name, slopes in differences(objective, letters).items():
        assert relative_error(ours[name], slopes) < 1e-7, name


# ── the other kernels ──────────────────────────────────────────────────────────────────────────────────────

SIZES = st.integers(0, 40)


def floats(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(SIZES, SIZES, SIZES)
def test_products_of_any_size_equal_their_twins(M, K, N):
    a, b, start = floats(M, K), floats(K, N), floats(M, N, seed=1)
    bound = 1e-5 * max(K, 1)
    for options in ({}, {"start": start}, {"start": floats(N, seed=2)}):
        assert (
            np.abs(native.matmul(a, b, **options) - reference.matmul(a, b, **options)).max(initial=0) < bound
        )
    bt = b.T.copy()
    assert np.abs(native.matmul(a, bt, transpose_b=True) - a @ b).max(initial=0) < bound
    at, out = a.T.copy(), start.copy()
    assert np.abs(native.matmul(at, b, transpose_a=True) - a @ b).max(initial=0) < bound
    assert native.matmul(at, b, transpose_a=True, out=out) is out
    assert np.abs(out - (start + a @ b)).max(initial=0) < bound
    packed = native.pack(b)
    assert np.array_equal(native.matmul(a, packed), native.matmul(a, b))
    assert packed.shape == (K, N)


@settings(max_examples=40, deadline=None)
@given(SIZES, SIZES, st.integers(1, 9))
def test_sums_and_tables_of_any_size_equal_their_twins(R, N, K):
    rows, table = floats(R, N), floats(K, N, seed=1)
    ids = np.random.default_rng(R).integers(0, K, R).astype(np.int32)
    assert np.array_equal(native.gather(table, ids), reference.gather(table, ids))
    ours, theirs = table.copy(), table.copy()
    native.scatter_add(ours, ids, rows)
    reference.scatter_add(theirs, ids, rows)
    assert np.abs(ours - theirs).max(initial=0) < 1e-4
    assert np.abs(native.column_sum(rows) - reference.column_sum(rows)).max(initial=0) < 1e-4
    out = floats(N, seed=2)
    expected = out + rows.sum(axis=0)
    assert np.abs(native.column_sum(rows, out=out) - expected).max(initial=0) < 1e-4


def test_a_slice_of_columns_is_read_where_it_lies():
    a, b = floats(9, 30), floats(30, 20)
    assert np.array_equal(
        native.matmul(a[:, 3:11], b[3:11, 5:]), native.matmul(a[:, 3:11].copy(), b[3:11, 5:].copy())
    )
    ours = native.matmul(a[:, 3:11], a[:, 20:], transpose_a=True)
    assert np.array_equal(ours, native.matmul(a[:, 3:11].copy(), a[:, 20:].copy(), transpose_a=True))
    assert np.array_equal(native.column_sum(a[:, 7:9]), native.column_sum(a[:, 7:9].copy()))


@pytest.mark.parametrize("scale", [1.0, 0.01])
@pytest.mark.parametrize(
    ("R", "H", "K"), [(1, 1, 1), (7, 3, 2), (33, 17, 65), (5, 8, 3001), (0, 4, 5), (1100, 2, 9)]
)
def test_the_native_loss_equals_its_twin(R, H, K, scale):
    h, V, c = floats(R, H), floats(K, H, seed=1), floats(K, seed=2)
    y = np.random.default_rng(K).integers(-1, K, R).astype(np.int32)
    found = []
    for module in (native, reference):
        dV, dc = np.ones_like(V), np.ones_like(c)
        loss = module.softmax_cross_entropy(h, V, c, y, scale=scale, dV=dV, dc=dc)
        found.append((loss.sum, loss.per_target, loss.dh, dV, dc))
        assert loss.count == (y >= 0).sum()
        assert module.softmax_cross_entropy(h, V, c, y).dh is None
    for ours, theirs in zip(*found, strict=True):
        assert relative_error(np.asarray(ours), np.asarray(theirs)) < 5e-6
    alone = native.softmax_cross_entropy(h, V, None, y).per_target
    assert relative_error(alone, reference.softmax_cross_entropy(h, V, None, y).per_target) < 5e-6


def test_a_packed_output_matrix_gives_the_same_loss():
    h, V, y = floats(6, 5), floats(9, 5, seed=1), np.array([0, 8, 3, -1, 2, 2], np.int32)
    first, second = np.zeros_like(V), np.zeros_like(V)
    packed = (native.pack(V, transposed=True), native.pack(V))
    ours, theirs = (
        native.softmax_cross_entropy(h, matrix, None, y, dV=onto)
        for matrix, onto in ((packed, first), (V, second))
    )
    assert np.array_equal(ours.per_target, theirs.per_target) and np.array_equal(ours.dh, theirs.dh)
    assert np.array_equal(first, second)


@pytest.mark.parametrize("y", [0, 1, 2])
def test_the_loss_of_certain_and_impossible_targets_is_finite(y):
    h, V = np.float32([[1]]), np.float32([[1000], [0], [-1000]])
    loss = native.softmax_cross_entropy(h, V, None, np.int32([y]))
    assert loss.sum == pytest.approx([0, 1000, 2000][y], abs=1e-9)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (5, 7), (3, 4, 5), (1021,)])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.999])
def test_dropout_masks_equal_their_twins_to_the_bit(shape, rate):
    options = {"seed": -5, "stream": 2**33 + 7, "rate": rate}
    ours, theirs = native.dropout_mask(shape, **options), reference.dropout_mask(shape, **options)
    assert ours.shape == shape and np.array_equal(ours, theirs)


def test_a_dropout_mask_drops_its_share_and_keeps_the_mean():
    mask = native.dropout_mask((100_000,), seed=1, stream=2, rate=0.3)
    assert set(np.unique(mask)) == {np.float32(0), np.float32(1) / (np.float32(1) - np.float32(0.3))}
    assert abs((mask == 0).mean() - 0.3) < 0.006 and abs(mask.mean() - 1) < 0.01


def test_scaled_rows_equal_their_twin():
    x, mask = floats(5, 3, 7), floats(3, 7, seed=1)
    assert np.array_equal(native.scale_rows(x, mask), reference.scale_rows(x, mask))


@pytest.mark.parametrize("n", [0, 1, 4095, 4096, 4097, 100_001])
def test_the_norm_equals_its_twin(n):
    g = floats(n)
    assert native.global_norm(g) == pytest.approx(reference.global_norm(g), rel=1e-14)


def test_a_norm_does_not_overflow_where_its_square_does_in_float32():
    assert native.global_norm(np.full(4, 1e30, np.float32)) == pytest.approx(2e30, rel=1e-6)


@pytest.mark.parametrize("n", [1, 7, 16, 1025])
def test_updates_equal_their_twins(n):
    start, g = floats(n), floats(n, seed=1)
    for module_pair in ("adam", "rmsprop", "sgd"):
        found = []
        for module in (native, reference):
            p, m, v = start.copy(), np.zeros_like(start), np.zeros_like(start)
            for step in range(1, 6):
                if module_pair == "adam":
                    module.adam(p, g, m, v, step=step, learning_rate=0.01, decay=0.1, scale=0.5)
                elif module_pair == "rmsprop":
                    module.rmsprop(p, g, v, step=step, learning_rate=0.01, decay=0.1, scale=0.5)
                else:
                    module.sgd(p, g, m, learning_rate=0.01, momentum=0.9, decay=0.1, scale=0.5)
            found.append((p, m, v))
        for ours, theirs in zip(*found, strict=True):
            assert relative_error(ours, theirs) < 2e-6


# ── outside authorities ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam_equals_pytorchs(decay):
    rng = np.random.default_rng(4)
    p = floats(257)
    theirs = torch.nn.Parameter(torch.tensor(p, dtype=torch.float64))
    optimiser = torch.optim.AdamW([theirs], lr=0.01, betas=(0.9, 0.99), eps=1e-8, weight_decay=decay)
    m, v = np.zeros_like(p), np.zeros_like(p)
    for step in range(1, 21):
        g = rng.standard_normal(257).astype(np.float32)
        native.adam(p, g, m, v, step=step, learning_rate=0.01, beta2=0.99, decay=decay)
        theirs.grad = torch.tensor(g, dtype=torch.float64)
        optimiser.step()
    assert relative_error(p, theirs.detach().numpy()) < 2e-6


def test_the_first_step_of_adam_is_as_long_as_the_learning_rate():
    p, g = np.zeros(5, np.float32), np.float32([1e-3, -1, 5, 1e3, -1e-2])
    native.adam(p, g, np.zeros_like(p), np.zeros_like(p), step=1, learning_rate=0.25)
    assert np.allclose(p, -0.25 * np.sign(g), rtol=2e-5)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_sgd_equals_pytorchs(momentum, decay):
    rng = np.random.default_rng(5)
    p = floats(257)
    theirs = torch.nn.Parameter(torch.tensor(p, dtype=torch.float64))
    optimiser = torch.optim.SGD([theirs], lr=0.05, momentum=momentum, weight_decay=decay)
    m = np.zeros_like(p) if momentum else None
    for _ in range(20):
        g = rng.standard_normal(257).astype(np.float32)
        native.sgd(p, g, m, learning_rate=0.05, momentum=momentum, decay=decay)
        theirs.grad = torch.tensor(g, dtype=torch.float64)
        optimiser.step()
    assert relative_error(p, theirs.detach().numpy()) < 2e-6


def test_the_loss_equals_pytorchs_cross_entropy():
    h, V, c = floats(40, 9), floats(31, 9, seed=1), floats(31, seed=2)
    y = np.random.default_rng(0).integers(0, 31, 40).astype(np.int32)
    y[::5] = -100
    parts = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (h, V, c)]
    theirs = torch.nn.functional.cross_entropy(
        parts[0] @ parts[1].T + parts[2], torch.tensor(y, dtype=torch.long), reduction="sum"
    )
    theirs.backward()
    dV, dc = np.zeros_like(V), np.zeros_like(c)
    ours = native.softmax_cross_entropy(h, V, c, y, dV=dV, dc=dc)
    assert ours.sum == pytest.approx(theirs.item(), rel=1e-6)
    assert ours.count == 32 and ours.mean == ours.sum / 32
    for found, part in zip((ours.dh, dV, dc), parts, strict=True):
        assert relative_error(found, part.grad.numpy()) < 2e-6


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (0x00000000, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        (0xFFFFFFFF, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    ],
)
def test_philox_gives_the_known_answers(word, expected):
    counter = np.full((1, 4), word, np.uint32)
    assert philox(counter, (word, word))[0].tolist() == expected


def test_philox_gives_the_known_answer_for_the_digits_of_pi():
    counter = np.array([[0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]], np.uint32)
    words = philox(counter, (0xA4093822, 0x299F31D0))[0].tolist()
    assert words == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


# ── by hand ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("module", [native, reference])
def test_two_steps_of_an_elman_network_computed_by_hand(module):
    table = np.float32([[0, 1], [1, 0]])  # token 0 brings (0, 1), token 1 brings (1, 0)
    W, h0 = np.float32([[1, 0], [2, -1]]), np.float32([[1, 0]])
    tape = module.window_forward(ELMAN, Lookup(table, np.int32([[0], [1]])), W, h0, activation="relu")
    assert tape.h[0].tolist() == [[1, 3]]  # relu((0, 1) + W (1, 0)) = relu(1, 3)
    assert tape.h[1].tolist() == [[2, 0]]  # relu((1, 0) + W (1, 3)) = relu(2, -1)
    back = module.window_backward(tape, W, dh=np.ones((2, 1, 2), np.float32))
    assert back.da[1].tolist() == [[1, 0]]  # the second unit sleeps
    assert back.da[0].tolist() == [[2, 1]]  # (1, 1) + Wᵀ (1, 0)
    assert back.dh0.tolist() == [[4, -1]]  # Wᵀ (2, 1)
    da, past = back.da.reshape(2, 2), tape.h_before.reshape(2, 2)
    dW = module.matmul(np.ascontiguousarray(da), np.ascontiguousarray(past), transpose_a=True)
    assert dW.tolist() == [[3, 3], [1, 0]]  # (2, 1) (1, 0)ᵀ + (1, 0) (1, 3)ᵀ


@pytest.mark.parametrize("module", [native, reference])
def test_two_steps_of_a_tanh_network_computed_by_hand(module):
    """W = 1/2, b = 0, U = 1, x = 1, 1: tanh(1) = 0.7615942, then tanh(1.3807971) = 0.8811297."""
    tape = module.window_forward(
        ELMAN, np.ones((2, 1, 1), np.float32), np.float32([[0.5]]), np.zeros((1, 1), np.float32)
    )
    assert tape.h.reshape(-1) == pytest.approx([0.7615942, 0.8811297], abs=2e-7)
    back = module.window_backward(tape, np.float32([[0.5]]), dh_end=np.ones((1, 1), np.float32))
    second = 1 - 0.8811297**2  # da(2) = tanh' = 0.2236105
    first = (1 - 0.7615942**2) * 0.5 * second  # da(1) = tanh'(1) W da(2) = 0.0469548
    assert back.da.reshape(-1) == pytest.approx([first, second], abs=5e-7)


@pytest.mark.parametrize("module", [native, reference])
def test_a_loss_computed_by_hand(module):
    """o = (0, log 3): y_hat = (1/4, 3/4); the target 0 costs log 4 nats."""
    h, V = np.float32([[1, np.log(3)]]), np.float32([[0, 0], [0, 1]])
    dV = np.zeros((2, 2), np.float32)
    loss = module.softmax_cross_entropy(h, V, None, np.int32([0]), dV=dV)
    assert loss.sum == pytest.approx(np.log(4), abs=1e-6)
    assert loss.dh[0] == pytest.approx([0, 0.75], abs=1e-6)
    assert dV == pytest.approx(np.array([[-0.75], [0.75]]) * h, abs=1e-6)


def test_the_sum_of_two_products_is_the_product_of_the_concatenation():
    X, H, W_xh, W_hh = floats(5, 7), floats(5, 9, seed=1), floats(7, 11, seed=2), floats(9, 11, seed=3)
    together = native.matmul(np.concatenate([X, H], axis=1), np.concatenate([W_xh, W_hh]))
    assert np.array_equal(together, native.matmul(H, W_hh, start=native.matmul(X, W_xh)))  # to the bit
    assert np.allclose(together, X @ W_xh + H @ W_hh, atol=1e-5)


# ── activations ────────────────────────────────────────────────────────────────────────────────────────────


def activated(values, activation):
    """Native activations of a vector: an Elman step with W = 0."""
    padded = np.zeros((len(values) + 15) // 16 * 16, np.float32)
    padded[: len(values)] = values
    p = padded.reshape(1, -1, 16)
    tape = native.window_forward(
        ELMAN,
        p,
        np.zeros((16, 16), np.float32),
        np.zeros((p.shape[1], 16), np.float32),
        activation=activation,
    )
    return tape.h.reshape(-1)[: len(values)]


def ulps(ours, exact):
    """The largest difference, in units of the last place of the exact value."""
    return float((np.abs(ours - exact) / np.spacing(np.abs(exact).astype(np.float32))).max())


GRID = np.concatenate(
    [np.linspace(-20, 20, 400_001), np.geomspace(1e-30, 20, 50_001), -np.geomspace(1e-30, 20, 50_001)]
)
GRID = GRID.astype(np.float32)


def test_tanh_is_right_to_a_few_ulp_and_never_beyond_one():
    ours = activated(GRID, "tanh")
    assert ulps(ours, np.tanh(GRID.astype(np.float64))) < 4
    assert np.abs(ours).max() <= 1


def test_sigmoid_is_right_to_a_few_ulp():
    exact = 1 / (1 + np.exp(-GRID.astype(np.float64)))
    ours = activated(GRID, "sigmoid")
    assert ulps(ours, exact) < 4
    assert ours.min() >= 0 and ours.max() <= 1


def test_exp_is_right_to_a_few_ulp_inside_the_softmax():
    o = np.concatenate([[0], -np.geomspace(1e-6, 80, 20_000)]).astype(np.float32)
    dV = np.zeros((len(o), 1), np.float32)
    native.softmax_cross_entropy(np.float32([[1]]), o[:, None].copy(), None, np.int32([0]), dV=dV, scale=1.0)
    exact = np.exp(o.astype(np.float64))
    probabilities = (dV[1:, 0]).astype(np.float64)
    ratio = probabilities / (exact[1:] / exact.sum())
    assert np.abs(ratio / np.median(ratio) - 1).max() < 5 * 2.0**-24 * 2
    assert abs(np.median(ratio) - 1) < 1e-5  # the sum of twenty thousand, in float32


@pytest.mark.parametrize(
    ("activation", "low", "high"),
    [("tanh", -1, 1), ("sigmoid", 0, 1), ("relu", 0, np.inf), ("identity", -np.inf, np.inf)],
)
def test_infinities_go_where_they_belong_and_nan_stays(activation, low, high):
    ends = activated(np.float32([-np.inf, np.inf, -3e38, 3e38]), activation)
    assert np.allclose(ends[:2], [low, high], atol=1e-10) and np.isfinite(ends[2:]).all()
    # A sum that holds NaN is NaN: W = 0 times NaN too.
    assert np.isnan(activated(np.float32([np.nan]), activation)).all()
