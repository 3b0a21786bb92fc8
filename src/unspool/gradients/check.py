"""A proof of the gradients that anyone can run: by hand, by differences, by automatic differentiation.

Three ways to the same numbers, on one random window and without dropout:

    hand          the native kernels: the formulas of BPTT, written out, in float32
    twins         the same formulas in NumPy and float64
    differences   (L(w + ε) - L(w - ε)) / 2ε in float64, through the twins' forward pass alone, for some values of
                  every parameter: the largest gradients and others by chance
    PyTorch       autograd in float64 over PyTorch's own layers, where it is installed

An error is the largest distance of any value from the other way's, relative to the parameter's largest gradient.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unspool.cells import cell_named
from unspool.errors import MissingExtra
from unspool.gradients.backpropagate import backpropagate
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.memory import require_memory
from unspool.model.config import ModelConfig
from unspool.model.feedback import AT, shift_right
from unspool.model.layer_names import layer_directions, torch_suffix
from unspool.model.memory import bytes_of_training
from unspool.model.network import Model
from unspool.model.parameters import prefix
from unspool.model.twin import ForwardResult, Twin
from unspool.options import at_least

MOST = 10_000
"""The most steps, rows and values per parameter: the differences need two forward passes per value."""
EPSILON = 1e-5
"""The step of a difference: its own error is about ε² and 1e-16/ε."""
HAND, EXACT = 1e-4, 1e-6
"""How far float32 may be from float64, and two ways in float64 from each other."""

Gradients = dict[str, Floats]


@dataclass(frozen=True)
class Compared:
    """One parameter, four ways."""

    name: str
    shape: tuple[int, ...]
    nudged: int
    """How many of its values were nudged."""
    hand_and_differences: float
    twins_and_differences: float
    hand_and_torch: float | None
    twins_and_torch: float | None

    @property
    def agrees(self) -> bool:
        """Whether every two ways are as near as their precision allows; a NaN agrees with nothing."""
        hand = [self.hand_and_differences, self.hand_and_torch]
        exact = [self.twins_and_differences, self.twins_and_torch]
        return all(e is None or e <= HAND for e in hand) and all(e is None or e <= EXACT for e in exact)


def check_gradients(
    model: Model,
    *,
    tau: int = 12,
    B: int = 3,
    nudged: int = 24,
    seed: int = 0,
    told: Callable[[str], None] = lambda name: None,
) -> list[Compared]:
    """Compare the gradients of every parameter on a random window; `told` hears of each parameter's turn.

    >>> model = Model.initialise(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=4), seed=0)
    >>> {each.name: each.agrees for each in check_gradients(model, nudged=4)}
    {'layer0.U': True, 'layer0.W': True, 'V': True, 'layer0.b': True, 'layer0.d': True, 'c': True}
    """
    for size, given in (("tau", tau), ("B", B), ("nudged", nudged)):
        at_least(size, given, 1, MOST)
    # The reference implementation has a tape of float64 as well, and PyTorch another.
    needed = 6 * bytes_of_training(model.config, B, tau)
    require_memory(needed, f"a window of {tau:,} steps and {B:,} rows", "choose smaller sizes")
    rng = np.random.default_rng(seed)
    x, y = window(model.config, tau, B, rng)
    hand, twins = by_hand(model, x, y), by_twins(model, x, y)
    theirs = by_torch(model, x, y) if importlib.util.find_spec("torch") else None
    found = []
    for name, value in twins.items():
        told(name)
        places_of = _places(value, nudged, rng)
        differences = by_differences(model, x, y, name, places_of)
        scale = float(np.abs(value).max()) or 1.0

        def error(a: Floats, b: Floats, scale: float = scale) -> float:
            return float(np.abs(a - b).max()) / scale

        found.append(
            Compared(
                name,
                value.shape,
                len(places_of),
                error(hand[name].reshape(-1)[places_of], differences),
                error(value.reshape(-1)[places_of], differences),
                None if theirs is None else error(hand[name], theirs[name]),
                None if theirs is None else error(value, theirs[name]),
            )
        )
    return found


def window(config: ModelConfig, tau: int, B: int, rng: np.random.Generator) -> tuple[Floats | Ids, Ids]:
    """Return a random window: inputs, and a target for every step and row, or for every row."""
    x: Floats | Ids
    if config.dense:
        x = rng.standard_normal((tau, B, config.inputs)).astype(np.float32)
    else:
        x = rng.integers(0, config.inputs, (tau, B)).astype(np.int32)
    shape = (B,) if config.pattern == "last" else (tau, B)
    return x, rng.integers(0, config.outputs, shape).astype(np.int32)


def by_hand(model: Model, x: Floats | Ids, y: Ids) -> Gradients:
    """Return the gradients that training uses: the kernels'."""
    gradient, weights = model.gradient(), model.weights()
    passed = backpropagate(model, x, y, None, gradient, scale=1 / y.size, weights=weights)
    model.add_initial_state_gradient(passed.d_initial_state, gradient)
    model.finish(gradient, weights)
    return {name: value.astype(np.float64) for name, value in gradient.values.items()}


def by_twins(model: Model, x: Floats | Ids, y: Ids) -> Gradients:
    """Return the gradients of the same formulas in float64."""
    twin = Twin.of(model)
    config, H = model.config, model.config.hidden
    seen = twin.forward(x, y=y)
    do = seen.do(y, 1 / y.size)
    found = {name: np.zeros(value.shape) for name, value in twin.letters.items()}
    K, width = twin.V.shape
    found["E" if config.tied else "V"] += do.reshape(-1, K).T @ seen.h.reshape(-1, width)
    found["c"] += do.reshape(-1, K).sum(axis=0)
    for layer, row in enumerate(twin.backward(seen, do @ twin.V)):
        inputs = seen.inputs[layer]
        for i, (_, back) in enumerate(row):
            at, tape = prefix(layer, bool(i)), seen.tapes[layer][i]
            if config.feeds_logits:
                _fold_feedback(found, twin, back.da, seen)
            da = back.da.reshape(-1, back.da.shape[2])
            to_x = da[:, : twin.gates * H]
            if seen.before is not None:
                one_hot = (seen.before >= 0)[:, :, None] * np.eye(K)[seen.before]
                found[at + "R"] += da.T @ one_hot.reshape(len(da), K)
            elif not config.feeds_logits:
                found[at + "W"] += twin.recurrent(da).T @ tape.h_before.reshape(len(da), H)
            found[at + "b"] += to_x.sum(axis=0)
            taped = None if tape.gates is None else tape.gates.reshape(len(da), tape.gates.shape[2])
            for each in twin.cell.extra:
                found[at + each.name] += each.gradient(da, taped, H, to_x.shape[1])
            if inputs.ndim == 2:
                np.add.at(found[at + "U"].T, inputs.reshape(-1), to_x)
            else:
                found[at + "U"] += to_x.T @ inputs.reshape(len(da), -1)
            if layer == 0 and config.embedding:
                np.add.at(found["E"], x.reshape(-1), to_x @ twin.letters[at + "U"])
            if config.learn_h0:
                found[at + "h0"] += back.dh0.sum(axis=0)
                if back.ds0 is not None:
                    found[at + "s0"] += back.ds0.sum(axis=0)
    return found


def _fold_feedback(found: Gradients, twin: Twin, da: Floats, seen: ForwardResult) -> None:
    """Add the gradients of R, V and c that pass through o(t-1): R da(t) arrives there, at every step."""
    h_before = seen.tapes[0][0].h_before.reshape(-1, twin.config.hidden)
    da = da.reshape(len(h_before), -1)
    to_o = da @ twin.letters[AT + "R"]  # tau·B K
    found[AT + "R"] += da.T @ (h_before @ twin.V.T + twin.letters["c"])
    found["E" if twin.config.tied else "V"] += to_o.T @ h_before
    found["c"] += to_o.sum(axis=0)


def _places(value: Floats, count: int, rng: np.random.Generator) -> Ids:
    """Choose which values to nudge: half with the largest gradients, half by chance; all where there are few."""
    if value.size <= count:
        return np.arange(value.size, dtype=np.int32)
    largest = np.argsort(-np.abs(value).reshape(-1), kind="stable")[: count // 2]
    return np.unique(np.concatenate([largest, rng.choice(value.size, count - len(largest))])).astype(np.int32)


def by_differences(model: Model, x: Floats | Ids, y: Ids, name: str, places_of: Ids) -> Floats:
    """Nudge single values of a parameter up and down, in float64."""
    twin = Twin.of(model)
    value = twin.letters[name]
    found = np.empty(len(places_of))
    for i, at in enumerate(places_of):
        losses = []
        for step in (EPSILON, -EPSILON):
            moved = value.copy()
            moved.reshape(-1)[at] += step
            losses.append(twin.moved(name, moved).forward(x, y=y).nats(y).sum() / y.size)
        found[i] = (losses[0] - losses[1]) / (2 * EPSILON)
    return found


def by_torch(model: Model, x: Floats | Ids, y: Ids) -> Gradients:
    """Return what PyTorch's autograd finds in float64, over its own layers where it has them."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("this comparison needs PyTorch: pip install unspool[torch]") from error
    config = model.config
    p = {n: torch.tensor(v.astype(np.float64), requires_grad=True) for n, v in model.parameters.items()}
    h: Any = torch.tensor(x.astype(np.float64)) if config.dense else torch.tensor(x).long()
    if not config.dense:
        h = p["E"][h] if config.embedding else torch.nn.functional.one_hot(h, config.inputs).double()
    if config.feeds_logits:
        h = _torch_feedback(torch, config, p, h)
    elif config.feeds_tokens:
        before = torch.tensor(shift_right(y, np.full(y.shape[1], -1))).long()
        one_hot = torch.nn.functional.one_hot(before.clamp(min=0), config.outputs) * (before >= 0)[:, :, None]
        a = p["layer0.b"] + h @ p["layer0.U"].T + one_hot.double() @ p["layer0.R"].T
        h = _activation(torch, config.activation)(a)
    else:
        for layer in range(config.layers):
            own = [(each, reverse) for each, reverse in layer_directions(config) if each == layer]
            read = [_torch_layer(torch, config, p, h, layer, reverse) for _, reverse in own]
            h, end = (torch.cat([part[i] for part in read], dim=-1) for i in (0, 1))
        h = end if config.pattern == "last" else h
    o = h @ p["E" if config.tied else "V"].T + p["c"]
    loss = torch.nn.functional.cross_entropy(
        o.reshape(-1, config.outputs), torch.tensor(y).long().reshape(-1)
    )
    loss.backward()  # type: ignore[no-untyped-call]
    return {n: np.zeros(v.shape) if v.grad is None else v.grad.numpy() for n, v in p.items()}


def _activation(torch: Any, name: str) -> Any:
    return {"tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid, "identity": lambda a: a}[name]


def _torch_feedback(torch: Any, config: ModelConfig, p: Any, x: Any) -> Any:
    """Feed o(t-1) back, step by step; return all states."""
    V, states, act = p["E" if config.tied else "V"], [], _activation(torch, config.activation)
    h = p["layer0.h0" if config.learn_h0 else "layer0.b"].expand(x.shape[1], config.hidden)
    h = h if config.learn_h0 else torch.zeros_like(h)
    for x_t in x:
        o = p["c"] + h @ V.T
        h = act(p["layer0.b"] + x_t @ p["layer0.U"].T + o @ p["layer0.R"].T)
        states.append(h)
    return torch.stack(states)


def _torch_layer(
    torch: Any, config: ModelConfig, p: Any, x: Any, layer: int, reverse: bool
) -> tuple[Any, Any]:
    """Read a window with PyTorch's own layer, given our parameters; return all states and the last."""
    at, H, B = prefix(layer, reverse), config.hidden, x.shape[1]
    x = x.flip(0) if reverse else x
    h0, s0 = (
        p[at + n].expand(1, B, H) if at + n in p else torch.zeros(1, B, H).double() for n in ("h0", "s0")
    )
    cell = cell_named(config.cell)
    if cell.has_activation and config.activation in ("sigmoid", "identity"):  # PyTorch's layer has neither
        states, act = [h0[0]], _activation(torch, config.activation)
        for x_t in x:
            states.append(act(p[at + "b"] + x_t @ p[at + "U"].T + states[-1] @ p[at + "W"].T))
        h, end = torch.stack(states[1:]), states[-1]
    else:
        assert cell.torch is not None
        more = {"nonlinearity": config.activation} if cell.has_activation else {}
        zero = torch.zeros(H).double()
        inner = cell.torch.inner_biases
        second = torch.cat([p[at + inner[gate]] if gate in inner else zero for gate in cell.gates])
        ours = {"weight_ih": "U", "weight_hh": "W", "bias_ih": "b"}
        given = {f"{n}_{torch_suffix(0, False)}": p[at + letter] for n, letter in ours.items()}
        given[f"bias_hh_{torch_suffix(0, False)}"] = second
        net = getattr(torch.nn, cell.torch.name)(x.shape[2], H, **more).double()
        h, state = torch.func.functional_call(net, given, (x, (h0, s0) if cell.has_cell_state else h0))
        end = (state[0] if cell.has_cell_state else state)[0]
    return h.flip(0) if reverse else h, end
