"""Check the gradients of a model against finite differences and automatic differentiation.

Up to four computations of the same numbers, on one random window and without dropout:

    native        the network on its backend: float32, or products in bf16
    reference     the same network on the reference backend: NumPy, float64
    differences   (L(w + ε) - L(w - ε)) / 2ε in float64, from the reference's forward pass alone, for some values of
                  every parameter: the largest gradients and others at random
    PyTorch       autograd in float64 over PyTorch's own layers, where it is installed

An error is the largest difference between two computations of any value, relative to the parameter's largest gradient.
In bf16 single values are rounded too coarsely for this: the whole gradient of a parameter is compared with the reference,
which rounds nothing, by the norm of the difference relative to its norm.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unspool.cells import cell_named
from unspool.errors import MissingExtra
from unspool.gradients.bptt import backpropagate
from unspool.kernels import reference
from unspool.kernels.arrays import Floats, Ids, Precision
from unspool.kernels.backend import Backend
from unspool.kernels.memory import require_memory
from unspool.model.config import ModelConfig
from unspool.model.feedback import shift_right
from unspool.model.layer_names import layer_directions, torch_suffix
from unspool.model.memory import bytes_of_training
from unspool.model.network import Model
from unspool.model.parameters import prefix
from unspool.options import at_least

MOST = 10_000
"""The most steps, rows and values per parameter: the differences need two forward passes per value."""
EPSILON = 1e-5
"""The step of a difference: its own error is about ε² and 1e-16/ε."""
FLOAT32, EXACT = 1e-4, 1e-6
"""The largest error of float32 against float64, and of two computations in float64."""
BF16 = 0.1
"""The largest distance of a gradient in bf16 from that in float64, by norm."""

Gradients = dict[str, Floats]


@dataclass(frozen=True)
class Compared:
    """The errors of one parameter."""

    name: str
    shape: tuple[int, ...]
    probed: int
    """How many of its values the differences cover."""
    native_and_differences: float | None
    """None in bf16."""
    reference_and_differences: float
    native_and_torch: float | None
    reference_and_torch: float | None
    precision: Precision = "float32"
    distance: float = 0.0
    """Of the native gradient from the reference, by norm."""

    @property
    def agrees(self) -> bool:
        """Whether all errors are within the limits of their precision; NaN is not."""
        native = [self.native_and_differences, self.native_and_torch]
        if self.precision == "bf16" and not self.distance <= BF16:
            return False
        exact = [self.reference_and_differences, self.reference_and_torch]
        return all(e is None or e <= FLOAT32 for e in native) and all(e is None or e <= EXACT for e in exact)

    def to_json(self) -> dict[str, Any]:
        """Return all fields under the names of the JSON output."""
        return {
            "name": self.name,
            "shape": self.shape,
            "nudged": self.probed,
            "hand_and_differences": self.native_and_differences,
            "twins_and_differences": self.reference_and_differences,
            "hand_and_torch": self.native_and_torch,
            "twins_and_torch": self.reference_and_torch,
            "precision": self.precision,
            "distance": self.distance,
            "agrees": self.agrees,
        }


def check_gradients(
    model: Model,
    *,
    tau: int = 12,
    B: int = 3,
    probed: int = 24,
    seed: int = 0,
    on_progress: Callable[[str], None] = lambda name: None,
) -> list[Compared]:
    """Compare the gradients of every parameter on a random window; `on_progress` is called with each name.

    >>> model = Model.initialise(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=4), seed=0)
    >>> {each.name: each.agrees for each in check_gradients(model, probed=4)}
    {'layer0.U': True, 'layer0.W': True, 'V': True, 'layer0.b': True, 'layer0.d': True, 'c': True}
    """
    for size, given in (("tau", tau), ("B", B), ("probed", probed)):
        at_least(size, given, 1, MOST)
    # The reference backend has a tape of float64 as well, and PyTorch another.
    needed = 6 * bytes_of_training(model.config, B, tau)
    require_memory(needed, f"a window of {tau:,} steps and {B:,} rows", "choose smaller sizes")
    rng = np.random.default_rng(seed)
    x, y = window(model.config, tau, B, rng)
    fast, exact = (by_backend(model, x, y, backend) for backend in (model.backend, reference))
    in_torch = cell_named(model.config.cell).torch is not None and importlib.util.find_spec("torch")
    theirs, precise = by_torch(model, x, y) if in_torch else None, model.config.precision == "float32"
    found = []
    for name, value in exact.items():
        on_progress(name)
        positions = _positions(value, probed, rng)
        differences = by_differences(model, x, y, name, positions)
        scale = float(np.abs(value).max()) or 1.0

        def error(a: Floats, b: Floats, scale: float = scale) -> float:
            return float(np.abs(a - b).max()) / scale

        found.append(
            Compared(
                name,
                value.shape,
                len(positions),
                error(fast[name].reshape(-1)[positions], differences) if precise else None,
                error(value.reshape(-1)[positions], differences),
                error(fast[name], theirs[name]) if theirs is not None and precise else None,
                None if theirs is None else error(value, theirs[name]),
                model.config.precision,
                float(np.linalg.norm(fast[name] - value) / (np.linalg.norm(value) or 1.0)),
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


def by_backend(model: Model, x: Floats | Ids, y: Ids, backend: Backend) -> Gradients:
    """Return the gradients of BPTT on a backend."""
    model = model.on(backend)
    gradient, weights = model.gradient(), model.weights()
    passed = backpropagate(model, x, y, None, gradient, scale=1 / y.size, weights=weights)
    model.add_initial_state_gradient(passed.d_initial_state, gradient)
    model.fold_input_tables(gradient, weights)
    return {name: value.astype(np.float64) for name, value in gradient.values.items()}


def _positions(value: Floats, count: int, rng: np.random.Generator) -> Ids:
    """Choose the values to probe: half with the largest gradients, half at random; all where there are few."""
    if value.size <= count:
        return np.arange(value.size, dtype=np.int32)
    largest = np.argsort(-np.abs(value).reshape(-1), kind="stable")[: count // 2]
    return np.unique(np.concatenate([largest, rng.choice(value.size, count - len(largest))])).astype(np.int32)


def by_differences(model: Model, x: Floats | Ids, y: Ids, name: str, positions: Ids) -> Floats:
    """Move single values of a parameter up and down, in float64; return the differences of the mean loss."""
    exact = model.on(reference)
    value = exact.parameters[name]
    found = np.empty(len(positions))
    for i, at in enumerate(zip(*np.unravel_index(positions, value.shape), strict=True)):
        start, losses = value[at], []
        for step in (EPSILON, -EPSILON):
            value[at] = start + step
            losses.append(exact.loss(exact.forward(x, y=y), y).sum / y.size)
        value[at] = start
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
    loss = _torch_loss(torch, config, p, h.reshape(y.size, -1), torch.tensor(y).long().reshape(-1))
    loss.backward()
    return {n: np.zeros(v.shape) if v.grad is None else v.grad.numpy() for n, v in p.items()}


def _torch_loss(torch: Any, config: ModelConfig, p: Any, h: Any, y: Any) -> Any:
    """Return the mean loss of targets y (n,) after h (n, width)."""
    if not config.cutoffs:
        return torch.nn.functional.cross_entropy(h @ p[config.output_matrix].T + p["c"], y)
    V = torch.cat([p["E"][: config.cutoffs[0]], p["V"]]) if config.tied else p["V"]
    o = torch.log_softmax(h @ V.T + p["c"], dim=1)
    parts = [o[:, : config.cutoffs[0]]]
    for i in range(1, len(config.cutoffs) + 1):
        P, V, c = (p[f"tail{i}.{letter}"] for letter in "PVc")
        parts.append(o[:, config.cutoffs[0] + i - 1, None] + torch.log_softmax(h @ P.T @ V.T + c, dim=1))
    return torch.nn.functional.nll_loss(torch.cat(parts, dim=1), y)


def _activation(torch: Any, name: str) -> Any:
    return {"tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid, "identity": lambda a: a}[name]


def _torch_feedback(torch: Any, config: ModelConfig, p: Any, x: Any) -> Any:
    """Feed o(t-1) back, step by step; return all states."""
    V, states, act = p[config.output_matrix], [], _activation(torch, config.activation)
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
