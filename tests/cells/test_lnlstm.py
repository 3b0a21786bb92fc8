"""The LN-LSTM against its equations in PyTorch in double precision: outputs, final states and every gradient, at odd sizes too."""

import numpy as np
import pytest

import torch
from torch_cells import lnlstm
from unspool.errors import InputError
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.torch.state_dict import from_torch, to_torch

TOLERANCE = 2e-5


def relative_error(ours, theirs):
    theirs = theirs.detach().numpy()
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30))


def in_double(value):
    return torch.tensor(np.asarray(value, np.float64), requires_grad=True)


def read_in_torch(p, x, h, s, lengths, reverse):
    """Read a window (tau, B, X) with one layer; a row keeps its state after its last step."""
    out = [None] * len(x)
    for t in range(len(x))[:: -1 if reverse else 1]:
        live = torch.tensor(t < lengths)[:, None]
        new_h, new_s = lnlstm(p, x[t], h, s)
        h, s = torch.where(live, new_h, h), torch.where(live, new_s, s)
        out[t] = h
    return torch.stack(out), h, s


def compare(tau, B, H, *, X=5, layers=1, bidirectional=False, ragged=False):
    """Run one window through PyTorch and through the kernels; return the errors."""
    config = ModelConfig(
        inputs=X, outputs=3, cell="lnlstm", hidden=H, layers=layers, bidirectional=bidirectional, dense=True
    )
    model, rng = Model.initialise(config, seed=0), np.random.default_rng(0)
    size = 0.3 / H**0.5  # more would make a chaotic network of W, which multiplies every rounding
    model.parameters.flat[:] += size * rng.standard_normal(model.parameters.flat.shape).astype(np.float32)

    def values(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    lengths = rng.integers(0, tau + 1, B).astype(np.int32) if ragged else None
    reach = np.full(B, tau) if lengths is None else lengths
    n, x, dh = layers * config.directions, values(tau, B, X), values(tau, B, config.width)
    dh *= (np.arange(tau)[:, None] < reach)[:, :, None]
    start, d_end = ([(values(B, H), values(B, H)) for _ in range(n)] for _ in range(2))

    own = [
        {letter: in_double(value) for letter, value in model.parameters.layer(i // config.directions, bool(i % config.directions)).items()}
        for i in range(n)
    ]  # fmt: skip
    x_t, start_t = in_double(x), [(in_double(h), in_double(s)) for h, s in start]
    read, ends = x_t, []
    for layer in range(layers):
        sides = []
        for way in range(config.directions):
            at = layer * config.directions + way
            h, *end = read_in_torch(own[at], read, *start_t[at], reach, bool(way))
            sides.append(h)
            ends.append(end)
        read = torch.cat(sides, dim=2)
    objective = (read * torch.tensor(dh)).sum()
    for end, d in zip(ends, d_end, strict=True):
        objective = objective + sum((e * torch.tensor(g)).sum() for e, g in zip(end, d, strict=True))
    objective.backward()

    out, gradient = model.forward(x, start, lengths=lengths), model.gradient()
    dx, d_start = model.backward(out, dh, gradient, d_final_state=d_end, want_dx=True)
    model.fold_input_tables(gradient)
    live = (np.arange(tau)[:, None] < reach)[:, :, None]
    errors = {
        "h": relative_error(out.h * live, read * torch.tensor(live)),
        "dx": relative_error(dx, x_t.grad),
    }
    for i in range(n):
        layer, reverse = i // config.directions, bool(i % config.directions)
        for part in range(2):
            errors[f"end {i} {part}"] = relative_error(out.state[i][part], ends[i][part])
            errors[f"start {i} {part}"] = relative_error(d_start[i][part], start_t[i][part].grad)
        found = gradient.values.layer(layer, reverse)
        errors |= {f"{letter} {i}": relative_error(found[letter], own[i][letter].grad) for letter in own[i]}
    return errors


def check(errors):
    worst = max(errors, key=errors.get)
    assert errors[worst] < TOLERANCE, f"{worst}: {errors[worst]:.2e}"


@pytest.mark.parametrize("H", [3, 7, 16, 33, 256])
@pytest.mark.parametrize("B", [1, 3, 32])
@pytest.mark.parametrize("tau", [1, 2, 35])
def test_a_layer_equals_its_equations_in_pytorch(tau, B, H):
    check(compare(tau, B, H))


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_layers_directions_and_lengths_equal_pytorchs(layers, bidirectional, ragged):
    for tau, B, H in ((7, 3, 7), (35, 5, 33)):
        check(compare(tau, B, H, layers=layers, bidirectional=bidirectional, ragged=ragged))


def test_pytorch_has_no_such_layer_and_the_gates_can_be_told_to_remember():
    model = Model.initialise(ModelConfig(cell="lnlstm", inputs=4, outputs=4, hidden=3), seed=0)
    for call in (lambda: to_torch(model), lambda: from_torch(model.config, {})):
        with pytest.raises(
            InputError, match="cell='lnlstm' has no layer in PyTorch; expected elman or gru or lstm"
        ):
            call()
    config = SequenceConfig(
        "many-to-one", "classes", inputs=3, outputs=2, dense=True, cell="lnlstm", hidden=40, chrono_steps=100
    )
    b = Network.initialise(config, seed=0).parameters["encoder.layer0.b"]
    assert b[40:80].max() > np.log(10) and np.array_equal(b[:40], -b[40:80]) and not b[80:].any()


def test_alpha_begins_at_one_beta_at_zero_and_the_forget_gate_open():
    layer = Model.initialise(
        ModelConfig(cell="lnlstm", inputs=4, outputs=4, hidden=5), seed=0
    ).parameters.layer(0, False)
    assert (layer["alpha"] == 1).all() and not layer["beta"].any() and (layer["b"][5:10] == 1).all()


def test_a_layer_of_one_unit_has_nothing_to_compare_and_stays_finite():
    model = Model.initialise(ModelConfig(cell="lnlstm", inputs=4, outputs=4, hidden=1), seed=0)
    assert (model.forward(np.array([[0], [3], [1]], np.int32)).h == 0).all()
