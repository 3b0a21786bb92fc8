"""Adaptive softmax: its equations against PyTorch and brute force, in windows and token by token, in every command."""

import json

import numpy as np
import pytest

from command_line import must
from unspool.compress.coding import decode, encode
from unspool.data.text.settings import TextConfig
from unspool.errors import InputError
from unspool.gradients.bptt import backpropagate
from unspool.gradients.check import check_gradients
from unspool.gradients.decomposition import decompose_gradient
from unspool.inspect.graph.export import from_json
from unspool.inspect.graph.structure import At
from unspool.inspect.graph.trace import trace
from unspool.kernels import native, reference
from unspool.model.config import ModelConfig
from unspool.model.cutoffs import parse_cutoffs, write_cutoffs
from unspool.model.linear import OutputGradient, TailGradient
from unspool.model.network import Model
from unspool.model.outputs import output_of
from unspool.model.stream import Stream
from unspool.storage.run_folder import MODEL
from unspool.tasks.language.run import resume
from unspool.tasks.language.run import run as run_language
from unspool.tasks.language.text_model import TextModel
from unspool.torch.state_dict import from_torch, to_torch
from unspool.training.dynamic import Learning, LearningReader
from unspool.training.events import RunConfig, StepDone

CUTS = ["adaptive:6", "adaptive:5,17", "adaptive:1,2,40"]


def model_of(softmax="adaptive:5,17", precision="float32", **more):
    """A small network whose biases are not zero either."""
    config = ModelConfig(
        cell="gru", inputs=43, outputs=43, hidden=33, softmax=softmax, precision=precision, **more
    )
    model = Model.initialise(config, seed=3)
    rng = np.random.default_rng(4)
    for name in output_of(config).names(config):
        if model.parameters[name].ndim == 1:
            model.parameters[name][:] = rng.standard_normal(model.parameters[name].shape)
    return model


def window(tau=9, B=4, K=43, seed=0):
    ids = np.random.default_rng(seed).integers(0, K, (tau + 1, B)).astype(np.int32)
    return np.ascontiguousarray(ids[:-1]), np.ascontiguousarray(ids[1:])


@pytest.mark.parametrize("softmax", CUTS)
def test_the_probabilities_are_those_of_the_equations_and_sum_to_one(softmax):
    model = model_of(softmax).on(reference)
    x, _ = window()
    output, p, cuts = model.forward(x), model.parameters, parse_cutoffs(softmax)
    h = output.h.reshape(-1, 33)
    head = np.exp(p["c"] + h @ p["V"].T)
    head /= head.sum(axis=1, keepdims=True)
    parts = [head[:, : cuts[0]]]
    for i in range(len(cuts)):
        P, V, c = (p[f"tail{i + 1}.{letter}"] for letter in "PVc")
        own = np.exp(c + h @ P.T @ V.T)
        parts.append(head[:, cuts[0] + i, None] * own / own.sum(axis=1, keepdims=True))
    expected = np.concatenate(parts, axis=1)
    assert np.allclose(expected.sum(axis=1), 1)
    o = np.exp(model.logits(output).reshape(-1, 43))
    assert np.allclose(o / o.sum(axis=1, keepdims=True), expected, rtol=1e-9)
    for k in range(43):
        y = np.full(x.shape, k, np.int32)
        assert np.allclose(model.loss(output, y).per_target.reshape(-1), -np.log(expected[:, k]))


@pytest.mark.parametrize("masked", [False, True])
def test_values_and_gradients_are_those_of_pytorch(masked):
    torch = pytest.importorskip("torch")
    cuts, K, width = [5, 17], 43, 32
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(width, K, cuts, div_value=4.0, head_bias=True).double()
    rng = np.random.default_rng(0)
    h, y = rng.standard_normal((30, width)), rng.integers(0, K, 30).astype(np.int32)
    kept = rng.random(30) < 0.7 if masked else np.ones(30, bool)
    config = ModelConfig(inputs=K, outputs=K, hidden=width, softmax=write_cutoffs(tuple(cuts)))
    weights = [theirs.head.weight, theirs.head.bias]
    for tail in theirs.tail:
        weights += [tail[0].weight, tail[1].weight, torch.zeros(tail[1].weight.shape[0])]
    ours = dict(
        zip(output_of(config).names(config), (w.detach().numpy().astype(float) for w in weights), strict=True)
    )
    assert {name: value.shape for name, value in ours.items()} == output_of(config).shapes(config)
    at = torch.tensor(h, requires_grad=True)
    scored = theirs(at[torch.tensor(kept)], torch.tensor(y[kept]).long())
    (-scored.output.sum()).backward()
    layer = output_of(config).layer(config, ours, reference)
    grads = [np.full_like(ours[name], np.nan) for name in ours]
    into = OutputGradient(
        grads[0], grads[1], 1.0, False, (TailGradient(*grads[2:5]), TailGradient(*grads[5:]))
    )
    loss = layer.cross_entropy(h, np.where(kept, y, -1).astype(np.int32), into)
    assert np.allclose(loss.per_target[kept], -scored.output.detach().numpy()) and loss.count == kept.sum()
    assert (loss.per_target[~kept] == 0).all() and np.allclose(loss.dh, at.grad.numpy())
    expected = [theirs.head.weight, theirs.head.bias]
    expected += [part.weight for tail in theirs.tail for part in tail]
    for found, wanted in zip([*grads[:4], *grads[5:7]], expected, strict=True):
        assert np.allclose(found, wanted.grad.numpy(), atol=1e-12)
    assert np.allclose(layer(h) - layer(h).max(axis=1, keepdims=True),
                       (lambda p: p - p.max(axis=1, keepdims=True))(theirs.log_prob(at).detach().numpy()))  # fmt: skip


@pytest.mark.parametrize("tied", [False, True])
def test_all_gradients_agree_with_differences_and_autograd(tied):
    found = check_gradients(model_of(tied=tied, embedding=33), probed=8, tau=6)
    assert {each.name for each in found} >= {"V", "c", "tail1.P", "tail1.V", "tail1.c"}
    assert all(each.agrees for each in found)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_tied_one_has_the_same_bits_for_any_threads_and_cuts(precision):
    config = ModelConfig(
        inputs=1030,
        outputs=1030,
        hidden=24,
        embedding=24,
        tied=True,
        softmax="adaptive:9,300",
        precision=precision,
    )
    model, (x, y) = Model.initialise(config, seed=1), window(tau=20, B=32, K=1030)
    found = []
    for threads, recompute in ((1, "none"), (2, "none"), (3, "sqrt")):
        native.set_threads(threads)
        gradient = model.gradient()
        for value in gradient.values.values():
            value[:] = np.nan
        gradient.clear()
        result = backpropagate(model, x, y, None, gradient, scale=0.1, recompute=recompute)
        model.fold_input_tables(gradient)
        found.append((result.loss.sum, gradient.flat.tobytes()))
    native.set_threads(2)
    assert found[0] == found[1] == found[2] and np.isfinite(gradient.flat).all()


def test_a_cluster_without_targets_gets_a_gradient_of_zero():
    model = model_of("adaptive:20,30")
    x, y = window()
    gradient = model.gradient()
    gradient.flat[:] = np.nan
    backpropagate(model, x, y % 20, None, gradient)
    model.fold_input_tables(gradient)
    for name in ("tail1.P", "tail1.V", "tail2.V", "tail2.c"):
        assert (gradient.values[name] == 0).all()


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_stream_has_the_bits_of_a_window(precision):
    model = model_of(precision=precision)
    x, _ = window(tau=20, B=1)
    o = model.logits(model.forward(x))[:, 0]
    stream = Stream(model)
    for t, token in enumerate(x[:, 0].tolist()):
        stream.read(token)
        assert np.array_equal(stream.logits().view(np.int32), o[t].view(np.int32))
    n = 4000
    drawn = np.bincount([stream.draw((i + 0.5) / n) for i in range(n)], minlength=43) / n
    p = np.exp(o[-1].astype(float))
    assert np.allclose(drawn, p / p.sum(), atol=1e-3)
    assert stream.draw(0.5, temperature=0) == o[-1].argmax()


@pytest.mark.parametrize("K", [1, 5, 16, 33, 700])
def test_native_log_softmax_is_the_reference_on_every_instruction_set(K):
    rng = np.random.default_rng(K)
    o, start = (10 * rng.standard_normal(shape).astype(np.float32) for shape in ((7, K), (7,)))
    expected = reference.log_softmax_rows(o.astype(float), start.astype(float))
    found = {}
    for isa in native.kernel_info()["available"]:
        native.choose_isa(isa)
        found[isa] = native.log_softmax_rows(o, start)
        assert np.allclose(found[isa], expected, rtol=0, atol=2e-5)
        assert np.array_equal(native.log_softmax_rows(o[3:4], start[3:4])[0], found[isa][3])
    assert len({each.tobytes() for each in found.values()}) == 1


def test_the_first_biases_are_the_frequencies():
    config = ModelConfig(inputs=43, outputs=43, hidden=8, softmax="adaptive:5,17")
    p = Model.initialise(config, seed=0).on(reference).parameters
    log_p = np.log(np.arange(43, 0, -1) / np.arange(44).sum())
    output_of(config).set_bias(config, p, log_p)
    o = output_of(config).layer(config, p, reference)(np.zeros((1, 8)))[0]
    assert np.allclose(o, log_p)


@pytest.mark.parametrize(
    ("softmax", "says"),
    [
        ("adaptive:43", "below the 43 outputs"),
        ("adaptive:5,5", "each above the one before"),
        ("adaptive:0", "1 or more"),
        ("adaptive:a", "expected full, adaptive"),
        ("adaptive:", "expected full, adaptive"),
        ("half", "expected full, adaptive"),
        ("adaptive", "needs its clusters"),
        ("auto", "needs its clusters"),
        ("adaptive:1,2,3,4,5,6,7,8,9", "1 to 8"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line(softmax, says):
    with pytest.raises(InputError, match=says):
        ModelConfig(inputs=43, outputs=43, softmax=softmax)


def test_what_needs_one_matrix_of_the_output_refuses_an_adaptive_one():
    model, (x, y) = model_of(), window()
    with pytest.raises(InputError, match="adaptive"):
        ModelConfig(inputs=43, outputs=43, pattern="last", softmax="adaptive:5")
    with pytest.raises(InputError, match="adaptive"):
        to_torch(model)
    with pytest.raises(InputError, match="adaptive"):
        from_torch(model.config, to_torch(model_of("full")))
    with pytest.raises(InputError, match="adaptive"):
        decompose_gradient(model, x, y)
    with pytest.raises(InputError, match="at most 42"):
        model.loss(model.forward(x), y + 10)


TEXT = "".join(chr(0x4E00 + int(w)) for w in np.random.default_rng(0).zipf(1.3, 6000) % 300)
"""Three hundred characters by Zipf's law."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adaptive")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    train = ["train", folder / "text.txt", "--softmax", "adaptive:20,80", "--hidden", 32]
    train += ["--embedding", 16, "--order", 2, "--window", 16, "--batch", 4]
    must(*train, "--steps", 60, "--out", folder / "run", "--quiet")
    return folder


def test_a_run_is_evaluated_generated_inspected_and_mixed(run, tmp_path):
    config = json.loads((run / "run" / "config.json").read_text())
    assert config["model"]["softmax"] == config["run"]["recipe"]["softmax"] == "adaptive:20,80"
    judged = json.loads(must("evaluate", run / "run", run / "text.txt", "--json"))
    assert 1 < judged["network"]["perplexity"] < judged["vocabulary"] / 2 and "mixture" in json.dumps(judged)
    text = must("generate", run / "run", "--prompt", TEXT[:9], "--length", 12, "--seed", 1)
    assert text == must("generate", run / "run", "--prompt", TEXT[:9], "--length", 12, "--seed", 1, threads=1)
    must("inspect", run / "run", run / "text.txt", "--json", "--out", tmp_path / "report")


def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(run, tmp_path):
    given = {
        "hidden": 16,
        "embedding": 8,
        "softmax": "adaptive:20,80",
        "steps": 24,
        "dropout": 0.2,
        "window": 16,
    }
    config = RunConfig((str(run / "text.txt"),), settings=TextConfig(split=None), given=given, order=1)
    for _ in run_language(config, out=tmp_path / "whole"):
        pass
    events = run_language(config, out=tmp_path / "parts")
    for event in events:
        if isinstance(event, StepDone) and event.step == 11:
            break
    events.close()
    for _ in resume(tmp_path / "parts"):
        pass
    whole, parts = ((tmp_path / name / MODEL).read_bytes() for name in ("whole", "parts"))
    assert whole == parts


@pytest.mark.parametrize("how", [{}, {"learning": Learning(learn_segment=16)}, {"mixture": True}])
def test_a_text_is_compressed_and_comes_back(run, how):
    model, data = TextModel.load(run / "run", mixture="mixture" in how), TEXT[:700].encode()
    coded = encode(model, data, **how)
    native.set_threads(1)
    found = decode(model, coded.payload, coded.tokens, coded.mode, length=len(data), **how)
    native.set_threads(2)
    assert found == data and len(coded.payload) < len(data) / 2


def test_reading_while_learning_has_the_same_bits_token_by_token():
    ids = np.random.default_rng(1).integers(0, 43, 80).astype(np.int32)
    model, learning = model_of(), Learning(learn_rate=0.01, learn_segment=9)
    windows, single = LearningReader(model, learning), LearningReader(model, learning)
    rows = np.concatenate([window.logits() for window in windows.windows(ids)])
    for t, token in enumerate(ids[:-1].tolist()):
        single.read(token)
        assert np.array_equal(single.logits(), rows[t])


def test_the_graph_of_a_run_has_head_and_tails(run, tmp_path):
    must("graph", run / "run", "--text", TEXT[:4], "--out", tmp_path / "graph.svg")
    must("graph", run / "run", "--folded", "--out", tmp_path / "graph.json")
    names = {node.name for node in from_json((tmp_path / "graph.json").read_text()).nodes}
    assert {"head", "z1", "o1", "z2", "o2", "o", "y_hat", "L"} <= names


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_the_traced_graph_has_the_values_and_gradients_of_the_network(precision):
    model, (x, y) = model_of(precision=precision), window(tau=4, B=2)
    made = trace(model, x, y, gradients=True)
    output = model.forward(x)
    for t in range(4):
        assert np.array_equal(made.values[At("o", t + 1)], model.logits(output)[t])
    gradient = model.gradient()
    backpropagate(model, x, y, None, gradient)
    model.fold_input_tables(gradient)
    for name in output_of(model.config).names(model.config):
        atol = 1e-5 if precision == "float32" else 0.05
        assert np.allclose(made.shared[name], gradient.values[name], atol=atol)
