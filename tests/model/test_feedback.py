"""Figure 10.4 with the real-valued output fed back, and language models of figure 10.4."""

import numpy as np
import pytest

import torch
from cases import Batch, Windowed, config_of, same_bits, walk
from unspool.errors import InputError
from unspool.evaluation.language import log_prob, validation_loss
from unspool.gradients.bptt import backpropagate
from unspool.gradients.by_lag import gradient_by_lag
from unspool.gradients.check import check_gradients
from unspool.gradients.decomposition import decompose_gradient
from unspool.gradients.jacobians import influence, radii
from unspool.gradients.truncation import CarriedState, Truncation
from unspool.kernels import native
from unspool.model.config import ModelConfig
from unspool.model.equivalent import as_hidden
from unspool.model.network import Model
from unspool.model.stream import Stream
from unspool.optimisers.adam import Adam
from unspool.training.loop import train

KINDS = ("one-hot", "embedded", "tied", "gathered", "dense")
ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid, "identity": lambda v: v}
LOGITS = {"pattern": "output", "feedback": "logits"}


def fed(kind, hidden=6, **more):
    return config_of("elman", kind, hidden, **LOGITS | more)


def torch_loss(config, p, x, y, h, mask=None):
    """The loss by the definition alone: o(t) is computed, fed back and never folded into W = R V."""
    V, total = p["E" if config.tied else "V"], 0.0
    act = ACTIVATIONS[config.activation]
    seen = h if mask is None else h * mask
    o = p["c"] + seen @ V.T
    for x_t, y_t in zip(x, y, strict=True):
        u = x_t if config.dense else p["E"][x_t] if config.embedding else p["layer0.U"].T[x_t]
        u = u @ p["layer0.U"].T if config.dense or config.embedding else u
        h = act(p["layer0.b"] + u + o @ p["layer0.R"].T)
        o = p["c"] + (h if mask is None else h * mask) @ V.T
        total = total + torch.nn.functional.cross_entropy(o, y_t, reduction="sum", ignore_index=-1)
    return total


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_pass_through_the_output_fed_back_as_autograd_finds_them(kind, activation, dropout):
    config = fed(kind, activation=activation, dropout=dropout, learn_h0=dropout == 0)
    case = Windowed(config, tau=5, B=3)
    p = {n: torch.tensor(v.astype(np.float64), requires_grad=True) for n, v in case.model.parameters.items()}
    x = torch.tensor(case.x.astype(np.float64)) if config.dense else torch.tensor(case.x).long()
    h = p["layer0.h0"].expand(3, 6) if config.learn_h0 else torch.zeros(3, 6).double()
    mask = torch.tensor(case.masks.outputs[0]).double() if dropout else None
    loss = torch_loss(config, p, x, torch.tensor(case.y).long(), h, mask)
    loss.backward()
    gradient = case.model.gradient()
    passed = backpropagate(case.model, case.x, case.y, None, gradient, masks=case.masks)
    case.model.add_initial_state_gradient(passed.d_initial_state, gradient)
    case.model.fold_input_tables(gradient)
    assert passed.loss.sum == pytest.approx(loss.item(), rel=1e-5)
    for name, parameter in p.items():
        theirs = parameter.grad.numpy()
        np.testing.assert_allclose(
            gradient.values[name], theirs, rtol=1e-4, atol=1e-5 * np.abs(theirs).max(), err_msg=name
        )


@pytest.mark.parametrize("kind", KINDS)
def test_four_ways_to_the_gradients_agree(kind):
    model = Model.initialise(fed(kind, hidden=5, learn_h0=True), seed=3)
    rng = np.random.default_rng(0)
    model.parameters.flat[:] += rng.uniform(-0.2, 0.2, model.parameters.flat.shape)
    found = check_gradients(model, tau=7, probed=6)
    assert {each.name for each in found} >= {"layer0.R", "c", "layer0.h0"}
    assert all(each.agrees for each in found)


@pytest.mark.parametrize("kind", KINDS)
def test_any_cut_of_the_window_gives_the_same_bits(kind):
    case = Windowed(fed(kind, hidden=9, dropout=0.2), tau=9, B=4, ragged=True)
    whole = walk(case)
    same_bits(whole, walk(case, cuts=[2, 3, 7]))
    row = slice(1, 2)
    alone = walk(case, rows=row)
    assert (alone["h"] == whole["h"][:, row]).all() and (alone["dh"] == whole["dh"][:, row]).all()
    few, all_kept = case.model.gradient(), case.model.gradient()
    for gradient, recompute in ((all_kept, "none"), (few, "sqrt")):
        backpropagate(
            case.model, case.x, case.y, case.start, gradient, lengths=case.lengths, masks=case.masks, recompute=recompute
        )  # fmt: skip
        case.model.fold_input_tables(gradient)
    assert (few.flat == all_kept.flat).all()


def test_the_shares_of_the_steps_add_up_to_the_gradient():
    case = Windowed(fed("one-hot", hidden=5), tau=6, B=2)
    gradient = case.model.gradient()
    backpropagate(case.model, case.x, case.y, None, gradient)
    case.model.fold_input_tables(gradient)
    apart = decompose_gradient(case.model, case.x, case.y)
    for name in apart.names:
        np.testing.assert_allclose(apart.gradient(name), gradient.values[name], rtol=1e-3, atol=1e-5)
    h_before = apart.output.tape[0].directions[0].h_before
    p = {name: value.astype(np.float64) for name, value in case.model.parameters.items()}
    o_before = p["c"] + h_before @ p["V"].T
    a = p["layer0.b"] + p["layer0.U"].T[case.x] + o_before @ p["layer0.R"].T
    np.testing.assert_allclose(apart.a(), a, rtol=1e-10)


def test_what_looks_through_time_sees_the_chain_through_the_output():
    case = Windowed(fed("one-hot", hidden=5), tau=8, B=1)
    p = {name: value.astype(np.float64) for name, value in case.model.parameters.items()}
    W = p["layer0.R"] @ p["V"]
    assert radii(case.model)["a"] == pytest.approx(np.abs(np.linalg.eigvals(W)).max(), rel=1e-5)
    h = case.model.forward(case.x).h[:, 0].astype(np.float64)
    jacobian = np.diag(1 - h[0] ** 2) @ W  # dh(1)/dh(0)
    seen = influence(case.model, case.x, lags=1, places=1)
    assert seen.norm[1] == pytest.approx(np.linalg.norm(jacobian, 2), rel=1e-4)
    assert gradient_by_lag(case.model, case.x, case.y).bias[-1] < 1e-9
    same = as_hidden(case.model)
    assert same.config.pattern == "hidden" and (same.forward(case.x).h == case.model.forward(case.x).h).all()


def delayed(rng, tau=12, B=32):
    """Random bits, and the bit of the step before as the target: the output has to carry it."""
    x = rng.integers(0, 2, (tau, B)).astype(np.int32)
    y = np.concatenate([np.full((1, B), -1), x[:-1]]).astype(np.int32)
    return Batch(x, y, reset=True)


def test_a_real_valued_output_carries_what_a_token_cannot():
    rng = np.random.default_rng(0)
    last = {}
    for feedback in ("token", "logits"):
        config = ModelConfig(cell="elman", inputs=2, outputs=2, hidden=16, pattern="10.4", feedback=feedback)
        model, optimiser = Model.initialise(config, seed=0), Adam(learning_rate=0.02)
        reports = list(train(model, [delayed(rng) for _ in range(250)], optimiser))
        last[feedback] = np.mean([report.loss for report in reports[-20:]])
    assert last["logits"] < 0.1 < 0.6 < last["token"]


def test_training_goes_on_to_the_same_bits_from_a_saved_state():
    config = fed("one-hot", hidden=8, dropout=0.1, learn_h0=True)
    rng = np.random.default_rng(1)
    batches = [Batch(*rng.integers(0, 11, (2, 6, 4)).astype(np.int32), reset=i == 0) for i in range(6)]

    def trained(*pieces):
        model, optimiser, past = (
            Model.initialise(config, seed=0),
            Adam(),
            CarriedState(),
        )
        for piece in pieces:
            restored = CarriedState()
            restored.restore(past.state())
            past = restored
            list(train(model, piece, optimiser, carried=past))
        return model.parameters.flat

    assert (trained(batches) == trained(batches[:3], batches[3:])).all()


# ── language models of figure 10.4 ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["one-hot", "embedded", "tied", "tied and gathered"])
@pytest.mark.parametrize("feedback", ["token", "logits"])
def test_evaluation_and_the_stream_compute_the_same_bits(feedback, kind):
    config = config_of("elman", kind, 7, pattern="output", feedback=feedback)
    case = Windowed(config, tau=1, B=1)
    ids = np.random.default_rng(2).integers(0, config.inputs, 40).astype(np.int32)
    whole = log_prob(case.model, ids)
    assert len(whole) == 39 and (whole == log_prob(case.model, ids, window=7)).all()
    stream = Stream(case.model)
    for t, token in enumerate(ids[:-1]):
        stream.read(int(token))
        o = stream.logits().astype(np.float64)
        assert o[ids[t + 1]] - np.log(np.exp(o).sum()) == pytest.approx(whole[t], abs=1e-5)
        y = ids[None, t + 1 : t + 2].T
        state = None if t == 0 else output.state  # noqa: F821
        output = case.model.forward(ids[t : t + 1, None], state, y=y)
        assert (case.model.logits(output)[0, 0] == stream.logits()).all()
        if t == 20:
            other = Stream(case.model)
            other.restore([(h, s) for h, s in stream.state()])
            stream = other
    assert validation_loss(case.model, ids, rows=1) == pytest.approx(-whole.mean(), rel=1e-6)


def test_a_bad_token_leaves_the_stream_as_it_was():
    case = Windowed(config_of("elman", "one-hot", 5, pattern="output"), tau=1, B=1)
    stream, other = Stream(case.model), Stream(case.model)
    with pytest.raises((InputError, ValueError)):
        stream.read(99)
    stream.read(3)
    other.read(3)
    assert (stream.logits() == other.logits()).all()


def test_tokens_fed_back_make_a_network_of_the_last_token_alone():
    case = Windowed(config_of("elman", "one-hot", 6, pattern="output"), tau=1, B=1)
    ids = np.array([1, 4, 2, 7, 4, 2, 9], np.int32)
    each = log_prob(case.model, ids)
    assert each[1] == each[4]  # P(2 | 4), whatever comes before


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"feedback": "logits"}, "requires pattern='output'"),
        ({"pattern": "10.4", "feedback": "argmax"}, "feedback is 'argmax'; expected one of token, logits"),
        ({"pattern": "10.4", "learn_h0": True}, "use feedback='logits'"),
        ({**LOGITS, "recurrent_dropout": 0.1}, "needs recurrent_dropout=0.0"),
        ({**LOGITS, "layers": 2}, "needs layers=1"),
    ],
)
def test_what_cannot_be_fed_back_is_refused_in_one_line(wrong, match):
    with pytest.raises(InputError, match=match):
        ModelConfig(**({"cell": "elman", "inputs": 3, "outputs": 3} | wrong))


def test_tokens_fed_back_have_no_chain_that_truncation_could_cut():
    model = Model.initialise(ModelConfig(cell="elman", inputs=3, outputs=3, hidden=4, pattern="10.4"), seed=0)
    for bptt in ("truncated:2,4", "random:0.5"):
        with pytest.raises(InputError, match="no gradient passes from step to step"):
            next(train(model, [], Adam(), bptt=Truncation.parse(bptt)))
    hidden = Model.initialise(ModelConfig(cell="elman", inputs=3, outputs=3, hidden=4), seed=0)
    with pytest.raises(InputError, match="own requires"):
        next(train(hidden, [], Adam(), scheduled_sampling=lambda step: 0.5))


def test_the_bits_do_not_depend_on_threads():
    case = Windowed(fed("one-hot", hidden=33), tau=6, B=5)
    before, found = native.kernel_info()["threads"], []
    for threads in (1, 2):
        native.set_threads(threads)
        found.append(walk(case))
    native.set_threads(before)
    same_bits(*found)
