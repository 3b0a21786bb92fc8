"""The tables of cells and optimisers in the native module, against Python and against what the kernels return."""

import numpy as np
import pytest

from unspool.cells import CELLS
from unspool.errors import InputError
from unspool.kernels import _native, native
from windows import layer_arguments

TABLE = {cell["name"]: cell for cell in _native.cells()}


def floats(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("isa", native.kernel_info()["available"])
def test_every_instruction_set_has_the_same_tables(isa):
    before, tables = native.kernel_info()["bf16"], (_native.cells(), _native.optimisers())
    native.choose_isa(isa)
    try:
        assert (_native.cells(), _native.optimisers()) == tables
    finally:
        native.choose_isa(before)


@pytest.mark.parametrize("name", TABLE)
def test_a_window_has_the_columns_that_the_table_declares(name):
    cell, tau, B, H = TABLE[name], 3, 2, 5
    G = cell["gates"]
    args = layer_arguments(CELLS[name], floats, tau=tau, B=B, H=H)
    tape = native.window_forward(CELLS[name], **args)
    assert (tape.ss is not None) == cell["has_cell_state"]
    assert (0 if tape.gates is None else tape.gates.shape[2]) == cell["tape"][0] * H
    back = native.window_backward(tape, args["W"], extra=args["extra"], dh=floats(tau, B, H))
    assert back.da.shape[2] == cell["da"][0] * H
    assert (back.ds0 is not None) == cell["has_cell_state"]
    at, gap = cell["W_gap"]
    own = sum(each["rows"][0] for each in cell["parameters"] if each["da"][0] >= G + gap)
    assert cell["da"][0] - gap - own == (G if cell["has_W"] else at), (
        "the other blocks of da are the rows of W"
    )


def test_the_own_parameters_of_a_cell_are_refused_where_they_do_not_fit():
    W, p, h0 = native.pack(floats(15, 5), transposed=True, groups=3), floats(2, 3, 15), floats(3, 5)
    for own, message in (
        ([], "gru has 1 extra parameters; got 0"),
        ([None], "gru needs d"),
        ([floats(4)], r"d has shape \(4\); expected \(5\)"),
        ([W], "d must be an array of float32"),
    ):
        with pytest.raises(InputError, match=message):
            _native.window_forward("gru", 0, p, None, None, W, h0, None, own, None, False, None)
    with pytest.raises(InputError, match="gru needs W"):
        _native.window_forward("gru", 0, p, None, None, None, h0, None, [floats(5)], None, False, None)
    with pytest.raises(InputError, match=f"cell is 'gur'; expected one of {', '.join(TABLE)}"):
        _native.window_forward("gur", 0, p, None, None, W, h0, None, [floats(5)], None, False, None)


def test_an_update_refuses_what_its_optimiser_does_not_have():
    p, g, m, rates = floats(7), floats(7), floats(7), [0.1, 0.9, 0.0]
    _native.update("sgd", p, g, [None], 1.0, rates)
    for name, states, settings, message in (
        ("dgs", [m], rates, "optimiser is 'dgs'; expected one of adam, rmsprop, sgd"),
        ("sgd", [], rates, "sgd has 1 states; got 0"),
        ("adam", [m, None], rates, "adam needs v"),
        ("sgd", [m[:5]], rates, "m has 5 values; the parameters have 7"),
        ("sgd", [m], [*rates, 1.0], "sgd has 3 settings; got 4"),
    ):
        with pytest.raises(InputError, match=message):
            _native.update(name, p, g, states, 1.0, settings)
    for wrong in (p.astype(np.float64), p[::2]):
        with pytest.raises(TypeError):
            _native.update("sgd", wrong, g, [None], 1.0, rates)
        with pytest.raises(TypeError):  # no copy that would be updated instead
            _native.update("sgd", p, g, [wrong], 1.0, rates)
