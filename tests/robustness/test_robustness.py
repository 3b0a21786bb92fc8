"""Whatever comes in: a clear error of ours or a right answer, never a crash, never another exception."""

import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import torch
from cases import CELLS, Windowed, config_of, same_bits, walk
from unspool.cells import cell_named
from unspool.errors import InputError, UnspoolError
from unspool.kernels import native
from unspool.kernels.tape import Lookup
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.stream import Stream

HUGE = 2**31


def floats(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def ids(*values):
    return np.array(values, np.int32)


class Window:
    """The arguments of a small window, one of which a test makes wrong."""

    def __init__(self, cell, tau=4, B=3, H=5):
        self.cell, self.tau, self.B, self.H = cell_named(cell), tau, B, H
        G = len(self.cell.gates)
        self.args = {"p": floats(tau, B, G * H), "h0": floats(B, H, seed=1)}
        self.args |= {"s0": floats(B, H, seed=2), "lengths": ids(*range(tau, tau - B, -1))}
        self.args |= {each.name: floats(*each.shape(H, G * H)) for each in self.cell.extra}
        if self.cell.has_W:
            self.args |= {"W": floats(G * H, H), "recurrent_mask": floats(B, H, seed=3)}
        self.back = {"dh": floats(tau, B, H), "dh_end": floats(B, H), "ds_end": floats(B, H)}

    def forward(self, **wrong):
        args = self.args | wrong
        p, W, h0 = args.pop("p"), args.pop("W", None), args.pop("h0")
        extra = [args.pop(each.name) for each in self.cell.extra]
        return native.window_forward(self.cell, p, W, h0, extra=extra, **args)

    def backward(self, **wrong):
        tape, extra = self.forward(), [self.args[each.name] for each in self.cell.extra]
        return native.window_backward(
            tape, wrong.pop("W", self.args.get("W")), extra=extra, **(self.back | wrong)
        )


WRONG = {
    "float64": lambda a: a.astype(np.float64),
    "float16": lambda a: a.astype(np.float16),
    "complex": lambda a: a.astype(np.complex64),
    "bool": lambda a: a.astype(bool),
    "int64": lambda a: a.astype(np.int64),
    "object": lambda a: a.astype(object),
    "text": lambda a: a.astype(str),
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
    "record": lambda a: np.zeros(a.shape, [("x", np.float32)]),
    "one axis more": lambda a: a[None],
    "one axis less": lambda a: a[0],
    "too short": lambda a: a[:-1],
    "too long": lambda a: np.concatenate([a, a]),
    "empty": lambda a: a[:0],
    "scalar": lambda a: a.dtype.type(1),
    "number": lambda a: 1.5,
    "list": lambda a: a.tolist(),
    "words": lambda a: "words",
    "dictionary": lambda a: {},
    "tensor": torch.tensor,
    "tensor without values": lambda a: torch.tensor(a).to("meta"),
    "tensor of another device": lambda a: Elsewhere(a),
    "broadcast beyond memory": lambda a: np.broadcast_to(a[:1], (HUGE * 2**12, *a.shape[1:])),
    "as long as two to the 31": lambda a: as_strided(a, (HUGE, *a.shape[1:]), (0, *a.strides[1:])),
}


class Elsewhere:
    """Says that its values lie on a GPU."""

    def __init__(self, values):
        self.values, self.shape, self.dtype = values, values.shape, values.dtype

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **options):
        raise BufferError("not on this device")


def refused(call, *args, **options):
    with pytest.raises(InputError) as caught:
        call(*args, **options)
    assert len(str(caught.value)) > 10 and "\n" not in str(caught.value)
    return str(caught.value)


# ── wrong arrays ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(("cell", "name"), [(cell, name) for cell in CELLS for name in Window(cell).args])
def test_a_window_refuses_a_wrong_array_and_names_it(cell, name, wrong):
    window = Window(cell)
    value = WRONG[wrong](window.args[name])
    if name == "p" and wrong in ("too short", "too long", "empty"):
        window.args["lengths"] = None  # another number of steps is still a window
        assert window.forward(p=value).tau == len(value)
        return
    message = refused(window.forward, **{name: value})
    named = {"h0": "h0|p", "W": "W|h0"}.get(name, name)
    assert re.search(rf"\b({named})\b", message), message


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["W", "dh", "dh_end", "ds_end"])
@pytest.mark.parametrize("cell", CELLS)
def test_a_window_backwards_refuses_a_wrong_array(cell, name, wrong):
    window = Window(cell)
    if name == "W" and not window.cell.has_W:
        refused(window.backward, W=floats(5, 5))
        return
    refused(window.backward, **{name: WRONG[wrong](window.back[name] if name != "W" else window.args["W"])})


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["hs", "ss", "gates", "lengths", "recurrent_mask"])
def test_a_window_backwards_refuses_a_wrong_tape(name, wrong):
    window = Window("lstm")
    tape = window.forward()
    wrong_tape = tape._replace(**{name: WRONG[wrong](getattr(tape, name))})
    refused(native.window_backward, wrong_tape, window.args["W"], **window.back)


def two_of(value, wrong):
    return WRONG[wrong](value)


KERNELS = {
    "matmul a": lambda w: native.matmul(two_of(floats(3, 4), w), floats(4, 5), start=floats(3, 5)),
    "matmul b": lambda w: native.matmul(floats(3, 4), two_of(floats(4, 5), w)),
    "matmul start": lambda w: native.matmul(floats(3, 4), floats(4, 5), start=two_of(floats(3, 5), w)),
    "outer a": lambda w: native.matmul(two_of(floats(4, 3), w), floats(4, 5), transpose_a=True),
    "outer b": lambda w: native.matmul(floats(4, 3), two_of(floats(4, 5), w), transpose_a=True),
    "outer out": lambda w: native.matmul(
        floats(4, 3), floats(4, 5), transpose_a=True, out=two_of(floats(3, 5), w)
    ),
    "sum out": lambda w: native.column_sum(floats(3, 4), out=two_of(floats(4), w)),
    "gather ids": lambda w: native.gather(floats(3, 4), two_of(floats(5), w)),
    "scatter rows": lambda w: native.scatter_add(floats(3, 4), ids(0, 1), two_of(floats(2, 4), w)),
    "scatter ids": lambda w: native.scatter_add(floats(3, 4), two_of(floats(2), w), floats(2, 4)),
    "softmax h": lambda w: native.softmax_cross_entropy(
        two_of(floats(3, 4), w), floats(5, 4), floats(5), ids(1, 2, 3)
    ),
    "softmax c": lambda w: native.softmax_cross_entropy(
        floats(3, 4), floats(5, 4), two_of(floats(5), w), ids(1, 2, 3)
    ),
    "softmax dV": lambda w: native.softmax_cross_entropy(
        floats(3, 4), floats(5, 4), None, ids(1, 2, 3), dV=two_of(floats(5, 4), w)
    ),
    "softmax dc": lambda w: native.softmax_cross_entropy(
        floats(3, 4), floats(5, 4), None, ids(1, 2, 3), dV=floats(5, 4), dc=two_of(floats(5), w)
    ),
    "adam g": lambda w: native.adam(
        floats(5), two_of(floats(5), w), floats(5), floats(5), step=1, learning_rate=0.1
    ),
    "adam m": lambda w: native.adam(
        floats(5), floats(5), two_of(floats(5), w), floats(5), step=1, learning_rate=0.1
    ),
    "adam v": lambda w: native.adam(
        floats(5), floats(5), floats(5), two_of(floats(5), w), step=1, learning_rate=0.1
    ),
    "sgd p": lambda w: native.sgd(two_of(floats(5), w), floats(5), learning_rate=0.1),
    "sgd g": lambda w: native.sgd(floats(5), two_of(floats(5), w), learning_rate=0.1),
    "sgd m": lambda w: native.sgd(floats(5), floats(5), two_of(floats(5), w), learning_rate=0.1),
    "scale x": lambda w: native.scale_rows(two_of(floats(2, 3, 4), w), floats(3, 4)),
    "scale mask": lambda w: native.scale_rows(floats(2, 3, 4), two_of(floats(3, 4), w)),
}
RIGHT_ANSWERS = {
    ("scale x", "too short"): "another number of steps is still a window",
    ("scale x", "too long"): "the same",
    ("scale x", "empty"): "the same",
    ("matmul start", "one axis less"): "one row for all",
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_refuses_a_wrong_array(kernel, wrong):
    if (kernel, wrong) in RIGHT_ANSWERS:
        KERNELS[kernel](wrong)
        return
    refused(KERNELS[kernel], wrong)


@pytest.mark.parametrize("name", ["table", "out", "dV", "p"])
def test_what_is_written_in_place_must_be_contiguous_and_writeable(name):
    def call(value):
        if name == "table":
            native.scatter_add(value, ids(0), floats(1, 4))
        elif name == "out":
            native.matmul(floats(2, 4), floats(2, 4), transpose_a=True, out=value)
        elif name == "dV":
            native.softmax_cross_entropy(floats(2, 4), floats(4, 4), None, ids(0, 1), dV=value)
        else:
            native.sgd(value, floats(4), learning_rate=0.1)

    shape = (4,) if name == "p" else (4, 4)
    call(floats(*shape))
    sealed = floats(*shape)
    sealed.setflags(write=False)
    for value in (sealed, floats(*(2 * n for n in shape))[tuple(slice(None, None, 2) for _ in shape)]):
        assert "in place" in refused(call, value)


# ── right answers from unusual arrays ──────────────────────────────────────────────────────────────────────


def unusual(a):
    """The same values, laid out in memory as no kernel expects them."""
    yield "transposed", np.ascontiguousarray(a.T).T
    yield (
        "reversed",
        np.ascontiguousarray(a[tuple(slice(None, None, -1) for _ in a.shape)])[
            tuple(slice(None, None, -1) for _ in a.shape)
        ],
    )
    wide = np.zeros([2 * n for n in a.shape], a.dtype)
    sparse = wide[tuple(slice(None, None, 2) for _ in a.shape)]
    sparse[...] = a
    yield "every second", sparse
    sealed = a.copy()
    sealed.setflags(write=False)
    yield "read-only", sealed
    odd = np.frombuffer(b"\0" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape)
    assert not odd.flags.aligned
    yield "misaligned", odd
    yield "of a subclass", a.view(np.matrix) if a.ndim == 2 else a.view(np.recarray)


@pytest.mark.parametrize(("cell", "name"), [(cell, name) for cell in CELLS for name in Window(cell).args])
def test_a_window_reads_any_strides(cell, name):
    window = Window(cell)
    expected = window.forward()
    for label, value in unusual(window.args[name]):
        assert np.array_equal(window.forward(**{name: value}).hs, expected.hs), label


@pytest.mark.parametrize("name", ["W", "dh", "dh_end", "ds_end"])
def test_a_window_backwards_reads_any_strides(name):
    window = Window("lstm")
    expected = window.backward()
    for label, value in unusual(window.back.get(name, window.args["W"])):
        assert np.array_equal(window.backward(**{name: value}).da, expected.da), label


def test_a_broadcast_array_is_read_as_what_it_shows():
    window = Window("gru")
    p = np.broadcast_to(floats(15), (4, 3, 15))
    assert np.array_equal(window.forward(p=p).hs, window.forward(p=p.copy()).hs)
    a = np.broadcast_to(floats(1, 7), (5, 7))
    assert np.array_equal(native.matmul(a, floats(7, 3)), native.matmul(a.copy(), floats(7, 3)))
    assert np.array_equal(
        native.matmul(a, a, transpose_a=True), native.matmul(a.copy(), a.copy(), transpose_a=True)
    )


def test_products_read_any_strides():
    a, b = floats(6, 9), floats(9, 4)
    expected = native.matmul(a, b)
    for (label, left), (_, right) in zip(unusual(a), unusual(b), strict=True):
        assert np.array_equal(native.matmul(left, right), expected), label
    overlapping = as_strided(floats(100), (6, 9), (4, 4))
    assert np.array_equal(native.matmul(overlapping, b), native.matmul(overlapping.copy(), b))


# ── lengths and ids ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("bad", [-1, 5, -(2**31), 2**31 - 1])
@pytest.mark.parametrize("cell", CELLS)
def test_lengths_beyond_the_window_are_refused(cell, bad):
    window = Window(cell)
    assert str(bad) in refused(window.forward, lengths=ids(4, bad, 0))


@pytest.mark.parametrize("bad", [-1, 7, -(2**31), 2**31 - 1])
@pytest.mark.parametrize("cell", CELLS)
def test_ids_beyond_the_table_are_refused_unless_they_are_padding(cell, bad):
    window = Window(cell)
    table = floats(7, len(window.cell.gates) * 5)
    read = np.zeros((4, 3), np.int32)
    read[3, 1] = bad
    assert str(bad) in refused(window.forward, p=Lookup(table, read), lengths=None)
    short = window.forward(p=Lookup(table, read), lengths=ids(4, 3, 0))
    clean = window.forward(p=Lookup(table, read * 0), lengths=ids(4, 3, 0))
    assert np.array_equal(short.hs, clean.hs)


@pytest.mark.parametrize("bad", [-1, 3, -(2**31), 2**31 - 1])
def test_tables_refuse_ids_beyond_them_and_stay_as_they_were(bad):
    table = floats(3, 4)
    before = table.copy()
    assert str(bad) in refused(native.gather, table, ids(0, bad))
    assert str(bad) in refused(native.scatter_add, table, ids(0, bad), floats(2, 4))
    assert np.array_equal(table, before)


def test_targets_beyond_the_vocabulary_are_refused_and_negative_ones_masked():
    h, V = floats(2, 4), floats(5, 4)
    assert "5" in refused(native.softmax_cross_entropy, h, V, None, ids(0, 5))
    masked = native.softmax_cross_entropy(h, V, None, ids(-(2**31), -1))
    assert masked.sum == 0 and masked.count == 0 and np.isnan(masked.mean)


def test_a_model_refuses_what_it_cannot_read():
    model = Model.initialise(ModelConfig(inputs=5, outputs=5, hidden=4, cell="gru"), seed=0)
    good = np.zeros((3, 2), np.int32)
    for x in (good - 1, good + 5, good.astype(np.float32), good[0], good[None], [[0, 0]], "abc", None):
        refused(model.forward, x)
    for x in (np.full((3, 2), 2**32, np.int64), np.full((3, 2), 2**64 - 1, np.uint64)):
        assert "int32" in refused(model.forward, x)  # and not wrapped around to 0
    for lengths in (
        ids(1),
        ids(1, 2, 3),
        ids(-1, 2),
        ids(4, 0),
        np.array([1, 2]),
        [1, 2],
        2,
        ids(1, 2)[:, None],
    ):
        refused(model.forward, good, lengths=lengths)
    h = floats(2, 4)
    for state in (
        [],
        [(h, None)] * 2,
        [h],
        [(h,)],
        [(h[:1], None)],
        [(h.astype(float), None)],
        [(None, None)],
    ):
        refused(model.forward, good, state)
    for dtype in (np.int8, np.uint8, np.int64, np.uint64):
        assert np.array_equal(model.forward(good.astype(dtype)).h, model.forward(good).h)


def test_a_loss_refuses_what_it_cannot_score():
    model = Model.initialise(ModelConfig(inputs=5, outputs=5, hidden=4), seed=0)
    out = model.forward(np.zeros((3, 2), np.int32))
    good = np.ones((3, 2), np.int32)
    for y in (
        good[:2],
        good.reshape(-1),
        good.astype(np.float32),
        good + 4,
        good.tolist(),
        good.astype(np.int64) << 32,
    ):
        refused(model.loss, out, y)
    gradient = model.gradient()
    for dh in (out.h[:2], out.h.astype(float), out.h[0], "dh"):
        refused(model.backward, out, dh, gradient)
    for d_final_state in ([], [(out.h[0], None)] * 2, [out.h[0]], [(out.h[0], out.h[0][:1])]):
        refused(model.backward, out, out.h, gradient, d_final_state=d_final_state)


# ── numbers that are none ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, 1e-45])
@pytest.mark.parametrize("cell", CELLS)
def test_no_value_crashes_a_window(cell, value):
    window = Window(cell)
    for name in window.args.keys() - {"lengths"}:
        with np.errstate(all="ignore"):
            window.forward(**{name: np.full_like(window.args[name], value)})
    for name in ("dh", "dh_end", "ds_end"):
        window.backward(**{name: np.full_like(window.back[name], value)})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_loss_from_values_that_are_not_finite_is_not_finite_either(value):
    h = floats(3, 4)
    h[1, 2] = value
    loss = native.softmax_cross_entropy(h, floats(5, 4), None, ids(0, 1, 2), dV=np.zeros((5, 4), np.float32))
    assert np.isfinite(loss.per_target).tolist() == [True, False, True]


def test_a_norm_of_values_that_are_not_finite_says_so():
    assert (
        np.isnan(native.global_norm(np.float32([1, np.nan])))
        and native.global_norm(np.float32([np.inf])) == np.inf
    )


# ── sizes ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("tau", "B"), [(0, 0), (0, 3), (4, 0), (1, 1)])
@pytest.mark.parametrize("kind", ["one-hot", "embedded", "gathered", "dense"])
@pytest.mark.parametrize("cell", CELLS)
def test_windows_without_steps_or_rows_are_windows_too(cell, kind, tau, B):
    config = config_of(
        cell, kind, 5, layers=2, bidirectional=True, dropout=0.1, recurrent_dropout=0.1, learn_h0=True
    )
    model = Model.initialise(config, seed=0)
    shape = (tau, B, config.inputs) if config.dense else (tau, B)
    x = np.zeros(shape, np.float32 if config.dense else np.int32)
    gradient = model.gradient()
    masks = model.masks(B, seed=0, step=0)
    out = model.forward(x, masks=masks, lengths=np.full(B, tau, np.int32))
    loss = model.loss(out, np.zeros((tau, B), np.int32), gradient=gradient)
    d_final_state = [(np.ones_like(h), None if s is None else np.ones_like(s)) for h, s in out.state]
    _, starts = model.backward(out, loss.dh, gradient, d_final_state=d_final_state)
    model.add_initial_state_gradient(starts, gradient)
    model.fold_input_tables(gradient)
    assert loss.count == tau * B and out.h.shape == (tau, B, 10)
    assert np.isfinite(gradient.flat).all()
    if tau == 0:
        for (h, _), (dh, _), (start, _) in zip(out.state, starts, model.initial_state(B), strict=True):
            assert np.array_equal(h, start) and np.array_equal(dh, np.ones_like(h))


def test_sizes_of_zero_give_empty_results():
    none = np.zeros((0, 0), np.float32)
    assert native.matmul(none, none).shape == (0, 0)
    assert native.matmul(floats(3, 0), floats(0, 4)).tolist() == np.zeros((3, 4)).tolist()
    assert native.matmul(floats(0, 3), floats(0, 4), transpose_a=True).tolist() == np.zeros((3, 4)).tolist()
    assert native.column_sum(floats(0, 3)).tolist() == [0, 0, 0]
    assert native.gather(floats(3, 0), ids(0, 2)).shape == (2, 0)
    assert native.gather(floats(0, 3), ids()).shape == (0, 3)
    assert native.global_norm(floats(0)) == 0
    assert native.scale_rows(floats(0, 2, 3), floats(2, 3)).shape == (0, 2, 3)
    assert native.dropout_mask((0, 5), seed=0, stream=0, rate=0.5).shape == (0, 5)
    refused(native.gather, floats(0, 3), ids(0))
    refused(native.softmax_cross_entropy, floats(2, 3), floats(0, 3), None, ids(-1, -1))
    refused(native.window_forward, cell_named("elman"), floats(2, 1, 0), floats(0, 0), floats(1, 0))
    refused(
        native.window_forward,
        cell_named("elman"),
        Lookup(floats(0, 2), np.zeros((1, 1), np.int32)),
        floats(2, 2),
        floats(1, 2),
    )


def test_two_to_the_31_steps_of_no_rows_are_no_work():
    tape = native.window_forward(
        cell_named("gru"), np.zeros((HUGE, 0, 15), np.float32), floats(15, 5), floats(0, 5), extra=[floats(5)]
    )
    assert tape.tau == HUGE
    assert native.window_backward(tape, floats(15, 5)).da.shape == (HUGE, 0, 20)
    assert native.matmul(np.zeros((0, HUGE), np.float32), np.zeros((HUGE, 0), np.float32)).shape == (0, 0)
    assert native.gather(np.zeros((HUGE, 0), np.float32), ids(2**31 - 1)).shape == (1, 0)
    assert native.column_sum(np.zeros((HUGE, 0), np.float32)).shape == (0,)


def test_sizes_that_no_memory_holds_are_refused():
    refused(native.dropout_mask, (HUGE, HUGE), seed=0, stream=0, rate=0.5)
    refused(native.dropout_mask, (2**40, 2**40), seed=0, stream=0, rate=0.5)
    refused(native.dropout_mask, (-1, 5), seed=0, stream=0, rate=0.5)
    refused(native.matmul, np.zeros((HUGE, 0), np.float32), np.zeros((0, HUGE), np.float32))
    for sizes in (
        {"hidden": HUGE},
        {"inputs": 2**60},
        {"layers": 3, "hidden": 2**22},
        {"outputs": 10**30},
    ):
        refused(Model.initialise, ModelConfig(**({"inputs": 2, "outputs": 2, "hidden": 2} | sizes)), seed=0)


# ── options ────────────────────────────────────────────────────────────────────────────────────────────────


def test_unknown_names_are_refused():
    window = Window("elman")
    for cell in ("rnn", "", 0, None, ["elman"]):
        refused(cell_named, cell)
    for activation in ("softplus", 1, None):
        refused(window.forward, activation=activation)
    for name in ("sse", "", None, 5):
        refused(native.choose_isa, name)
    for count in (0, -1, 257, 2**70, "two", 1.5, None):
        refused(native.set_threads, count)
    for rate in (-0.1, 1.0, 1.5, np.nan, np.inf):
        refused(native.dropout_mask, (3,), seed=0, stream=0, rate=rate)
    for step in (0, -1):
        refused(native.adam, floats(1), floats(1), floats(1), floats(1), step=step, learning_rate=0.1)


def test_missing_parts_are_refused():
    refused(Window("lstm").forward, s0=None)
    refused(Window("gru").forward, d=None)
    refused(native.matmul, floats(2, 2), floats(2, 2), out=floats(2, 2))
    refused(native.matmul, floats(2, 2), floats(2, 2), transpose_a=True, start=floats(2, 2))
    refused(native.matmul, floats(2, 3), floats(2, 3))
    refused(native.matmul, floats(2, 3), floats(3, 3), transpose_a=True)


def test_a_packed_matrix_for_something_else_is_refused():
    window = Window("lstm")
    for packed in (
        native.pack(window.args["W"]),
        native.pack(window.args["W"], transposed=True),
        native.pack(floats(3, 3)),
    ):
        refused(window.forward, W=packed)
    refused(window.backward, W=native.pack(window.args["W"], transposed=True, groups=4))
    refused(
        native.softmax_cross_entropy, floats(2, 5), (native.pack(floats(5, 3)), None), floats(4), ids(0, 1)
    )
    refused(native.pack, floats(3, 5), groups=2)
    refused(native.pack, floats(3, 5), groups=0)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_windows_of_any_shapes_are_computed_or_refused(data):
    size = st.integers(0, 4)
    cell = data.draw(st.sampled_from(CELLS))
    tau, B, H = data.draw(size), data.draw(size), data.draw(size)
    cell = cell_named(cell)
    G = len(cell.gates)
    right = {"p": (tau, B, G * H), "h0": (B, H), "s0": (B, H)}
    right |= {"W": (G * H, H), "recurrent_mask": (B, H)} if cell.has_W else {}
    right |= {each.name: each.shape(H, G * H) for each in cell.extra}
    shapes = dict(right)
    if data.draw(st.booleans()):
        name = data.draw(st.sampled_from(sorted(shapes)))
        shapes[name] = tuple(data.draw(st.lists(size, min_size=0, max_size=4)))
    args = {name: floats(*shape) for name, shape in shapes.items()}
    p, W, h0 = args.pop("p"), args.pop("W", None), args.pop("h0")
    extra = [args.pop(each.name) for each in cell.extra]
    shaped_right = all(shapes[n] == right[n] for n in right if n != "p")
    shaped_right = shaped_right and shapes["p"][1:] == (B, G * H) and len(shapes["p"]) == 3 and H > 0
    try:
        tape = native.window_forward(cell, p, W, h0, extra=extra, reverse=data.draw(st.booleans()), **args)
    except InputError:
        assert not shaped_right
        return
    assert shaped_right
    back = native.window_backward(tape, W, extra=extra, dh=floats(len(p), B, H))
    assert tape.h.shape == (len(p), B, H) and np.isfinite(tape.hs).all()
    assert back.dh0.shape == (B, H) and np.isfinite(back.da).all()


# ── processes and threads ──────────────────────────────────────────────────────────────────────────────────


def python(program, **environment):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], env=os.environ | environment, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip


FORKED = """
import os, sys
import numpy as np
from unspool.kernels import native
native.set_threads(3)
rng = np.random.default_rng(0)
a, b = rng.standard_normal((2, 300, 300)).astype(np.float32)
before = native.matmul(a, b)
for generation in range(2):  # a child, and a child of the child
    if pid := os.fork():
        _, status = os.waitpid(pid, 0)
        same = np.array_equal(native.matmul(a, b), before)
        os._exit(0 if status == 0 and same else 1)
    ok = np.array_equal(native.matmul(a, b), before) and native.kernel_info()["threads"] == 3
    if not ok:
        os._exit(2)
os._exit(0)
"""

FORKED_AMONG_THREADS = """
import os, threading
import numpy as np
from unspool.kernels import native
native.set_threads(2)
a = np.random.default_rng(0).standard_normal((200, 200)).astype(np.float32)
before, done = native.matmul(a, a), threading.Event()
def work():
    while not done.is_set():
        native.matmul(a, a)
workers = [threading.Thread(target=work) for _ in range(3)]
for worker in workers: worker.start()
failed = 0
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if np.array_equal(native.matmul(a, a), before) else 1)
    failed += os.waitpid(pid, 0)[1] != 0
done.set()
for worker in workers: worker.join()
os._exit(1 if failed else 0)
"""


@pytest.mark.parametrize("program", [FORKED, FORKED_AMONG_THREADS], ids=["alone", "among threads"])
def test_a_forked_child_computes_the_same_bits(program):
    done = python(program)
    assert done.returncode == 0, done.stderr


def test_several_python_threads_compute_the_same_bits_at_once():
    case = Windowed(config_of("gru", "dense", 48, layers=2), tau=20, B=16, ragged=True)
    native.set_threads(3)
    expected, failures = walk(case), []

    def work():
        try:
            for _ in range(5):
                same_bits(walk(case), expected)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures, failures[0]


def test_threads_and_instruction_set_may_change_while_others_compute():
    case = Windowed(config_of("lstm", "one-hot", 40), tau=12, B=24)
    expected, failures, done = walk(case), [], threading.Event()

    def work():
        try:
            for _ in range(10):
                same_bits(walk(case), expected)
        except BaseException as error:
            failures.append(error)

    def change():
        at = 0
        while not done.wait(0.001):
            native.set_threads(1 + at % 5)
            native.choose_isa(native.kernel_info()["available"][at % 2 if at % 50 else -1])
            at += 1

    changer = threading.Thread(target=change)
    changer.start()
    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    done.set()
    changer.join()
    assert not failures, failures[0]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(("UNSPOOL_THREADS", value) for value in ("0", "-1", "two", "1.5", "257", "99999999999999999999")),
        *(("UNSPOOL_ISA", value) for value in ("sse9", "AVX2", "plain,avx2", " ")),
    ],
)
def test_a_bad_variable_is_a_clear_error(variable, value):
    done = python("import unspool; unspool.kernel_info()", **{variable: value})
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("unspool.errors.InputError: ") and value.strip() in last and variable in last


def test_a_bad_variable_is_one_line_on_the_command_line():
    done = python(
        "from unspool.cli.main import main; raise SystemExit(main(['turing']))", UNSPOOL_THREADS="two"
    )
    assert done.returncode == 2
    assert done.stderr.strip() == "unspool: UNSPOOL_THREADS is 'two'; expected a number from 1 to 256"


@pytest.mark.parametrize(("variable", "value"), [("UNSPOOL_THREADS", ""), ("UNSPOOL_ISA", "")])
def test_an_empty_variable_is_none(variable, value):
    assert python("import unspool", **{variable: value}).returncode == 0


# ── streams ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_stream_refuses_what_it_cannot_read_or_draw():
    stream = Stream(Model.initialise(ModelConfig(inputs=5, outputs=7, hidden=4), seed=0))
    for token in (-1, 5, 2**31, 2**70, 1.5, "a", None, np.float32(1)):
        refused(stream.read, token)
        refused(stream.advance, token, seed=0, index=0)
    stream.read(np.int64(4))
    for options in (
        {"u": 1.0}, {"u": -0.1}, {"u": np.nan}, {"u": "a"}, {"temperature": -1.0}, {"temperature": np.nan},
        {"temperature": np.inf}, {"top_k": -1}, {"top_k": 1.5}, {"top_k": 2**70}, {"top_p": 0.0},
        {"top_p": 1.1}, {"top_p": np.nan}, {"top_p": None},
    ):  # fmt: skip
        refused(stream.draw, **({"u": 0.5} | options))
    for options in ({"index": -1}, {"index": 2**64}, {"seed": "a"}, {"index": 1.5}):
        refused(stream.advance, 0, **({"seed": 0, "index": 0} | options))


def test_a_stream_refuses_a_state_that_is_not_its_own():
    stream = Stream(Model.initialise(ModelConfig(inputs=5, outputs=7, hidden=4, layers=2), seed=0))
    stream.read(1)
    before = stream.state()
    h = floats(4)
    for state in (
        [], [(h, h)], [(h, h)] * 3, [(h, floats(3))] * 2, [(h.astype(float), h)] * 2, [(h, [0, 0, 0, 0])] * 2,
        [h, h], [(h,), (h,)], [(None, None)] * 2, [(floats(4, 4)[:, 0], h)] * 2, [(h, h), (h, floats(5))],
    ):  # fmt: skip
        refused(stream.restore, state)
    after = stream.state()
    assert all(
        np.array_equal(a, b)
        for old, new in zip(before, after, strict=True)
        for a, b in zip(old, new, strict=True)
    )


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("options", [{}, {"top_k": 50}, {"top_p": 0.9}, {"temperature": 0.0}])
def test_nothing_is_drawn_from_logits_that_are_not_numbers(options, value):
    model = Model.initialise(ModelConfig(inputs=5, outputs=500, hidden=4, cell="elman"), seed=0)
    model.parameters["c"][::3] = value
    stream = Stream(model)
    stream.read(0)
    if value == np.inf and options == {"temperature": 0.0}:
        assert stream.draw(0.5, **options) == 0  # the first of the largest
    else:
        refused(stream.draw, 0.5, **options)


def test_every_error_of_ours_is_also_a_built_in_one():
    for error in UnspoolError.__subclasses__():
        assert any(base.__module__ == "builtins" for base in error.__mro__[1:] if base is not Exception), (
            error
        )
