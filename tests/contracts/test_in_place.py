"""What is written over instead of added to, and what takes the place of something else: the same bits."""

from contextlib import contextmanager

import numpy as np
import pytest

from cases import CELLS
from unspool.cells import cell_named
from unspool.errors import InputError
from unspool.kernels import native, reference
from unspool.kernels.tape import Lookup
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from windows import layer_arguments


def floats(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


@contextmanager
def threads_of(count):
    before = native.kernel_info()["threads"]
    native.set_threads(count)
    try:
        yield
    finally:
        native.set_threads(before)


def rubbish(*shape):
    return np.full(shape, np.nan, np.float32)


@pytest.mark.parametrize(
    ("R", "M", "N"), [(0, 8, 3), (1, 40, 7), (97, 64, 64), (500, 160, 128), (333, 300, 300)]
)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_sum_over_time_writes_over_what_was_there(R, M, N, threads):
    da, past = floats(R, M), floats(R, N)
    lookup = np.random.default_rng(R).integers(0, 11, R).astype(np.int32)
    with threads_of(threads):
        found = []
        for added, W, table in (
            (True, np.zeros((M, N), np.float32), np.zeros((11, M), np.float32)),
            (False, rubbish(M, N), rubbish(11, M)),
        ):
            native.sum_over_time(
                da, past, W, accumulate=added, lookup=Lookup(table, lookup), accumulate_lookup=added
            )
            found.append((W, table))
    for added, written in zip(*found, strict=True):
        assert np.array_equal(added, written)
    theirs = np.zeros((11, M), np.float32)
    reference.sum_over_time(
        da, past, rubbish(M, N), accumulate=False, lookup=Lookup(theirs, lookup), accumulate_lookup=False
    )
    assert np.allclose(found[0][1], theirs, atol=1e-4)


@pytest.mark.parametrize("H", [1, 5, 16, 33, 64, 100, 200])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_four_parts_of_a_gru_go_their_ways_in_one_pass(H, threads):
    """r z q meet h(t-1), r z n go to the table, q adds up to d: the same bits as one after the other."""
    R, ids = 203, np.random.default_rng(H).integers(0, 7, 203).astype(np.int32)
    da, past = floats(R, 4 * H), floats(R, H)
    W, table, d = rubbish(3 * H, H), rubbish(7, 3 * H), rubbish(H)
    with threads_of(threads):
        native.sum_over_time(
            da, past, W, accumulate=False, lookup=Lookup(table, ids), accumulate_lookup=False,
            gap=(2 * H, H), total=d, accumulate_total=False,
        )  # fmt: skip
    inner = np.delete(da, slice(2 * H, 3 * H), axis=1)
    assert np.array_equal(W, native.matmul(inner, past, transpose_a=True))
    assert np.array_equal(d, native.column_sum(da[:, 3 * H :]))
    apart = np.zeros_like(table)
    native.scatter_add(apart, ids, da[:, : 3 * H])
    assert np.array_equal(table, apart)
    theirs = np.zeros_like(W), np.zeros_like(table), np.zeros_like(d)
    reference.sum_over_time(
        da, past, theirs[0], accumulate=True, lookup=Lookup(theirs[1], ids), gap=(2 * H, H), total=theirs[2]
    )
    for one, two in zip((W, table, d), theirs, strict=True):
        assert np.allclose(one, two, atol=1e-3)
    with pytest.raises(InputError, match="out"):
        native.sum_over_time(da[:, :-1].copy(), past, W, accumulate=True, gap=(2 * H, H), total=d)


@pytest.mark.parametrize("R", [0, 1, 70])
def test_rows_are_scattered_over_what_was_there(R):
    rows, ids = floats(R, 37), np.random.default_rng(R).integers(0, 9, R).astype(np.int32)
    added, written = np.zeros((9, 37), np.float32), rubbish(9, 37)
    native.scatter_add(added, ids, rows)
    native.scatter_add(written, ids, rows, accumulate=False)
    assert np.array_equal(added, written)
    wide = rubbish(9, 50)
    native.scatter_add(wide[:, 5:42], ids, rows, accumulate=False)  # the columns beside stay as they are
    assert np.array_equal(wide[:, 5:42], added)
    assert np.isnan(wide[:, :5]).all() and np.isnan(wide[:, 42:]).all()


@pytest.mark.parametrize(
    ("R", "H", "K"), [(0, 4, 5), (1, 1, 1), (33, 17, 65), (1100, 64, 64), (2500, 130, 9)]
)
def test_the_loss_writes_its_gradients_over_what_was_there(R, H, K):
    h, V, c = floats(R, H), floats(K, H, seed=1), floats(K, seed=2)
    y = np.random.default_rng(K).integers(-1, K, R).astype(np.int32)
    added = np.zeros_like(V), np.zeros_like(c)
    written = rubbish(K, H), rubbish(K)
    one = native.softmax_cross_entropy(h, V, c, y, scale=0.1, dV=added[0], dc=added[1])
    two = native.softmax_cross_entropy(h, V, c, y, scale=0.1, dV=written[0], dc=written[1], accumulate=False)
    assert one.sum == two.sum and np.array_equal(one.dh, two.dh)
    assert np.array_equal(added[0], written[0]) and np.array_equal(added[1], written[1])


def test_a_row_is_added_to_every_row():
    x, b = floats(70, 131), floats(131, seed=1)
    assert np.array_equal(native.shift_rows(x, b), reference.shift_rows(x, b))
    assert np.array_equal(native.shift_rows(x[:, 3:20], b[3:20].copy()), x[:, 3:20] + b[3:20])
    with pytest.raises(InputError, match="b has shape"):
        native.shift_rows(x, b[:-1].copy())


@pytest.mark.parametrize("lengths", [None, np.array([0, 6, 3, 1, 5], np.int32)])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("H", [5, 64])
@pytest.mark.parametrize("cell", CELLS)
def test_a_consumed_tape_gives_the_same_gradients(cell, H, masked, lengths):
    cell = cell_named(cell)
    args = layer_arguments(cell, floats, tau=6, B=5, H=H) | {"lengths": lengths}
    if cell.has_W:
        args["W"] /= H
    if masked and cell.has_W:
        args["recurrent_mask"] = (floats(5, H) > 0).astype(np.float32) * 2
    dh, xi = floats(6, 5, H, seed=3), floats(6, 5, seed=4)
    for module in (native, reference):
        kept = module.window_backward(
            module.window_forward(cell, **args), args["W"], extra=args["extra"], dh=dh, xi=xi
        )
        tape, given = module.window_forward(cell, **args), dh.copy()
        used = module.window_backward(tape, args["W"], extra=args["extra"], dh=given, xi=xi, consume=True)
        for one, two in zip(kept, used, strict=True):
            assert one is two is None or np.array_equal(one, two)
        over = {"dh": given, "tape": tape.gates, None: used.da}[cell.da_over]
        assert np.shares_memory(used.da, over)


def test_a_tape_that_cannot_be_written_is_not_consumed():
    W, dh = floats(5, 5), floats(2, 3, 5)
    tape = native.window_forward(cell_named("elman"), floats(2, 3, 5), W, floats(3, 5))
    dh.flags.writeable = False
    with pytest.raises(InputError, match="written in place"):
        native.window_backward(tape, W, dh=dh, consume=True)
    assert native.window_backward(tape, W, dh_end=floats(3, 5), consume=True).da.shape == (2, 3, 5)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("cell", CELLS)
def test_a_gradient_in_two_windows_is_that_of_one(cell, tied):
    """The first window that is read writes over what an update before it left, the others add."""
    config = ModelConfig(cell=cell, inputs=7, outputs=7, hidden=16, embedding=16 if tied else 0, tied=tied)
    model = Model.initialise(config, seed=0)
    x = np.random.default_rng(0).integers(0, 7, (13, 3)).astype(np.int32)
    found = []
    for cuts in ([(0, 12)], [(0, 5), (5, 12)]):
        gradient = model.gradient()
        gradient.flat[:] = np.nan
        states, outputs = [None], []
        for begin, end in cuts:
            outputs.append(model.forward(x[begin:end], states[-1]))
            states.append(outputs[-1].state)
        d_final_state = None
        for (begin, end), output in reversed(list(zip(cuts, outputs, strict=True))):
            loss = model.loss(output, x[begin + 1 : end + 1], gradient=gradient)
            _, d_final_state = model.backward(
                output, loss.dh, gradient, d_final_state=d_final_state, consume=True
            )
        model.fold_input_tables(gradient)
        found.append({name: gradient.values[name].copy() for name in gradient.values})
    for name, value in found[0].items():
        assert np.isfinite(value).all() and np.array_equal(value, found[1][name]), name


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    "more",
    [
        {"layers": 2, "dropout": 0.3},
        {"bidirectional": True, "recurrent_dropout": 0.2},
        {"embedding": 5},
        {"pattern": "last"},
        {"hidden": 340},  # W is shared by units
    ],
)
@pytest.mark.parametrize("cell", CELLS)
def test_consuming_changes_no_gradient_of_a_model(cell, more, threads):
    more = {
        name: value for name, value in more.items() if cell_named(cell).has_W or name != "recurrent_dropout"
    }
    config = ModelConfig(**({"cell": cell, "inputs": 7, "outputs": 7, "hidden": 9} | more))
    model = Model.initialise(config, seed=0)
    x = np.random.default_rng(0).integers(0, 7, (6, 3)).astype(np.int32)
    y = x[-1] if config.pattern == "last" else x
    found = []
    with threads_of(threads):
        for consume in (False, True):
            gradient = model.gradient()
            output = model.forward(x, masks=model.masks(3, seed=1, step=0))
            loss = model.loss(output, y, gradient=gradient)
            _, starts = model.backward(output, loss.dh, gradient, consume=consume)
            model.fold_input_tables(gradient)
            found.append([gradient.flat.copy(), *(part for state in starts for part in state)])
    for one, two in zip(*found, strict=True):
        assert one is two is None or np.array_equal(one, two)


def test_a_gradient_that_nothing_was_added_to_is_zero():
    model = Model.initialise(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=4), seed=0)
    x, gradient = np.array([[0], [3], [1]], np.int32), model.gradient()
    output = model.forward(x)
    model.backward(output, model.loss(output, x, gradient=gradient).dh, gradient)
    model.fold_input_tables(gradient)
    assert gradient.flat.any()
    gradient.clear()
    model.fold_input_tables(gradient)
    assert not gradient.flat.any()
