"""Every shape, head and attention: native against the reference, the reference against PyTorch and finite differences."""

import itertools

import numpy as np
import pytest

import torch
from unspool.cells import CELLS, cell_named
from unspool.data.batches.examples import SequenceBatch
from unspool.kernels import native, reference
from unspool.model.decode import beam, roll_out, sample
from unspool.model.sequence_config import EOS, SequenceConfig
from unspool.model.sequence_network import Network
from unspool.torch.state_dict import gradient_to_torch, to_torch

READ, WRITTEN = np.array([5, 2, 4, 0], np.int32), np.array([3, 4, 1, 2], np.int32)


def make(shape, head, seed=0, **more):
    rng = np.random.default_rng(seed)
    dense = more.pop("dense", True)
    config = SequenceConfig(
        shape=shape, head=head, inputs=3 if dense else 7, dense=dense, outputs=5, hidden=6, **more
    )
    network = Network.initialise(config, seed)
    flat = network.parameters.flat
    flat += rng.uniform(-0.2, 0.2, flat.shape).astype(np.float32)
    return network, batch_for(config, rng)


def batch_for(config, rng):
    B, tau = len(READ), int(READ.max())
    lengths = np.ones(B, np.int32) if config.shape.startswith("one") else READ
    tau = int(lengths.max())
    x = rng.standard_normal((tau, B, 3)).astype(np.float32)
    if not config.dense:
        x = rng.integers(0, 7, (tau, B)).astype(np.int32)
    where = (B,) if not (config.per_step or config.has_decoder) else (tau, B)
    written = None
    if config.has_decoder:
        written, where = WRITTEN, (int(WRITTEN.max()), B)
    if config.per_step:
        written = lengths
    if config.head == "classes":
        y = rng.integers(EOS, config.outputs, where).astype(np.int32)
    else:
        y = rng.standard_normal((*where, config.outputs)).astype(np.float32)
    if len(where) == 2:
        beyond = np.arange(where[0])[:, None] >= written
        y[beyond] = -1 if config.head == "classes" else np.nan
    return SequenceBatch(x, lengths, y, written, np.arange(B))


CASES = [
    *itertools.product(
        ("many-to-one", "one-to-one", "many-to-many"), ("classes", "numbers", "distribution"), [{}]
    ),
    *itertools.product(
        ("one-to-many", "encoder-decoder"),
        ("classes", "numbers", "distribution"),
        [{}, {"attention": "general"}, {"attention": "additive", "bidirectional": True}],
    ),
    ("many-to-one", "classes", {"pool": "mean", "bidirectional": True}),
    ("many-to-one", "numbers", {"bidirectional": True, "layers": 2, "dense": False, "embedding": 4}),
    ("encoder-decoder", "classes", {"attention": "general", "layers": 2, "dense": False, "embedding": 4}),
]
IDS = ["-".join([shape, head, *map(str, more.values())]) for shape, head, more in CASES]


def layers_of(model):
    """PyTorch's layers with the same parameters, in float64."""
    kind = getattr(torch.nn, cell_named(model.config.cell).torch.name)
    made = kind(
        model.config.embedding or model.config.inputs, model.config.hidden, model.config.layers,
        bidirectional=model.config.bidirectional,
    ).double()  # fmt: skip
    state = to_torch(model.config, model.parameters)
    made.load_state_dict({name: torch.tensor(value).double() for name, value in state.items()})
    return made


class Twin:
    """The same network in PyTorch, row by row: no padding, no mask, automatic differentiation."""

    def __init__(self, network):
        self.config = network.config
        self.encoder = layers_of(network.encoder)
        self.decoder = layers_of(network.decoder) if network.decoder else None
        rest = {
            name: value for name, value in network.parameters.items()
            if name in ("V", "c") or name.startswith("attention.") or name.endswith("coder.E")
        }  # fmt: skip
        self.p = {name: torch.tensor(value.copy()).double().requires_grad_() for name, value in rest.items()}

    def steps(self, at, x, size):
        if at in self.p:
            return self.p[at][torch.tensor(x).long()]
        return torch.nn.functional.one_hot(torch.tensor(x).long(), size).double()

    def row(self, x, y):
        config = self.config
        x = torch.tensor(x).double() if config.dense else self.steps("encoder.E", x, config.inputs)
        D, H = 2 if config.bidirectional else 1, config.hidden
        if len(x):
            e, end = self.encoder(x)
        else:
            e = torch.zeros(0, D * H).double()
            zeros = torch.zeros(config.layers * D, H).double()
            end = (zeros, zeros) if config.cell == "lstm" else zeros
        h_end = end[0] if config.cell == "lstm" else end
        if config.per_step:
            return self.head(e, y)
        if not config.has_decoder:
            last = e.mean(0) if config.pool == "mean" and len(e) else h_end[-D:].reshape(-1)
            return self.head(last[None], y[None])
        fold = lambda s: s.reshape(config.layers, D, H).sum(1)  # noqa: E731
        start = tuple(map(fold, end)) if config.cell == "lstm" else fold(end)
        if config.tokens_out:
            before = self.steps("decoder.E", np.concatenate([[1], y[:-1]]), config.outputs)
        else:
            before = torch.tensor(np.concatenate([np.zeros((1, y.shape[1])), y[:-1]])).double()
        h, _ = self.decoder(before, start)
        return self.head(self.attend(e, h) if config.attention != "none" else h, y)

    def attend(self, e, h):
        A, C, a = (self.p[f"attention.{name}"] for name in "ACa")
        if self.config.attention == "general":
            score = h @ A @ e.T / self.config.hidden**0.5
        else:
            inside = torch.tanh((h @ self.p["attention.P"].T)[:, None] + (e @ A.T)[None])
            score = inside @ self.p["attention.v"]
        z = torch.softmax(score, 1) @ e if len(e) else torch.zeros(len(h), e.shape[1]).double()
        return torch.tanh(torch.cat([z, h], 1) @ C.T + a)

    def head(self, h, y):
        o, config = h @ self.p["V"].T + self.p["c"], self.config
        if config.head == "classes":
            return torch.nn.functional.cross_entropy(o, torch.tensor(y).long(), reduction="sum")
        y = torch.tensor(y).double()
        if config.head == "numbers":
            return ((o - y) ** 2).sum()
        mean, rho = o[:, : config.outputs], o[:, config.outputs :]
        spread = config.floor + (rho + torch.sqrt(rho**2 + 4)) / 2
        return -torch.distributions.Normal(mean, spread).log_prob(y).sum()

    def loss(self, batch):
        total = torch.zeros(()).double()
        for b, length in enumerate(batch.lengths):
            y = batch.y[b] if batch.target_lengths is None else batch.y[: batch.target_lengths[b], b]
            if len(np.atleast_1d(y)):
                total = total + self.row(batch.x[:length, b], y)
        return total


def targets(network, batch):
    return int((batch.y >= 0).sum() if network.config.head == "classes" else (~np.isnan(batch.y)).sum())


def close(ours, theirs, limit):
    theirs = np.asarray(theirs)
    assert np.abs(ours - theirs).max(initial=0) <= limit * max(1.0, np.abs(theirs).max(initial=0))


LIMITS = {"native": (native, 2e-5), "reference": (reference, 1e-12)}
"""The largest difference from PyTorch in float64, as a share of the largest value."""


@pytest.mark.parametrize("backend", LIMITS)
@pytest.mark.parametrize("cell", [name for name, cell in CELLS.items() if cell.torch])
@pytest.mark.parametrize(("shape", "head", "more"), CASES, ids=IDS)
def test_loss_and_gradients_are_pytorchs(cell, shape, head, more, backend):
    network, batch = make(shape, head, cell=cell, **more)
    (on, limit), twin = LIMITS[backend], Twin(network)
    network = network.on(on)
    gradient = network.gradient()
    loss = network.loss(batch, gradient=gradient)
    total = twin.loss(batch)
    count = targets(network, batch)
    (total / count).backward()
    assert loss.count == count
    close(loss.sum, total.detach(), limit)
    for name, parameter in twin.p.items():
        close(gradient.values[name], parameter.grad, limit)
    for at, model, layers in (
        ("encoder", network.encoder, twin.encoder),
        ("decoder", network.decoder, twin.decoder),
    ):
        if model is None:
            continue
        part = {
            name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in layers.named_parameters()
        }
        ours = gradient_to_torch(model.config, getattr(gradient, at).values)
        for name, value in part.items():
            close(ours[name], value, limit)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("shape", "head", "more"), CASES, ids=IDS)
def test_native_gives_the_outputs_the_loss_and_the_gradients_of_the_reference(cell, shape, head, more):
    found, (network, batch) = [], make(shape, head, cell=cell, dropout=0.3, recurrent_dropout=0.2, **more)
    for backend in (native, reference):
        here = network.on(backend)
        gradient, masks = here.gradient(), here.masks(batch.B, seed=3, step=5)
        loss = here.loss(batch, gradient=gradient, masks=masks)
        o = here.outputs(batch)
        assert {o.dtype, gradient.values.flat.dtype} == {np.dtype(backend.DTYPE)}
        found.append({"o": o, "loss": loss.per_target, **gradient.values})
    for name, value in found[1].items():
        close(found[0][name], value, 2e-5)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("shape", "head", "more"), CASES, ids=IDS)
def test_gradients_of_the_reference_are_finite_differences(cell, shape, head, more, dropout):
    network, batch = make(shape, head, cell=cell, dropout=dropout, recurrent_dropout=dropout / 2, **more)
    network = network.on(reference)
    gradient, masks = network.gradient(), network.masks(batch.B, seed=3, step=5)
    network.loss(batch, gradient=gradient, masks=masks)
    rng, step = np.random.default_rng(1), 1e-5
    for name, value in network.parameters.items():
        direction, losses = rng.standard_normal(value.shape), []
        for move in (step, -2 * step):
            value += move * direction
            losses.append(network.loss(batch, masks=masks).mean)
        value += step * direction
        numeric = (losses[0] - losses[1]) / (2 * step)
        assert (gradient.values[name] * direction).sum() == pytest.approx(numeric, rel=1e-6, abs=1e-8), name


@pytest.mark.parametrize("attention", ["none", "general", "additive"])
def test_decoding_on_the_reference_writes_what_native_writes(attention):
    network, batch = make("encoder-decoder", "classes", attention=attention)
    numbers, values = make("encoder-decoder", "distribution", attention=attention)
    found = []
    for backend in (native, reference):
        here, other = network.on(backend), numbers.on(backend)
        written = beam(here, batch, here.weights(), max_length=6, width=2)
        written += sample(here, batch, here.weights(), max_length=6, temperature=0.7, seed=0)
        o = roll_out(other, values, other.weights(), steps=5)
        assert o.dtype == backend.DTYPE
        found.append(([each.tokens.tolist() for each in written], [each.log_prob for each in written], o))
    assert found[0][0] == found[1][0]
    close(found[0][1], found[1][1], 1e-5)
    close(found[0][2], found[1][2], 1e-5)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("shape", "head", "more"), CASES, ids=IDS)
def test_padding_changes_no_bit(cell, shape, head, more):
    network, batch = make(shape, head, cell=cell, **more)
    gradient = network.gradient()
    loss = network.loss(batch, gradient=gradient)
    x, extra = batch.x.copy(), 3
    beyond = np.arange(len(x))[:, None] >= batch.lengths
    x[beyond] = np.nan if network.config.dense else 6
    tail = np.full((extra, *x.shape[1:]), np.inf if network.config.dense else 5, x.dtype)
    y = batch.y
    if batch.target_lengths is not None:
        nothing = -1 if head == "classes" else np.nan
        y = np.concatenate([y, np.full((extra, *y.shape[1:]), nothing, y.dtype)])
    padded = SequenceBatch(np.concatenate([x, tail]), batch.lengths, y, batch.target_lengths, batch.rows)
    again = network.gradient()
    other = network.loss(padded, gradient=again)
    assert (loss.sum, loss.count) == (other.sum, other.count)
    assert gradient.values.flat.tobytes() == again.values.flat.tobytes()


def test_a_row_alone_is_the_row_among_others():
    network, batch = make("many-to-one", "distribution", cell="lstm", bidirectional=True)
    among = network.outputs(batch)
    for b in range(batch.B):
        alone = SequenceBatch(
            batch.x[: max(1, batch.lengths[b]), b : b + 1].copy(),
            batch.lengths[b : b + 1],
            None,
            None,
            np.arange(1),
        )
        assert (network.outputs(alone)[0] == among[b]).all()
