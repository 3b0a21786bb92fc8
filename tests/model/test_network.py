"""The whole model: against finite differences of itself in float64, and what padding may not do."""

import numpy as np
import pytest

from cases import CELLS, INPUTS, Windowed, config_of, same_bits, walk
from unspool.cells import cell_named
from unspool.errors import InputError
from unspool.kernels import reference
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.outputs import output_of
from unspool.model.parameters import prefix


def loss64(case, letters, start=None):
    """The model's loss from the twins alone, in float64: no line of the model's own code."""
    config, x = case.config, case.x
    if config.dense:
        x = np.where((np.arange(case.tau)[:, None] < live(case))[:, :, None], x, 0).astype(np.float64)
    else:
        x = (letters["E"] if config.embedding else np.eye(config.inputs))[x]
    at = 0
    for layer in range(config.layers):
        made = []
        for reverse in range(config.directions):
            p = {k: letters.get(prefix(layer, bool(reverse)) + k) for k in ("U", "W", "b")}
            start = {k: letters.get(prefix(layer, bool(reverse)) + k) for k in ("h0", "s0")}
            cell = cell_named(config.cell)
            extra = [letters[prefix(layer, bool(reverse)) + each.name] for each in cell.extra]
            h0, s0 = (None if v is None else v.astype(np.float64) for v in case.start[at])
            if config.learn_h0:
                h0 = np.tile(start["h0"], (case.B, 1))
                s0 = None if s0 is None else np.tile(start["s0"], (case.B, 1))
            mask = case.masks.states[at].astype(np.float64) if case.masks.states else None
            tape = reference.window_forward(
                cell, x @ p["U"].T + p["b"], p["W"], h0, s0=s0, extra=extra, lengths=case.lengths,
                activation=config.activation, reverse=bool(reverse), recurrent_mask=mask,
            )  # fmt: skip
            made.append(tape.h)
            at += 1
        x = np.concatenate(made, axis=2)
        if case.masks.outputs:
            x = x * case.masks.outputs[layer]
    layer = output_of(config).layer(config, letters, reference)
    return 0.01 * layer.cross_entropy(x.reshape(-1, config.width), case.y.reshape(-1)).sum


def live(case):
    return np.full(case.B, case.tau) if case.lengths is None else case.lengths


def differences(case, letters, name, most=40, step=1e-5):
    """Central differences by some elements of a parameter: all of a small one."""
    value = letters[name]
    rng = np.random.default_rng(0)
    places = rng.permutation(value.size)[:most]
    slopes = []
    for place in places:
        ends = []
        for sign in (1, -1):
            moved = value.copy()
            moved.reshape(-1)[place] += sign * step
            ends.append(loss64(case, letters | {name: moved}))
        slopes.append((ends[0] - ends[1]) / (2 * step))
    return places, np.array(slopes)


MODELS = [
    *(config_of(cell, kind, 4) for cell in CELLS for kind in INPUTS),
    *(
        config_of(
            cell, kind, 4, layers=2, bidirectional=True, learn_h0=True, dropout=0.3, recurrent_dropout=0.3
        )
        for cell in CELLS
        for kind in ("one-hot", "embedded", "tied", "gathered", "dense")
    ),
    *(config_of("elman", "embedded", 5, activation=a, learn_h0=True) for a in ("sigmoid", "identity")),
]


@pytest.mark.parametrize(
    "config", MODELS, ids=lambda c: f"{c.cell}-{c.inputs}-{c.tied}-{c.layers}-{c.activation}"
)
def test_every_parameters_gradient_equals_finite_differences(config):
    case = Windowed(config, tau=5, B=3, ragged=True, seed=2)
    if config.dense:
        case.x = case.x.copy()
    letters = {name: value.astype(np.float64) for name, value in case.model.parameters.items()}
    model = case.model
    gradient = model.gradient()
    out = model.forward(case.x, case.start, lengths=case.lengths, masks=case.masks)
    loss = model.loss(out, case.y, scale=0.01, gradient=gradient)
    assert loss.sum * 0.01 == pytest.approx(loss64(case, letters), rel=1e-5)
    _, starts = model.backward(out, loss.dh, gradient)
    model.add_initial_state_gradient(starts, gradient)
    model.fold_input_tables(gradient)
    assert set(gradient.values) == set(letters)
    for name in letters:
        places, slopes = differences(case, letters, name)
        ours = np.ascontiguousarray(gradient.values[name]).reshape(-1)
        assert np.abs(ours[places] - slopes).max() < 2e-5 * max(np.abs(ours).max(), 1e-3), name


def test_the_gradient_of_a_learned_start_is_the_sum_over_the_rows():
    model = Model.initialise(config_of("lstm", "one-hot", 4, learn_h0=True), seed=0)
    gradient = model.gradient()
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    model.add_initial_state_gradient([(rows, rows * 2)], gradient)
    assert gradient.values["layer0.h0"].tolist() == [12, 15, 18, 21]
    assert gradient.values["layer0.s0"].tolist() == [24, 30, 36, 42]


def test_a_model_without_a_learned_start_starts_at_zero_and_takes_no_gradient_of_it():
    model = Model.initialise(config_of("lstm", "one-hot", 4), seed=0)
    gradient = model.gradient()
    assert all(not part.any() for pair in model.initial_state(2) for part in pair)
    model.add_initial_state_gradient([(np.ones((2, 4), np.float32),) * 2], gradient)
    assert not gradient.flat.any()


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", ["one-hot", "embedded", "gathered", "dense"])
@pytest.mark.parametrize("cell", CELLS)
def test_what_stands_beyond_a_rows_end_changes_no_bit(cell, kind, bidirectional, layers):
    config = config_of(cell, kind, 7, layers=layers, bidirectional=bidirectional, dropout=0.2)
    case = Windowed(config, tau=9, B=6, ragged=True)
    clean = walk(case)
    padding = np.arange(case.tau)[:, None] >= case.lengths
    assert padding.any()
    garbage = [np.nan, np.inf, 3e38] if config.dense else [-1, config.inputs, 2**31 - 1, 3]
    for value in garbage:
        case.x[padding] = value
        found = walk(case)
        same_bits(found, clean)


@pytest.mark.parametrize("cell", CELLS)
def test_a_row_of_length_zero_keeps_its_state_and_passes_its_gradient_on(cell):
    case = Windowed(config_of(cell, "one-hot", 6), tau=4, B=3, ragged=True)
    case.lengths[:] = [4, 0, 2]
    case.y[:, 1] = -1
    found = walk(case)
    for i, letter in enumerate("hs"[: cell_named(cell).parts]):
        assert np.array_equal(found[f"end 0 {letter}"][1], case.start[0][i][1])
        assert np.array_equal(found[f"d_start 0 {letter}"][1], case.d_final_state[0][i][1])


@pytest.mark.parametrize("cell", CELLS)
def test_the_state_is_frozen_at_a_rows_end(cell):
    case = Windowed(config_of(cell, "dense", 6, bidirectional=True), tau=8, B=3)
    lengths = np.array([8, 3, 5], np.int32)
    out = case.model.forward(case.x, case.start, lengths=lengths)
    for row, length in enumerate(lengths):
        start = [(h[row : row + 1], None if s is None else s[row : row + 1]) for h, s in case.start]
        alone = case.model.forward(np.ascontiguousarray(case.x[:length, row : row + 1]), start)
        assert np.array_equal(out.h[:length, row], alone.h[:, 0])
        for (h, s), (h_alone, s_alone) in zip(out.state, alone.state, strict=True):
            assert np.array_equal(h[row], h_alone[0])
            assert s is None or np.array_equal(s[row], s_alone[0])
        assert (out.h[length:, row, :6] == out.h[length - 1, row, :6]).all()


def test_a_tied_table_gets_the_gradients_of_both_its_uses():
    case = Windowed(config_of("gru", "tied", 5), tau=4, B=2)
    both = walk(case)["gradient E"]
    model = case.model
    gradient = model.gradient()
    out = model.forward(case.x, case.start)
    model.loss(out, case.y, scale=0.01, gradient=gradient)
    of_the_output = gradient.values["E"].copy()
    untied = ModelConfig(**(case.config.to_json() | {"tied": False}))
    other = Model.initialise(untied, seed=0)
    for name in other.parameters:
        other.parameters[name][:] = model.parameters["E" if name == "V" else name]
    apart = walk(case, model=other)
    assert np.array_equal(apart["gradient V"], of_the_output)
    assert np.allclose(both, apart["gradient V"] + apart["gradient E"], atol=1e-7)


def test_a_large_vocabulary_is_read_as_a_small_one_would_be():
    """Beyond 1,024 tokens rows are gathered and multiplied; below, a table is made first: the same bits."""
    large = config_of("gru", "gathered", 9)
    small = ModelConfig(**(large.to_json() | {"inputs": 13}))
    assert small.uses_input_table and not large.uses_input_table
    case = Windowed(large, tau=6, B=4)
    case.x %= 13
    model = Model.initialise(small, seed=0)
    for name in model.parameters:
        model.parameters[name][:] = (
            case.model.parameters[name][:13] if name == "E" else case.model.parameters[name]
        )
    ours, theirs = walk(case), walk(case, model=model)
    for name in ("h", "each", "end 0 h", "d_start 0 h"):
        same_bits({name: ours[name]}, {name: theirs[name]})
    assert np.allclose(ours["gradient E"][:13], theirs["gradient E"], rtol=1e-4, atol=1e-6)
    assert not ours["gradient E"][13:].any()


def test_dropout_masks_depend_on_seed_step_layer_and_direction_and_on_nothing_else():
    model = Model.initialise(
        config_of("gru", "one-hot", 32, layers=2, bidirectional=True, dropout=0.5, recurrent_dropout=0.5), 0
    )
    first, again = model.masks(16, seed=1, step=2), model.masks(16, seed=1, step=2)
    for ours, theirs in zip(first, again, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
    every = [
        mask.tobytes()[: 16 * 32 * 4]
        for seed, step in ((1, 2), (1, 3), (2, 2), (3, 1))
        for part in model.masks(16, seed=seed, step=step)
        for mask in part
    ]
    assert len(every) == len(set(every)) == 24
    assert [mask.shape for mask in first.outputs] == [(16, 64)] * 2
    assert [mask.shape for mask in first.states] == [(16, 32)] * 4


def test_a_model_without_dropout_has_no_masks():
    assert Model.initialise(config_of("gru", "one-hot", 4), 0).masks(3, seed=0, step=0) == (None, None)


def test_dropout_changes_nothing_on_average_and_something_each_time():
    case = Windowed(config_of("elman", "one-hot", 64, activation="identity", dropout=0.5), tau=2, B=4)
    plain = case.model.forward(case.x).h
    total = np.zeros_like(plain, dtype=np.float64)
    for step in range(400):
        dropped = case.model.forward(case.x, masks=case.model.masks(4, seed=0, step=step)).h
        assert not np.array_equal(dropped, plain)
        total += dropped
    assert np.abs(total / 400 - plain).mean() < 0.05 * np.abs(plain).mean() + 0.05


def test_a_window_does_not_change_the_model_or_its_arguments():
    case = Windowed(config_of("lstm", "embedded", 8, layers=2, dropout=0.3), tau=5, B=3, ragged=True)
    before = [v.copy() for v in (case.model.parameters.flat, case.x, case.y, case.lengths, case.start[0][0])]
    walk(case)
    after = (case.model.parameters.flat, case.x, case.y, case.lengths, case.start[0][0])
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_a_fresh_model_depends_on_its_seed_only():
    config = config_of("lstm", "tied", 8, layers=2)
    flat = Model.initialise(config, seed=1).parameters.flat
    assert np.array_equal(flat, Model.initialise(config, seed=1).parameters.flat)
    assert not np.array_equal(flat, Model.initialise(config, seed=2).parameters.flat)


def test_a_models_table_shows_what_the_first_layer_adds():
    for kind in ("one-hot", "embedded"):
        model = Model.initialise(config_of("gru", kind, 6), seed=0)
        p = model.parameters
        x = p["E"] if kind == "embedded" else np.eye(model.config.inputs, dtype=np.float32)
        assert np.allclose(model.table(), x @ p["layer0.U"].T + p["layer0.b"], atol=1e-6)


def test_a_tape_takes_the_bytes_that_its_formula_says():
    from unspool.kernels.tape import bytes_of_tape

    for cell in CELLS:
        for rate in (0.0, 0.5):
            case = Windowed(config_of(cell, "one-hot", 16, recurrent_dropout=rate), tau=7, B=3)
            tape = case.model.forward(case.x, masks=case.masks).tape[0].directions[0]
            assert tape.nbytes == bytes_of_tape(cell_named(cell), 7, 3, 16, masked=rate > 0)


def test_a_state_of_another_model_is_refused():
    model = Model.initialise(config_of("lstm", "one-hot", 6, layers=2), seed=0)
    with pytest.raises(InputError, match="2"):
        model.forward(np.zeros((2, 1), np.int32), model.initial_state(1)[:1])
    with pytest.raises(InputError, match="h0"):
        model.forward(
            np.zeros((2, 1), np.int32),
            Model.initialise(config_of("lstm", "one-hot", 5, layers=2), 0).initial_state(1),
        )
