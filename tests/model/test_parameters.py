"""One flat vector and named views into it."""

import numpy as np
import pytest

from cases import CELLS, INPUTS, config_of
from unspool.cells import cell_named
from unspool.cells.initialise import orthogonal
from unspool.errors import InputError
from unspool.model.network import Model
from unspool.model.parameters import Parameters, initialise, shapes_of

CONFIGS = [
    config_of(cell, kind, 6, layers=2, bidirectional=both, learn_h0=both)
    for cell in CELLS
    for kind in INPUTS
    for both in (False, True)
]


def name_of(config):
    return f"{config.cell}-{config.inputs}-{config.tied}-{config.directions}"


@pytest.mark.parametrize("config", CONFIGS, ids=name_of)
def test_views_cover_the_flat_vector_once_and_write_through(config):
    parameters = initialise(config, np.random.default_rng(0))
    parameters.flat[:] = np.arange(len(parameters.flat))
    seen = np.concatenate([parameters.stored(name).reshape(-1) for name in parameters])
    assert len(set(seen)) == len(seen) == parameters.count and (np.diff(seen) > 0).all()
    for name in parameters:
        assert parameters[name].shape == parameters.shapes[name]
        parameters[name][:] = 0
    assert (parameters.flat == 0).sum() in (parameters.count, parameters.count + 1)


def test_every_parameter_begins_on_a_cache_line_and_the_gaps_stay_zero():
    config = config_of("gru", "embedded", 5, layers=2)
    model = Model.initialise(config, seed=0)
    for name in model.parameters:
        assert model.parameters.stored(name).ctypes.data % 64 == 0, name
    gradient = model.gradient()
    x = np.zeros((3, 2), np.int32)
    out = model.forward(x)
    loss = model.loss(out, x, gradient=gradient)
    model.backward(out, loss.dh, gradient)
    model.fold_input_tables(gradient)
    total = sum(float((gradient.values[name].astype(np.float64) ** 2).sum()) for name in gradient.values)
    assert float((gradient.flat.astype(np.float64) ** 2).sum()) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("config", CONFIGS, ids=name_of)
def test_matrices_come_first_so_that_decay_is_one_slice(config):
    parameters = initialise(config, np.random.default_rng(0))
    parameters.flat[:] = 0
    for name, shape in parameters.shapes.items():
        parameters[name][:] = len(shape)
    assert set(parameters.flat[: parameters.matrices]) <= {2, 0}
    assert set(parameters.flat[parameters.matrices :]) <= {1, 0}


def test_u_is_stored_transposed_and_shown_as_the_book_has_it():
    parameters = Parameters(shapes_of(config_of("gru", "one-hot", 4)))
    parameters["layer0.U"][3, 2] = 5
    assert parameters.stored("layer0.U")[2, 3] == 5
    assert parameters.stored("layer0.U").flags.c_contiguous


def test_a_layers_own_parameters_are_found_under_their_letters():
    parameters = Parameters(
        shapes_of(config_of("lstm", "embedded", 4, layers=2, bidirectional=True, learn_h0=True))
    )
    for layer in (0, 1):
        for reverse in (False, True):
            assert sorted(parameters.layer(layer, reverse)) == ["U", "W", "b", "h0", "s0"]
    assert parameters.layer(1, True)["U"].shape == (16, 8)
    assert sorted(Parameters(shapes_of(config_of("gru", "dense", 4))).layer(0, False)) == ["U", "W", "b", "d"]


def test_a_parameter_that_is_not_there_is_named_in_the_error():
    parameters = Parameters(shapes_of(config_of("gru", "one-hot", 4)))
    with pytest.raises(InputError, match=r"layer9\.W"):
        parameters["layer9.W"]
    with pytest.raises(InputError):
        Parameters(parameters.shapes, np.zeros(3, np.float32))
    assert "layer0.W" in parameters and len(list(parameters)) == len(parameters)


def test_fresh_recurrent_blocks_are_rotations_and_the_forget_gate_is_open():
    for cell in CELLS:
        parameters = initialise(config_of(cell, "one-hot", 16), np.random.default_rng(3))
        for block in parameters.layer(0, False).get("W", np.empty(0)).reshape(-1, 16, 16):
            assert np.allclose(block @ block.T, np.eye(16), atol=1e-5)
        bias = parameters["layer0.b"]
        expected = np.zeros_like(bias)
        if cell_named(cell).input_gate:
            expected[cell_named(cell).block(cell_named(cell).forget_gate, 16)] = 1
        assert np.array_equal(bias, expected)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("H", [1, 2, 64])
def test_a_rotation_is_one_whatever_the_seed(H, seed):
    block = np.empty((H, H), np.float32)
    orthogonal(block, np.random.default_rng(seed))
    assert np.abs(block @ block.T - np.eye(H)).max() < 1e-5


def test_numbers_that_no_round_brings_near_are_drawn_again():
    class Generator:
        drawn = iter([9.0, 0.0, 1e-12, -0.5])

        def standard_normal(self, shape):
            return np.full(shape, next(self.drawn))

    block = np.empty((1, 1), np.float32)
    orthogonal(block, Generator())
    assert block.tolist() == [[-1.0]] and next(Generator.drawn, None) is None


def test_like_gives_zeros_of_the_same_shapes_elsewhere_in_memory():
    parameters = initialise(config_of("gru", "one-hot", 4), np.random.default_rng(0))
    other = parameters.like()
    assert other.shapes == parameters.shapes and not other.flat.any()
    assert not np.shares_memory(other.flat, parameters.flat)
