"""Rows that are reset by themselves, before any step: as if each had been computed alone, cut at its resets."""

import itertools
import warnings

import numpy as np
import pytest

from cases import CELLS, Batch, Windowed, config_of, masks_of, rows_of, same_bits
from unspool.errors import CutWarning, FileError, InputError
from unspool.gradients.bptt import backpropagate
from unspool.gradients.truncation import CarriedState, Truncation
from unspool.kernels import reference
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.values import replace_rows
from unspool.optimisers.adam import Adam
from unspool.training.loop import train
from unspool.training.objectives import TextObjective, restarted_rows
from unspool.training.state import check_carried

FRESH = np.zeros((13, 4), bool)
FRESH[0, [1, 3]] = FRESH[5, [0, 1]] = FRESH[6, 1] = FRESH[12, 2] = True
"""Rows reset before the first step, in the middle, twice in a row, and before the last; row 3 only at the start."""


def xi_of(tau=13, B=4):
    xi = np.random.default_rng(0).integers(0, 3, (tau, B)).astype(np.float32)
    xi[:2] = 1.5  # some gradient arrives at the initial state
    return xi


def everything(case, fresh, recompute="none", carry_after=None, rows=slice(None), model=None, xi=None):
    """Pass a window forward and back; return the loss, the states, the gradients."""
    model = model or case.model
    gradient, masks = model.gradient(), masks_of(case.masks, rows)
    passed = backpropagate(
        model, case.x[:, rows], case.y[:, rows], rows_of(case.start, rows), gradient, scale=0.01, masks=masks,
        xi=None if xi is None else xi[:, rows], recompute=recompute, carry_after=carry_after, fresh=fresh,
    )  # fmt: skip
    model.fold_input_tables(gradient)
    found = {name: gradient.values.stored(name).copy() for name in gradient.values}
    found |= {"sum": np.float64(passed.loss.sum), "each": passed.loss.per_target}
    for name, state in passed._asdict().items():
        if name != "loss":
            found |= {
                f"{name} {i} {j}": v for i, p in enumerate(state) for j, v in enumerate(p) if v is not None
            }
    return found


def alone(case, row, model, xi=None):
    """Compute one row by itself, a window from each of its resets to the next."""
    gradient, state, rows, each = model.gradient(), rows_of(case.start, [row]), [row], []
    edges = sorted({0, *np.flatnonzero(FRESH[:, row]).tolist(), case.tau})
    weights, pieces = model.weights(), []
    for begin, end in itertools.pairwise(edges):
        state = None if FRESH[begin, row] else state
        output = model.forward(
            case.x[begin:end, rows], state, masks=masks_of(case.masks, rows), weights=weights,
            y=case.y[begin:end, rows] if case.config.feeds_tokens else None,
        )  # fmt: skip
        pieces.append((begin, end, output))
        state = output.state
    for begin, end, output in reversed(pieces):
        loss = model.loss(output, case.y[begin:end, rows], scale=0.01, weights=weights, gradient=gradient)
        weighed = None if xi is None else np.ascontiguousarray(xi[begin:end, rows])
        _, d_state = model.backward(output, loss.dh, gradient, weights=weights, xi=weighed)
        each.insert(0, loss.per_target)
        if FRESH[begin, row]:
            model.add_initial_state_gradient(d_state, gradient)
    model.fold_input_tables(gradient)
    return np.concatenate(each)[:, 0], state, gradient


def case_of(cell, kind="one-hot", **more):
    fields = {"layers": 2, "dropout": 0.3, "recurrent_dropout": 0.2, "learn_h0": True} | more
    case = Windowed(config_of(cell, kind, 9, **fields), tau=13, B=4)
    if not case.config.feeds_tokens:
        rng = np.random.default_rng(8)  # carried rows that are not h(0)
        case.start = [
            tuple(None if v is None else rng.standard_normal(v.shape).astype(np.float32) for v in part)
            for part in case.start
        ]
    return case


@pytest.mark.parametrize("kind", ["one-hot", "gathered", "dense"])
@pytest.mark.parametrize("cell", CELLS)
def test_a_window_with_resets_is_the_sum_of_its_rows_each_cut_at_its_own_resets(cell, kind):
    case, xi = case_of(cell, kind), xi_of()
    for model, tolerance in ((case.model, 2e-5), (case.model.on(reference), 1e-12)):
        found = everything(case, FRESH, model=model, xi=xi)
        total = model.gradient()
        total.flat[:] = 0
        for row in range(4):
            each, state, gradient = alone(case, row, model, xi)
            total.flat[:] += gradient.flat
            np.testing.assert_allclose(found["each"][:, row], each, rtol=1e-12)
            if model is case.model:
                assert each.tobytes() == np.ascontiguousarray(found["each"][:, row]).tobytes()
                for i, (h, _) in enumerate(state):
                    assert h[0].tobytes() == found[f"state {i} 0"][row].tobytes()
        for name in total.values:
            theirs = total.values.stored(name)
            np.testing.assert_allclose(found[name], theirs, rtol=tolerance, atol=tolerance * 0.1)
            assert np.abs(theirs).max() > 1e-6, name
        assert not found["d_initial_state 0 0"][FRESH[0]].any()
        assert found["d_initial_state 0 0"][~FRESH[0]].any()


@pytest.mark.parametrize("feedback", ["token", "logits"])
def test_the_output_fed_back_is_forgotten_by_a_reset(feedback):
    config = ModelConfig(
        cell="elman", inputs=7, outputs=7, hidden=6, pattern="output", feedback=feedback, dropout=0.2,
        learn_h0=feedback == "logits",
    )  # fmt: skip
    case = Windowed(config, tau=13, B=4)
    case.y[case.y < 0] = 0
    if feedback == "token":
        case.start = [(np.array([3, 1, 0, 2], np.int32), None)]
    found, total = everything(case, FRESH), case.model.gradient()
    total.flat[:] = 0
    for row in range(4):
        each, _, gradient = alone(case, row, case.model)
        assert each.tobytes() == np.ascontiguousarray(found["each"][:, row]).tobytes()
        total.flat[:] += gradient.flat
    for name in total.values:
        np.testing.assert_allclose(found[name], total.values.stored(name), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("cell", CELLS)
def test_few_states_kept_give_the_same_bits_with_resets(cell, precision):
    case = case_of(cell, precision=precision)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CutWarning)
        for carry_after in (None, 0, 5, 9):
            same_bits(
                everything(case, FRESH, "none", carry_after, xi=xi_of()),
                everything(case, FRESH, "sqrt", carry_after, xi=xi_of()),
            )


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("cell", CELLS)
def test_rows_reset_before_the_first_step_are_rows_that_were_given_the_initial_state(cell, precision):
    case = case_of(cell, precision=precision)
    fresh = FRESH & (np.arange(13) == 0)[:, None]
    found = everything(case, fresh)
    case.start = replace_rows(case.start, fresh[0], case.model.initial_state(4))
    given = everything(case, None)
    h0 = [name for name in found if name.endswith(("h0", "s0")) or name.startswith("d_initial")]
    same_bits(*({name: v for name, v in each.items() if name not in h0} for each in (found, given)))
    rows = given["d_initial_state 0 0"][fresh[0]]
    assert found["layer0.h0"].tobytes() == case.model.backend.column_sum(rows).tobytes()


def test_a_reset_of_all_rows_is_a_window_without_a_state():
    case = case_of("lstm")
    fresh = np.zeros((13, 4), bool)
    fresh[0] = True
    found, gradient = everything(case, fresh), case.model.gradient()
    passed = backpropagate(case.model, case.x, case.y, None, gradient, scale=0.01, masks=case.masks)
    case.model.add_initial_state_gradient(passed.d_initial_state, gradient)
    case.model.fold_input_tables(gradient)
    same_bits(
        {name: found[name] for name in gradient.values},
        {n: gradient.values.stored(n) for n in gradient.values},
    )


def test_a_network_of_both_directions_can_be_reset_only_at_the_start_of_a_window():
    case = Windowed(config_of("gru", "one-hot", 5, bidirectional=True), tau=13, B=4)
    everything(case, FRESH & (np.arange(13) == 0)[:, None])
    with pytest.raises(InputError, match="one direction"):
        everything(case, FRESH)
    with pytest.raises(InputError, match=r"fresh has shape \(4,\); expected \(13, 4\)"):
        everything(case, FRESH[0])


# ── training ───────────────────────────────────────────────────────────────────────────────────────────────

RESETS = {2: [0], 3: [1, 2], 4: [0], 7: [2]}
"""The rows that are reset before a window, by its number."""


def windows(tau, count, B=3, rows=None):
    tokens = np.random.default_rng(5).integers(0, 7, (count * tau + 1, B)).astype(np.int32)
    found = []
    for i in range(count):
        reset = np.isin(np.arange(B), RESETS.get(i, [])) | (i == 0)
        part = slice(i * tau, (i + 1) * tau + 1)
        x = tokens[part] if rows is None else tokens[part][:, rows]
        found.append(Batch(x[:-1], x[1:], reset if rows is None else reset[rows]))
    return found


def gradients(model, batches, bptt):
    """Return the gradient of every update of a model that is never updated."""
    carried = CarriedState(Truncation.parse(bptt))
    objective = TextObjective(model, carried)
    return [objective(segment, 0).gradient.copy() for segment in carried.segments(batches)]


@pytest.mark.parametrize(
    ("bptt", "tau"), [("full", 4), ("truncated:4", 4), ("truncated:3,8", 3), ("truncated:2,3", 4)]
)
@pytest.mark.parametrize("cell", CELLS)
def test_windows_of_fresh_and_carried_rows_train_as_the_rows_would_alone(cell, bptt, tau):
    model = Model.initialise(
        ModelConfig(cell=cell, inputs=7, outputs=7, hidden=6, layers=2, learn_h0=True), seed=2
    )
    model.parameters.flat[:] += np.random.default_rng(0).uniform(-0.3, 0.3, model.parameters.flat.shape)
    model = model.on(reference)
    together = gradients(model, windows(tau, 9), bptt)
    rows = [gradients(model, windows(tau, 9, rows=[b]), bptt) for b in range(3)]
    assert len(together) == len(rows[0]) == 9 * tau // (Truncation.parse(bptt).K1 or tau)
    for found, *each in zip(together, *rows, strict=True):
        np.testing.assert_allclose(found, sum(each) / 3, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("stop", [1, 4, 6])
@pytest.mark.parametrize("bptt", ["full", "truncated:4", "truncated:3,8", "random:0.6"])
def test_training_with_restarts_goes_on_from_a_saved_state_to_the_same_bits(bptt, stop):
    config = config_of("gru", "embedded", 10, layers=2, dropout=0.2, learn_h0=True)
    how, batches = Truncation.parse(bptt), windows(7, 9)

    def made(seed=4):
        return Model.initialise(config, seed=seed), Adam(clip=0.5), CarriedState(how)

    model, optimiser, carried = made()
    list(train(model, batches, optimiser, seed=7, carried=carried, restart=0.4))
    whole, data = model.parameters.flat.copy(), iter(batches)
    model, optimiser, carried = made()
    reports = train(model, data, optimiser, seed=7, carried=carried, restart=0.4)
    for _ in range(stop):
        next(reports)
    saved, kept, flat = carried.state(), optimiser.state(), model.parameters.flat.copy()
    check_carried(config, {name: array for name, array in saved.items()}, "file")
    model, optimiser, carried = made(seed=9)
    model.parameters.flat[:] = flat
    optimiser.restore(kept)
    carried.restore(saved)
    list(train(model, data, optimiser, seed=7, carried=carried, restart=0.4))
    assert model.parameters.flat.tobytes() == whole.tobytes()
    plain = made()[0]
    list(train(plain, batches, Adam(clip=0.5), seed=7, carried=CarriedState(how)))
    assert plain.parameters.flat.tobytes() != whole.tobytes()


def test_restarts_depend_on_seed_update_and_row_and_not_on_the_batch():
    drawn = np.array([restarted_rows(64, 0.1, seed=3, step=step) for step in range(2000)])
    fewer = np.array([restarted_rows(5, 0.1, seed=3, step=step) for step in range(2000)])
    assert (drawn[:, :5] == fewer).all()
    assert abs(drawn.mean() - 0.1) < 4 * np.sqrt(0.09 / drawn.size)
    assert abs(drawn.mean(axis=0) - 0.1).max() < 5 * np.sqrt(0.09 / 2000)
    others = np.array([restarted_rows(64, 0.1, seed=4, step=step) for step in range(2000)])
    assert abs((drawn & others).mean() - 0.01) < 5 * np.sqrt(0.01 / drawn.size)


def test_a_reset_of_another_number_of_rows_is_refused():
    batch = Batch(np.zeros((4, 2), np.int32), np.zeros((4, 2), np.int32), np.array([True, False, False]))
    model = Model.initialise(ModelConfig(inputs=3, outputs=3, hidden=4), seed=0)
    with pytest.raises(
        InputError, match=r"reset has shape \(3,\); expected one value, or one for each of 2 rows"
    ):
        list(train(model, [batch], Adam()))


@pytest.mark.parametrize(
    "wrong",
    [
        {"past.fresh": np.full((2, 3), 2, np.int32)},
        {"past.fresh": np.ones((1, 3), np.int32)},
        {"past.x": None},
    ],
)
def test_resets_that_do_not_belong_to_the_steps_of_a_saved_state_are_refused(wrong):
    config = ModelConfig(cell="gru", inputs=5, outputs=5, hidden=4)
    arrays = {"past.0.h": np.zeros((3, 4), np.float32), "past.x": np.ones((2, 3), np.int32)}
    arrays |= {"past.fresh": np.ones((2, 3), np.int32)}
    check_carried(config, arrays, "file")
    arrays = {name: array for name, array in (arrays | wrong).items() if array is not None}
    with pytest.raises(FileError, match="damaged"):
        check_carried(config, arrays, "file")
