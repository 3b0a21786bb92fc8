"""One contract for every cell of the registry: kernels, gradients, Jacobian, graph, and cells that are not there yet."""

import numpy as np
import pytest

from cases import Windowed, config_of
from unspool.cells import CELLS, DEFAULT, PLAIN, TASK_DEFAULT, cell_named
from unspool.errors import InputError
from unspool.gradients.by_lag import gradient_by_lag
from unspool.gradients.decomposition import decompose_gradient
from unspool.gradients.jacobians import influence, jacobian
from unspool.inspect.graph.build import fold
from unspool.inspect.graph.layout import lay_out
from unspool.inspect.graph.operations import OPERATIONS
from unspool.kernels import _native, native, reference
from unspool.kernels.tape import Lookup
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from windows import ToyMinGRU, ToyMogrifier, layer_arguments

ACTIVATIONS = ("tanh", "relu", "sigmoid", "identity")
TOYS = (ToyMinGRU(), ToyMogrifier())
KINDS = [
    pytest.param(cell, name, id=f"{cell.name}-{name}")
    for cell in (*CELLS.values(), *TOYS)
    for name in (ACTIVATIONS if cell.has_activation else ("tanh",))
]
NATIVE = [kind for kind in KINDS if kind.values[0].name in CELLS]


def relative_error(ours, theirs):
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30)) if np.size(theirs) else 0.0


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


# ── the registry ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_native_module_has_the_same_cells():
    table = {of["name"]: of for of in _native.cells()}
    assert set(table) == set(CELLS)
    for name, cell in CELLS.items():
        assert table[name] == {
            "name": name,
            "gates": len(cell.gates),
            "has_W": cell.has_W,
            "has_cell_state": cell.has_cell_state,
            "has_activation": cell.has_activation,
            "tape": tuple(cell.tape),
            "da": tuple(cell.da),
            "W_gap": cell.W_gap if cell.W_gap[1] else (len(cell.gates), 0),
            "da_over": cell.da_over,
            "parameters": [
                {key: tuple(v) if isinstance(v, tuple) else v for key, v in each._asdict().items()}
                for each in cell.extra
            ],
        }


def test_unknown_cells_are_refused_with_the_names_of_the_registry():
    assert {DEFAULT, TASK_DEFAULT, PLAIN} <= set(CELLS)
    for make in (cell_named, lambda name: ModelConfig(inputs=2, outputs=2, cell=name)):
        with pytest.raises(InputError, match=f"cell is 'rnn'; expected one of {', '.join(CELLS)}"):
            make("rnn")


# ── windows of every kind ──────────────────────────────────────────────────────────────────────────────────


class Window:
    """A random window, what arrives at it from behind, and the letters of everything that has a gradient."""

    def __init__(self, cell, activation, *, tau, B, H, ragged, reverse, masked, looked_up, dtype, seed=0):
        rng = np.random.default_rng(seed)

        def values(*shape, size=0.5):
            return (rng.standard_normal(shape) * size).astype(np.float32).astype(dtype)

        masked = masked and cell.has_W
        self.cell, self.activation, self.reverse, self.H = cell, activation, reverse, H
        self.ids = rng.integers(0, 6, (tau, B)).astype(np.int32) if looked_up else None
        self.lengths = rng.integers(0, tau + 1, B).astype(np.int32) if ragged else None
        self.mask = (values(B, H) > 0).astype(dtype) * 2 if masked else None
        args = layer_arguments(cell, values, tau=tau, B=B, H=H)
        self.letters = {name: value for name, value in args.items() if name != "extra" and value is not None}
        self.letters |= {each.name: value for each, value in zip(cell.extra, args["extra"], strict=True)}
        self.P = args["p"].shape[2]
        if looked_up:
            self.letters["p"] = values(6, self.P)
        self.dh, self.dh_end, self.ds_end = values(tau, B, H), values(B, H), values(B, H)

    def extra(self, letters):
        return [letters[each.name] for each in self.cell.extra]

    def forward(self, module, letters=None):
        letters = self.letters if letters is None else letters
        p = letters["p"] if self.ids is None else Lookup(letters["p"], self.ids)
        return module.window_forward(
            self.cell, p, letters.get("W"), letters["h0"], s0=letters.get("s0"), extra=self.extra(letters),
            lengths=self.lengths, activation=self.activation, reverse=self.reverse, recurrent_mask=self.mask,
        )  # fmt: skip

    def objective(self, letters):
        tape = self.forward(reference, letters)
        total = (tape.h * self.dh).sum() + (tape.h_end * self.dh_end).sum()
        return total + (0.0 if tape.s_end is None else (tape.s_end * self.ds_end).sum())

    def gradients(self, module):
        """The gradients of the objective from the hand-written backward pass."""
        tape, cell, H, P = self.forward(module), self.cell, self.H, self.P
        ds_end = self.ds_end if cell.has_cell_state else None
        back = module.window_backward(
            tape,
            self.letters.get("W"),
            extra=self.extra(self.letters),
            dh=self.dh,
            dh_end=self.dh_end,
            ds_end=ds_end,
        )
        da = back.da.reshape(-1, back.da.shape[2]).astype(np.float64)
        taped = None if tape.gates is None else tape.gates.reshape(len(da), tape.gates.shape[2])
        found = {"h0": back.dh0} | ({"s0": back.ds0} if cell.has_cell_state else {})
        if cell.has_W:
            found["W"] = cell.da_of_W(da, H).T @ tape.h_before.reshape(-1, H)
        for each in cell.extra:
            own = each.columns_of_da(da, H, P)
            read = each.columns_of_tape(taped, H, P) if any(each.columns) else None
            found[each.name] = own.sum(axis=0) if read is None else own.T @ read
        if self.ids is None:
            return found | {"p": da[:, :P].reshape(self.letters["p"].shape)}
        table = np.zeros(self.letters["p"].shape)
        np.add.at(table, self.ids.reshape(-1), da[:, :P])
        return found | {"p": table}


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize(("cell", "activation"), KINDS)
def test_every_gradient_equals_finite_differences_in_float64(cell, activation, ragged, reverse, masked):
    window = Window(
        cell, activation, tau=4, B=3, H=3, ragged=ragged, reverse=reverse, masked=masked,
        looked_up=ragged != masked, dtype=np.float64, seed=3,
    )  # fmt: skip
    ours, theirs = window.gradients(reference), differences(window.objective, window.letters)
    assert ours.keys() == theirs.keys()
    for name, slopes in theirs.items():
        assert relative_error(ours[name], slopes) < 1e-7, name


@pytest.mark.parametrize("looked_up", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("tau", "B", "H"), [(1, 1, 1), (3, 2, 7), (35, 5, 33), (2, 67, 16), (0, 3, 4)])
@pytest.mark.parametrize(("cell", "activation"), NATIVE)
def test_a_native_window_equals_the_reference(cell, activation, tau, B, H, reverse, looked_up):
    window = Window(
        cell, activation, tau=tau, B=B, H=H, ragged=tau > 1, reverse=reverse, masked=B > 1,
        looked_up=looked_up, dtype=np.float32,
    )  # fmt: skip
    if cell.has_W:
        window.letters["W"] /= np.float32(H**0.5)
    made, expected = window.forward(native), window.forward(reference)
    assert made.tau == expected.tau == tau
    lengths = np.full(B, tau) if window.lengths is None else window.lengths
    alive = (np.arange(tau)[:, None] < lengths)[:, :, None]
    for name in ("hs", "ss", "gates", "h_masked"):
        ours, theirs = getattr(made, name), getattr(expected, name)
        assert (ours is None) == (theirs is None), name
        if ours is not None:
            there = alive if name in ("gates", "h_masked") else True  # beyond a row's end a gate is anything
            assert ours.shape == theirs.shape, name
            assert relative_error(np.where(there, ours, 0), np.where(there, theirs, 0)) < 2e-6, name
    ours, theirs = window.gradients(native), window.gradients(reference)
    for name, value in theirs.items():
        assert relative_error(ours[name], value) < 2e-5, name


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", CELLS)
def test_a_value_that_is_not_finite_stays_in_its_row(name, value):
    window = Window(
        CELLS[name], "tanh", tau=5, B=4, H=9, ragged=False, reverse=False, masked=False, looked_up=False,
        dtype=np.float32,
    )  # fmt: skip
    clean = window.forward(native)
    window.letters["p"][2, 1, 0] = value
    marred = window.forward(native)
    others = [0, 2, 3]
    assert np.array_equal(marred.hs[:, others], clean.hs[:, others])
    assert np.array_equal(marred.hs[:3, 1], clean.hs[:3, 1])
    assert np.isnan(value) == np.isnan(marred.hs[3:, 1]).any()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("cell", "activation"), KINDS)
def test_a_steps_jacobian_equals_finite_differences(cell, activation, reverse, masked):
    window = Window(
        cell, activation, tau=2, B=2, H=4, ragged=False, reverse=reverse, masked=masked, looked_up=False,
        dtype=np.float64, seed=5,
    )  # fmt: skip
    first, row = (1, 1) if reverse else (0, 1)

    def after(state):
        letters = window.letters | dict(zip(("h0", "s0"), np.split(state, cell.parts), strict=False))
        for name in ("h0", "s0")[: cell.parts]:
            letters[name] = np.repeat(letters[name][None], 2, axis=0)
        if window.mask is not None:
            window.mask[:] = window.mask[row]
        step = window.forward(reference, letters).step(first, row)
        return np.concatenate([step.h, step.s]) if cell.has_cell_state else step.h

    start = np.concatenate([window.letters[name][row] for name in ("h0", "s0")[: cell.parts]])
    slopes = [(after(start + unit) - after(start - unit)) / 2e-5 for unit in 1e-5 * np.eye(len(start))]
    tape = window.forward(reference)
    found = jacobian(tape, window.letters.get("W"), first, row, window.extra(window.letters))
    np.testing.assert_allclose(found, np.array(slopes).T, rtol=1e-7, atol=1e-8)


# ── the graph ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", CELLS)
def test_every_node_has_an_operation_a_position_and_an_equation(name):
    cell = CELLS[name]
    config = ModelConfig(cell=name, inputs=5, outputs=5, hidden=4, layers=2, bidirectional=True)
    graph = fold(config)
    positions = lay_out(graph).places
    for node in graph.nodes:
        assert not node.op or node.op in OPERATIONS, node.name
        assert node.kind in ("input", "target") or node.equation, node.name
        assert node.name in positions
    shared = {each.of or each.name for each in graph.parameters}
    assert shared == set(Model.initialise(config, seed=0).parameters)
    assert len({node.position for node in cell.nodes}) == len(cell.nodes)


# ── a model with cells of other shapes ─────────────────────────────────────────────────────────────────────


@pytest.fixture
def toys(monkeypatch):
    """Register the toys, which have no native kernel: they run on the reference backend."""
    for toy in TOYS:
        monkeypatch.setitem(CELLS, toy.name, toy)


def gradient_of(model, x, dh, times=1):
    """The gradient of the sum of h dh, added up so many times."""
    total = model.gradient()
    for _ in range(times):
        out = model.forward(x)
        dx, d_start = model.backward(out, dh, total, want_dx=model.config.dense)
        model.add_initial_state_gradient(d_start, total)
    model.fold_input_tables(total)
    return total.values, dx


@pytest.mark.parametrize("kind", ["one-hot", "embedded", "gathered", "dense"])
@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.name)
def test_a_layer_without_W_or_with_further_matrices_needs_no_change_of_the_model(toys, toy, kind):
    config = config_of(toy.name, kind, 3, layers=2, bidirectional=True, learn_h0=True)
    case = Windowed(config, tau=4, B=2)
    model, rng = case.model.on(reference), np.random.default_rng(0)
    x, dh = case.x.astype(np.float64) if config.dense else case.x, rng.standard_normal((4, 2, 6))
    found, dx = gradient_of(model, x, dh)
    values = dict(model.parameters) | ({"x": x} if config.dense else {})
    for name in values.keys() - {"V", "c"}:
        value, ours = values[name], dx if name == "x" else found[name]
        for at in [tuple(rng.integers(0, n) for n in value.shape) for _ in range(6)]:
            before, objectives = value[at], []
            for step in (1e-6, -1e-6):
                value[at] = before + step
                objectives.append((model.forward(x).h * dh).sum())
            value[at] = before
            slope = (objectives[0] - objectives[1]) / 2e-6
            assert ours[at] == pytest.approx(slope, rel=1e-5, abs=1e-6), (name, at)
    twice, _ = gradient_of(model, x, dh, times=2)
    for name, value in found.items():
        np.testing.assert_allclose(twice[name], 2 * value, rtol=1e-5, atol=1e-7)


def test_recurrent_dropout_needs_a_W(toys):
    with pytest.raises(
        InputError, match=r"recurrent_dropout=0.2 needs a cell with W: .*; the toy_mingru has none"
    ):
        ModelConfig(cell="toy_mingru", inputs=2, outputs=2, recurrent_dropout=0.2)


@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.name)
def test_the_analysis_of_gradients_needs_no_change_either(toys, toy):
    case = Windowed(config_of(toy.name, "one-hot", 3, layers=2), tau=6, B=2)
    model = case.model.on(reference)
    by_lag = gradient_by_lag(model, case.x, case.y)
    assert by_lag.bias[0] == 1 and by_lag.bias[-1] < 1e-9
    if toy.gates:
        assert by_lag.letter == "U" and sum(by_lag.contributions()) == pytest.approx(1)
    assert influence(model, case.x, lags=4).norm[0] == 1
    apart = decompose_gradient(model, case.x, case.y)
    assert dict(apart.arrays())["layer1.dh"].shape == (6, 2, 3)
    whole = model.gradient()
    out = model.forward(case.x)
    model.backward(out, model.loss(out, case.y, gradient=whole).dh, whole)
    model.fold_input_tables(whole)
    for name in apart.names:
        np.testing.assert_allclose(apart.gradient(name), whole.values[name], rtol=1e-9, atol=1e-12)
