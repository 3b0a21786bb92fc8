"""PyTorch's own sample inputs for its recurrent modules, through the comparison of `test_torch_parity`.

PyTorch keeps them in `torch.testing._internal.common_modules.module_db`. Options that exist here under
another form are translated: batch_first by transposing, an unbatched input by a batch of one, bias=False by
biases of zero, a Cell by a window of one step.

The samples reach to ±9, where 1 - tanh² has few digits left in float32 and shows every error of tanh.
"""

import numpy as np
import pytest
from torch.testing._internal.common_modules import module_db

import torch
from unspool.cells import cell_named
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.torch.state_dict import from_torch, gradient_to_torch

CELLS = {
    "nn.RNN": "elman", "nn.RNNCell": "elman", "nn.GRU": "gru", "nn.GRUCell": "gru", "nn.LSTM": "lstm",
    "nn.LSTMCell": "lstm",
}  # fmt: skip
FOUND = {"nn.RNN": 32, "nn.GRU": 16, "nn.LSTM": 32, "nn.RNNCell": 3, "nn.GRUCell": 2, "nn.LSTMCell": 2}
NOT_HERE = {"proj_size": "an LSTM whose h(t) is projected to fewer units does not exist here"}
"""Options of PyTorch's that this engine has not, and why: samples that use one do not apply."""


def samples(seed=0):
    torch.manual_seed(seed)
    for info in module_db:
        if info.name in CELLS:
            made = info.module_inputs_func(
                info, device="cpu", dtype=torch.float32, requires_grad=True, training=True
            )
            for i, sample in enumerate(made):
                yield f"{info.name} {i}", info, sample


def reason_against(sample):
    """Why a sample does not apply, or None."""
    return next((why for name, why in NOT_HERE.items() if sample.constructor_input.kwargs.get(name)), None)


ALL = list(samples())
APPLIED = [item for item in ALL if reason_against(item[2]) is None]
NOT_APPLIED = {name: reason_against(sample) for name, _, sample in ALL if reason_against(sample) is not None}


def test_every_sample_is_applied_or_listed_with_a_reason():
    counted = {name: sum(label.startswith(f"{name} ") for label, _, _ in ALL) for name in CELLS}
    assert counted == FOUND
    assert len(APPLIED) + len(NOT_APPLIED) == len(ALL) == 87
    assert len(APPLIED) == 71
    assert list(NOT_APPLIED.values()) == [NOT_HERE["proj_size"]] * 16


def relative_error(ours, theirs):
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30))


class Sample:
    """A module and its inputs, in double precision, as ours sees them: (tau, B, X) and (layers, B, H)."""

    def __init__(self, info, sample):
        torch.manual_seed(0)
        self.cell, self.stepwise = CELLS[info.name], info.name.endswith("Cell")
        made = sample.constructor_input
        self.module = info.module_cls(*made.args, **made.kwargs).double()
        x, *starts = sample.forward_input.args
        if starts and cell_named(self.cell).has_cell_state:
            starts = list(starts[0])
        self.x = x.detach().double().requires_grad_()
        self.starts = [s.detach().double().requires_grad_() for s in starts]
        self.batch_first = made.kwargs.get("batch_first", False)
        m = self.module
        self.config = ModelConfig(
            inputs=m.input_size, outputs=2, cell=self.cell, hidden=m.hidden_size, dense=True,
            layers=getattr(m, "num_layers", 1), bidirectional=getattr(m, "bidirectional", False),
            activation=getattr(m, "nonlinearity", "tanh"),
        )  # fmt: skip

    def ours(self, tensor):
        """A tensor of x or h as (tau, B, width)."""
        if self.stepwise:
            return tensor.reshape(1, -1, tensor.shape[-1])
        if tensor.dim() == 2:
            return tensor[:, None]
        return tensor.transpose(0, 1) if self.batch_first else tensor

    def states(self, tensor):
        """A tensor of states as (layers, B, H)."""
        if self.stepwise:
            return tensor.reshape(1, -1, tensor.shape[-1])
        return tensor[:, None] if tensor.dim() == 2 else tensor

    def run(self):
        given = (
            (tuple(self.starts) if cell_named(self.cell).has_cell_state else self.starts[0],)
            if self.starts
            else ()
        )
        result = self.module(self.x, *given)
        if not self.stepwise:
            h, ends = result
            return h, list(ends) if cell_named(self.cell).has_cell_state else [ends]
        return (result[0], list(result)) if cell_named(self.cell).has_cell_state else (result, [result])

    def state_dict(self):
        suffix = "_l0" if self.stepwise else ""
        return {name + suffix: value for name, value in self.module.state_dict().items()}

    def gradients(self):
        """Outputs, final states and every gradient of a random objective, as ours lays them out."""
        h, ends = self.run()
        rng = np.random.default_rng(0)
        dh, *d_ends = [
            torch.tensor(rng.standard_normal(tuple(v.shape)).astype(np.float32)) for v in (h, *ends)
        ]
        arriving = zip((h, *ends), (dh, *d_ends), strict=True)
        sum((value * d.to(value.dtype)).sum() for value, d in arriving).backward()
        found = {"h": self.ours(h), "dx": self.ours(self.x.grad)}
        for letter, end in zip("hs", ends, strict=False):
            found[f"{letter} end"] = self.states(end)
        for letter, start in zip("hs", self.starts, strict=False):
            found[f"d{letter}0"] = self.states(start.grad)
        found |= {name: p.grad for name, p in self.module.named_parameters()}
        return (
            {name: v.detach().numpy() for name, v in found.items()},
            self.ours(dh),
            map(self.states, d_ends),
        )


def float32(tensor):
    return np.ascontiguousarray(tensor.detach().numpy(), dtype=np.float32)


def ours_of(theirs, dh, d_ends):
    """The same from our engine, under the same names."""
    config, n = theirs.config, theirs.config.layers * theirs.config.directions
    model = Model(config, from_torch(config, theirs.state_dict()))

    def parts(tensors):
        values = [float32(t) for t in tensors]
        return [(values[0][i], values[1][i] if len(values) > 1 else None) for i in range(n)]

    state = parts(theirs.states(s) for s in theirs.starts) if theirs.starts else None
    out = model.forward(float32(theirs.ours(theirs.x)), state)
    gradient = model.gradient()
    dx, d_start = model.backward(out, float32(dh), gradient, d_final_state=parts(d_ends), want_dx=True)
    model.fold_input_tables(gradient)
    found = {"h": out.h, "dx": dx}
    for part, letter in enumerate("hs"[: cell_named(config.cell).parts]):
        found[f"{letter} end"] = np.stack([pair[part] for pair in out.state])
        found[f"d{letter}0"] = np.stack([pair[part] for pair in d_start])
    suffix = "_l0" if theirs.stepwise else ""
    named = gradient_to_torch(config, gradient.values)
    return found | {name.removesuffix(suffix): value for name, value in named.items()}


@pytest.mark.parametrize(
    ("info", "sample"), [item[1:] for item in APPLIED], ids=[item[0] for item in APPLIED]
)
def test_pytorchs_own_sample_equals_pytorch(info, sample):
    exact, dh, d_ends = Sample(info, sample).gradients()
    ours = ours_of(Sample(info, sample), dh, d_ends)
    for name, value in exact.items():
        assert relative_error(ours[name], value) < 2e-5, name
