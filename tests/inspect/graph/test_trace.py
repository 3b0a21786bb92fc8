"""The unfolded graph, node by node, is the loop: to the bit forwards, to rounding backwards."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import CELLS, INPUTS, Windowed, config_of
from unspool.cells.operations import fma
from unspool.errors import InputError
from unspool.inspect.graph.trace import trace
from unspool.kernels import native
from unspool.model.config import ModelConfig
from unspool.model.network import Model

SIZES = st.tuples(
    st.sampled_from(CELLS),
    st.sampled_from(["one-hot", "embedded", "tied", "dense"]),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 3),
    st.booleans(),
    st.integers(1, 2),
)


def made(cell, kind, tau, hidden, B=2, bidirectional=False, layers=1, **more):
    config = config_of(cell, kind, hidden, bidirectional=bidirectional, layers=layers, **more)
    return Windowed(config, tau, B)


def states(output):
    """(h, s) of every step, by the graph's names."""
    for layer, tapes in enumerate(output.tape):
        for way, tape in enumerate(tapes.directions):
            at = f"layer{layer}." + ("reverse." if way else "")
            yield at, tape


@settings(max_examples=25, deadline=None)
@given(SIZES, st.sampled_from(["float32", "bf16"]))
def test_every_node_of_the_unfolded_graph_has_the_bits_of_the_loop_for_any_tau(sizes, precision):
    w = made(*sizes, precision=precision)
    output = w.model.forward(w.x)
    loss = w.model.loss(output, w.y)
    found = trace(w.model, w.x, w.y)
    logits = w.model.backend.matmul(
        output.h.reshape(-1, output.h.shape[2]),
        w.model.weights().output.V[0],
        start=w.model.parameters["c"],
    ).reshape(w.tau, w.B, -1)
    for t in range(w.tau):
        for at, tape in states(output):
            assert (found[at + "h", t + 1] == tape.h[t]).all()
            if tape.ss is not None:
                assert (found[at + "s", t + 1] == (tape.ss[:-1] if tape.reverse else tape.ss[1:])[t]).all()
            if tape.gates is not None:
                blocks = np.split(tape.gates[t], tape.gates.shape[2] // w.config.hidden, axis=1)
                for gate, values in zip(tape.cell.gates, blocks, strict=False):
                    assert (found[at + gate, t + 1] == values).all(), gate
        assert (found["o", t + 1] == logits[t]).all()
        assert (found["L", t + 1][:, 0] == loss.per_target[t]).all()


@pytest.mark.parametrize("activation", ["relu", "sigmoid", "identity"])
@pytest.mark.parametrize("kind", [kind for kind in INPUTS if "gathered" in kind])
def test_other_activations_and_large_vocabularies_too(kind, activation):
    w = made("elman", kind, 4, 3, activation=activation)
    found = trace(w.model, w.x)
    assert (found["layer0.h", 4] == w.model.forward(w.x).h[3]).all()


def test_a_window_goes_on_from_a_state():
    w = made("lstm", "one-hot", 6, 5, layers=2, learn_h0=True)
    first = w.model.forward(w.x[:2])
    found = trace(w.model, w.x[2:], state=first.state)
    assert (found["layer1.h", 4] == w.model.forward(w.x).h[5]).all()
    assert (found["layer0.s", 0] == first.state[0][1]).all()


@settings(max_examples=15, deadline=None)
@given(SIZES)
def test_gradients_of_nodes_and_shared_parameters_are_those_of_the_kernels(sizes):
    w = made(*sizes)
    output = w.model.forward(w.x)
    gradient = w.model.gradient()
    loss = w.model.loss(output, w.y, gradient=gradient)
    _, starts = w.model.backward(output, loss.dh, gradient)
    w.model.fold_input_tables(gradient)
    found = trace(w.model, w.x, w.y, gradients=True)
    sums = {name: np.zeros_like(gradient.values[name]) for name in w.model.parameters}
    for each in found.graph.folded.parameters:
        rows = sums[each.of or each.name][slice(*each.rows) if each.rows else slice(None)]
        rows[(..., slice(*each.columns)) if each.columns else ...] += found.shared.get(each.name, 0)
    for name, total in sums.items():
        scale = np.abs(gradient.values[name]).max() + 1e-3
        assert np.abs(total - gradient.values[name]).max() / scale < 1e-4, name
    for at, (dh0, _) in zip(found.graph.starts, starts, strict=False):
        if at.name == "layer0.h":
            assert np.abs(found.gradients[at] - dh0).max() < 1e-4


def test_a_fused_multiply_add_is_rounded_once():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(2_000).astype(np.float32) for _ in range(2))
    c = (-(a * b) * (1 + rng.integers(-3, 4, a.shape) * 2.0**-23)).astype(np.float32)  # nearly cancels
    wide = (rng.standard_normal(2_000) * 2.0 ** rng.integers(-40, 40, a.shape)).astype(np.float32)
    for each in (c, wide):
        engine = [
            native.matmul(p.reshape(1, 1), q.reshape(1, 1), start=r.reshape(1, 1))[0, 0]
            for p, q, r in zip(a, b, each, strict=True)
        ]
        assert (fma(a, b, each) == engine).all()


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("kind", ["one-hot", "embedded", "dense"])
@pytest.mark.parametrize("tau", [1, 2, 7])
def test_figure_10_4_with_targets_and_running_freely_has_the_bits_of_the_model(kind, tau, precision):
    w = made("elman", kind, tau, 6, pattern="output", precision=precision)
    forced, free = w.model.forward(w.x, y=w.y), w.model.forward(w.x)
    found = trace(w.model, w.x, w.y, gradients=True)
    alone = trace(w.model, w.x)
    loss = w.model.loss(forced, w.y)
    for t in range(tau):
        assert (found["layer0.h", t + 1] == forced.h[t]).all()
        assert (found["L", t + 1][:, 0] == loss.per_target[t]).all()
        assert (alone["layer0.h", t + 1] == free.h[t]).all()
    assert (alone["k", tau] == free.state[0][0]).all()
    gradient = w.model.gradient()
    loss = w.model.loss(forced, w.y, gradient=gradient)
    w.model.backward(forced, loss.dh, gradient)
    w.model.fold_input_tables(gradient)
    for name in ("layer0.R", "layer0.U", "layer0.b", "V"):
        atol = 1e-5 if precision == "float32" else 0.05
        assert np.allclose(found.shared[name], gradient.values[name], atol=atol), name


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", CELLS)
def test_figure_10_5_has_one_output_and_the_bits_of_the_model(cell, bidirectional):
    w = made(cell, "one-hot", 5, 4, bidirectional=bidirectional, pattern="last")
    output, y = w.model.forward(w.x), w.y[0]
    gradient = w.model.gradient()
    loss = w.model.loss(output, y, gradient=gradient)
    w.model.backward(output, loss.dh, gradient)
    w.model.fold_input_tables(gradient)
    found = trace(w.model, w.x, y, gradients=True)
    assert (found["o", 5] == w.model.logits(output)).all()
    assert (found["L", 5][:, 0] == loss.per_target).all()
    assert sum(at.name == "L" for at in found.graph.nodes) == 1
    for name in ("layer0.U", "layer0.W", "layer0.b", "c"):
        if name in found.shared:  # the GRU's are in blocks
            assert np.allclose(found.shared[name], gradient.values[name], atol=1e-5), name


def test_y_hat_is_a_distribution_and_the_loss_is_its_logarithm():
    w = made("gru", "one-hot", 3, 4)
    found = trace(w.model, w.x, w.y)
    for t in (1, 2, 3):
        y_hat = found["y_hat", t]
        assert np.allclose(y_hat.sum(1), 1, atol=1e-6)
        assert np.allclose(found["L", t][:, 0], -np.log(y_hat[np.arange(w.B), w.y[t - 1]]), atol=1e-5)


def test_what_cannot_be_traced_is_said():
    model = Model.initialise(ModelConfig(cell="elman", inputs=5, outputs=5, hidden=4), seed=0)
    x = np.zeros((3, 1), np.int32)
    with pytest.raises(InputError, match="y has shape"):
        trace(model, x, x[:2])
    with pytest.raises(InputError, match="pass y"):
        trace(model, x, gradients=True)
    with pytest.raises(InputError, match="no such node"):
        trace(model, x)["layer0.h", 4]
    with pytest.raises(InputError, match="GiB"):
        trace(model, np.zeros((1000, 100_000), np.int32))


@pytest.mark.parametrize("kind", ["one-hot", "tied", "dense"])
@pytest.mark.parametrize("tau", [1, 2, 7])
def test_figure_10_4_of_the_book_has_the_values_and_gradients_of_the_model(kind, tau):
    w = made("elman", kind, tau, 6, pattern="output", feedback="logits")
    output = w.model.forward(w.x, w.start)
    found = trace(w.model, w.x, w.y, w.start, gradients=True)
    assert [str(at) for at in found.graph.starts] == ["o(0)"]
    for t in range(tau):
        assert np.allclose(found["layer0.h", t + 1], output.h[t], atol=1e-6)
    gradient = w.model.gradient()
    loss = w.model.loss(output, w.y, gradient=gradient)
    w.model.backward(output, loss.dh, gradient)
    w.model.fold_input_tables(gradient)
    for name, value in found.shared.items():
        assert np.allclose(value, gradient.values[name], atol=2e-5), name
