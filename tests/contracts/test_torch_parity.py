"""PyTorch is the authority: outputs, final states and every gradient, at odd sizes too."""

import numpy as np
import pytest

import torch
from unspool.cells import CELLS
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.torch.state_dict import from_torch, gradient_to_torch

KINDS = [
    (name, activation)
    for name, cell in CELLS.items()
    for activation in (("tanh", "relu") if cell.has_activation else ("tanh",))
    if cell.torch is not None
]
TOLERANCE = 2e-5


def relative_error(ours, theirs):
    """The largest difference, against the largest value of the array."""
    theirs = np.asarray(theirs, np.float64)
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30)) if theirs.size else 0.0


def compare(cell, tau, B, H, *, X=5, layers=1, bidirectional=False, activation="tanh", ragged=False, seed=0):
    """Run one window through PyTorch in double precision and through the kernels; return the errors."""
    torch.manual_seed(seed)
    made = CELLS[cell]
    two = made.has_cell_state
    extra = {"nonlinearity": activation} if made.has_activation else {}
    theirs = getattr(torch.nn, made.torch.name)(X, H, num_layers=layers, bidirectional=bidirectional, **extra)
    config = ModelConfig(
        inputs=X, outputs=3, cell=cell, hidden=H, layers=layers, bidirectional=bidirectional,
        activation=activation, dense=True,
    )  # fmt: skip
    model = Model(config, from_torch(config, theirs.state_dict()))
    theirs = theirs.double()
    n = layers * config.directions
    rng = np.random.default_rng(seed)
    lengths = np.sort(rng.integers(1, tau + 1, B))[::-1].astype(np.int32).copy() if ragged else None
    x = rng.standard_normal((tau, B, X)).astype(np.float32)
    starts = [rng.standard_normal((n, B, H)).astype(np.float32) * 0.5 for _ in range(made.parts)]
    dh = rng.standard_normal((tau, B, config.width)).astype(np.float32)
    if lengths is not None:
        dh *= (np.arange(tau)[:, None] < lengths)[:, :, None]
    d_ends = [rng.standard_normal((n, B, H)).astype(np.float32) for _ in starts]

    x_t = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    starts_t = [torch.tensor(s, dtype=torch.float64, requires_grad=True) for s in starts]
    fed = x_t if lengths is None else torch.nn.utils.rnn.pack_padded_sequence(x_t, lengths)
    out_t, end_t = theirs(fed, tuple(starts_t) if two else starts_t[0])
    if lengths is not None:
        out_t, _ = torch.nn.utils.rnn.pad_packed_sequence(out_t, total_length=tau)
    ends_t = end_t if two else (end_t,)
    objective = (out_t * torch.tensor(dh, dtype=torch.float64)).sum()
    objective = objective + sum(
        (e * torch.tensor(d, dtype=torch.float64)).sum() for e, d in zip(ends_t, d_ends, strict=True)
    )
    objective.backward()

    state = [(starts[0][i], starts[1][i] if two else None) for i in range(n)]
    d_final_state = [(d_ends[0][i], d_ends[1][i] if two else None) for i in range(n)]
    out = model.forward(x, state, lengths=lengths)
    gradient = model.gradient()
    dx, d_start = model.backward(out, dh, gradient, d_final_state=d_final_state, want_dx=True)
    model.fold_input_tables(gradient)

    h = out.h
    if lengths is not None:
        h = h * (np.arange(tau)[:, None] < lengths)[:, :, None]
    errors = {"h": relative_error(h, out_t.detach()), "dx": relative_error(dx, x_t.grad)}
    for i in range(n):
        for part, name in enumerate("hs"[: len(starts)]):
            errors[f"{name}_end{i}"] = relative_error(out.state[i][part], ends_t[part][i].detach())
            errors[f"d{name}0_{i}"] = relative_error(d_start[i][part], starts_t[part].grad[i])
    grads = gradient_to_torch(config, gradient.values)
    errors |= {name: relative_error(grads[name], p.grad) for name, p in theirs.named_parameters()}
    return errors


def check(errors):
    worst = max(errors, key=errors.get)
    assert errors[worst] < TOLERANCE, f"{worst}: {errors[worst]:.2e}"


@pytest.mark.parametrize("H", [1, 7, 16, 33, 256])
@pytest.mark.parametrize("B", [1, 3, 32])
@pytest.mark.parametrize("tau", [1, 2, 35])
@pytest.mark.parametrize(("cell", "activation"), KINDS)
def test_a_layer_equals_pytorchs(cell, activation, tau, B, H):
    check(compare(cell, tau, B, H, activation=activation))


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(("cell", "activation"), KINDS)
def test_layers_directions_and_lengths_equal_pytorchs(cell, activation, layers, bidirectional, ragged):
    for tau, B, H in ((7, 3, 7), (35, 5, 33)):
        check(
            compare(
                cell,
                tau,
                B,
                H,
                activation=activation,
                layers=layers,
                bidirectional=bidirectional,
                ragged=ragged,
            )
        )
