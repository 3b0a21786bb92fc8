"""The three patterns of the book in one model: 10.3, 10.4 all at once, 10.5 with anything behind it."""

import numpy as np
import pytest

import torch
from cases import CELLS, TORCH_CELLS, Batch, Windowed, config_of, same_bits
from unspool.errors import InputError
from unspool.gradients.bptt import backpropagate
from unspool.kernels import native, reference
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.stream import Stream
from unspool.optimisers.adam import Adam
from unspool.training.loop import train

KINDS = ("one-hot", "embedded", "tied", "gathered", "dense")


def test_the_books_numbers_are_understood():
    names = {
        n: ModelConfig(cell="elman", inputs=2, outputs=2, pattern=n).pattern for n in ("10.3", "10.4", "10.5")
    }
    assert names == {"10.3": "hidden", "10.4": "output", "10.5": "last"}
    assert ModelConfig.from_json(ModelConfig(inputs=2, outputs=2, pattern="last").to_json()).pattern == "last"
    with pytest.raises(InputError, match=r"hidden \(10.3\), output \(10.4\), last \(10.5\)"):
        ModelConfig(inputs=2, outputs=2, pattern="10.6")


@pytest.mark.parametrize(
    "wrong",
    [{"cell": "gru"}, {"layers": 2}, {"bidirectional": True}, {"learn_h0": True}, {"recurrent_dropout": 0.1}],
)
def test_what_needs_a_state_is_refused_where_there_is_none(wrong):
    with pytest.raises(InputError, match="pattern='output'"):
        ModelConfig(**({"cell": "elman", "inputs": 2, "outputs": 2, "pattern": "output"} | wrong))


def gradients(model, case, pieces=None, scheduled_sampling=None):
    """Gradients of a window of pattern 10.4 in pieces (the last first), or at once."""
    gradient, weights = model.gradient(), model.weights()
    edges = pieces or [(0, case.tau)]
    state, outputs = None, []
    for begin, end in edges:
        lengths = (
            None if case.lengths is None else np.clip(case.lengths - begin, 0, end - begin).astype(np.int32)
        )
        outputs.append(
            model.forward(
                case.x[begin:end], state, lengths=lengths, masks=case.masks, weights=weights, y=case.y[begin:end],
                sampled_mask=None if scheduled_sampling is None else scheduled_sampling[begin:end],
            )
        )  # fmt: skip
        state = outputs[-1].state
    each, dx = [], []
    for (begin, end), output in zip(edges[::-1], outputs[::-1], strict=True):
        loss = model.loss(output, case.y[begin:end], scale=0.1, weights=weights, gradient=gradient)
        each.insert(0, loss.per_target)
        dx.insert(0, model.backward(output, loss.dh, gradient, weights=weights, want_dx=case.config.dense)[0])
    model.fold_input_tables(gradient, weights)
    found = {name: gradient.values.stored(name).copy() for name in gradient.values}
    found |= {"h": np.concatenate([output.h for output in outputs]), "each": np.concatenate(each)}
    return found | ({"dx": np.concatenate(dx)} if dx[0] is not None else {})


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_all_steps_at_once_give_the_same_bits_as_step_by_step(kind, ragged):
    case = Windowed(config_of("elman", kind, 9, pattern="output", dropout=0.2), tau=7, B=5, ragged=ragged)
    steps = [(t, t + 1) for t in range(case.tau)]
    at_once = gradients(case.model, case)
    same_bits(at_once, gradients(case.model, case, steps))
    forced = np.zeros((7, 5), bool)  # the walk of scheduled sampling, when it never takes its own outputs
    same_bits(at_once, gradients(case.model, case, scheduled_sampling=forced))
    gradient = case.model.gradient()
    backpropagate(
        case.model, case.x, case.y, None, gradient, scale=0.1, lengths=case.lengths, masks=case.masks, recompute="sqrt"
    )  # fmt: skip
    case.model.fold_input_tables(gradient)
    for name in gradient.values:
        assert gradient.values.stored(name).tobytes() == at_once[name].tobytes()


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid", "identity"])
def test_pattern_10_4_is_what_autograd_finds(activation):
    case = Windowed(config_of("elman", "dense", 6, pattern="output", activation=activation), tau=5, B=3)
    case.model = Model.initialise(case.config, seed=3)
    p = {n: torch.tensor(v.astype(np.float64), requires_grad=True) for n, v in case.model.parameters.items()}
    act = {"tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid, "identity": lambda v: v}[
        activation
    ]
    x, total = torch.tensor(case.x.astype(np.float64)), 0.0
    for t in range(5):
        a = p["layer0.b"] + x[t] @ p["layer0.U"].T
        if t:
            one_hot = torch.tensor(np.eye(9)[np.maximum(case.y[t - 1], 0)] * (case.y[t - 1] >= 0)[:, None])
            a = a + one_hot @ p["layer0.R"].T
        o = act(a) @ p["V"].T + p["c"]
        y = torch.tensor(case.y[t]).long()
        total = total + torch.nn.functional.cross_entropy(o, y, reduction="sum", ignore_index=-1)
    total.backward()
    ours = gradients(case.model, case)
    for name, parameter in p.items():
        stored = parameter.grad.numpy().T if name.endswith((".U", ".R")) else parameter.grad.numpy()
        np.testing.assert_allclose(ours[name], 0.1 * stored, rtol=2e-5, atol=2e-6, err_msg=name)


def test_a_model_that_runs_freely_sees_its_own_outputs():
    case = Windowed(config_of("elman", "one-hot", 8, pattern="output"), tau=6, B=3)
    model, p = case.model, case.model.parameters
    output = model.forward(case.x)
    before = None
    for t in range(6):
        a = p["layer0.b"] + p["layer0.U"].T[case.x[t]] + (0 if before is None else p["layer0.R"].T[before])
        np.testing.assert_allclose(output.h[t], np.tanh(a), rtol=1e-5, atol=1e-6)
        before = (np.tanh(a) @ p["V"].T + p["c"]).argmax(axis=1)
    assert (output.state[0][0] == before).all()
    later = model.forward(case.x[4:], model.forward(case.x[:4]).state)
    assert (later.h == output.h[4:]).all()


def test_scheduled_sampling_mixes_own_outputs_and_targets_and_is_repeatable():
    config = ModelConfig(cell="elman", inputs=4, outputs=4, hidden=8, pattern="output")
    rng = np.random.default_rng(0)
    batches = [Batch(*rng.integers(0, 4, (2, 12, 6)).astype(np.int32), reset=True) for _ in range(5)]

    def trained(scheduled_sampling):
        model = Model.initialise(config, seed=0)
        list(train(model, batches, Adam(), scheduled_sampling=scheduled_sampling))
        return model.parameters.flat.copy()

    forced, mixed, free = trained(None), trained(lambda step: step / 4), trained(lambda step: 1.0)
    assert (trained(lambda step: 0.0) == forced).all()
    assert (trained(lambda step: step / 4) == mixed).all()
    assert (forced != mixed).any() and (mixed != free).any()
    with pytest.raises(InputError, match="own gives 2"):
        trained(lambda step: 2)


# ── 10.5 ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", TORCH_CELLS)
def test_one_output_after_each_rows_own_length_as_pytorch_finds_it(cell, bidirectional):
    fields = {"pattern": "last", "layers": 2, "bidirectional": bidirectional}
    case = Windowed(config_of(cell, "dense", 5, **fields), tau=6, B=4, ragged=True)
    case.lengths = np.array([6, 1, 4, 3], np.int32)
    model = Model.initialise(case.config, seed=2)
    y = np.array([3, 0, -1, 8], np.int32)
    gradient = model.gradient()
    passed = backpropagate(model, case.x, y, None, gradient, lengths=case.lengths)
    model.fold_input_tables(gradient)
    from unspool.torch.state_dict import gradient_to_torch, to_torch

    kind = {"elman": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[cell]
    theirs = kind(5, 5, num_layers=2, bidirectional=bidirectional)
    theirs.load_state_dict(
        {n: torch.tensor(v) for n, v in to_torch(case.config, model.parameters).items() if "_l" in n}
    )
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        torch.tensor(case.x), torch.tensor(case.lengths), enforce_sorted=False
    )
    _, end = theirs(packed)
    end = end[0] if cell == "lstm" else end
    end = torch.cat([end[-2], end[-1]], dim=1) if bidirectional else end[-1]
    V, c = (torch.tensor(model.parameters[n], requires_grad=True) for n in ("V", "c"))
    loss = torch.nn.functional.cross_entropy(
        end @ V.T + c, torch.tensor(y).long(), reduction="sum", ignore_index=-1
    )
    loss.backward()
    assert passed.loss.sum == pytest.approx(loss.item(), rel=1e-5) and passed.loss.count == 3
    ours = gradient_to_torch(case.config, gradient.values)
    for name, parameter in theirs.named_parameters():
        np.testing.assert_allclose(ours[name], parameter.grad.numpy(), rtol=1e-4, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(gradient.values["V"], V.grad.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("cell", CELLS)
def test_few_states_kept_give_the_same_bits_for_one_output_too(cell):
    config = config_of(cell, "one-hot", 6, pattern="last", layers=2, dropout=0.3, recurrent_dropout=0.2)
    case = Windowed(config, tau=17, B=5, ragged=True)
    y = np.random.default_rng(0).integers(0, 11, 5).astype(np.int32)
    found = []
    for recompute in ("none", "sqrt"):
        gradient = case.model.gradient()
        passed = backpropagate(
            case.model,
            case.x,
            y,
            case.start,
            gradient,
            lengths=case.lengths,
            masks=case.masks,
            recompute=recompute,
        )
        case.model.fold_input_tables(gradient)
        found.append({"flat": gradient.flat.copy(), "sum": passed.loss.sum, "each": passed.loss.per_target})
    same_bits(*found)


def test_a_function_of_the_users_own_may_follow_the_output():
    case = Windowed(config_of("gru", "one-hot", 5, pattern="last"), tau=5, B=3, ragged=True)
    model, target = case.model, np.random.default_rng(1).standard_normal((3, 11))
    gradient = model.gradient()
    output = model.forward(case.x, lengths=case.lengths)
    o = model.logits(output)
    assert o.shape == (3, 11)
    do = (o - target).astype(np.float32)  # the user's loss: half the squared distance
    dh = model.backward_from_logits(output, do, gradient)
    model.backward(output, dh, gradient)
    model.fold_input_tables(gradient)
    exact = model.on(reference)

    def loss():
        return 0.5 * ((exact.logits(exact.forward(case.x, lengths=case.lengths)) - target) ** 2).sum()

    for name, value in exact.parameters.items():
        at = np.unravel_index(np.argmax(np.abs(gradient.values[name])), value.shape)
        value[at] += 1e-5
        above = loss()
        value[at] -= 2e-5
        slope = (above - loss()) / 2e-5
        value[at] += 1e-5
        assert gradient.values[name][at] == pytest.approx(slope, rel=1e-4), name


def test_scores_and_the_kernels_loss_have_the_same_gradient():
    case = Windowed(config_of("elman", "one-hot", 5), tau=4, B=3)
    model = case.model
    ours, theirs = model.gradient(), model.gradient()
    output = model.forward(case.x)
    loss = model.loss(output, case.y, gradient=theirs)
    o = model.logits(output)
    e = np.exp(o - o.max(axis=-1, keepdims=True))
    do = (e / e.sum(axis=-1, keepdims=True) - np.eye(11)[case.y]) * (case.y >= 0)[:, :, None]
    dh = model.backward_from_logits(output, do.astype(np.float32), ours)
    np.testing.assert_allclose(dh, loss.dh, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ours.values["V"], theirs.values["V"], rtol=1e-4, atol=1e-5)
    with pytest.raises(InputError, match="do has shape"):
        model.backward_from_logits(output, do[0].astype(np.float32), ours)


def test_training_one_output_learns_which_token_came_first():
    config = ModelConfig(cell="gru", inputs=4, outputs=4, hidden=16, pattern="last")
    rng = np.random.default_rng(0)

    class Ragged:
        reset = True

        def __init__(self):
            self.x = rng.integers(0, 4, (6, 32)).astype(np.int32)
            self.y, self.lengths = self.x[0].copy(), rng.integers(1, 7, 32).astype(np.int32)

    model = Model.initialise(config, seed=0)
    reports = list(train(model, [Ragged() for _ in range(150)], Adam(learning_rate=2e-2)))
    assert reports[0].loss > 1.2 and np.mean([r.loss for r in reports[-10:]]) < 0.1


def test_what_needs_an_output_every_step_says_so():
    from unspool.evaluation.language import log_prob

    model = Model.initialise(ModelConfig(cell="elman", inputs=4, outputs=4, hidden=4, pattern="last"), seed=0)
    with pytest.raises(InputError, match="pattern='hidden'"):
        Stream(model)
    with pytest.raises(InputError, match="pattern='hidden'"):
        log_prob(model, np.zeros(9, np.int32))


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid", "identity"])
def test_activations_by_themselves_equal_their_twins_and_have_the_same_bits_everywhere(activation):
    a = np.random.default_rng(0).standard_normal((3, 5, 23)).astype(np.float32)
    before, found = native.kernel_info(), []
    for isa in before["available"]:
        native.choose_isa(isa)
        found.append(
            (native.activate(a, activation), native.slope(native.activate(a, activation), activation))
        )
    native.choose_isa(before["bf16"])
    for h, slope in found:
        assert h.tobytes() == found[0][0].tobytes() and slope.tobytes() == found[0][1].tobytes()
        np.testing.assert_allclose(h, reference.activate(a, activation), rtol=2e-6, atol=1e-7)
        np.testing.assert_allclose(slope, reference.slope(h, activation), rtol=1e-5, atol=1e-6)
